//! What a user sees: the first figure soon, short answers, one document with `--json` in every outcome, and one clear line
//! for every wrong input.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod program;

use std::fs;
use std::path::Path;
use std::time::Duration;

use machmeter_data::record::Record;
use program::{Lab, Running, is_root, names_in, record_in, sound};
use rustix::process::Signal;

#[test]
fn the_first_figure_comes_soon() {
    let lab = Lab::new();
    // The page as anybody starts it: its length changes nothing about its beginning.
    let mut run = lab.start(&[]);
    let first = run.hear("first look").expect("no first figure");
    run.send(Signal::INT);
    let ended = run.end();
    println!("first figure after {first:?}");
    assert!(first < Duration::from_secs(10), "{first:?}");
    assert_eq!(ended.expect(130).errors().len(), 0);
    let files = lab.files();
    let json =
        files.iter().find(|f| Path::new(f).extension().is_some_and(|e| e == "json")).expect("no record");
    let record = record_in(&lab.work().join(json));
    let raw = record.raw.iter().map(|r| r.file.clone());
    let mut expected: Vec<String> = raw.chain([json.clone(), json.replace(".json", ".html")]).collect();
    expected.sort();
    assert_eq!(files, expected);
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "signal:INT"));
    assert_eq!(record.run.verb, "characterize");
}

#[test]
fn the_version_is_one_line() {
    let lab = Lab::new();
    let version = lab.run(&["--version"]);
    assert_eq!(version.expect(0).stdout.trim(), format!("machmeter {}", env!("CARGO_PKG_VERSION")));
    assert!(lab.files().is_empty() && !lab.state().exists());
}

#[test]
fn a_run_gives_page_record_and_files_and_nothing_else() {
    let lab = Lab::new();
    let run = lab.run(&["noise", "-t", "300ms", "-o", "a.json", "-o", "b.html", "--csv=c.csv", "--md=d.md"]);
    assert!(run.expect(0).stdout.contains("NOISE"), "{}", run.stdout);
    assert_eq!(run.errors().len(), 0);
    let record = record_in(&lab.work().join("a.json"));
    assert!(record.complete && !record.metrics.is_empty(), "{:?}", record.stopped_by);
    let raw: Vec<String> = record.raw.iter().map(|r| r.file.clone()).collect();
    let mut expected: Vec<String> =
        raw.into_iter().chain(["a.json", "b.html", "c.csv", "d.md"].map(str::to_owned)).collect();
    expected.sort();
    assert_eq!(lab.files(), expected);
    // The report carries the same record, and the history holds the run.
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
        let run = lab.run(&[probe, "--parts", part, "-t", "800ms", "-v"]);
        let again = lab.run(&["report", "last", "-v", "-o", "a.html"]);
        let brief = lab.run(&["report", "last", "-o", "a.html"]);
        assert!(!brief.expect(0).stdout.contains(title), "{}", brief.stdout);
        for page in [&run, &again] {
            let text = &page.expect(0).stdout;
            assert!(text.contains(&format!("\n {title}")), "{text}");
            // Not a terminal: 100 columns and no color.
            assert!(text.lines().all(|l| l.chars().count() <= 100) && !text.contains('\u{1b}'), "{text}");
        }
    }
    // A document stays one.
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

/// A record that says what went wrong and holds no figure.
fn says_why(record: &Record, about: &str) {
    assert!(!record.complete && record.metrics.is_empty());
    assert_eq!(record.stopped_by, "error");
    assert!(record.warnings.iter().any(|w| w.text.contains(about)), "{:?}", record.warnings);
}

