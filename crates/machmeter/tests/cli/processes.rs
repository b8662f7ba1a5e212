//! Tests of programs that `ops` starts and that fail, hang or can't be executed. They have a reason instead of a cost, and their processes end with the run.

#![allow(clippy::unwrap_used, reason = "tests fail and print their figures")]

use std::time::Duration;

use crate::program::{Lab, warned, why};
use machmeter_sys::process::commands_with;

/// Longest time of a run beyond its plan; tests run on busy machines.
const LATE: Duration = Duration::from_secs(6);

#[test]
fn programs_that_fail_or_do_not_end_have_no_price() {
    let lab = Lab::new();
    for (name, text, reason) in [
        ("failing", "#!/bin/sh\nexit 3\n", "3 instead of 0"),
        ("endless", "#!/bin/sh\nexec sleep 100\n", "did not end"),
        ("broken", "#!/nowhere/at/all\n", "No such file"),
    ] {
        let target = lab.script(name, text);
        let ended = lab.line(&format!("ops --parts processes -t 2 --json -q --exec-target {target}"));
        assert!(ended.wall < Duration::from_secs(2) + LATE, "{target}: {:?}", ended.wall);
        let record = ended.record();
        for operation in ["spawn", "fork_exec"] {
            if record.metric("ops.cost", &[("operation", operation)]).is_some() {
                let said = why(&record, operation);
                assert!(said.contains(reason) && said.contains(&target), "{said}");
            }
        }
        warned(&record, "W445");
    }
}

/// A program that hangs from start number `from` on, with a child; `mark` is an argument of the child.
fn tiring(lab: &Lab, from: u32, mark: &str) -> String {
    let count = lab.work().join("starts");
    let count = count.display();
    let text = format!(
        "#!/bin/sh\necho >> {count}\n[ $(wc -l < {count}) -lt {from} ] && exit 0\nsleep {mark} &\nwait\n"
    );
    lab.script("tiring", &text)
}

#[test]
fn a_program_that_stops_ending_is_killed_with_its_children_and_the_run_goes_on() {
    let lab = Lab::new();
    let target = tiring(&lab, 31, "7101.31");
    let ended = lab.line(&format!("ops --parts processes -t 2 --json -q --exec-target {target}"));
    assert!(ended.wall < Duration::from_secs(2) + LATE, "{:?}", ended.wall);
    let record = ended.expect(0).record();
    for operation in ["spawn", "fork_exec"] {
        let said = why(&record, operation);
        assert!(said.contains(&target) && said.contains("did not end within"), "{said}");
    }
    warned(&record, "W445");
    // If other programs take the time, too few samples of the rest are undisturbed.
    for operation in ["fork_exit_wait", "thread_create_join"] {
        let rest = record.metric("ops.cost", &[("operation", operation)]).unwrap();
        let is_measured = |why: &String| why.contains("undisturbed samples of");
        assert!(rest.value.is_some() || rest.why.as_ref().is_some_and(is_measured), "{rest:?}");
    }
    assert!(commands_with("7101.31").is_empty(), "nothing is left behind");
}
