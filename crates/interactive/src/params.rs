//! Parameters of the probe, and what they select.

use std::path::PathBuf;

use clap::Args;
use machmeter_data::quantity::{duration_text, parse_duration_ns};
use machmeter_engine::stream::Overload;
use machmeter_engine::{Attributes, LoadInfo, ProbeError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tasks::{Choices, MOST_BUFFERS, TASKS, TaskInfo, find};

/// Parameters of the interactive probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Tasks: names, classic, all, -NAME to exclude one; names as in machmeter list tasks; classic is audio, video, x, gaming; these are the tasks of interbench.
    #[arg(long, value_name = "LIST", default_value = "classic", allow_hyphen_values = true)]
    pub tasks: String,
    /// Loads: names, usual, all, -NAME to exclude one; names as in machmeter list loads; usual is all safe loads, classic those of interbench.
    #[arg(long, value_name = "LIST", default_value = "usual", allow_hyphen_values = true)]
    pub loads: String,
    /// Real-time mode: audio, video, custom as fifo:50; or with the policy of --prio.
    #[arg(long)]
    pub rt: bool,
    /// CPU share of the custom task and load.
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub custom_cpu: Option<f64>,
    /// Interval of the custom task and load; 100us to 10s.
    #[arg(long, value_name = "DUR", value_parser = interval)]
    pub custom_interval: Option<String>,
    /// Buffered periods of audio-desktop and audio-pro; the buffer sets their deadlines.
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_BUFFERS)))]
    pub audio_buffers: u32,
    /// Fixed work: loop turns per ms of demand; instead of CPU time, to compare machines.
    #[arg(long, value_name = "PER_MS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub loops: Option<u64>,
    /// Handling of late releases: drop, queue or skip, instead of the task's own.
    #[arg(long, value_name = "POLICY", value_parser = ["drop", "queue", "skip"], hide_short_help = true)]
    pub overload: Option<String>,
    /// Policy of the loads: other:10, batch, fifo:10; the policy of this program by default.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub load_prio: Option<String>,
    /// CPUs of the loads; all by default.
    #[arg(long, value_name = "LIST")]
    pub load_cpus: Option<String>,
    /// Threads of burn, jobs of compile; one per CPU by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub load_threads: Option<u32>,
    /// Scheduler slice of the tasks (EEVDF, 100us to 100ms).
    #[arg(long, value_name = "DUR", value_parser = duration_text, hide_short_help = true)]
    pub task_slice: Option<String>,
    /// Scheduler slice of the loads.
    #[arg(long, value_name = "DUR", value_parser = duration_text, hide_short_help = true)]
    pub load_slice: Option<String>,
    /// Utilization clamp of the tasks, MIN-MAX of 1024.
    #[arg(long, value_name = "A-B", value_parser = clamp, hide_short_help = true)]
    pub task_clamp: Option<String>,
    /// Utilization clamp of the loads.
    #[arg(long, value_name = "A-B", value_parser = clamp, hide_short_help = true)]
    pub load_clamp: Option<String>,
    /// Control group of the tasks: weight=50,max=40%,cpus=0-1.
    #[arg(long, value_name = "LIMITS", hide_short_help = true)]
    pub task_cgroup: Option<String>,
    /// Control group of the loads.
    #[arg(long, value_name = "LIMITS", hide_short_help = true)]
    pub load_cgroup: Option<String>,
    /// Directory for files of the loads; each load uses its own subdirectory; the current directory by default.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Disk space for files of a load, in MiB; at most 5 % of the free space.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1_048_576), hide_short_help = true)]
    pub disk_budget: u64,
    /// Memory for memload, in MiB; chosen by free memory by default.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..=1_073_741_824), hide_short_help = true)]
    pub memory_budget: Option<u64>,
    /// Comment for the record.
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub comment: Option<String>,
    /// Predict from a noise run instead of measuring; last, a tag, a file.
    #[arg(long, value_name = "RECORD")]
    pub predict_from: Option<String>,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(p) if p > 0.0 && p <= 100.0 => Ok(p),
        _ => Err(format!("{text} is not a percentage above 0 and up to 100")),
    }
}