#[test]
fn json_is_one_document_in_every_outcome() {
    let lab = Lab::new();
    let fine = lab.run(&["noise", "-t", "300ms", "--json"]);
    assert!(fine.expect(0).record().complete);
    let to_file = lab.run(&["noise", "-t", "300ms", "--json=r.json", "-q"]);
    assert!(to_file.expect(0).stdout.contains("NOISE"));
    assert!(record_in(&lab.work().join("r.json")).complete);

    let plan = lab.run(&["noise", "-t", "300ms", "--json", "--dry-run"]);
    let record = plan.expect(0).record();
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "plan"));
    assert!(record.metrics.is_empty());

    let wrong: [(&[&str], &str); 8] = [
        (&["noise", "--json", "--quantumm", "3"], "--quantumm"),
        (&["noise", "--json", "--cpus", "7777"], "7777"),
        (&["noise", "--json", "-t", "soon"], "soon"),
        (&["noise", "--json", "--prio", "urgent"], "urgent"),
        (&["--json", "-t", "1ns"], "1ns"),
        (&["nois", "--json"], "nois"),
        (&["--json=-", "--windows", "0", "noise"], "--windows"),
        (&["report", "--json", "no-such-file"], "no-such-file"),
    ];
    for (arguments, about) in wrong {
        let run = lab.run(arguments);
        run.refused(about);
        says_why(&run.record(), about);
    }
    // Two documents on one stdout would be neither.
    for other in ["--csv", "--md=-"] {
        let both = lab.run(&["noise", "-t", "300ms", "--json", other]);
        both.refused("stdout");
        says_why(&both.record(), "stdout");
    }

    let mut interrupted = lab.start(&["noise", "-t", "20s", "--json"]);
    interrupted.hear("first look").expect("no first figure");
    interrupted.send(Signal::INT);
    let ended = interrupted.end();
    let record = ended.expect(130).record();
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "signal:INT"));
}

#[test]
fn a_denied_policy_is_told_in_the_document() {
    if !is_root() {
        // What root tests by giving its rights up, an ordinary user has anyway, unless an rtprio limit grants it.
        let lab = Lab::new();
        let run = lab.run(&["noise", "-t", "300ms", "--prio", "fifo:50", "--json"]);
        assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
        run.record();
        return;
    }
    let lab = Lab::new();
    let run = Running::of(lab.as_nobody(&["noise", "-t", "300ms", "--prio", "fifo:50", "--json"])).end();
    let record = run.expect(4).record();
    says_why(&record, "fifo:50");
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    let auto = Running::of(lab.as_nobody(&["noise", "-t", "300ms", "--json"])).end();
    assert!(auto.expect(0).record().metrics.iter().any(|m| m.value.is_some()));
}

#[test]
fn wrong_inputs_are_refused_in_one_line_and_leave_nothing() {
    let lab = Lab::new();
    let work = lab.work();
    fs::write(work.join("garbage.json"), b"\x00\x01\xffgarbage {{{").unwrap();
    fs::write(work.join("half.json"), b"{\"format\": \"machmeter-result\", \"version\": \"1.0\", \"id\"")
        .unwrap();
    fs::write(work.join("other.json"), b"{\"a\": 1}").unwrap();
    fs::write(work.join("words.dat"), b"these are\nnot numbers\n").unwrap();
    fs::write(work.join("empty.json"), b"").unwrap();
    fs::write(work.join("page.html"), b"<html><body>hello</body></html>").unwrap();
    fs::create_dir(work.join("folder")).unwrap();
    let before = names_in(&work);
    let bad = [
        "garbage.json",
        "half.json",
        "other.json",
        "words.dat",
        "empty.json",
        "page.html",
        "folder",
        "absent.json",
    ];
    for name in bad {
        let said = Path::new(name).file_stem().unwrap().to_str().unwrap();
        for arguments in [
            vec!["report", name, "-o", "out.html"],
            vec!["report", name, "--card", "-o", "out.svg"],
            vec!["compare", name, name],
            vec!["export", "--to", "csv", name, "-o", "out.csv"],
            vec!["export", "--to", "parquet", name, "-o", "out"],
        ] {
            lab.run(&arguments).refused(said);
            assert_eq!(names_in(&work), before, "{arguments:?}");
        }
    }
    for arguments in [&["report", "last"][..], &["compare", "last~1", "last"], &["export", "--to", "csv"]] {
        lab.run(arguments).refused("last");
    }
    lab.run(&["explain", "E99999"]).refused("E99999");
    lab.run(&["schema", "weather"]).refused("weather");
    lab.run(&["list", "weather"]).refused("weather");
    assert_eq!(names_in(&work), before);
}

