//! Runs the self-tests of the cost probes. Checks that do not depend on a quiet machine must pass anywhere.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell what was found")]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::program::Lab;

/// Longest time of a quick self-test; tests run on busy machines.
const LONGEST: Duration = Duration::from_secs(58);

/// Runs a self-test, and requires a pass of the checks in `sure`, which other programs can't affect.
fn passes_anywhere(probe: &str, options: &[&str], sure: &[&str], least: usize) {
    let lab = Lab::alone();
    let ended = lab.run(&[&["selftest", probe, "--quick", "--json", "-q"], options].concat());
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{ended:?}");
    assert!(ended.wall < LONGEST, "{:?}", ended.wall);
    let record = ended.record();
    for f in &record.findings {
        println!("{} {}: {:?}", f.id, f.verdict, f.evidence);
    }
    let ids: BTreeSet<&str> = record.findings.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(ids.len(), record.findings.len(), "a check stands there twice");
    let prefix = |s: &&str| format!("selftest.{probe}.{s}");
    let sure: Vec<String> = sure.iter().map(prefix).collect();
    let of = record.findings.iter().filter(|f| sure.iter().any(|s| f.id.starts_with(s)));
    let verdicts: Vec<(&str, &str)> = of.map(|f| (f.id.as_str(), f.verdict.as_str())).collect();
    assert!(verdicts.len() >= least, "{verdicts:?}");
    assert!(verdicts.iter().all(|v| v.1 == "pass"), "{verdicts:?}");
    assert!(lab.files().is_empty(), "{:?}", lab.files());
}

#[test]
fn memory_knows_its_chains() {
    passes_anywhere("memory", &[], &["chains."], 1);
}

#[test]
fn sync_knows_locks_that_do_not_lock() {
    passes_anywhere("sync", &[], &["exclusion.", "killed."], 6);
}

#[test]
fn net_knows_what_a_link_takes_without_a_receiver() {
    passes_anywhere("net", &[], &["threshold.pipe", "threshold.shm"], 2);
}

#[test]
fn ops_prices_nothing_that_did_not_happen() {
    passes_anywhere("ops", &[], &["nothing.", "failing."], 3);
}

#[test]
fn interactive_accounts_for_every_release_and_tries_again_within_its_time() {
    passes_anywhere("interactive", &["-t", "40s"], &["releases", "split", "calibration"], 3);
}

#[test]
fn mpi_knows_what_its_simulated_ranks_pay() {
    passes_anywhere("mpi", &[], &["mpi.", "clocks."], 2);
}
