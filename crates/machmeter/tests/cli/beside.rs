//! Tests of `noise -- CMD` and `noise --pid`: exit codes, output that passes through, refusals, and waits that equal those of the kernel.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

use std::process::{Child, Command};

use crate::program::{Lab, Running, is_root, some_cpu, sound, value, warned};
use machmeter_data::Record;

/// Counts for about half a second on a free CPU, and prints the times of the scheduler for it: run, wait, slices.
const LOOP: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat";

/// A shell that uses a CPU until it is dropped.
struct Hog(Child);

impl Hog {
    fn on(cpu: &str) -> Self {
        let spin = ["-c", cpu, "sh", "-c", "while :; do :; done"];
        Self(Command::new("taskset").args(spin).spawn().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn waited(record: &Record, cause: &str) -> Option<f64> {
    value(record, "beside.wait_fraction", &[("cause", cause)])
}

#[test]
fn the_exit_code_and_the_output_are_those_of_the_program() {
    let lab = Lab::new();
    for (line, code) in [("true", 0), ("false", 1), ("exit 7", 7), ("kill -9 $$", 137)] {
        let out = lab.command(&["noise", "-q", "--no-save", "--", "sh", "-c", line]).output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    }
    for (name, text, code) in [("missing", None, 127), ("plain", Some("no program"), 126)] {
        let path = lab.work().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let out = lab.command(&["noise", "--", path.to_str().unwrap()]).output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{name}");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.lines().count() <= 2 && said.starts_with("error: ") && said.contains(name), "{said}");
    }
    let passed = lab.line("noise --no-save -- echo passed through");
    assert!(passed.expect(0).stdout.starts_with("passed through\n"), "{}", passed.stdout);
    assert!(passed.stdout.contains("BESIDE"), "{}", passed.stdout);
    // With a document on stdout, the output of the program goes to stderr.
    let json = lab.line("noise --json --no-save -- echo passed through");
    assert!(value(&json.expect(0).record(), "beside.ran", &[]).is_some_and(|ns| ns > 0.0));
    assert!(json.stderr.contains("passed through"));
    assert!(lab.files().iter().all(|f| f == "plain"), "{:?}", lab.files());
}

#[test]
fn options_that_do_not_act_and_processes_that_do_not_exist_are_refused() {
    let lab = Lab::new();
    for (line, about) in [
        ("noise --prio fifo:3 -- true", "--prio does not act"),
        ("noise --quantum 31 -- true", "--quantum does not act"),
        ("noise -c 0 -- true", "--cpus does not act"),
        ("noise -t 1 -- true", "--time does not act"),
        ("noise --pid 1 -- true", "cannot be used with"),
        ("noise --stop-at 2ms", "none is named"),
        ("noise --max 2ms -t 1", "none is named"),
        ("noise --pid 0", "0"),
        ("noise --pid 4194305", "no such process"),
    ] {
        lab.line(line).refused(about);
    }
    assert!(lab.files().is_empty());
}

#[test]
fn waits_equal_those_of_the_kernel_and_are_charged_to_those_who_ran() {
    let lab = Lab::new();
    let cpu = some_cpu().to_string();
    let hog = Hog::on(&cpu);
    let program = ["noise", "--json", "-q", "--no-save", "--", "taskset", "-c", &cpu, "sh", "-c", LOOP];
    let ended = lab.run(&program);
    drop(hog);
    let record = ended.expect(0).record();
    let kernel: Vec<f64> = ended.stderr.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [ran, wait, ..] = kernel[..] else { panic!("{}", ended.stderr) };
    let [all, share] = [waited(&record, "all").unwrap(), wait / (ran + wait)];
    println!("waited {all}, kernel {share}");
    // The program starts and ends outside of its own reading.
    assert!((all - share).abs() < 0.02 * share + 0.01, "{all} instead of {share}");
    if !is_root() || record.warnings.iter().any(|w| w.code == "W330") {
        warned(&record, "W330");
        assert!(waited(&record, "other programs").is_none() && waited(&record, "unknown").is_some());
        return;
    }
    let causes = record.metrics.iter().filter(|m| m.id == "beside.wait_fraction");
    let sum: f64 = causes.filter_map(|m| m.value).sum::<f64>() - all;
    assert!((sum - all).abs() < 1e-9, "the causes add up to {sum} instead of {all}");
    let others = waited(&record, "other programs").unwrap();
    assert!(others > 0.9 * all, "{others} of {all}");
    let hogs = record.metrics.iter().filter(|m| m.id == "beside.source_fraction");
    assert!(hogs.filter_map(|m| m.value).fold(0.0, f64::max) > 0.1 * others, "{:?}", record.metrics);
}

#[test]
fn threads_of_the_program_itself_are_no_other_programs() {
    let lab = Lab::new();
    let cpu = some_cpu().to_string();
    let both = format!("({LOOP}) & ({LOOP}) & wait");
    let ended =
        lab.run(&["noise", "--json", "-q", "--no-save", "--", "taskset", "-c", &cpu, "sh", "-c", &both]);
    let record = ended.expect(0).record();
    let all = waited(&record, "all").unwrap();
    println!("waited {all}");
    assert!(all > 0.3, "two loops on one CPU wait half of their time: {all}");
    if let Some(own) = waited(&record, "own threads") {
        // Other tests run, too.
        let others =
            ["other programs", "kernel threads"].map(|c| waited(&record, c).unwrap()).iter().sum::<f64>();
        assert!(own > 0.9 * (all - others), "{own} of {all}, others {others}");
    }
}

#[test]
fn a_running_process_is_watched_for_a_time_and_left_alone() {
    let lab = Lab::new();
    let mut other = Hog::on(&some_cpu().to_string());
    let ended = lab.line(&format!("noise --pid {} -t 300ms --json -q", other.0.id()));
    assert!(other.0.try_wait().unwrap().is_none(), "it runs on");
    drop(other);
    let record = ended.expect(0).record();
    let [ran, share] = ["beside.ran", "beside.wait_fraction"].map(|id| value(&record, id, &[]).unwrap());
    let could_run_ns = ran / (1.0 - share);
    let wall_ns = record.run.wall_ns as f64;
    assert!(could_run_ns > 0.25e9 && could_run_ns < wall_ns, "{could_run_ns} of {wall_ns}");
    // The run is in the history, its report is made, and two of them are compared.
    lab.line("report last -o a.html").expect(0);
    let as_nobody = is_root()
        .then(|| Running::of(lab.as_nobody(&["noise", "--no-save", "--json", "--", "sh", "-c", LOOP])));
    if let Some(run) = as_nobody {
        let out = run.end();
        let record = sound(&out.expect(0).stdout, "stdout");
        warned(&record, "W330");
        assert!(waited(&record, "other programs").is_none());
    }
}

#[test]
fn a_long_wait_ends_the_watch_and_its_moment_is_kept() {
    let lab = Lab::new();
    let cpu = some_cpu().to_string();
    let hog = Hog::on(&cpu);
    let run = |option: &str| {
        lab.run(&["noise", option, "500us", "--json", "-q", "--", "taskset", "-c", &cpu, "sh", "-c", LOOP])
    };
    let (stopped, limited) = (run("--stop-at"), run("--max"));
    drop(hog);
    if limited.code == Some(3) {
        return warned(&limited.record(), "W330");
    }
    assert!(limited.expect(1).stderr.contains("a wait took"), "{}", limited.stderr);
    let record = stopped.expect(0).record();
    // The watch ended before the program.
    let [ran_ns, whole_ns] = [&record, &limited.record()].map(|r| value(r, "beside.ran", &[]).unwrap());
    assert!(ran_ns < 0.8 * whole_ns, "{ran_ns} of {whole_ns}");
    assert!(record.summary.lines.iter().any(|l| l.section == "STOPPED"), "{:?}", record.summary.lines);
    assert!(record.raw.iter().any(|r| r.table == "beside_turns" && r.rows > 1), "{:?}", record.raw);
    lab.line("export last~1 --to perfetto -o stop.pftrace").expect(0);
    assert!(lab.files().iter().any(|f| f == "stop.pftrace"));
}
