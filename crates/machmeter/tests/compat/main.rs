//! The program under other benchmarks' names: options, files, columns, refusals.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests: clippy.toml allows this only inside test functions; time here bounds a test, it measures nothing"
)]

mod interbench;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use machmeter_store::foreign::read_any;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_machmeter");
/// Windows that are long beside a turn of an unoptimized build, and short beside a test.
const BITS: &str = "17";
const NAMES: &str = "ftq ftq15 ftq31 ftq63 t_ftq t_ftq15 t_ftq31 t_ftq63 ftq25 fwq selfish interbench";

/// A folder with symlinks of all names to the program.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in NAMES.split(' ') {
        symlink(PROGRAM, dir.path().join(name)).unwrap();
    }
    dir
}

fn run(dir: &Path, words: &[&str]) -> Output {
    Command::new(dir.join(words[0])).args(&words[1..]).current_dir(dir).output().unwrap()
}

fn ok(dir: &Path, words: &[&str]) -> Output {
    let out = run(dir, words);
    assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
    out
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn numbers(path: &Path) -> Vec<i64> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{}: the last line is not whole", path.display());
    text.lines().map(|l| l.parse().unwrap()).collect()
}

fn cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Rows of a run as our own reader sees it, which must find its clock rate and no defect.
fn rows(dir: &Path, name: &str, table: &str) -> usize {
    let read = read_any(&[dir.join(name)]).unwrap();
    let table = read.table(table).unwrap();
    assert!(table.note("tick_hz").is_some_and(|hz| hz.parse::<f64>().unwrap() > 1e6), "{:?}", table.notes);
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    table.rows()
}

#[test]
fn every_quantum_writes_the_files_of_2009() {
    let dir = folder();
    let mut best = Vec::new();
    for name in ["ftq", "ftq15", "ftq31", "ftq63"] {
        let prefix = format!("of_{name}");
        ok(dir.path(), &[name, "-o", &prefix, "-i", BITS, "-n", "500"]);
        let at = |suffix: &str| dir.path().join(format!("{prefix}{suffix}"));
        let (counts, times) = (numbers(&at("_0_counts.dat")), numbers(&at("_0_times.dat")));
        assert_eq!((counts.len(), times.len()), (500, 500));
        assert!(times.iter().all(|t| t % (1 << 17) == 0), "windows begin at multiples of their length");
        assert!(times.windows(2).all(|w| w[1] - w[0] == 1 << 17), "no window is missing");
        assert_eq!(numbers(&at("_counts.dat")), counts);
        assert_eq!(numbers(&at("_times.dat")), times);
        assert!(fs::symlink_metadata(at("_counts.dat")).unwrap().is_symlink());
        assert_eq!(rows(dir.path(), &prefix, "noise_windows"), 500);
        best.push(*counts.iter().max().unwrap());
    }
    assert!(best[0] > best[3] && best[3] > 10, "more work per count, fewer counts: {best:?}");
}

#[test]
fn stdout_has_time_and_count_and_nothing_else() {
    let dir = folder();
    let out = ok(dir.path(), &["ftq", "-s", "-i", BITS, "-n", "50"]);
    let lines: Vec<Vec<i64>> =
        text(&out.stdout).lines().map(|l| l.split(' ').map(|w| w.parse().unwrap()).collect()).collect();
    assert_eq!(lines.len(), 50);
    assert!(lines.iter().all(|l| l.len() == 2) && lines.windows(2).all(|w| w[1][0] - w[0][0] == 1 << 17));
    assert!(!dir.path().join("ftq_0_counts.dat").exists());
    let said = text(&out.stderr);
    assert_eq!(said.matches("machmeter report").count(), 1, "one hint: {said}");
}

#[test]
fn threads_share_boundaries_and_have_files_of_their_own() {
    let dir = folder();
    let threads = cpus().min(2);
    ok(dir.path(), &["t_ftq15", "-t", &threads.to_string(), "-o", "two", "-i", BITS, "-n", "200"]);
    let first = numbers(&dir.path().join("two_0_times.dat"));
    for k in 0..threads {
        assert_eq!(numbers(&dir.path().join(format!("two_{k}_times.dat"))), first);
        assert_eq!(numbers(&dir.path().join(format!("two_{k}_counts.dat"))).len(), 200);
    }
    assert_eq!(rows(dir.path(), "two", "noise_windows"), 200 * threads);
}

#[test]
fn the_side_file_names_rate_window_and_cpus() {
    let dir = folder();
    ok(dir.path(), &["ftq", "-o", "x", "-i", BITS, "-n", "20"]);
    let side = fs::read_to_string(dir.path().join("x.machmeter.json")).unwrap();
    let side: serde_json::Value = serde_json::from_str(&side).unwrap();
    assert_eq!(side["window_ticks"], 1 << 17);
    assert_eq!(side["cpus"].as_array().unwrap().len(), 1);
    assert!(side["tick_hz"].as_f64().unwrap() > 1e6);
}

