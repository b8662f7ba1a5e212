//! Loads that are job streams: the same runner as for the tasks that are measured, which interbench does, too.

use machmeter_engine::load::LoadError;
use machmeter_engine::stream::{Deadline, Demand, Overload, RealMachine, Release, Stream, run};
use machmeter_engine::worker::{ARGUMENT, NOTHING};
use machmeter_sys::process;
use machmeter_sys::thread::monotonic_ns;
use std::sync::Arc;

use crate::work::Work;

/// A periodic stream that drops what it is too late for.
pub(crate) fn periodic(period_ns: u64, demand: Demand) -> Stream {
    Stream {
        release: Release::Periodic { period_ns },
        demand,
        deadline: Deadline::Next,
        overload: Overload::Drop,
        stages: Vec::new(),
    }
}

/// Runs the stream in as many threads as asked for, 1 if nothing was said, until it is time to stop. One unit of work is
/// an executed job. The run is made of rounds of `jobs` releases, which a ramp must go through once.
pub(crate) fn play(work: &Work, name: &str, stream: &Stream, jobs: u32) -> Result<(), LoadError> {
    let period_ns =
        stream.period_ns().ok_or_else(|| LoadError::Cannot("a stream without a period".to_owned()))?;
    let round_ns = period_ns * u64::from(jobs);
    work.ready();
    work.threads(name, work.request().threads.unwrap_or(1) as usize, |lane| {
        let nothing = (process::program(), vec![ARGUMENT.into(), NOTHING.name.into()]);
        let machine = RealMachine::new(stream, work.stop_flag(), nothing);
        let count = work.count(lane);
        let mut machine =
            machine.map_err(|e| LoadError::Cannot(e.to_string()))?.telling(Arc::new(move |_| count.add(1)));
        let mut done = Vec::with_capacity(stream.jobs_in(round_ns));
        let mut t0_ns = monotonic_ns();
        while !work.stopped() {
            done.clear();
            run(&mut machine, stream, t0_ns, round_ns, work.request().seed, &mut done);
            // A round that was slept through (suspend, SIGSTOP) is not made up for.
            t0_ns = (t0_ns + round_ns).max(monotonic_ns().saturating_sub(period_ns));
        }
        Ok(())
    })
}
