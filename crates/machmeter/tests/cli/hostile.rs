//! Tests with untrusted input: foreign records and files, names with control characters, directories of another user, endless inputs. None of them may
//! control the terminal, fill memory or block, and each gets one short line.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail loudly and say what they skip")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::program::{Ended, Lab, NOBODY, Running, is_root, kept_runs, names_in, warned};
use machmeter_data::Record;
use machmeter_data::text::steers;
use serde_json::Value;

/// Sets the title of a terminal, its color with one byte, and the direction of text.
const STEERING: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}";

/// Puts [`STEERING`] before each text under `key`.
fn poison(value: &mut Value, key: &str, at: &str) {
    match value {
        Value::String(text) if at == key => *text = format!("={STEERING}{text}"),
        Value::Array(all) => all.iter_mut().for_each(|v| poison(v, key, at)),
        Value::Object(all) => all.iter_mut().for_each(|(k, v)| poison(v, key, k)),
        _ => {}
    }
}

/// A record with [`STEERING`] in all texts, except under keys that hold words of the format.
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

/// The output has no control characters.
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
    // As root it takes a CPU from the measuring threads and from other programs, too, and is named first.
    let mut busy = Command::new("nice");
    busy.args(["-n", if is_root() { "-5" } else { "0" }]).arg(&name).args(["-c", "while :; do :; done"]);
    let mut busy = busy.spawn().unwrap();
    let is_named = |run: &Ended| run.stdout.contains("= [41m 4m");
    // With many busy programs, a short run may observe different ones, so the test repeats it.
    let again = |look: &dyn Fn() -> Vec<Ended>| {
        let mut runs = look();
        for _ in 0..5 {
            if !runs.iter().any(is_named) {
                runs = look();
            }
        }
        runs
    };
    let runs = again(&|| {
        let noise = |by| {
            let line = "noise -t 300ms --prio other --json --md=n.md --csv=n.csv --attribution";
            lab.line(&format!("{line} {by}"))
        };
        let mut runs = Vec::from(["auto", "switches"].map(noise));
        runs.push(lab.line("report last -v"));
        runs
    });
    let doctor = again(&|| vec![lab.line("doctor -v")]).remove(0);
    busy.kill().unwrap();
    busy.wait().unwrap();
    // The programs that ran during a measurement are visible only with rights.
    let is_seen = !is_root() || runs.iter().any(is_named);
    assert!(is_named(&doctor) && is_seen, "{}", doctor.stdout);
    let files = ["n.md", "n.csv"].map(|file| fs::read_to_string(lab.work().join(file)).unwrap());
    assert!(!files.iter().any(|text| text.contains(|c| steers(c) && !matches!(c, '\n' | '\r'))), "{files:?}");
    for run in runs.iter().chain([&doctor]) {
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
    // A file of zeros, a record above the size limit, and (below) an endless job.
    for (name, bytes) in [("zeros.json", 1 << 20), ("large.json", (128 << 20) + 1)] {
        fs::File::create(lab.work().join(name)).unwrap().set_len(bytes).unwrap();
    }
    lab.run(&["report", "zeros.json"]).refused("zeros.json: none of the known formats");
    lab.run(&["reference", "add", "large.json"]).refused("large.json: larger than");
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
        assert!(run.stderr.len() < 2_500 && run.shown.len() < 200_000, "{}", run.stderr);
        is_plain(&run);
        lab.run(&[arguments, &["--json"]].concat()).expect(2).record();
    }
}

