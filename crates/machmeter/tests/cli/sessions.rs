//! Tests of sessions: an early first figure, short answers, one document under `--json` in every outcome, and one clear line for every wrong input.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::program::{Lab, Running, is_root, kept_runs, names_in, record_in};
use machmeter_data::record::Record;
use rustix::process::Signal;

/// Files of a record: its raw samples and `others`, sorted.
fn with_samples<const N: usize>(record: &Record, others: [&str; N]) -> Vec<String> {
    let raw = record.raw.iter().map(|r| r.file.clone());
    let mut files: Vec<String> = raw.chain(others.map(str::to_owned)).collect();
    files.sort();
    files
}

#[test]
fn the_first_figure_comes_soon() {
    let lab = Lab::new();
    // The page as started by default; its length does not affect its beginning.
    let mut run = lab.start("");
    let first = run.hear("first look").expect("no first figure");
    run.send(Signal::INT);
    let ended = run.end();
    println!("first figure after {first:?}");
    assert!(first < Duration::from_secs(10), "{first:?}");
    assert_eq!(ended.expect(130).errors().len(), 0);
    let files = lab.files();
    let json =
        files.iter().find(|f| Path::new(f).extension().is_some_and(|e| e == "json")).expect("no record");
    let record = lab.record(json);
    assert_eq!(files, with_samples(&record, [json, &json.replace(".json", ".html")]));
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "signal:INT"));
    assert_eq!(record.run.verb, "characterize");
}

#[test]
fn the_version_is_one_line() {
    let lab = Lab::new();
    // `make` builds with a commit, `cargo test` without.
    let commit = option_env!("MACHMETER_COMMIT").filter(|c| !c.is_empty());
    let expected = commit.map_or_else(String::new, |c| format!(" ({c})"));
    let version = lab.run(&["--version"]);
    assert_eq!(version.expect(0).stdout.trim(), format!("machmeter {}{expected}", env!("CARGO_PKG_VERSION")));
    assert_eq!(lab.run(&["report", "no-run", "--json"]).record().tool.commit.as_deref(), commit);
    assert!(lab.files().is_empty() && !lab.state().exists());
}

#[test]
fn a_run_gives_page_record_and_files_and_nothing_else() {
    let lab = Lab::new();
    let run = lab.line("noise -t 100ms -o a.json -o b.html --csv=c.csv --md=d.md");
    assert!(run.expect(0).stdout.contains("NOISE"), "{}", run.stdout);
    assert_eq!(run.errors().len(), 0);
    let record = lab.record("a.json");
    assert!(record.complete && !record.metrics.is_empty(), "{:?}", record.stopped_by);
    assert_eq!(lab.files(), with_samples(&record, ["a.json", "b.html", "c.csv", "d.md"]));
    // The report contains the same record, and the history has the run.
    for name in ["b.html", "last"] {
        let again = lab.run(&["report", name, "-o", "again.html", "--json"]);
        assert_eq!(again.expect(0).record().id, record.id, "{name}");
    }
}

#[test]
fn verbose_pages_show_all_that_was_measured() {
    let lab = Lab::new();
    for (probe, part, title) in [
        ("memory", "table", "Reads and writes of own and shared memory"),
        ("sync", "wakeups", "Wake-ups, one way"),
        ("ops", "arithmetic", "Arithmetic and clocks"),
    ] {
        let run = lab.run(&[probe, "--parts", part, "-t", "300ms", "-v"]);
        let again = lab.run(&["report", "last", "-v", "-o", "a.html"]);
        let brief = lab.run(&["report", "last", "-o", "a.html"]);
        assert!(!brief.expect(0).stdout.contains(title), "{}", brief.stdout);
        for page in [&run, &again] {
            let text = &page.expect(0).stdout;
            assert!(text.contains(&format!("\n {title}")), "{text}");
            // Without a terminal: 100 columns and no color.
            assert!(text.lines().all(|l| l.chars().count() <= 100) && !text.contains('\u{1b}'), "{text}");
        }
    }
    // The output stays one document.
    lab.run(&["report", "last", "-v", "-o", "a.html", "--json"]).expect(0).record();
    let colored = |no_color: bool, when: &str| {
        let mut command = lab.command(&["report", "last", "-v", "-o", "a.html", "--color", when]);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let page = Running::of(command).end();
        page.expect(0).stdout.contains('\u{1b}')
    };
    assert!(colored(false, "always") && !colored(true, "auto") && !colored(false, "never"));
}

