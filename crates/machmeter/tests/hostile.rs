//! Strangers: records and files of others, names that steer terminals, directories of another user, inputs without an end. None of
//! them steers, fills or blocks anything, and each gets one short line.

#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use machmeter_data::Record;
use machmeter_data::text::steers;
use program::{Ended, Lab};
use serde_json::Value;

/// Sets the title of a terminal, its color with one byte, and the direction of text.
const STEERING: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}";

/// Puts [`STEERING`] before each text that stands under `key`.
fn poison(value: &mut Value, key: &str, at: &str) {
    match value {
        Value::String(text) if at == key => *text = format!("={STEERING}{text}"),
        Value::Array(all) => all.iter_mut().for_each(|v| poison(v, key, at)),
        Value::Object(all) => all.iter_mut().for_each(|(k, v)| poison(v, key, k)),
        _ => {}
    }
}

/// A record with [`STEERING`] in all texts but those under keys of which some are words of the format.
fn steering(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    let keys: BTreeSet<&str> = text.split("\":").filter_map(|before| before.rsplit('"').next()).collect();
    for key in keys.into_iter().filter(|key| !["format", "version"].contains(key)) {
        let before = record.clone();
        poison(&mut record, key, "");
        if serde_json::from_str::<Record>(&record.to_string()).is_err() {
            record = before;
        }
    }
    record.to_string()
}

/// Nothing that was said steers a terminal.
#[track_caller]
fn is_plain(run: &Ended) {
    for text in [&run.stdout, &run.stderr] {
        let bad = text.find(|c| steers(c) && !matches!(c, '\n' | '\r'));
        assert_eq!(bad.map(|at| text[at..].chars().take(40).collect::<String>()), None, "{}", run.shown);
    }
}

#[test]
fn a_record_of_a_stranger_steers_no_terminal() {
    let lab = Lab::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/fixtures");
    for fixture in ["glance.json", "record.json"] {
        let text = steering(&fixtures.join(fixture));
        assert!(text.matches("31m").count() > 200, "{text}");
        fs::write(lab.work().join("r.json"), text).unwrap();
        lab.line("report r.json -o r.html").expect(0);
        for line in [
            "report r.json",
            "report r.json -v",
            "report r.html -v --ascii",
            "report r.json --json",
            "report r.json --csv",
            "report r.json --md",
            "export --to csv r.json",
            "export --to markdown r.json",
            "export --to openmetrics r.json",
            "compare r.json r.html",
            "compare r.json r.json --csv",
            "compare r.json r.json --md",
        ] {
            let run = lab.line(line);
            assert!(run.stdout.len() > 500 && matches!(run.code, Some(0 | 3)), "{line}: {}", run.stderr);
            is_plain(&run);
            if line.ends_with("csv r.json") || line.ends_with("--csv") {
                let begins = ["\n=", ",=", ",\"="];
                assert!(!begins.iter().any(|b| run.stdout.contains(b)), "{line}: a formula");
            }
        }
    }
}

#[test]
fn names_of_processes_steer_no_terminal() {
    let lab = Lab::new();
    let name = lab.work().join("=\u{1b}[41m\u{9b}4m\u{202e}");
    symlink("/bin/sh", &name).unwrap();
    let mut busy = Command::new(&name).args(["-c", "while :; do :; done"]).spawn().unwrap();
    let attribution = ["auto", "switches"];
    let runs = attribution
        .map(|by| lab.run(&["noise", "-t", "1s", "--json", "--attribution", by, "--md=n.md", "--csv=n.csv"]));
    let page = lab.line("report last -v");
    let doctor = lab.line("doctor -v");
    busy.kill().unwrap();
    busy.wait().unwrap();
    let is_named = |run: &Ended| run.stdout.contains("= [41m 4m");
    assert!(is_named(&doctor) && runs.iter().chain([&page]).any(is_named), "{}", doctor.stdout);
    let files = ["n.md", "n.csv"].map(|file| fs::read_to_string(lab.work().join(file)).unwrap());
    assert!(!files.iter().any(|text| text.contains(|c| steers(c) && !matches!(c, '\n' | '\r'))), "{files:?}");
    for run in runs.iter().chain([&page, &doctor]) {
        is_plain(run);
    }
}

#[test]
fn what_a_stranger_named_is_told_in_one_short_line() {
    let lab = Lab::new();
    let long = "a".repeat(100_000);
    let bad = format!("x{STEERING}");
    for (name, text) in [
        ("long.toml", format!("[noise]\nattribution = \"{long}\"\n")),
        ("bad.toml", format!("[noise]\nattribution = {}\n", Value::from(bad.as_str()))),
        ("key.toml", format!("[{}]\n", Value::from(bad.as_str()))),
        ("bad.json", format!("{{\"format\": {}}}", Value::from(bad.as_str()))),
        ("bad.dat", format!("# {bad}\n{bad} 1 {bad}\n")),
    ] {
        fs::write(lab.work().join(name), text).unwrap();
    }
    // A record of which nobody knows the end, and a job without one.
    fs::File::create(lab.work().join("large.json")).unwrap().set_len((64 << 20) + 1).unwrap();
    let run = lab.run(&["report", "large.json"]);
    run.refused("large.json");
    for arguments in [
        &["noise", "--dry-run", "--attribution", &bad][..],
        &["noise", "--dry-run", "--attribution", &long],
        &["--dry-run", "--tag", &long],
        &["--job", "/dev/zero", "--dry-run"],
        &["--job", "long.toml", "--dry-run"],
        &["--job", "bad.toml", "--dry-run"],
        &["--job", "key.toml", "--dry-run"],
        &["explain", &bad],
        &["explain", &long],
        &["report", &bad],
        &["report", &long],
        &["report", "bad.json"],
        &["report", "bad.dat"],
        &["compare", "bad.json", "bad.dat"],
    ] {
        let run = lab.run(arguments);
        run.refused("");
        assert!(
            run.stderr.len() < 2_500 && run.shown.len() < 200_000,
            "{}: {}",
            run.stderr.len(),
            run.stderr
        );
        is_plain(&run);
        lab.run(&[arguments, &["--json"]].concat()).expect(2).record();
    }
}
