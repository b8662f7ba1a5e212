//! Tests of rights: runs without rights measure what they can, and a denied policy is rejected with its cause.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print what they skip")]

use std::os::unix::process::CommandExt;

use crate::interactive::{balanced, figure, nothing_left};
use crate::program::{Lab, NOBODY, Running, has_one_cpu, is_loaded, is_root, value, words};
use crate::sessions::says_why;

#[test]
fn an_inherited_nice_value_is_kept_and_said() {
    for line in [
        "noise -t 100ms --json",
        "sync -t 200ms --parts contention --json",
        // Beside other tests, it can take a second to start.
        "interactive -t 4s --tasks video --loads burn --json",
    ] {
        let lab = Lab::new();
        let words = words(line);
        let plain = if is_root() { lab.as_nobody(&words) } else { lab.command(&words) };
        let mut niced = lab.after(&["nice", "-n", "19", "sh", "-c"], ":", &plain);
        if is_root() {
            niced.uid(NOBODY).gid(NOBODY);
        }
        let record = Running::of(niced).end().ended_or_starved();
        assert_eq!(record.run.policy, "other:19", "{line}");
    }
}

#[test]
fn a_denied_policy_is_told_in_the_document() {
    let lab = Lab::new();
    let line = "noise -t 100ms --prio fifo:50 --json";
    if !is_root() {
        // An ordinary user lacks these rights anyway, unless an rtprio limit grants them; as root the test drops them.
        let run = lab.line(line);
        assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
        run.record();
        return;
    }
    let run = lab.nobody(line);
    let record = run.expect(4).record();
    says_why(&record, "fifo:50");
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    let auto = lab.nobody("noise -t 100ms --json");
    assert!(auto.expect(0).record().metrics.iter().any(|m| m.value.is_some()));
}

#[test]
fn a_policy_without_the_right_is_refused_with_the_true_cause() {
    if !is_root() {
        return println!("skipped: needs root to become nobody");
    }
    let lab = Lab::new();
    for options in ["--rt", "--prio fifo:10", "--load-prio rr:5", "--prio other:-5"] {
        lab.nobody(&format!("interactive -t 2 -q {options}")).refused("CAP_SYS_NICE");
    }
}

#[test]
fn without_rights_it_works_and_says_what_is_weaker() {
    if !is_root() {
        return println!("skipped: needs root to become nobody");
    }
    let lab = Lab::new();
    // Loads that need rights, loads that are weaker without them, and one that is neither. All loads would leave no time for slow starts on a busy machine.
    let loads = "usual,-video,-x,-ring,-burn,-write,-read,-membw";
    let ended = lab.nobody(&format!("interactive --tasks audio-pro --loads={loads} -t 12 --json -q"));
    let record = ended.ended_or_starved();
    balanced(&record);
    assert!(figure(&record, "interactive.lateness", "audio-pro", "compile").is_some());
    let said =
        |code: &str, about: &str| record.warnings.iter().any(|w| w.code == code && w.text.contains(about));
    // If other programs took the time, the run ends before it reaches all loads.
    assert!(
        !record.complete || said("W312", "rt-hog"),
        "a load without its right is missing: {:?}",
        record.warnings
    );
    assert!(
        !record.complete || said("W313", "memload"),
        "a load is weaker without rights: {:?}",
        record.warnings
    );
    nothing_left(&lab, &ended);
}

#[test]
fn a_plain_user_needs_no_rights() {
    if !is_root() || has_one_cpu() {
        return println!("skipped: needs root to become somebody else");
    }
    let record = Lab::new().nobody("net -t 1 --sizes 1-4K --json -q").record();
    let tcp = [("transport", "tcp"), ("wait", "polling")];
    assert!(value(&record, "net.round_trip", &tcp).is_some() || is_loaded(&record));
}