fn interval(text: &str) -> Result<String, String> {
    match parse_duration_ns(text)? {
        100_000..=10_000_000_000 => Ok(text.to_owned()),
        _ => Err(format!("an interval of {text} is outside 100us to 10s")),
    }
}

fn policy(text: &str) -> Result<String, String> {
    text.parse::<machmeter_sys::sched::Policy>().map(|p| p.to_string()).map_err(|e| e.to_string())
}

fn clamp(text: &str) -> Result<String, String> {
    clamp_of(text).map(|_| text.to_owned())
}

fn clamp_of(text: &str) -> Result<(u16, u16), String> {
    let bad = || format!("'{text}' is not a utilization clamp: write MIN-MAX, each 0 to 1024");
    let (a, b) = text.split_once('-').ok_or_else(bad)?;
    match (a.trim().parse(), b.trim().parse()) {
        (Ok(least), Ok(most)) if least <= most && most <= 1024 => Ok((least, most)),
        _ => Err(bad()),
    }
}

/// A name to choose, and the sets that hold it.
struct Choice<'a> {
    name: &'a str,
    usual: bool,
    classic: bool,
}

impl Choice<'_> {
    /// Whether `word` is its name, or a set that holds it.
    fn is(&self, word: &str) -> bool {
        match word {
            "all" => true,
            "usual" => self.usual,
            "classic" => self.classic,
            name => name == self.name,
        }
    }
}

impl Params {
    /// The custom share and period, if given; both or none.
    pub fn custom(&self) -> Result<Option<(f64, u64)>, ProbeError> {
        match (self.custom_cpu, &self.custom_interval) {
            (None, None) => Ok(None),
            (Some(p), Some(i)) => {
                let p = percent(&p.to_string()).map_err(ProbeError::Usage)?;
                let ns = interval(i).and_then(|t| parse_duration_ns(&t)).map_err(ProbeError::Usage)?;
                Ok(Some((p / 100.0, ns)))
            }
            (Some(_), None) => Err(ProbeError::Usage("--custom-cpu needs --custom-interval".to_owned())),
            (None, Some(_)) => Err(ProbeError::Usage("--custom-interval needs --custom-cpu".to_owned())),
        }
    }

