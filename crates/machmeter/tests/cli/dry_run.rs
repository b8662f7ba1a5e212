//! Tests of `--dry-run` for every verb that takes it: it prints a plan, measures and writes nothing, and rejects what the run rejects.

#![allow(clippy::unwrap_used, reason = "tests fail and print their figures")]

use std::fs;

use crate::program::{Lab, kept_runs};
use crate::verbs::{VERBS, lab};
use machmeter::{PROBES, Registries, command_line};

/// Calls of verbs that are no probes, by verb.
const PLANNED: &[(&str, &[&str])] = &[
    ("", &["", "-t 300ms"]),
    ("doctor", &[""]),
    ("predict", &["run.json --on on.json", "--expr 1 --on r.json"]),
    ("selftest", &["flow", "interactive", "memory", "mpi", "net", "noise", "ops", "sync"]),
    ("simulate", &["--pattern allreduce --ranks 2-64K --on on.json", "--table --on on.json"]),
];

#[test]
fn a_dry_run_measures_nothing_and_leaves_nothing() {
    let lab = lab();
    let before = lab.files();
    let tree = command_line(&Registries::default());
    for verb in VERBS {
        let command = tree.find_subcommand(verb.name).unwrap_or(&tree);
        if !command.get_arguments().any(|a| a.get_id() == "dry_run") {
            let about = format!("{} takes no --dry-run", verb.name);
            lab.line(&verb.line("--dry-run", verb.short)).refused(&about);
            continue;
        }
        let is_probe = PROBES.iter().any(|p| p.info.name == verb.name);
        let planned = PLANNED.iter().find(|(name, _)| *name == verb.name).map(|(_, lines)| *lines);
        for options in planned.unwrap_or_else(|| if is_probe { &[""] } else { panic!("{}", verb.name) }) {
            let line = verb.line("--dry-run", options);
            let plan = lab.line(&line);
            // A plan takes 20 ms; tests run on busy machines.
            assert!(plan.expect(0).wall.as_secs() < 2, "{plan:?}");
            assert!(plan.stderr.is_empty() && plan.stdout.starts_with("plan: "), "{plan:?}");
            assert_eq!(plan.stdout.contains("; without interactive: "), *options == "-t 300ms", "{plan:?}");
            let is_calculated = ["predict", "simulate"].contains(&verb.name) && !options.contains("--expr");
            assert_eq!(plan.stdout.contains("M events, about"), is_calculated, "{plan:?}");
            let record = lab.line(&format!("{line} --json")).expect(0).record();
            assert_eq!((record.stopped_by.as_str(), record.metrics.len()), ("plan", 0), "{line}");
        }
    }
    assert_eq!(PLANNED.iter().filter(|(name, _)| !VERBS.iter().any(|v| v.name == *name)).count(), 0);
    assert!(lab.files() == before && !lab.state().exists());
}

/// Verbs with the options that each rejects, separated by bars.
const WRONG: &[(&str, &str)] = &[
    (
        "",
        "--no-such-option|--job nothere.toml|--job wrong.toml|--job key.toml|-o x.txt|-t 1s --job short.toml",
    ),
    (
        "interactive",
        "--custom-cpu 101 --custom-interval 5ms|--custom-cpu 0|--custom-cpu 5|--custom-interval 1us|-t 1s|-t 5|\
         --directory nothere|--load-cgroup wheight=5|--task-cgroup nonsense|--load-cpus 9999|--load-prio fifo:0|\
         --loads burn,nothere|--loads ring --load-threads 1 --tasks x -t 9|--predict-from nothere|--prio fifo:99|\
         --rt --prio other:5|--task-slice 1s|--tasks vidio|--tasks custom",
    ),
    (
        "memory -t 2",
        "--block-size 63|--buffer 64T|--cache-size 0|--cache-size 100T|--data x|--kernels nonsense|--kernels read.avx9|\
         --ladder-points 0|--max-bytes 64T|--max-bytes 3|--models coroutines|--pages x|--parts x|--threads 0",
    ),
    ("net -t 1", "--transports smoke|--sizes 0-8|--sizes 9-8|--sizes x|--sizes 1-1G|--direction up"),
    (
        "noise",
        "--attribution guess|--cpus=|--cpus 1-0|--cpus 7777|--cpus first|--gap-capacity 0|--level 9|--prio fifo:0|\
         --prio deadline:1s/1s/1s|--prio deadline:2ms/1ms/1ms|--prio fifo:99|--prio fifo:200|--prio rt|--quantum 2|\
         --seed -1|--sweep-bytes 5|--tag =x|--threshold long|--window 1ns|--window 1s|--windows 0|--windows many|\
         -o x.pdf|-t 1000h|-t 1e99h|-t -5",
    ),
    ("ops", "--exec-target nothing|--directory nothere|--parts seed --directory /proc|--parts sums"),
    ("selftest noise", "-c 9999|-t 5"),
    ("sync", "--parts contention -c 0|--parts transfer -c 0|--parts x"),
];

#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    let lab = Lab::new();
    fs::write(lab.work().join("short.toml"), "[interactive]\n").unwrap();
    fs::write(lab.work().join("key.toml"), "[noise]\nnokey = 1\n").unwrap();
    fs::write(lab.work().join("wrong.toml"), "[memory]\npages = \"x\"\n").unwrap();
    for (verb, options) in WRONG.iter().flat_map(|(v, all)| all.split('|').map(move |o| (*v, o))) {
        let refusals = ["-q", "--dry-run"].map(|more| {
            let ended = lab.line(&format!("{verb} {options} {more}"));
            // The refusal names an option or its value, or says that the time is short or that there is no CPU.
            let mut words = options.split([' ', ',']).chain(["short", "CPU", "pages", "nokey"]);
            ended.refused(words.find(|w| ended.errors().iter().any(|e| e.contains(w))).unwrap_or(options));
            // Times and free memory differ between the two.
            ended.errors()[0].replace(|c: char| c.is_ascii_digit() || c == '.', "")
        });
        assert_eq!(refusals[0], refusals[1], "{verb} {options}");
    }
    assert_eq!(lab.files(), ["key.toml", "short.toml", "wrong.toml"]);
    assert!(kept_runs(&lab.state()).is_empty());
}
