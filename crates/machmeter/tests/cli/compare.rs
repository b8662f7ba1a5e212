//! Tests of `compare` and `ab`: sides, ranges, tags, several runs, alternating settings, and wrong input.

#![allow(clippy::unwrap_used, reason = "tests fail and tell their figures")]

use std::path::Path;

use crate::program::{Lab, record_in};
use machmeter_data::record::Record;
use serde_json::Value;

/// A stored run of the history, with `factor` times the costs of `from`.
fn kept(lab: &Lab, from: &Record, at: usize, side: &str, factor: f64) {
    let mut r = from.clone();
    r.id = format!("{:08x}", 0x1000 + at);
    r.run.started = format!("2026-01-01T00:00:{at:02}Z");
    r.run.tags.insert("side".to_owned(), side.to_owned());
    let wobble = 1.0 + 0.001 * (at * 5 % 7) as f64;
    for m in &mut r.metrics {
        let scale = |v: &mut f64| *v *= factor * wobble;
        m.value.iter_mut().for_each(scale);
        for ci in m.ci.iter_mut().chain(m.earlier.iter_mut().map(|e| &mut e.own_ci)) {
            scale(&mut ci.low);
            scale(&mut ci.high);
        }
    }
    r.raw.clear();
    r.complete = true;
    r.machine.fingerprint = Some("one machine".to_owned());
    let name = format!("20260101T0000{at:02}Z-000000-{}.json", r.id);
    let runs = lab.state().join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    std::fs::write(runs.join(name), serde_json::to_string(&r).unwrap()).unwrap();
}

/// A history of six runs and six with costs higher by 10 %, from a stored page.
fn history() -> Lab {
    let lab = Lab::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/fixtures/glance.json");
    let mut base = record_in(&page);
    base.metrics.retain(|m| ["memory.latency", "ops.cost", "sync.cost"].contains(&m.id.as_str()));
    for at in 0..12 {
        let (side, factor) = if at < 6 { ("before", 1.0) } else { ("after", 1.1) };
        kept(&lab, &base, at, side, factor);
    }
    lab
}

#[test]
fn groups_are_told_apart_however_they_are_named() {
    let lab = history();
    for line in [
        "compare --json last~11..last~6 -- last~5..last",
        "compare --by side --json",
        "compare --by side last~11..last --json",
        "compare last~11..last~6 --json -- last~5 last~4 last~3 last~2 last~1 last",
    ] {
        let run = lab.line(line);
        let c: Value = serde_json::from_str(&run.expect(1).stdout).unwrap();
        let of = |name: &str| c["counts"][name].as_u64().unwrap();
        let runs = ["a", "b"].map(|side| c[side]["runs"].as_array().unwrap().len());
        assert_eq!(runs, [6, 6], "{line}");
        let compared = of("rows") - of("not_comparable");
        let told = compared >= 10 && of("worse") * 10 >= compared * 8 && of("better") == 0;
        assert!(told, "{line}: {}", c["counts"]);
    }
    let text = lab.line("compare --by side");
    let text = &text.expect(1).stdout;
    assert!(text.lines().count() <= 30 && text.contains("side=before: 6 runs"), "{text}");
    let reversed = lab.line("compare --fail-on any last~5..last -- last~11..last~6");
    assert!(reversed.expect(1).stdout.contains("better"));
}

#[test]
fn the_page_of_a_comparison_links_to_reports_beside_it() {
    let lab = history();
    std::fs::create_dir(lab.work().join("b c")).unwrap();
    for (run, name) in [("last~11", "a.json"), ("last", "b c/new.json")] {
        lab.run(&["report", run, &format!("--json={name}")]).expect(0);
    }
    for name in ["a.html", "b c/new.html"] {
        std::fs::write(lab.work().join(name), "a report").unwrap();
    }
    lab.run(&["compare", "--fail-on", "none", "a.json", "b c/new.json", "-o", "changes.html"]).expect(0);
    let page = std::fs::read_to_string(lab.work().join("changes.html")).unwrap();
    for link in ["href=\"./a.html\"", "href=\"./b%20c/new.html\""] {
        assert!(page.contains(link), "{link}: {page}");
    }
    // From another directory, the first report is not below the page.
    lab.run(&["compare", "--fail-on", "none", "a.json", "b c/new.json", "-o", "b c/changes.html"]).expect(0);
    let page = std::fs::read_to_string(lab.work().join("b c/changes.html")).unwrap();
    assert!(page.contains("href=\"./new.html\"") && !page.contains("a.html"), "{page}");
}

#[test]
fn sides_that_are_the_same_are_the_same() {
    let lab = history();
    let run = lab.line("compare --at-least 100% --json last~11..last~9 -- last~8..last~6");
    let c: Value = serde_json::from_str(&run.expect(0).stdout).unwrap();
    let of = |name: &str| c["counts"][name].as_u64().unwrap();
    let differ = of("worse") + of("better") + of("changed");
    assert!(of("same") * 2 > of("rows") && differ == 0, "{}", c["counts"]);
}