    /// Names out of a list like `classic,launch,-x`, each with whether it was named itself; custom only where described.
    fn choose<'a>(
        &self,
        kind: &str,
        list: &str,
        all: &[Choice<'a>],
    ) -> Result<Vec<(&'a str, bool)>, ProbeError> {
        let refused = |why: String| Err(ProbeError::Usage(why));
        let custom = self.custom()?;
        let words: Vec<String> =
            list.split(',').map(|w| w.trim().to_lowercase()).filter(|w| !w.is_empty()).collect();
        let is_known = |w: &str| ["all", "usual", "classic"].contains(&w) || all.iter().any(|c| c.name == w);
        if let Some(unknown) = words.iter().map(|w| w.trim_start_matches('-')).find(|w| !is_known(w)) {
            let names: Vec<&str> = all.iter().map(|c| c.name).collect();
            return refused(format!("no {kind} '{unknown}': {kind}s are {}", names.join(", ")));
        }
        // A list that only takes out takes out of the usual.
        let only_out = words.iter().all(|w| w.starts_with('-'));
        let chosen = |choice: &Choice<'a>| {
            let (mut is_in, mut named) = (only_out && choice.usual, false);
            for word in &words {
                match word.strip_prefix('-') {
                    Some(out) if choice.is(out) => (is_in, named) = (false, false),
                    None if choice.is(word) => (is_in, named) = (true, named || word == choice.name),
                    _ => {}
                }
            }
            is_in.then_some((choice.name, named))
        };
        let mut out: Vec<_> = all.iter().filter_map(chosen).collect();
        if out.is_empty() {
            return refused(format!("no {kind} is left of '{list}'"));
        }
        if custom.is_none() {
            if out.contains(&("custom", true)) {
                return refused(format!("the custom {kind} needs --custom-cpu and --custom-interval"));
            }
            out.retain(|(name, _)| *name != "custom");
        }
        Ok(out)
    }

    pub fn tasks(&self) -> Result<Vec<&'static TaskInfo>, ProbeError> {
        let choice = |t: &'static TaskInfo| Choice { name: t.name, usual: t.classic, classic: t.classic };
        let all: Vec<Choice<'_>> = TASKS.iter().map(choice).collect();
        let chosen = self.choose("task", &self.tasks, &all)?;
        let of = |(name, named): &(&str, bool)| find(name).filter(|t| *named || !self.rt || t.real_time);
        let out: Vec<_> = chosen.iter().filter_map(of).collect();
        if out.is_empty() {
            return Err(ProbeError::Usage(format!("no task of '{}' runs in real-time mode", self.tasks)));
        }
        Ok(out)
    }

    /// The loads asked for out of those there are, and whether each was named itself (then it must be had).
    pub fn loads(&self, infos: &[&'static LoadInfo]) -> Result<Vec<(&'static LoadInfo, bool)>, ProbeError> {
        let classic = |l: &LoadInfo| l.classic && l.by_default;
        let choice =
            |l: &&'static LoadInfo| Choice { name: l.name, usual: l.by_default, classic: classic(l) };
        let all: Vec<Choice<'_>> = infos.iter().map(choice).collect();
        let mut chosen = self.choose("load", &self.loads, &all)?;
        // The custom load belongs to what is usual once it is described.
        if self.custom()?.is_some() && self.loads == "usual" {
            chosen.push(("custom", false));
        }
        let info = |name: &str| infos.iter().find(|l| l.name == name).copied();
        Ok(chosen.into_iter().filter_map(|(name, named)| Some((info(name)?, named))).collect())
    }

    pub fn choices(&self, segment_ns: u64) -> Result<Choices, ProbeError> {
        Ok(Choices {
            custom: self.custom()?,
            audio_buffers: self.audio_buffers,
            turns_per_ms: self.loops,
            segment_ns,
            overload: match self.overload.as_deref() {
                Some("drop") => Some(Overload::Drop),
                Some("queue") => Some(Overload::Queue { most_periods: 0 }),
                Some("skip") => Some(Overload::Skip),
                _ => None,
            },
        })
    }

    /// Attributes of the loads. A job file may give what the command line would refuse.
    pub fn load_attributes(&self) -> Result<Attributes, ProbeError> {
        let policy = self.load_prio.as_deref().map(policy).transpose().map_err(ProbeError::Usage)?;
        let common = slice_and_clamp(self.load_slice.as_deref(), self.load_clamp.as_deref())?;
        Ok(Attributes { policy, cpus: self.load_cpus.clone(), cgroup: self.load_cgroup.clone(), ..common })
    }

    /// Attributes of the tasks, with the policy and CPUs that the global options say.
    pub fn task_attributes(&self, policy: String, cpus: Option<String>) -> Result<Attributes, ProbeError> {
        let common = slice_and_clamp(self.task_slice.as_deref(), self.task_clamp.as_deref())?;
        Ok(Attributes { policy: Some(policy), cpus, cgroup: self.task_cgroup.clone(), ..common })
    }
}