#[test]
fn pages_of_one_second_have_names_of_their_own() {
    let lab = Lab::new();
    fs::write(lab.work().join("n.toml"), "[noise]\n").unwrap();
    let start =
        |_| lab.start(&["--job", "n.toml", "-t", "60ms", "--no-save", "-q", "--raw", "none", "--name", "m"]);
    let runs: Vec<Running> = (0..6).map(start).collect();
    for run in runs {
        run.end().expect(0);
    }
    let files = lab.files();
    let of = |kind: &str| -> Vec<&str> { files.iter().filter_map(|f| f.strip_suffix(kind)).collect() };
    assert_eq!((of(".json").len(), of(".json")), (6, of(".html")), "{files:?}");
    for stem in of(".json") {
        assert!(record_in(&lab.work().join(format!("{stem}.json"))).complete);
    }
}

#[test]
fn a_samples_file_does_not_say_where_it_is_exported_to() {
    let lab = Lab::new();
    let path = lab.work().join("r.json");
    lab.run(&["noise", "-t", "100ms", "--raw", "all", "--no-save", "-q", "-o", "r.json"]).expect(0);
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
            lab.run(&[&["export", "--to", "parquet", "r.json"], more].concat()).refused("no plain name");
            assert_eq!(
                (lab.files(), names_in(&lab.work().join("out"))),
                (before.clone(), Vec::new()),
                "{name}"
            );
        }
        assert!(!Path::new("/tmp/machmeter-owned.parquet").exists());
    }
}

#[test]
fn a_job_runs_commands_only_when_that_is_allowed() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    let target = lab.work().join("target");
    fs::write(&target, "#!/bin/sh\n: > ran\n").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
    let jobs = [
        ("[ops]\nparts = [\"processes\"]\nexec_target = \"./target\"\n", "ops.exec_target", "./target"),
        (
            "[interactive]\ntasks = \"x\"\nloads = \"none\"\nab = [\": > ran\", \": > ran\"]\n",
            "interactive.ab",
            ": > ran",
        ),
    ];
    for (job, key, command) in jobs {
        fs::write(lab.work().join("job.toml"), job).unwrap();
        let job = ["--job", "job.toml", "--no-save", "-q", "-t", "8", "--json"];
        let refused = lab.run(&job);
        refused.refused(&format!("{command:?} ({key})"));
        assert!(refused.stderr.contains("--allow-commands"), "{}", refused.stderr);
        let plan = lab.run(&[&job[..], &["--dry-run"]].concat());
        let plan = plan.expect(0).record().summary.lines[0].lines.join("\n");
        assert!(plan.contains(&format!("; runs {command:?} ({key})")), "{plan}");
        assert_eq!(lab.files(), ["job.toml", "target"], "a command ran");

        let allowed = lab.run(&[&job[..], &["--allow-commands"]].concat());
        let record = allowed.record();
        assert!(lab.files().contains(&"ran".to_owned()), "{}", allowed.stderr);
        let listed = |s: &String| s.contains(&format!("{command:?}"));
        assert!(record.run.side_effects.iter().any(listed), "{:?}", record.run.side_effects);
        for file in lab.files().into_iter().filter(|f| f != "target") {
            fs::remove_file(lab.work().join(file)).unwrap();
        }
    }
    // A job without commands needs no leave.
    fs::write(lab.work().join("job.toml"), "[noise]\n").unwrap();
    lab.run(&["--job", "job.toml", "--no-save", "-q", "-t", "100ms"]).expect(0);
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
    let run = |arguments: &[&str]| {
        if is_root() { Running::of(lab.as_nobody(arguments)).end() } else { lab.run(arguments) }
    };
    for arguments in [&["report", "secret.json"][..], &["compare", "secret.json", "secret.json"]] {
        run(arguments).refused("secret.json");
    }
    assert_eq!(lab.files(), ["secret.json"]);
}

#[test]
fn the_schema_is_that_of_the_documents() {
    let lab = Lab::new();
    let schema = lab.run(&["schema", "record"]);
    let schema: serde_json::Value = serde_json::from_str(&schema.expect(0).stdout).unwrap();
    let required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(|r| r.as_str()).collect();
    for text in
        [lab.run(&["noise", "-t", "300ms", "--json"]).stdout, lab.run(&["noise", "--json", "-t", "x"]).stdout]
    {
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        sound(&text, "stdout");
        assert!(required.len() > 5);
        for r in &required {
            assert!(record.get(r).is_some(), "{r} is missing");
        }
    }
}
