//! What happens in ordinary use: a niced job, a worker that is killed.

mod program;

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use machmeter_data::{Metric, Unit};
use machmeter_sys::process::kill_process;
use program::{Lab, Running, descendants, is_root};

/// `command` under `nice -n 19`.
fn niced(command: &Command) -> Command {
    let mut niced = Command::new("nice");
    niced.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    niced.current_dir(command.get_current_dir().expect("a folder to run in"));
    niced.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    niced.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    niced
}

#[test]
fn an_inherited_nice_value_is_kept_and_said() {
    use std::os::unix::process::CommandExt;
    for arguments in [
        &["noise", "-t", "300ms", "--json"][..],
        &["sync", "-t", "500ms", "--parts", "contention", "--json"],
        &["interactive", "-t", "3s", "--tasks", "video", "--loads", "burn", "--json"],
    ] {
        let lab = Lab::new();
        let mut command = if is_root() {
            let mut plain = niced(&lab.as_nobody(arguments));
            plain.uid(program::NOBODY).gid(program::NOBODY);
            plain
        } else {
            niced(&lab.command(arguments))
        };
        command.process_group(0);
        let record = Running::of(command).end().expect(0).record();
        assert_eq!(record.run.policy, "other:19", "{arguments:?}");
    }
}

#[test]
fn a_killed_task_or_load_makes_a_run_partial() {
    for (loads, worker) in [("none", "interactive-task"), ("burn", "load")] {
        let lab = Lab::new();
        let arguments = ["interactive", "-t", "4s", "--tasks", "video", "--loads", loads, "--json", "-v"];
        let mut run = lab.start(&arguments);
        run.hear("load ").expect("it did not begin");
        thread::sleep(Duration::from_millis(800));
        let is_worker = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|b| *b == 0).nth(2) == Some(worker.as_bytes())
        };
        let workers: Vec<i32> = descendants(run.id() as i32).into_iter().filter(is_worker).collect();
        assert!(workers.iter().any(|pid| kill_process(*pid).is_ok()), "no {worker} to kill");
        let ended = run.end();
        let record = ended.expect(5).record();
        assert!(
            !record.complete && record.warnings.iter().any(|w| w.code == "W311"),
            "{:?}",
            record.warnings
        );
    }
}

#[test]
fn the_quick_page_fills_every_section_in_its_time() {
    let lab = Lab::new();
    let ended = lab.run(&["-l", "quick", "--json", "--no-save"]);
    let record = ended.expect(0).record();
    assert!(record.complete, "{:?}", record.warnings);
    for probe in machmeter::PROBES {
        let names = |id: &str| probe.info.metrics().any(|m| m.id == id);
        let figures = record.metrics.iter().filter(|m| m.value.is_some() && names(&m.id)).count();
        assert!(figures > 0, "{}: no figure", probe.info.name);
    }
    // Twelve seconds are the level's promise; the rest is for a test machine that is busy otherwise.
    assert!(ended.wall < Duration::from_secs(20), "{:?}", ended.wall);
}

/// An operation, and conditions it has.
type Named = (&'static str, &'static [(&'static str, &'static str)]);

/// Quantities that several parts could price, with what makes a metric one of each.
const QUANTITIES: [(&str, &[Named]); 13] = [
    ("addition", &[("add", &[("chain", "")]), ("cycle", &[])]),
    ("empty loop", &[("empty_loop", &[]), ("empty loop", &[])]),
    ("read of the counter", &[("read_clock", &[("code", "rdtsc")]), ("timer()", &[])]),
    ("daxpy of 1000", &[("daxpy", &[("code", "compiled"), ("elements", "1000")]), ("daxpy1000", &[])]),
    (
        "thread",
        &[
            ("thread_create_join", &[("stack", "kept")]),
            ("thr_create", &[]),
            ("create_join", &[("model", "threads")]),
        ],
    ),
    ("fork", &[("fork_exit_wait", &[]), ("create_join", &[("model", "processes")])]),
    ("wake of nobody", &[("futex_wake", &[]), ("futex_wake_nobody", &[])]),
    ("byte through a pipe", &[("pipe", &[]), ("pipe_give_take", &[])]),
    ("event", &[("eventfd", &[]), ("eventfd_give_take", &[])]),
    (
        "switch by a pipe",
        &[("pipe_two_threads", &[]), ("wake_pipe", &[("wake", "same_cpu"), ("model", "threads")])],
    ),
    (
        "switch by yielding",
        &[("yield_two_threads", &[]), ("hand_over", &[("cpus", "1"), ("model", "threads")])],
    ),
    (
        "spinning barrier of two threads",
        &[
            ("barrier_spin", &[("cpus", "2"), ("model", "threads")]),
            ("barrier", &[("cpus", "2"), ("model", "threads"), ("access", "")]),
        ],
    ),
    (
        "word of two threads",
        &[("ping_pong", &[("cpus", "2"), ("model", "threads")]), ("cas", &[("from", "0"), ("to", "1")])],
    ),
];

/// Whether a metric is the cost of an operation under conditions; a condition that is to be empty must be missing.
fn is_of(m: &Metric, (operation, conditions): &Named) -> bool {
    if m.unit != Unit::Nanoseconds || m.params.contains_key("mode") {
        return false;
    }
    let text = |name: &str| m.params.get(name).map(ToString::to_string).unwrap_or_default();
    let name = if m.params.contains_key("operation") {
        text("operation")
    } else if m.id == "memory.core_to_core" {
        text("kind")
    } else {
        m.id.rsplit('.').next().unwrap_or_default().to_owned()
    };
    name == *operation && conditions.iter().all(|(name, value)| text(name) == *value)
}

#[test]
fn one_thing_has_one_figure() {
    let lab = Lab::new();
    // Long enough for the rows of the standard plan.
    let record = lab.run(&["-t", "25s", "--json", "--no-save"]).expect(0).record();
    let mut keys: Vec<String> = record.metrics.iter().map(Metric::key).collect();
    keys.sort_unstable();
    for pair in keys.windows(2) {
        assert_ne!(pair[0], pair[1], "one key, two figures");
    }
    let mut seen = 0;
    for (quantity, names) in QUANTITIES {
        // Where the CPUs moved, each of their places is a condition of its own.
        let is_first = |m: &&Metric| m.params.get("regime").is_none_or(|r| r.to_string() == "1");
        let metrics = record.metrics.iter().filter(|m| names.iter().any(|n| is_of(m, n))).filter(is_first);
        let metrics: Vec<String> = metrics.map(Metric::key).collect();
        assert!(metrics.len() <= 1, "{quantity}: {metrics:?}");
        seen += metrics.len();
    }
    assert!(seen > QUANTITIES.len() / 2, "only {seen} of the quantities are there");
}
