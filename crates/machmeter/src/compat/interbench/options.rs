//! interbench's options.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::names::{self, Side, Simulation};
use crate::compat::number;
use crate::{Failure, Result};

/// Default number of burn threads in the readme.
const BURN_THREADS: &str = "4";
/// Real-time priority of the benchmarked thread under `-r`, as in the original.
const FIFO_PRIORITY: u8 = 95;

#[derive(Debug, Clone, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "one per flag of the original")]
pub(super) struct Options {
    /// Fixed work: turns of the loop per ms of a job's CPU time.
    pub(super) turns_per_ms: Option<u64>,
    pub(super) burn_threads: u32,
    /// Length of a cell, s.
    pub(super) seconds: u64,
    pub(super) task_nice: i64,
    pub(super) load_nice: i64,
    pub(super) uniprocessor: bool,
    pub(super) console_only: bool,
    pub(super) real_time: bool,
    /// Share of a CPU, and interval in ns, of the custom task and load.
    pub(super) custom: Option<(f64, u64)>,
    pub(super) comment: Option<String>,
    pub(super) loads: Selection,
    pub(super) tasks: Selection,
}

/// Names to include (all usual ones if empty) and names to exclude.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Selection {
    pub(super) only: Vec<&'static Simulation>,
    pub(super) without: Vec<&'static Simulation>,
}

impl Selection {
    /// True if `label` is included, given whether it is among the usual ones.
    pub(super) fn takes(&self, label: &Simulation, usual: bool) -> bool {
        let named = self.only.contains(&label);
        (named || (self.only.is_empty() && usual)) && !self.without.contains(&label)
    }
}

pub(in crate::compat) fn define(name: &'static str) -> Command {
    let flag = |short: char, id: &'static str, help: &'static str| {
        Arg::new(id).short(short).action(ArgAction::SetTrue).help(help)
    };
    let list = |short: char, id: &'static str, value: &'static str, help: &'static str| {
        Arg::new(id).short(short).value_name(value).action(ArgAction::Append).help(help)
    };
    let [tasks, loads] = [Side::Task, Side::Load].map(names::list);
    Command::new(name)
        .about("interbench as of 0.31: latency of simulated interactive tasks in the presence of simulated loads")
        .arg(number('l', "loops", 1..=1_000_000_000_000, "LOOPS", "Fixed work of LOOPS per ms instead of CPU time, to compare machines"))
        .arg(number('L', "burn", 1..=10_000, "THREADS", "Threads of the burn load").default_value(BURN_THREADS))
        .arg(number('t', "seconds", 1..=1_000_000, "SECONDS", "Seconds to run each benchmark").default_value("30"))
        .arg(number('B', "bench-nice", -20..=19, "NICE", "Nice value of the benchmarked thread").default_value("0"))
        .arg(number('N', "load-nice", -20..=19, "NICE", "Nice value of the load").default_value("0"))
        .arg(flag('u', "uniprocessor", "Imitate a uniprocessor: run everything on the first CPU"))
        .arg(flag('b', "benchmark", "No effect: loops_per_ms is always measured"))
        .arg(flag('c', "console", "Output to console only (default: console and log file)"))
        .arg(flag('r', "real-time", "Real time benchmarks: audio, video, custom as SCHED_FIFO, in us"))
        .arg(number('C', "custom-cpu", 1..=100, "PERCENT", "CPU use of a custom task and load (also needs -I)"))
        .arg(number('I', "custom-interval", 10..=60_000_000, "US", "Interval of the custom task and load, us (also needs -C)"))
        .arg(Arg::new("comment").short('m').value_name("COMMENT").help("Add COMMENT to the log file as a separate line"))
        .arg(list('w', "load", "LOAD", "Test against LOAD only; repeatable"))
        .arg(list('x', "without-load", "LOAD", "Exclude LOAD from the loads"))
        .arg(list('W', "bench", "BENCH", "Run BENCH only; repeatable"))
        .arg(list('X', "without-bench", "BENCH", "Exclude BENCH from the benchmarks"))
        .arg(flag('n', "nothing", "").hide(true))
        .after_help(format!("Benchmarks: {tasks}. Loads: {loads}; Ring and Hack run only with -w."))
}