/// Checks a record that has an error and no figure.
pub(crate) fn says_why(record: &Record, about: &str) {
    assert!(!record.complete && record.metrics.is_empty());
    assert_eq!(record.stopped_by, "error");
    assert!(record.warnings.iter().any(|w| w.text.contains(about)), "{:?}", record.warnings);
}

#[test]
fn json_is_one_document_in_every_outcome() {
    let lab = Lab::new();
    let fine = lab.line("noise -t 100ms --json");
    assert!(fine.expect(0).record().complete);
    let to_file = lab.line("noise -t 100ms --json=r.json -q");
    assert!(to_file.expect(0).stdout.contains("NOISE"));
    assert!(lab.record("r.json").complete);
    let mut failed = None;
    for (line, about) in [
        ("noise --json --quantumm 3", "--quantumm"),
        ("noise --json --cpus 7777", "7777"),
        ("noise --json -t soon", "soon"),
        ("noise --json --prio urgent", "urgent"),
        ("--json -t 1ns", "1ns"),
        ("nois --json", "nois"),
        ("--json=- --windows 0 noise", "--windows"),
        ("report --json no-such-file", "no-such-file"),
        // Two documents on one stdout would be invalid.
        ("noise -t 100ms --json --csv", "stdout"),
        ("noise -t 100ms --json --md=-", "stdout"),
    ] {
        let run = lab.line(line);
        run.refused(about);
        says_why(&run.record(), about);
        failed = Some(run);
    }
    let schema = lab.line("schema record");
    let schema: serde_json::Value = serde_json::from_str(&schema.expect(0).stdout).unwrap();
    let required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(|r| r.as_str()).collect();
    assert!(required.len() > 5);
    for run in [fine, failed.unwrap()] {
        let record: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(required.iter().all(|r| record.get(r).is_some()), "{required:?} of {}", run.shown);
    }
}

#[test]
fn wrong_inputs_are_refused_in_one_line_and_leave_nothing() {
    let lab = Lab::new();
    let work = lab.work();
    let files: [(&str, &[u8]); 6] = [
        ("garbage.json", b"\x00\x01\xffgarbage {{{"),
        ("half.json", b"{\"format\": \"machmeter-result\", \"version\": \"1.0\", \"id\""),
        ("other.json", b"{\"a\": 1}"),
        ("words.dat", b"these are\nnot numbers\n"),
        ("empty.json", b""),
        ("page.html", b"<html><body>hello</body></html>"),
    ];
    for (name, bytes) in files {
        fs::write(work.join(name), bytes).unwrap();
    }
    fs::create_dir(work.join("folder")).unwrap();
    let before = names_in(&work);
    for name in before.iter().map(String::as_str).chain(["absent.json"]) {
        let said = Path::new(name).file_stem().unwrap().to_str().unwrap();
        for line in [
            "report NAME -o out.html",
            "report NAME --card -o out.svg",
            "compare NAME NAME",
            "export --to csv NAME -o out.csv",
            "export --to parquet NAME -o out",
        ] {
            lab.line(&line.replace("NAME", name)).refused(said);
            assert_eq!(names_in(&work), before, "{line}");
        }
    }
    for line in ["explain E99999", "schema weather", "list weather"] {
        lab.line(line).refused(line.split(' ').next_back().unwrap());
    }
    assert_eq!(names_in(&work), before);
}

#[test]
fn pages_of_one_second_have_names_of_their_own_and_are_all_kept() {
    let lab = Lab::new();
    fs::write(lab.work().join("n.toml"), "[noise]\n").unwrap();
    let words = "--job n.toml -t 60ms -q --raw none --name m --tag same=x";
    let runs: Vec<Running> = (0..6).map(|_| lab.start(words)).collect();
    for run in runs {
        run.end().expect(0);
    }
    let files = lab.files();
    let of = |kind: &str| -> Vec<&str> { files.iter().filter_map(|f| f.strip_suffix(kind)).collect() };
    assert_eq!((of(".json").len(), of(".json")), (6, of(".html")), "{files:?}");
    let records = of(".json").into_iter().map(|stem| lab.record(&format!("{stem}.json")));
    let ids: BTreeSet<String> = records.filter(|r| r.complete).map(|r| r.id).collect();
    assert_eq!((ids.len(), kept_runs(&lab.state()).len()), (6, 6));
    let kept = names_in(&lab.state().join("runs"));
    assert!(!kept.iter().any(|n| n.starts_with('.')), "{kept:?}");
    lab.line("report x -o x.html").expect(0);
}

