//! Tests of the program under the names of other benchmarks: options, files, columns, refusals.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows this only inside test functions")]

mod interbench;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::program::{Ended, Lab, Running};
use machmeter_data::MetricInfo;
use machmeter_store::foreign::{INTERBENCH_METRICS, LADDER_METRICS, SideFacts, read_knowing};
use rustix::process::Signal;

/// Windows of 2^17 ticks: long relative to a turn of an unoptimized build, short relative to a test.
const BITS: u32 = 17;
const NAMES: &str = "ftq ftq15 ftq31 ftq63 t_ftq t_ftq15 t_ftq31 t_ftq63 ftq25 fwq selfish interbench";

/// A folder with symlinks to the program under all names.
fn folder() -> Lab {
    let lab = Lab::new();
    for name in NAMES.split(' ') {
        symlink(env!("CARGO_BIN_EXE_machmeter"), lab.work().join(name)).unwrap();
    }
    lab
}

/// The program under one of its names, with arguments.
fn called(lab: &Lab, line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(lab.work().join(words.next().unwrap()));
    lab.set_up(command.args(words));
    command
}

fn run(lab: &Lab, line: &str) -> Ended {
    Running::of(called(lab, line)).end()
}

fn ok(lab: &Lab, line: &str) -> Ended {
    let ended = run(lab, line);
    ended.expect(0);
    ended
}

fn numbers_of(text: &str) -> Vec<i64> {
    assert!(text.ends_with('\n'), "the last line is not whole");
    text.lines().map(|l| l.parse().unwrap()).collect()
}

fn numbers(lab: &Lab, file: &str) -> Vec<i64> {
    numbers_of(&fs::read_to_string(lab.work().join(file)).unwrap())
}

fn cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Rows of a run as read by this project's reader, which must find the clock rate and no defect.
fn rows(lab: &Lab, name: &str, table: &str) -> usize {
    let read = read_knowing(&[lab.work().join(name)], &SideFacts::default()).unwrap();
    let table = read.table(table).unwrap();
    assert!(table.note("tick_hz").is_some_and(|hz| hz.parse::<f64>().unwrap() > 1e6), "{:?}", table.notes);
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    table.rows()
}

/// Runs per quantum, in turns. A moving clock or a noisy neighbor can slow all windows of one run of 25 ms.
const RUNS: usize = 6;

#[test]
fn every_quantum_writes_the_files_of_2009() {
    let lab = folder();
    let mut best = [0; 4];
    for (run, name) in ["ftq", "ftq15", "ftq31", "ftq63"].iter().cycle().take(4 * RUNS).enumerate() {
        ok(&lab, &format!("{name} -o of_{name} -i {BITS} -n 500"));
        let of = |kind: &str| numbers(&lab, &format!("of_{name}_{kind}.dat"));
        let (counts, times) = (of("0_counts"), of("0_times"));
        assert_eq!((counts.len(), times.len()), (500, 500));
        assert!(times.iter().all(|t| t % (1 << BITS) == 0), "windows begin at multiples of their length");
        assert!(times.windows(2).all(|w| w[1] - w[0] == 1 << BITS), "no window is missing");
        assert_eq!((of("counts"), of("times")), (counts.clone(), times));
        assert!(lab.work().join(format!("of_{name}_counts.dat")).is_symlink());
        assert_eq!(rows(&lab, &format!("of_{name}"), "noise_windows"), 500);
        let best = &mut best[run % 4];
        *best = counts.into_iter().max().unwrap().max(*best);
    }
    assert!(best[0] > best[3] && best[3] > 10, "more work per count, fewer counts: {best:?}");
    let side = fs::read_to_string(lab.work().join("of_ftq.machmeter.json")).unwrap();
    let side: serde_json::Value = serde_json::from_str(&side).unwrap();
    assert_eq!((&side["window_ticks"], side["cpus"].as_array().unwrap().len()), (&(1 << BITS).into(), 1));
    assert!(side["tick_hz"].as_f64().unwrap() > 1e6);
}

#[test]
fn stdout_has_time_and_count_and_nothing_else() {
    let lab = folder();
    let out = ok(&lab, &format!("ftq -s -i {BITS} -n 50"));
    let of_line = |l: &str| l.split(' ').map(|w| w.parse().unwrap()).collect();
    let lines: Vec<Vec<i64>> = out.stdout.lines().map(of_line).collect();
    assert_eq!(lines.len(), 50);
    assert!(lines.iter().all(|l| l.len() == 2) && lines.windows(2).all(|w| w[1][0] - w[0][0] == 1 << BITS));
    assert!(!lab.work().join("ftq_0_counts.dat").exists());
    assert_eq!(out.stderr.matches("machmeter report").count(), 1, "one hint: {}", out.stderr);
}