impl Options {
    /// Reads the options from clap's matches.
    /// Errors: a usage error in one line: an unknown name, half of a custom load, a comment of several lines.
    pub(super) fn of(name: &str, matches: &ArgMatches) -> Result<Self> {
        let whole = |id: &str| matches.get_one::<i64>(id).copied();
        let custom = match (whole("custom-cpu"), whole("custom-interval")) {
            (Some(percent), Some(us)) => Some((percent as f64 / 100.0, us.unsigned_abs() * 1000)),
            (None, None) => None,
            (Some(percent), None) => {
                let what = format!("{name}: -C {percent} needs an interval");
                return Err(Failure::usage(what).help("add an interval in microseconds, such as -I 20000"));
            }
            (None, Some(us)) => {
                let what = format!("{name}: -I {us} needs a percentage of CPU");
                return Err(Failure::usage(what).help("add a percentage, such as -C 10"));
            }
        };
        let comment = matches.get_one::<String>("comment").cloned();
        if comment.as_ref().is_some_and(|c| c.contains(['\n', '\r'])) {
            return Err(Failure::usage(format!("{name}: -m: the comment must be one line")));
        }
        let named = |id: &str, side: Side, excluded: bool| -> Result<Vec<&'static Simulation>> {
            let given = matches.get_many::<String>(id).into_iter().flatten();
            given.map(|text| names::find(name, text, side, excluded, custom.is_some())).collect()
        };
        let selection = |only: &str, without: &str, side: Side| -> Result<Selection> {
            Ok(Selection { only: named(only, side, false)?, without: named(without, side, true)? })
        };
        Ok(Self {
            turns_per_ms: whole("loops").map(i64::unsigned_abs),
            burn_threads: whole("burn").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            seconds: whole("seconds").map_or(1, i64::unsigned_abs),
            task_nice: whole("bench-nice").unwrap_or(0),
            load_nice: whole("load-nice").unwrap_or(0),
            uniprocessor: matches.get_flag("uniprocessor"),
            console_only: matches.get_flag("console"),
            real_time: matches.get_flag("real-time"),
            custom,
            comment,
            loads: selection("load", "without-load", Side::Load)?,
            tasks: selection("bench", "without-bench", Side::Task)?,
        })
    }

    /// Policy of the task; `None` keeps the policy with which the program was started.
    pub(super) fn task_policy(&self) -> Option<String> {
        if self.real_time { Some(format!("fifo:{FIFO_PRIORITY}")) } else { nice(self.task_nice) }
    }

    pub(super) fn load_policy(&self) -> Option<String> {
        nice(self.load_nice)
    }
}

fn nice(nice: i64) -> Option<String> {
    (nice != 0).then(|| format!("other:{nice}"))
}

#[cfg(test)]
pub(super) fn parsed(words: &[&str]) -> Result<Options, String> {
    let matches =
        define("interbench").no_binary_name(true).try_get_matches_from(words).map_err(|e| e.to_string())?;
    Options::of("interbench", &matches).map_err(|f| f.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_readme() {
        let o = parsed(&[]).unwrap();
        assert_eq!((o.seconds, o.burn_threads, o.task_nice, o.load_nice), (30, 4, 0, 0));
        assert_eq!((o.turns_per_ms, o.custom, o.comment.as_deref()), (None, None, None));
        assert!(!(o.real_time || o.console_only || o.uniprocessor));
        assert_eq!((o.task_policy(), o.load_policy()), (None, None));
    }

    #[test]
    fn every_documented_option_is_understood() {
        let words = "-l 3693567 -L 2 -t 5 -B -5 -N 19 -u -b -c -r -n -C 10 -I 20000 -m two_words -w burn -w None -x write -W AUDIO -X x";
        let o = parsed(&words.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!((o.turns_per_ms, o.burn_threads, o.seconds), (Some(3_693_567), 2, 5));
        assert_eq!((o.task_nice, o.load_nice, o.custom), (-5, 19, Some((0.1, 20_000_000))));
        assert!(o.real_time && o.console_only && o.uniprocessor);
        assert_eq!([o.task_policy(), o.load_policy()], ["fifo:95", "other:19"].map(|p| Some(p.to_owned())));
        let named = [o.loads.only, o.loads.without, o.tasks.only, o.tasks.without];
        let labels = named.map(|l| l.iter().map(|l| l.label).collect::<Vec<_>>().join(" "));
        assert_eq!(labels, ["Burn None", "Write", "Audio", "X"]);
        assert_eq!(parsed(&["-B-5"]).unwrap().task_policy().as_deref(), Some("other:-5"));
    }

    #[test]
    fn wrong_values_are_refused_with_what_is_wrong() {
        let e = |words: &[&str]| parsed(words).unwrap_err();
        assert!(e(&["-C", "10"]).contains("needs an interval"));
        assert!(e(&["-I", "10000"]).contains("needs a percentage"));
        assert!(e(&["-w", "Burnn"]).contains("'Burnn'"));
        assert!(e(&["-W", "Memload"]).contains("'Memload'"));
        assert!(e(&["-w", "Audio"]).contains("'Audio'"));
        assert!(e(&["-w", "Custom"]).contains("-C"));
        assert!(e(&["-m", "a\nb"]).contains("one line"));
        for words in
            [["-t", "0"], ["-t", "x"], ["-L", "0"], ["-C", "101"], ["-B", "20"], ["-N", "-21"], ["-l", "0"]]
        {
            assert!(e(&words).contains(words[1]), "{words:?}");
        }
        assert!(parsed(&["-x", "Audio"]).is_ok(), "to exclude what is no load is no mistake");
    }
}