#[test]
fn a_samples_file_does_not_say_where_it_is_exported_to() {
    let lab = Lab::new();
    let path = lab.work().join("r.json");
    lab.line("noise -t 100ms --raw all --no-save -q -o r.json").expect(0);
    fs::create_dir(lab.work().join("out")).unwrap();
    let before = lab.files();
    let mut record = record_in(&path);
    let file = lab.work().join(&record.raw[0].file);
    let mut table = machmeter_store::parquet::read_table(&file).unwrap();
    for name in ["/tmp/machmeter-owned", "../x", "..", "a/b"] {
        name.clone_into(&mut table.name);
        record.raw[0] = machmeter_store::parquet::write_table(&table, &file).unwrap();
        machmeter_store::json::write(&record, &path).unwrap();
        for more in [&[][..], &["-o", "out"], &["-o", "stem"]] {
            lab.run(&[&["export", "--to", "parquet", "r.json"], more].concat()).refused("not a plain name");
            assert_eq!(lab.files(), before, "{name}");
            assert!(names_in(&lab.work().join("out")).is_empty(), "{name}");
        }
        assert!(!Path::new("/tmp/machmeter-owned.parquet").exists());
    }
}

#[test]
fn a_job_runs_commands_only_when_that_is_allowed() {
    let lab = Lab::new();
    lab.script("target", "#!/bin/sh\n: > ran\n");
    let text = "[ops]\nparts = [\"processes\"]\nexec_target = \"./target\"\n";
    fs::write(lab.work().join("job.toml"), text).unwrap();
    let job = ["--job", "job.toml", "--no-save", "-q", "-t", "1", "--json"];
    let refused = lab.run(&job);
    refused.refused("\"./target\" (ops.exec_target)");
    assert!(refused.stderr.contains("--allow-commands"), "{}", refused.stderr);
    let plan = lab.run(&[&job[..], &["--dry-run"]].concat());
    let plan = plan.expect(0).record().summary.lines[0].lines.join("\n");
    assert!(plan.contains("; runs \"./target\" (ops.exec_target)"), "{plan}");
    assert_eq!(lab.files(), ["job.toml", "target"], "a command ran");

    let allowed = lab.run(&[&job[..], &["--allow-commands"]].concat());
    let record = allowed.record();
    assert!(lab.files().contains(&"ran".to_owned()), "{}", allowed.stderr);
    let listed = |s: &String| s.contains("\"./target\"");
    assert!(record.run.side_effects.iter().any(listed), "{:?}", record.run.side_effects);
    // A job without commands needs no permission.
    fs::write(lab.work().join("job.toml"), "[noise]\n").unwrap();
    lab.line("--job job.toml --no-save -q -t 100ms").expect(0);
}

#[test]
fn words_that_are_not_utf_8_are_paths_or_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let lab = Lab::new();
    let run = |arguments: &[&str], last: &[u8]| {
        let mut command = lab.command(arguments);
        command.arg(OsStr::from_bytes(last));
        Running::of(command).end()
    };
    run(&["noise", "-t", "100ms", "--no-save", "-q", "-o"], b"\xff.json").expect(0);
    assert!(record_in(&lab.work().join(OsStr::from_bytes(b"\xff.json"))).complete);
    for (arguments, last, about) in [
        (&["noise", "--json", "--dry-run"][..], &b"--name=\xff"[..], "UTF-8"),
        (&["--json"], b"\xff", "\u{fffd}"),
        (&["report", "--json"], b"\xff.none", "\u{fffd}"),
    ] {
        let refused = run(arguments, last);
        refused.refused(about);
        assert_eq!(refused.record().stopped_by, "error");
    }
}

#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    let path = lab.work().join("secret.json");
    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    for line in ["report secret.json", "compare secret.json secret.json"] {
        let run = if is_root() { lab.nobody(line) } else { lab.line(line) };
        run.refused("secret.json");
    }
    assert_eq!(lab.files(), ["secret.json"]);
}