#[test]
fn threads_share_boundaries_and_have_files_of_their_own() {
    let lab = folder();
    let threads = cpus().min(2);
    ok(&lab, &format!("t_ftq15 -t {threads} -o two -i {BITS} -n 200"));
    let first = numbers(&lab, "two_0_times.dat");
    for k in 0..threads {
        assert_eq!(numbers(&lab, &format!("two_{k}_times.dat")), first);
        assert_eq!(numbers(&lab, &format!("two_{k}_counts.dat")).len(), 200);
    }
    assert_eq!(rows(&lab, "two", "noise_windows"), 200 * threads);
}

#[test]
fn fwq_writes_durations_in_proportion_to_the_work() {
    let lab = folder();
    ok(&lab, "fwq -w 12 -n 300 -o w");
    let once = numbers(&lab, "w_0_times.dat");
    assert_eq!((once.len(), rows(&lab, "w", "noise_work")), (300, 300));
    let twice = numbers_of(&ok(&lab, "fwq -w 13 -n 300 -s").stdout);
    let [once, twice] = [once, twice].map(|all| all.into_iter().min().unwrap());
    let ratio = twice as f64 / once as f64;
    assert!(once > 0 && (1.5..2.7).contains(&ratio), "{once} {ratio}");
}

#[test]
fn selfish_and_its_other_methods_write_columns_of_netgauge() {
    let lab = folder();
    let run = ok(&lab, "selfish -s 1000 --time 1s");
    assert!(run.wall < Duration::from_secs(5), "{:?}", run.wall);
    let written = fs::read_to_string(lab.work().join("ng.out")).unwrap();
    let head = "# Benchmark Method: selfish\n# Compute-Cycle Duration: 1000 usec\n# Number of Cycles/Detours: 1000\n";
    assert!(written.starts_with(head), "{written}");
    for line in
        ["# Time [ns]\tselfish duration [ns]\n", "# CPU overhead due to noise: ", "# Measurement period: "]
    {
        assert!(written.contains(line), "{written}");
    }
    for row in written.lines().filter(|l| !l.starts_with('#')) {
        let cells: Vec<f64> = row.split('\t').map(|c| c.parse().unwrap()).collect();
        assert!(cells.len() == 2 && cells.iter().all(|c| *c >= 0.0), "{row}");
    }
    for (options, file, table) in
        [("-e ftq -o f.out", "f.out", "noise_windows"), ("-e fwq -w -o w.out", "w.out.0", "noise_work")]
    {
        ok(&lab, &format!("selfish -d 200 -s 100 {options}"));
        let read = read_knowing(&[lab.work().join(file)], &SideFacts::default()).unwrap();
        assert_eq!(read.table(table).unwrap().rows(), 100);
    }
}

#[test]
fn the_form_of_2025_has_header_and_two_columns() {
    let lab = folder();
    let out = ok(&lab, "ftq25 -f 2000 -n 200 -o h -d 10 -w -T 0.1");
    assert!(out.stderr.contains("-T 0.1: ignored, the clock has"), "a wrong rate is reported");
    let written = fs::read_to_string(lab.work().join("h_0.dat")).unwrap();
    assert!(written.starts_with("# Frequency 2000.000000\n# Ticks per ns: "), "{written}");
    assert!(!written.contains("core -1"), "the CPU is known");
    assert_eq!(written.lines().filter(|l| !l.starts_with('#')).count(), 200);
    assert_eq!(rows(&lab, "h", "noise_windows"), 200);
}