#[test]
fn fwq_writes_durations_in_proportion_to_the_work() {
    let dir = folder();
    ok(dir.path(), &["fwq", "-w", "12", "-n", "300", "-o", "w"]);
    let durations = numbers(&dir.path().join("w_0_times.dat"));
    assert_eq!(durations.len(), 300);
    let least = *durations.iter().min().unwrap();
    assert!(least > 0, "{least}");
    assert_eq!(rows(dir.path(), "w", "noise_work"), 300);
    let out = ok(dir.path(), &["fwq", "-w", "13", "-n", "300", "-s"]);
    let twice: i64 = text(&out.stdout).lines().map(|l| l.parse::<i64>().unwrap()).min().unwrap();
    let ratio = twice as f64 / least as f64;
    assert!((1.5..2.7).contains(&ratio), "{ratio}");
}

#[test]
fn selfish_and_its_other_methods_write_columns_of_netgauge() {
    let dir = folder();
    let begin = Instant::now();
    ok(dir.path(), &["selfish", "-s", "1000", "--time", "1s"]);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    let written = fs::read_to_string(dir.path().join("ng.out")).unwrap();
    let head = "# Benchmark Method: selfish\n# Compute-Cycle Duration: 1000 usec\n# Number of Cycles/Detours: 1000\n";
    assert!(written.starts_with(head), "{written}");
    assert!(written.contains("# Time [ns]\tselfish duration [ns]\n"));
    assert!(written.contains("# CPU overhead due to noise: ") && written.contains("# Measurement period: "));
    for row in written.lines().filter(|l| !l.starts_with('#')) {
        let cells: Vec<f64> = row.split('\t').map(|c| c.parse().unwrap()).collect();
        assert!(cells.len() == 2 && cells.iter().all(|c| *c >= 0.0), "{row}");
    }
    ok(dir.path(), &["selfish", "-e", "ftq", "-d", "200", "-s", "100", "-o", "f.out"]);
    let read = read_any(&[dir.path().join("f.out")]).unwrap();
    assert_eq!(read.table("noise_windows").unwrap().rows(), 100);
    ok(dir.path(), &["selfish", "-e", "fwq", "-d", "200", "-s", "100", "-w", "-o", "w.out"]);
    let read = read_any(&[dir.path().join("w.out.0")]).unwrap();
    assert_eq!(read.table("noise_work").unwrap().rows(), 100);
}

#[test]
fn the_form_of_2025_has_header_and_two_columns() {
    let dir = folder();
    let out = ok(dir.path(), &["ftq25", "-f", "2000", "-n", "200", "-o", "h", "-d", "10", "-w", "-T", "0.1"]);
    assert!(text(&out.stderr).contains("-T 0.1: the clock has"), "a wrong rate is told");
    let written = fs::read_to_string(dir.path().join("h_0.dat")).unwrap();
    assert!(written.starts_with("# Frequency 2000.000000\n# Ticks per ns: "), "{written}");
    assert!(!written.contains("core -1"), "the CPU is known");
    assert_eq!(written.lines().filter(|l| !l.starts_with('#')).count(), 200);
    assert_eq!(rows(dir.path(), "h", "noise_windows"), 200);
}

#[test]
fn wrong_options_get_one_clear_line_and_exit_code_2() {
    let dir = folder();
    let most = (cpus() + 1).to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["ftq", "-i", "31"], "3..=30"),
        (&["ftq", "-i", "2"], "3..=30"),
        (&["ftq", "-i", "-1"], "3..=30"),
        (&["ftq", "-i", "3"], "the least possible here is -i "),
        (&["ftq", "-n", "0"], "1..=2000000"),
        (&["ftq", "-n", "2000001"], "1..=2000000"),
        (&["ftq", "-n", "many"], "many"),
        (&["ftq", "-t", "2"], "t_ftq -t 2"),
        (&["ftq", "-x"], "-x"),
        (&["ftq", "word"], "word"),
        (&["t_ftq", "-t", &most], "CPU"),
        (&["t_ftq", "-t", "0"], "1..="),
        (&["t_ftq63", "-t", "2", "-s"], "-s"),
        (&["ftq", "-o", "nosuch/x"], "the folder nosuch does not exist"),
        (&["ftq", "-o", "ftq63/x"], "not a folder"),
        (&["ftq", "-o", "./"], "prefix"),
        (&["fwq", "-w", "31"], "3..=30"),
        (&["fwq", "-w", "3"], "-w 8"),
        (&["selfish", "-t", "90"], "101"),
        (&["selfish", "-p", &most], "error: -p"),
        (&["selfish", "-e", "osnoise"], "osnoise"),
        (&["selfish", "--time", "1us"], "too short"),
        (&["ftq25", "-f", "0"], "1..="),
    ];
    for (words, expected) in cases {
        let out = run(dir.path(), words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
        assert_eq!(said.lines().filter(|l| l.starts_with("error: ")).count(), 1, "{words:?}: {said}");
        assert!(said.lines().count() <= 2 && out.stdout.is_empty(), "{words:?}: {said}");
    }
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, NAMES.split(' ').count(), "nothing but the symlinks is left");
}