#[test]
fn reading_needs_no_writing() {
    let lab = Lab::new();
    for line in ["report last", "compare last last", "export --to csv last"] {
        lab.line(line).refused("no run saved in ");
    }
    lab.line("list runs").expect(0);
    assert!(!lab.state().exists(), "reading made the state directory");
    lab.line("noise -t 100ms -q --tag when=before").expect(0);
    assert_eq!(fs::metadata(lab.state()).unwrap().permissions().mode() & 0o777, 0o700);
    if !is_root() {
        return println!("skipped the other user: needs root");
    }
    // Another user can read permitted files, and gets an error for the rest.
    lab.nobody("report last").refused("ermission denied");
    lab.nobody("report before").refused("ermission denied");
    let runs = kept_runs(&lab.state());
    for folder in [lab.state(), lab.state().join("runs"), lab.state().join("tags")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for line in ["report last", "report before", "compare last last", "export --to csv last", "list runs"] {
        lab.nobody(line).expect(0);
    }
    assert_eq!((kept_runs(&lab.state()), names_in(&lab.state().join("runs")).len()), (runs, 6));
}

#[test]
fn root_keeps_nothing_below_the_home_of_another_user() {
    if !is_root() {
        return println!("skipped: needs root");
    }
    let lab = Lab::new();
    let home = lab.work().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), None).unwrap();
    let noise = ["noise", "-t", "100ms", "--json"];
    let in_home = |mut command: Command| {
        command.env_remove("MACHMETER_STATE").env_remove("XDG_STATE_HOME").env("HOME", &home);
        Running::of(command).end()
    };
    let said = |run: &Ended, what: &str| {
        let record = run.expect(0).record();
        warned(&record, "W901");
        assert!(record.warnings.iter().any(|w| w.text.contains(what)), "{what}: {:?}", record.warnings);
    };
    said(&in_home(lab.command(&noise)), "belongs to user 65534");
    assert!(names_in(&home).is_empty(), "{:?}", names_in(&home));
    // The error about a directory that root created there names its owner.
    fs::create_dir_all(home.join(".local/state/machmeter")).unwrap();
    said(&in_home(lab.as_nobody(&noise)), "belongs to user 0");
}

#[test]
fn a_device_or_an_open_file_has_no_tables_beside_it() {
    let lab = Lab::new();
    for target in ["/dev/null", "/dev/stdout", "/dev/fd/1"] {
        let run = lab.line(&format!("noise -t 100ms -q --no-save --raw all --md=page.md -o {target}"));
        let mut left = names_in(Path::new("/dev"));
        left.retain(|name| name.ends_with(".parquet"));
        for name in &left {
            fs::remove_file(Path::new("/dev").join(name)).unwrap();
        }
        run.expect(0);
        assert!(left.is_empty(), "{target}: {left:?}");
    }
    assert_eq!(lab.files(), ["page.md"]);
}

#[test]
fn runs_with_long_tags_and_names_are_kept_and_what_is_no_run_blocks_nothing() {
    let lab = Lab::new();
    let long = "t".repeat(300);
    fs::write(lab.work().join("n.toml"), "[noise]\n").unwrap();
    let job = ["--job", "n.toml", "-t", "100ms", "-q", "--raw", "none", "--json", "--name", &long];
    let record = lab.run(&[&job[..], &["--tag", &format!("key={long}")]].concat()).expect(0).record();
    assert!(!record.warnings.iter().any(|w| w.code == "W901"), "{:?}", record.warnings);
    assert_eq!((lab.files().len(), kept_runs(&lab.state()).len()), (3, 1));
    let runs = lab.state().join("runs");
    let pipe = runs.join("99991231T235959Z-999999-aaaaaaaa.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    fs::create_dir(runs.join("99991231T235959Z-999999-bbbbbbbb.json")).unwrap();
    symlink("/dev/zero", runs.join("99991231T235959Z-999999-cccccccc.json")).unwrap();
    for name in ["last", long.as_str(), &format!("key={long}")] {
        assert_eq!(lab.run(&["report", name, "--json"]).expect(0).record().id, record.id);
    }
    assert_eq!(lab.line("list runs").expect(0).stdout.lines().count(), 1);
    lab.line("noise -t 100ms -q").expect(0);
    assert_eq!(names_in(&runs).iter().filter(|name| name.starts_with("9999")).count(), 3);
}

#[test]
fn lists_are_one_document_and_so_is_a_record_with_impossible_facts() {
    let lab = Lab::new();
    for what in ["codes", "formats", "loads", "metrics", "probes", "readers", "runs", "tasks"] {
        let list: Value = serde_json::from_str(&lab.run(&["list", what, "--json"]).expect(0).stdout).unwrap();
        let rows = list.as_array().unwrap();
        assert!(rows.iter().all(|row| row["name"].is_string() && row["text"].is_string()), "{list}");
        assert_eq!(rows.is_empty(), what == "runs");
    }
    let quiet = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/foreign/ftq-2009/quiet");
    for hz in ["1e-300", "1e300", "-1", "0", "nan"] {
        let run = lab.run(&["report", quiet, "--json", &format!("--tick-hz={hz}")]);
        assert!(matches!(run.code, Some(0 | 2)), "{hz}: {run:?}");
        run.record();
    }
}
