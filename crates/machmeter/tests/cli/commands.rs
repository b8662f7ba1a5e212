//! The command line: help that fits a screen, options where they act, dry runs that refuse what runs refuse, files where asked.

#![allow(clippy::unwrap_used, reason = "tests panic on surprises")]

use std::fs;

use crate::program::{Lab, Running, kept_runs, record_in, words};
use machmeter::{Registries, command_line};

const SAVED: [&str; 7] =
    ["compare a b", "doctor", "explain W301", "export --to csv", "list", "report", "schema"];
const PROBES: [&str; 6] = ["interactive", "memory", "net", "noise", "ops", "sync"];

/// What a verb prints on 80 columns for `option`.
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

/// Verbs with what each refuses, separated by bars.
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
            // It names an option or its value, or says that the time is short or that there is no CPU.
            let mut words = options.split([' ', ',']).chain(["short", "CPU", "pages", "nokey"]);
            ended.refused(words.find(|w| ended.errors().iter().any(|e| e.contains(w))).unwrap_or(options));
            // Times and memory left differ from one to the other.
            ended.errors()[0].replace(|c: char| c.is_ascii_digit() || c == '.', "")
        });
        assert_eq!(refusals[0], refusals[1], "{verb} {options}");
    }
    assert_eq!(lab.files(), ["key.toml", "short.toml", "wrong.toml"]);
    assert!(kept_runs(&lab.state()).is_empty());
}

#[test]
fn a_dry_run_measures_nothing_and_leaves_nothing() {
    let lab = Lab::new();
    let selftests = PROBES.map(|probe| format!("selftest {probe}"));
    let verbs = PROBES.into_iter().chain(["doctor", "", "-t 300ms"]).map(str::to_owned);
    for line in selftests.into_iter().chain(verbs) {
        let plan = lab.line(&format!("{line} --dry-run"));
        // It takes 20 ms; tests run on busy machines.
        assert!(plan.expect(0).wall.as_secs() < 2, "{plan:?}");
        assert!(plan.stderr.is_empty() && plan.stdout.starts_with("plan: "), "{plan:?}");
        assert_eq!(plan.stdout.contains("; without interactive: "), line == "-t 300ms", "{plan:?}");
        let record = lab.line(&format!("{line} --dry-run --json")).expect(0).record();
        assert_eq!((record.stopped_by.as_str(), record.metrics.len()), ("plan", 0));
    }
    assert!(lab.files().is_empty() && !lab.state().exists());
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let lab = Lab::new();
    fs::create_dir(lab.work().join("folder.html")).unwrap();
    // A run of an hour would be late for the limit of the lab.
    for (file, why) in [("folder.html", "it is a folder"), ("missing/x.html", "the folder does not exist")] {
        for verb in ["noise -t 1h", "-t 1h", "selftest flow", "simulate --pattern ring --ranks 4"] {
            lab.line(&format!("{verb} -o {file}")).refused(why);
        }
        lab.line(&format!("ab -t 1h -o {file} true true -- noise -t 1s")).refused(why);
    }
    for option in ["--json=folder.html", "--csv=missing/x", "--md=missing/x"] {
        lab.line(&format!("noise -t 1h {option}")).refused("cannot write");
    }
    assert_eq!(lab.files(), ["folder.html"]);
}

#[test]
fn files_are_written_where_asked_and_no_name_is_doubled() {
    let lab = Lab::new();
    fs::write(lab.work().join("n.toml"), "[noise]\n").unwrap();
    for machine in ["machmeter", "machmeter-vm", "vm"] {
        lab.run(&["--job", "n.toml", "-t", "300ms", "-q", "--raw", "none", "--name", machine]).expect(0);
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
