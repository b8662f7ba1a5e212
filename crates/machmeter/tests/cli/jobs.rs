//! Tests that the job files of the repository are accepted and run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print what they checked")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use crate::program::{Ended, Lab};
use crate::shown::{files, shown};

/// Time of a run: 3 tasks under 2 loads take longer than the rest.
fn time(job: &str) -> &'static str {
    if job.contains("interactive") { "4s" } else { "700ms" }
}

/// Checks that the run succeeded, or that its error names the missing MPI library.
#[track_caller]
fn expect_accepted(ended: &Ended, job: &str) {
    let lacks_mpi = ended.code == Some(4) && ended.stderr.contains("no MPI library");
    if lacks_mpi {
        println!("{job}: skipped: no MPI library");
    }
    // Load by other programs can end a short run early, or leave too few samples.
    assert!(lacks_mpi || matches!(ended.code, Some(0 | 3 | 5)), "{job}: {ended:?}");
}

/// The job with its proposals (`# key = value`) enabled.
fn with_proposals(text: &str) -> String {
    let is_entry = |l: &str| l.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let line = |l: &str| l.strip_prefix("# ").filter(|l| is_entry(l)).unwrap_or(l).to_owned() + "\n";
    text.lines().map(line).collect()
}

#[test]
fn every_job_file_is_accepted_and_runs() {
    let lab = Lab::new();
    let jobs = files("jobs", "toml");
    assert!(jobs.len() >= 8, "{jobs:?}");
    let check = |job: &Path| {
        let (name, path) = (shown(job), job.to_str().unwrap());
        let run =
            |more: &[&str]| lab.run(&[&["--job", path, "-q", "--no-save", "-t", time(&name)], more].concat());
        expect_accepted(&run(&["--dry-run"]), &name);
        let copy = format!("proposed-{}", job.file_name().unwrap().to_string_lossy());
        fs::write(lab.work().join(&copy), with_proposals(&fs::read_to_string(job).unwrap())).unwrap();
        let proposed = lab.line(&format!("--job {copy} --allow-commands --dry-run"));
        expect_accepted(&proposed, &format!("{name} with what its comments propose"));
        let ended = run(&["--json"]);
        expect_accepted(&ended, &name);
        if ended.code != Some(4) {
            let probe = job.file_stem().unwrap().to_str().unwrap();
            let figures = ended.record().metrics;
            assert!(
                figures.iter().any(|m| m.id.starts_with(&format!("{probe}."))),
                "{name}: no figure of {probe}"
            );
        }
    };
    let next = Mutex::new(jobs.iter());
    let work = || {
        while let Some(job) = { next.lock().unwrap().next() } {
            check(job);
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn every_probe_has_an_example_and_every_example_a_probe() {
    let names: BTreeSet<String> =
        files("jobs", "toml").iter().map(|j| j.file_name().unwrap().to_string_lossy().into_owned()).collect();
    let declared: BTreeSet<String> =
        machmeter::PROBES.iter().map(|p| p.info.example_job.to_owned()).collect();
    assert_eq!(names, declared);
    for job in files("jobs", "toml") {
        let text = fs::read_to_string(&job).unwrap();
        let tables: toml::Table = toml::from_str(&text).unwrap();
        let probe = machmeter::PROBES.iter().find(|p| job.ends_with(p.info.example_job)).unwrap();
        assert_eq!(tables.keys().collect::<Vec<_>>(), [probe.info.name], "{}", shown(&job));
        assert!(
            text.contains(&format!("machmeter --job {}", shown(&job))),
            "{} says how to run it",
            shown(&job)
        );
    }
}

#[test]
fn proposals_of_a_job_are_put_in_force() {
    let text = "# What it is.\n[ops]\n# exec_target = \"/bin/true\"   # more\n";
    assert_eq!(with_proposals(text), "# What it is.\n[ops]\nexec_target = \"/bin/true\"   # more\n");
}
