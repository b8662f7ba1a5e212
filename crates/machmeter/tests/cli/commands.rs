//! Tests of the command line: help that fits on a screen, options of each verb, dry runs that reject what runs reject, and output files.

#![allow(clippy::unwrap_used, reason = "tests panic on surprises")]

use std::fs;

use crate::program::{Lab, Running, record_in, words};
use machmeter::{Registries, command_line};

const SAVED: [&str; 7] =
    ["compare a b", "doctor", "explain W301", "export --to csv", "list", "report", "schema"];
const PROBES: [&str; 6] = ["interactive", "memory", "net", "noise", "ops", "sync"];

/// The help of a verb under `option` at 80 columns.
fn help(lab: &Lab, verb: &str, option: &str) -> String {
    let mut command = lab.command(&[&words(verb), &[option][..]].concat());
    command.env("COLUMNS", "80");
    Running::of(command).end().expect(0).stdout.clone()
}

#[test]
fn help_of_every_verb_fits_a_screen() {
    let lab = Lab::new();
    let tree = command_line(&Registries::default());
    for verb in tree.get_subcommands().map(clap::Command::get_name).chain([""]) {
        let (short, long) = (help(&lab, verb, "-h"), help(&lab, verb, "--help"));
        assert!(short.lines().count() <= 40, "{verb}: {} lines\n{short}", short.lines().count());
        assert_eq!(short.lines().chain(long.lines()).find(|l| l.chars().count() > 80), None, "{verb}");
    }
}

#[test]
fn options_are_refused_where_they_do_not_act() {
    let lab = Lab::new();
    let measuring = "--cpus=0 --prio=other --seed=2 --raw=all --time=5 --level=1 --strict --no-save";
    for option in measuring.split(' ') {
        let long = option.split('=').next().unwrap();
        for line in SAVED {
            let verb = words(line)[0];
            assert!(!help(&lab, verb, "--help").contains(long), "{line} shows {long}");
            let about = format!("{verb} takes no {long}");
            lab.line(&format!("{line} {option}")).refused(&about);
            lab.line(&format!("{option} {line}")).refused(&about);
        }
        assert!(PROBES.iter().all(|p| help(&lab, p, "--help").contains(long)), "{long}");
    }
    lab.run(&["noise", "--job", "x.toml"]).refused("noise takes no --job");
}

#[test]
fn files_are_written_where_asked_and_no_name_is_doubled() {
    let lab = Lab::new();
    fs::write(lab.work().join("n.toml"), "[noise]\n").unwrap();
    for machine in ["machmeter", "machmeter-vm", "vm"] {
        lab.run(&["--job", "n.toml", "-t", "100ms", "-q", "--raw", "none", "--name", machine]).expect(0);
    }
    let files = lab.files();
    assert!(files.len() == 7 && files.iter().all(|f| f.matches("machmeter").count() < 2), "{files:?}");
    for run in [files[0].as_str(), "last", "last~1"] {
        lab.run(&["report", run]).expect(0);
        for wrong in ["x.pdf", "x.txt"] {
            lab.run(&["report", run, "-o", wrong]).refused(".json (record), .html (report) and .svg (card)");
        }
        lab.run(&["report", run, "--card"]).refused("--output");
        lab.run(&["report", run, "--card", "-o", "x.html"]).refused("--card writes .svg");
        assert_eq!(lab.files(), files, "report {run}");
    }
    lab.run(&["report", "-o", "a.html", "-o", "a.svg", "-o", "a.json", "-o", "bare"]).expect(0);
    lab.run(&["noise", "-t", "100ms", "--no-save", "-q", "-o", "b.svg"]).expect(0);
    let begins =
        |name: &str| fs::read_to_string(lab.work().join(name)).unwrap().trim_start()[..5].to_lowercase();
    assert_eq!(["a.html", "bare", "a.svg", "b.svg"].map(begins), ["<!doc", "<!doc", "<svg ", "<svg "]);
    record_in(&lab.work().join("a.json"));
}

#[test]
fn messages_say_what_is_meant_and_where_help_is() {
    let lab = Lab::new();
    lab.run(&["noise", "-t", "100ms", "-q"]).expect(0);
    for (line, about, advice) in [
        ("nois", "nois", "similar: noise, ops; machmeter --help"),
        ("noise --window -1ms", "negative time", "machmeter noise --help"),
        ("noise --quantumm 1", "--quantumm", "machmeter noise --help"),
        ("compare last last --metric nothing*", "no metric of these runs", "machmeter compare --help"),
        ("compat ftq -x", "-x", "machmeter compat ftq -h"),
    ] {
        let run = lab.line(line);
        run.refused(about);
        assert!(run.stderr.trim_end().ends_with(advice), "{line}: {}", run.stderr);
    }
}
