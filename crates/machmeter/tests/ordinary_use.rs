//! What happens in ordinary use: a niced job, a worker that is killed.

mod program;

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

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
        let arguments = ["interactive", "-t", "4s", "--tasks", "video", "--loads", loads, "--json"];
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