#[test]
fn the_subcommand_takes_names_and_raw_options() {
    let dir = folder();
    let words = ["compat", "ftq", "-o", "x", "-i", BITS, "-n", "20"];
    let out = Command::new(PROGRAM).args(words).current_dir(dir.path()).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(numbers(&dir.path().join("x_counts.dat")).len(), 20);
    let usage = Command::new(PROGRAM).args(["compat", "t_ftq", "-h"]).output().unwrap();
    assert!(usage.status.success() && text(&usage.stdout).contains("--threads"));
    let unknown = Command::new(PROGRAM).args(["compat", "ptf"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("one of ftq, "), "{}", text(&unknown.stderr));
}

#[test]
fn what_the_system_refuses_is_exit_code_4() {
    let dir = folder();
    // The full device answers as a full disk does.
    symlink("/dev/full", dir.path().join("full_0_times.dat")).unwrap();
    let out = run(dir.path(), &["ftq", "-o", "full", "-i", BITS, "-n", "20"]);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("no space left"), "{}", text(&out.stderr));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(dir.path().join("ftq"));
    let out = command.args(["-s", "-i", BITS, "-n", "20"]).stdout(full).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    let out = run(dir.path(), &["ftq", "-o", "/proc/x", "-n", "20"]);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
}

#[test]
fn an_interrupt_leaves_whole_lines() {
    let dir = folder();
    let begin = Instant::now();
    let child = Command::new(dir.path().join("ftq"))
        .args(["-o", "cut", "-i", "18", "-n", "2000000"])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(143), "{}", text(&out.stderr));
    assert!(begin.elapsed() < Duration::from_secs(20));
    let (counts, times) =
        (numbers(&dir.path().join("cut_0_counts.dat")), numbers(&dir.path().join("cut_0_times.dat")));
    assert!(counts.len() > 10 && counts.len() < 2_000_000 && counts.len() == times.len());
    assert_eq!(numbers(&dir.path().join("cut_counts.dat")), counts);
    assert!(text(&out.stderr).contains("stopped after"), "{}", text(&out.stderr));
}

#[test]
fn the_documented_octave_session_runs_unchanged() {
    let dir = folder();
    ok(dir.path(), &["ftq63", "-o", "testrun", "-i", BITS, "-n", "1000"]);
    let session = "load testrun_counts.dat\nmean(testrun_counts)\nvar(testrun_counts)\nsqrt(var(testrun_counts))\n\
                   load testrun_times.dat\nassert(all(diff(testrun_times) == 2^17))\nassert(numel(testrun_counts) == 1000)\n";
    let mut octave = Command::new("octave-cli");
    octave.args(["--no-init-file", "--eval", session]).current_dir(dir.path());
    let Ok(out) = octave.output() else {
        println!("skipped: octave-cli is not installed");
        return;
    };
    assert!(out.status.success(), "{}", text(&out.stderr));
    let answers: Vec<f64> =
        text(&out.stdout).lines().filter_map(|l| l.strip_prefix("ans = ")?.trim().parse().ok()).collect();
    let counts = numbers(&dir.path().join("testrun_counts.dat"));
    let mean = counts.iter().sum::<i64>() as f64 / counts.len() as f64;
    assert_eq!(answers.len(), 3, "{}", text(&out.stdout));
    assert!((answers[0] / mean - 1.0).abs() < 1e-3, "octave {} file {mean}", answers[0]);
}

#[test]
fn figures_of_foreign_files_have_the_names_of_our_probes() {
    let registered: Vec<_> = machmeter::PROBES.iter().flat_map(|p| p.info.metrics()).collect();
    for m in
        machmeter_store::foreign::INTERBENCH_METRICS.iter().chain(machmeter_store::foreign::LADDER_METRICS)
    {
        let found = registered.iter().find(|r| r.id == m.id);
        assert!(
            found.is_some_and(|r| (r.unit, r.better, r.params) == (m.unit, m.better, m.params)),
            "{}",
            m.id
        );
    }
}

#[test]
fn report_draws_an_old_interbench_log() {
    let dir = folder();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign/interbench/plain.log");
    let out = Command::new(PROGRAM)
        .args(["report", log.to_str().unwrap(), "-o", "old.html", "-o", "old.json"])
        .current_dir(dir.path())
        .env("MACHMETER_STATE", dir.path().join("state"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let page = text(&out.stdout);
    assert!(page.contains("video    98.5 % met alone, 29.4 % under compile"), "{page}");
    let record = fs::read_to_string(dir.path().join("old.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let ids: Vec<&str> =
        record["datasets"].as_array().unwrap().iter().filter_map(|d| d["id"].as_str()).collect();
    assert_eq!(ids.iter().filter(|i| **i == "interactive.met").count(), 1);
    assert_eq!(ids.iter().filter(|i| **i == "interactive.latency_table").count(), 4);
    let html = fs::read_to_string(dir.path().join("old.html")).unwrap();
    assert!(html.contains("Latency of gaming") && html.contains("root mean square"));
}