#[test]
fn the_history_of_a_metric_tells_where_it_changed() {
    let lab = history();
    let run = lab.run(&["report", "--history", "ops.cost{*operation=getppid*"]);
    let text = run.expect(0).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["12 runs from 2026-01-01T00:00:00Z", "since 2026-01-01T00:00:06Z"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    lab.line("report --history nothing").refused("no metric of 12 stored runs matches");
    lab.line("report --history *").refused("at most 20");
    lab.run(&["report", "--history", "ops.cost{*operation=getppid*", "-o", "h.html"]).expect(0);
    assert!(std::fs::read_to_string(lab.work().join("h.html")).unwrap().contains("getppid"));
}

#[test]
fn stored_runs_tell_what_comparisons_of_this_machine_find() {
    let lab = history();
    let run = lab.line("compare --self last");
    let lines: Vec<&str> = run.expect(0).stdout.lines().collect();
    assert_eq!(lines.len(), 5, "1, 2, 3, 4 and 6 runs a side of 12: {lines:?}");
    assert!(lines.iter().all(|l| l.contains(" a side find") && l.contains(" 1, 3, 5 % in ")), "{lines:?}");
    let found: Value =
        serde_json::from_str(&lab.line("compare --self last --json").expect(0).stdout).unwrap();
    assert_eq!(found["runs"], 12);
    assert_eq!(lab.line("compare --self").expect(0).stdout, run.stdout, "the same each time");
    let footer = lab.line("compare last~1 last");
    assert!(
        footer.stdout.replace(char::is_whitespace, " ").contains("On this machine 1 run a side"),
        "{footer:?}"
    );
    Lab::new().line("compare --self").refused("");
}

#[test]
fn wrong_sides_are_one_line() {
    let lab = history();
    for (line, what) in [
        ("compare last", "compare needs two runs, got 1"),
        ("compare last last~1 last~2", "compare needs two runs, got 3"),
        ("compare", "required"),
        ("compare --self last last~1", "--self takes one run"),
        ("compare last..last~3 -- last", "from an older to a newer run"),
        ("compare last~900..last -- last", "at most 200"),
        ("compare last~40 last", "only 12 runs are saved"),
        ("compare --by nothing", "a comparison needs two values of the tag, found 0: none"),
        ("compare --by side last", "found 1: after"),
        ("compare last last~1 --at-least much", "not a share"),
        ("ops -n 0", "0"),
        ("ops -n 2 -o x.json", "-n 2: a file holds one"),
        ("ops -n 2 --no-save", "-n 2: --no-save would keep none of the runs"),
        ("ab true -- noise", "2 values required"),
        ("ab true true -t 1s -- noise -t 1s", "too short for 2 rounds of 4 runs"),
        ("ab true true -- nonsense", "nonsense"),
        ("ab true true -- list", "no probe 'list'"),
        ("ab true true -- noise --json", "the runs of ab do not take --json"),
        ("ab true true -- noise --dry-run", "the runs of ab do not take --dry-run"),
        ("compare last -- last~1 -o x.html", "-o: options stand before the runs"),
        ("ab --set nice=1 -- noise", "a comparison needs two settings"),
        ("ab --set nice=1 --set nonsense=2 -- noise -t 100ms", "no attribute 'nonsense'"),
    ] {
        lab.line(line).refused(what);
    }
}

#[test]
fn runs_of_n_are_stored_one_by_one() {
    let lab = Lab::new();
    let run = lab.line("ops -t 100ms --parts arithmetic -n 3 --tag side=a");
    let saved = run.expect(0).stdout.lines().filter(|l| l.starts_with("saved run "));
    assert_eq!(saved.count(), 3, "{}", run.stdout);
    let listed = lab.line("list runs");
    assert_eq!(listed.expect(0).stdout.matches("side=a").count(), 3, "{}", listed.stdout);
}

#[test]
fn settings_in_turns_end_with_the_answer_and_leave_nothing() {
    let lab = Lab::new();
    let failing = lab.run(&["ab", "true", "exit 3", "-t", "7s", "--", "noise", "-t", "100ms"]);
    failing.failed(4, "setting B, `exit 3`");
    let line = "ab --set nice=0 --set nice=5 -t 7s --metric ops.cost -- ops -t 300ms --parts arithmetic";
    let niced = lab.line(line);
    // If other programs occupy the CPUs, such short runs have no figures, and the error says so.
    let had_no_time = niced.code == Some(2) && niced.stderr.contains("have no common figure (");
    assert!([0, 1, 3].contains(&niced.code.unwrap()) || had_no_time, "{}", niced.stderr);
    lab.line(&line.replace("ops.cost", "*nonsense*")).failed(2, "matches no figure");
    assert!(lab.files().is_empty());
}