fn slice_and_clamp(slice: Option<&str>, clamp: Option<&str>) -> Result<Attributes, ProbeError> {
    let slice_ns = slice.map(parse_duration_ns).transpose().map_err(ProbeError::Usage)?;
    let clamp = clamp.map(clamp_of).transpose().map_err(ProbeError::Usage)?;
    Ok(Attributes { slice_ns, clamp, ..Attributes::default() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};
    use machmeter_data::quantity::Unit;

    pub(crate) fn params(words: &[&str]) -> Result<Params, clap::Error> {
        let command = Params::augment_args(Command::new("interactive").no_binary_name(true));
        command.try_get_matches_from(words).and_then(|m| Params::from_arg_matches(&m))
    }

    const CUSTOM: &[&str] = &["--custom-cpu", "10", "--custom-interval", "5ms"];

    fn tasks(words: &[&str]) -> Vec<&'static str> {
        params(words).unwrap().tasks().unwrap().iter().map(|t| t.name).collect()
    }

    const fn load(name: &'static str, by_default: bool, classic: bool) -> LoadInfo {
        LoadInfo { name, description: "d", work: "w", unit: Unit::Count, by_default, classic }
    }

    static LOADS: [LoadInfo; 5] = [
        load("burn", true, true),
        load("custom", false, true),
        load("hack", false, true),
        load("none", true, true),
        load("ring", true, false),
    ];

    fn loads(words: &[&str]) -> Vec<(&'static str, bool)> {
        let infos: Vec<&LoadInfo> = LOADS.iter().collect();
        params(words).unwrap().loads(&infos).unwrap().iter().map(|l| (l.0.name, l.1)).collect()
    }

    #[test]
    fn tasks_are_chosen_by_name_set_and_exclusion() {
        assert_eq!(tasks(&[]), ["audio", "gaming", "video", "x"]);
        assert_eq!(tasks(&["--tasks", "X,Video"]), ["video", "x"]);
        assert_eq!(tasks(&["--tasks", "-x"]), ["audio", "gaming", "video"]);
        assert_eq!(tasks(&["--tasks", "classic,launch,-gaming"]), ["audio", "launch", "video", "x"]);
        assert_eq!(tasks(&["--rt"]), ["audio", "video"]);
        assert_eq!(tasks(CUSTOM), ["audio", "custom", "gaming", "video", "x"]);
        assert_eq!(tasks(&["--tasks", "all"]).len(), TASKS.len() - 1);
    }

    #[test]
    fn loads_are_chosen_and_remember_whether_they_were_named() {
        assert_eq!(loads(&[]), [("burn", false), ("none", false), ("ring", false)]);
        assert_eq!(loads(&["--loads", "none,hack"]), [("hack", true), ("none", true)]);
        assert_eq!(loads(&["--loads", "classic"]), [("burn", false), ("none", false)]);
        assert_eq!(loads(&["--loads", "-burn"]), [("none", false), ("ring", false)]);
        assert!(loads(CUSTOM).contains(&("custom", false)));
    }

    #[test]
    fn wrong_requests_say_what_is_wrong() {
        for (words, part) in [
            (&["--custom-cpu", "0"][..], "percentage"),
            (&["--custom-cpu", "101"], "percentage"),
            (&["--custom-cpu", "-3"], "percentage"),
            (&["--custom-interval", "1us"], "outside 100us to 10s"),
            (&["--load-prio", "fifo:0"], "outside 1..99"),
            (&["--task-clamp", "9-1"], "MIN-MAX"),
            (&["--audio-buffers", "9"], "1..=8"),
            (&["--overload", "wait"], "drop, queue, skip"),
        ] {
            let said = params(words).unwrap_err().to_string();
            assert!(said.contains(part), "{words:?}: {said}");
        }
        let usage = |words: &[&str]| params(words).unwrap().tasks().unwrap_err().to_string();
        assert!(usage(&["--tasks", "vidio"]).contains("no task 'vidio': tasks are audio, "));
        assert!(usage(&["--tasks", "custom"]).contains("--custom-interval"));
        assert!(usage(&["--tasks", "-all"]).contains("no task is left"));
        assert!(usage(&["--custom-cpu", "5"]).contains("needs --custom-interval"));
    }
}
