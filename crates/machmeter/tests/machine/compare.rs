//! Tests `ab` on the real machine: it finds a load that one setting adds.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

use serde_json::Value;

use crate::program::{Lab, is_loaded, words};

#[test]
fn settings_in_turns_find_a_hog() {
    let lab = Lab::alone();
    // The hog takes a fifth of every CPU, as long as its setting is active.
    let hog = "for i in 1 2; do while :; do timeout 0.02 sh -c 'while :; do :; done'; sleep 0.06; done & done; wait";
    let noise = "-t 40s --metric noise.stolen_fraction --json -- noise -t 300ms";
    let run = lab.run(&[&["ab", "true", hog], &words(noise)[..]].concat());
    if run.code == Some(3) && is_loaded(&lab.line("noise -t 300ms --json --no-save").record()) {
        return println!("not judged: other programs keep the CPUs busier than the hog does");
    }
    let c: Value = serde_json::from_str(&run.expect(1).stdout).unwrap();
    assert!(c["counts"]["worse"].as_u64().unwrap() >= 1, "{}", run.stdout);
    assert!(lab.files().is_empty());
}
