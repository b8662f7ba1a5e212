//! Runs seeds and findings of the fuzz targets (`make fuzz`) on every parser of untrusted bytes, on a stable compiler.

#![allow(clippy::disallowed_methods, reason = "the wall time of a parser, as a user's watch shows it")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use machmeter::untrusted::PARSERS;

/// Longest time of a parser for one seed; tests run on busy machines.
const WITHIN: Duration = Duration::from_secs(5);

#[test]
fn parsers_survive_every_seed_whole_and_cut() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let targets = fs::read_dir(fuzz.join("fuzz_targets")).unwrap().count();
    assert_eq!(targets, PARSERS.len(), "a target for each parser");
    for (name, parse) in PARSERS {
        assert!(fuzz.join(format!("fuzz_targets/{name}.rs")).is_file(), "{name} has no target");
        let mut seeds = 0;
        for entry in fs::read_dir(fuzz.join("corpus").join(name)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            seeds += 1;
            for end in [bytes.len(), bytes.len() / 2, bytes.len() / 3] {
                let begun = Instant::now();
                parse(&bytes[..end]);
                let took = begun.elapsed();
                assert!(took < WITHIN, "{}, {end} bytes: {took:?}", path.display());
            }
        }
        assert!(seeds > 1, "{name}: {seeds} seeds");
    }
}