#[test]
fn wrong_options_get_one_clear_line_and_exit_code_2() {
    let lab = folder();
    let more = cpus() + 1;
    for (line, expected) in [
        ("ftq -i 31", "3..=30"),
        ("ftq -i 2", "3..=30"),
        ("ftq -i -1", "3..=30"),
        ("ftq -i 3", "the minimum on this machine is -i "),
        ("ftq -n 0", "1..=2000000"),
        ("ftq -n 2000001", "1..=2000000"),
        ("ftq -n many", "many"),
        ("ftq -t 2", "t_ftq -t 2"),
        ("ftq -x", "-x"),
        ("ftq word", "word"),
        ("t_ftq -t MORE", "CPU"),
        ("t_ftq -t 0", "1..="),
        ("t_ftq63 -t 2 -s", "-s"),
        ("ftq -o nosuch/x", "the directory nosuch does not exist"),
        ("ftq -o ftq63/x", "not a directory"),
        ("ftq -o ./", "prefix"),
        ("fwq -w 31", "3..=30"),
        ("fwq -w 3", "-w 8"),
        ("selfish -t 90", "101"),
        ("selfish -p MORE", "error: -p"),
        ("selfish -e osnoise", "osnoise"),
        ("selfish --time 1us", "too short"),
        ("ftq25 -f 0", "1..="),
        ("interbench -w Bern", "error: interbench: -w: no load 'Bern'"),
        ("interbench -r -W X", "-r runs"),
        ("interbench -B 77", "77"),
        ("interbench -q", "-q"),
        ("machmeter compat ptf", "one of ftq, "),
    ] {
        let out = match line.strip_prefix("machmeter ") {
            Some(words) => lab.line(words),
            None => run(&lab, &line.replace("MORE", &more.to_string())),
        };
        out.refused("");
        assert!(out.stderr.contains(expected) && out.stdout.is_empty(), "{line}: {}", out.stderr);
        assert!(out.stderr.lines().count() <= 2, "{line}: {}", out.stderr);
    }
    assert_eq!(lab.files().len(), NAMES.split(' ').count(), "nothing but the symlinks is left");
}

#[test]
fn the_subcommand_takes_names_and_raw_options() {
    let lab = Lab::new();
    lab.line(&format!("compat ftq -o x -i {BITS} -n 20")).expect(0);
    assert_eq!(numbers(&lab, "x_counts.dat").len(), 20);
    assert!(lab.line("compat t_ftq -h").expect(0).stdout.contains("--threads"));
}

#[test]
fn what_the_system_refuses_is_exit_code_4() {
    let lab = folder();
    // `/dev/full` behaves like a full disk.
    symlink("/dev/full", lab.work().join("full_0_times.dat")).unwrap();
    let out = run(&lab, &format!("ftq -o full -i {BITS} -n 20"));
    assert!(out.expect(4).stderr.contains("no space left"), "{}", out.stderr);
    let mut command = called(&lab, &format!("ftq -s -i {BITS} -n 20"));
    command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
    Running::of(command).end().expect(4);
    run(&lab, "ftq -o /proc/x -n 20").expect(4);
}

#[test]
fn an_interrupt_leaves_whole_lines() {
    let lab = folder();
    let running = Running::of(called(&lab, "ftq -o cut -i 18 -n 2000000"));
    std::thread::sleep(Duration::from_millis(1500));
    running.send(Signal::TERM);
    let out = running.end();
    assert!(out.expect(143).wall < Duration::from_secs(20), "{:?}", out.wall);
    let of = |kind: &str| numbers(&lab, &format!("cut_{kind}.dat"));
    let counts = of("0_counts");
    assert!(counts.len() > 10 && counts.len() < 2_000_000 && counts.len() == of("0_times").len());
    assert_eq!(of("counts"), counts);
    assert!(out.stderr.contains("stopped; "), "{}", out.stderr);
}

#[test]
fn the_documented_octave_session_runs_unchanged() {
    let lab = folder();
    ok(&lab, &format!("ftq63 -o testrun -i {BITS} -n 1000"));
    let session = "load testrun_counts.dat\nmean(testrun_counts)\nvar(testrun_counts)\nsqrt(var(testrun_counts))\n\
                   load testrun_times.dat\nassert(all(diff(testrun_times) == 2^17))\nassert(numel(testrun_counts) == 1000)\n";
    let mut octave = Command::new("octave-cli");
    octave.args(["--no-init-file", "--eval", session]).current_dir(lab.work());
    let Ok(out) = octave.output() else { return println!("skipped: octave-cli is not installed") };
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    let answer = |l: &str| l.strip_prefix("ans = ")?.trim().parse().ok();
    let answers: Vec<f64> = said.lines().filter_map(answer).collect();
    let counts = numbers(&lab, "testrun_counts.dat");
    let mean = counts.iter().sum::<i64>() as f64 / counts.len() as f64;
    assert_eq!(answers.len(), 3, "{said}");
    assert!((answers[0] / mean - 1.0).abs() < 1e-3, "octave {} file {mean}", answers[0]);
}

#[test]
fn figures_of_foreign_files_have_the_names_of_our_probes() {
    let registered: Vec<_> = machmeter::PROBES.iter().flat_map(|p| p.info.metrics()).collect();
    for m in INTERBENCH_METRICS.iter().chain(LADDER_METRICS) {
        let is_like = |r: &&MetricInfo| (r.unit, r.better, r.params) == (m.unit, m.better, m.params);
        assert!(registered.iter().find(|r| r.id == m.id).is_some_and(is_like), "{}", m.id);
    }
}
