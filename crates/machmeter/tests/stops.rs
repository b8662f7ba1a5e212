//! A run that is stopped at any moment says only what it knows: the signal's exit code, one document, no praise without an
//! interval, no interval without width, and no process left.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod program;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use machmeter_data::Record;
use machmeter_data::summary::{Fit, Fitness};
use program::{Lab, descendants, record_in};
use rustix::process::Signal;

/// Moments of the signal after the start, ms: densest where the first parts begin. All together 8 s.
const MOMENTS_MS: [u64; 10] = [50, 150, 250, 350, 500, 750, 1_000, 1_300, 1_650, 2_000];

fn honest(record: &Record, moment_ms: u64) {
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "signal:INT"), "{moment_ms} ms");
    for m in &record.metrics {
        let wide = m.ci.as_ref().is_none_or(|ci| ci.high > ci.low);
        assert!(wide, "{moment_ms} ms: {} {:?} = {:?}: {:?}", m.id, m.params, m.value, m.ci);
    }
    let stolen = record.metrics.iter().find(|m| m.id == "noise.stolen_fraction");
    let known = stolen.is_some_and(|m| m.ci.is_some());
    let is_praised = |f: &Fitness| f.fit == Fit::Yes && f.purpose != "audio, video";
    assert!(known || !record.summary.fitness.iter().any(is_praised), "{moment_ms} ms: {:?}", record.summary);
}

#[test]
fn a_bare_run_stopped_at_any_moment_is_honest() {
    for (i, moment_ms) in MOMENTS_MS.into_iter().enumerate() {
        let lab = Lab::new();
        let json = i % 2 == 0;
        let arguments = if json { &["-l", "quick", "--json"][..] } else { &["-l", "quick"] };
        let run = lab.start(arguments);
        sleep(Duration::from_millis(moment_ms));
        let below = descendants(run.id() as i32);
        run.send(Signal::INT);
        let ended = run.end();
        ended.expect(130);
        // One that was stopped before it measured has no files.
        let written = lab.files().into_iter().find(|f| Path::new(f).extension().is_some_and(|e| e == "json"));
        let record =
            if json { Some(ended.record()) } else { written.map(|f| record_in(&lab.work().join(f))) };
        let metrics = record.as_ref().map_or(0, |r| r.metrics.len());
        println!("after {moment_ms} ms: ended after {:?}, {metrics} figures", ended.wall);
        if let Some(record) = record {
            honest(&record, moment_ms);
        }
        let left = |pid: &&i32| std::fs::exists(format!("/proc/{pid}")).unwrap();
        assert_eq!(below.iter().filter(left).count(), 0, "{moment_ms} ms: processes are left");
    }
}
