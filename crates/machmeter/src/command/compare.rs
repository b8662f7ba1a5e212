//! `machmeter compare A B`: what changed between two sides of one or more runs, and what could have been seen.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_compare::{
    Comparison, FailOn, Options, calibrate, calibrate_one, calibration, compare, csv, exit_code, html,
    is_alike, markdown, text,
};
use machmeter_data::Record;
use machmeter_store::foreign::SideFacts;

use super::report;
use crate::{Exit, Failure, Globals, Registries, Result, output, state, view};

/// Earlier runs of the same kind of machine that are looked at for the run-to-run spread at most.
const MAX_HISTORY: usize = 30;
/// Records that are opened to find them, at most: a second.
const MAX_FILES: usize = 300;
/// Runs of a side at most: a range such as `last~999..last` is a mistake.
const MOST_RUNS: usize = 200;

/// What changed between two runs, or two groups of runs
///
/// Two runs: `compare last~1 last`. Groups: `compare last~11..last~6 -- last~5..last`, or `compare --by side last~11..last` for runs
/// with the tags side=a and side=b. A run is last, last~N, a tag, a record or a report.
#[derive(Args)]
pub(super) struct Asked {
    /// First run and second run; or the runs of side A, then -- and those of B
    #[arg(value_name = "RUN", num_args = 0.., required_unless_present_any = ["by", "itself"])]
    a: Vec<PathBuf>,
    /// Runs of side B
    #[arg(value_name = "B", last = true, num_args = 1.., conflicts_with = "by")]
    b: Vec<PathBuf>,
    /// Sides are the two values of this tag, in order of time; of last~40..last where no run is named
    #[arg(long, value_name = "TAG")]
    by: Option<String>,
    /// What comparisons of this machine find: stored runs of the plan of RUN (last) against each other, as they are and 1, 3, 5 % dearer
    #[arg(long = "self", conflicts_with_all = ["b", "by"])]
    itself: bool,
    /// Smallest change that matters; of shares a tenth of it, in points
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    at_least: f64,
    /// Only metrics that match; they are one family
    #[arg(long, value_name = "GLOB")]
    metric: Option<String>,
    /// What makes exit code 1
    #[arg(long, value_name = "WHAT", default_value = "worse", value_parser = ["worse", "any", "none"])]
    fail_on: String,
    /// Do not learn from earlier runs what runs differ by
    #[arg(long)]
    no_history: bool,
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |t| (t, 0.01));
    match number.trim().parse::<f64>() {
        Ok(v) if (0.0..=10.0).contains(&(v * scale)) => Ok(v * scale),
        _ => Err(format!("'{text}' is not a share such as 2% or 0.02")),
    }
}

pub(super) fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    writable(globals)?;
    if asked.itself {
        return itself(registries, globals, &asked.a);
    }
    let [a, b] = sides(registries, &asked)?;
    let history = a.first().filter(|_| !asked.no_history).zip(state::past().ok());
    let earlier = history.map(|(a, past)| state::like(&past, a, MAX_HISTORY, MAX_FILES)).unwrap_or_default();
    let options = Options {
        at_least: asked.at_least,
        metric_glob: asked.metric,
        history: &earlier,
        ..Options::default()
    };
    let mut comparison = compare(&a, &b, &options);
    if let Some(first) = a.first() {
        let alike: Vec<Record> = earlier.iter().filter(|r| is_alike(r, first)).cloned().collect();
        comparison.calibration = calibrate_one(&alike, a.len().min(b.len()));
    }
    let keys = comparison.rows.len() + comparison.only_a.len() + comparison.only_b.len();
    if let Some(glob) = options.metric_glob.filter(|_| keys == 0) {
        return Err(Failure::usage(format!("--metric '{glob}': no metric of these runs matches")));
    }
    show(&comparison, globals)?;
    let fail_on = match asked.fail_on.as_str() {
        "any" => FailOn::Any,
        "none" => FailOn::None,
        _ => FailOn::Worse,
    };
    Ok(match exit_code(&comparison, fail_on) {
        1 => Exit::Finding,
        3 => Exit::Inconclusive,
        _ => Exit::Fine,
    })
}

/// What comparisons of stored runs find, of the state and plan of one run: the latest one if none is named.
fn itself(registries: &Registries, globals: &Globals, runs: &[PathBuf]) -> Result<Exit> {
    let name = match runs {
        [] => PathBuf::from("last"),
        [one] => one.clone(),
        more => {
            let what = format!(
                "--self takes one run, whose state and plan the stored runs are of; got {}",
                more.len()
            );
            return Err(Failure::usage(what).help("machmeter compare --self last"));
        }
    };
    let run = report::load(registries, &[name], &SideFacts::default())?;
    let past = state::past().map_err(Failure::usage)?;
    let mut alike = state::like(&past, &run, MAX_HISTORY, MAX_FILES);
    alike.retain(|r| is_alike(r, &run));
    alike.push(run);
    let found = calibrate(&alike);
    if found.sides.is_empty() {
        let what = format!("--self needs two stored runs of one state and plan, found {}", found.runs);
        return Err(Failure::usage(what).help("make some: machmeter ops -l quick -n 8"));
    }
    if let Some(t) = &globals.json {
        let json = serde_json::to_string_pretty(&found).map_err(Failure::cannot)?;
        output::put(t, &json).map_err(Failure::cannot)?;
    }
    if !globals.stdout_is_taken() {
        output::put(Path::new("-"), &(calibration(&found).join("\n") + "\n")).map_err(Failure::cannot)?;
    }
    Ok(Exit::Fine)
}

fn sides(registries: &Registries, asked: &Asked) -> Result<[Vec<Record>; 2]> {
    let all = |names: &[PathBuf]| -> Result<Vec<Record>> {
        let names: Vec<PathBuf> = names.iter().map(|n| range(n)).collect::<Result<Vec<_>, _>>()?.concat();
        if names.len() > MOST_RUNS {
            let named = names.len();
            return Err(Failure::usage(format!("{named} runs are named, at most {MOST_RUNS} are compared")));
        }
        names
            .iter()
            .map(|n| report::load(registries, std::slice::from_ref(n), &SideFacts::default()))
            .collect()
    };
    if let Some(tag) = &asked.by {
        let runs = if asked.a.is_empty() { tagged(tag)? } else { all(&asked.a)? };
        return by_tag(&runs, tag);
    }
    match (asked.a.as_slice(), asked.b.as_slice()) {
        ([a, b], []) => Ok([all(std::slice::from_ref(a))?, all(std::slice::from_ref(b))?]),
        (_, []) => Err(Failure::usage(format!("two sides are needed, got {} runs of one", asked.a.len()))
            .help("two runs, or the runs of A, then -- and the runs of B")),
        (a, b) => Ok([all(a)?, all(b)?]),
    }
}

/// `last~6..last~3` as the four names it means; any other name as it is.
fn range(name: &Path) -> Result<Vec<PathBuf>> {
    let back = |end: &str| match end.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse::<usize>().ok(),
    };
    let text = name.to_string_lossy();
    let Some((from, to)) = text.split_once("..").and_then(|(f, t)| Some((back(f)?, back(t)?))) else {
        return Ok(vec![name.to_owned()]);
    };
    if from < to || from - to >= MOST_RUNS {
        return Err(Failure::usage(format!("{text}: from an older to a newer run, at most {MOST_RUNS}")));
    }
    Ok((to..=from).rev().map(|n| PathBuf::from(format!("last~{n}"))).collect())
}

/// Latest runs of the history that have the tag, the oldest first.
fn tagged(tag: &str) -> Result<Vec<Record>> {
    let history = state::history().map_err(Failure::usage)?;
    let names = history.list().map_err(Failure::usage)?;
    let has = |r: &Record| r.run.tags.contains_key(tag);
    let mut runs: Vec<Record> =
        names.iter().rev().take(MOST_RUNS).filter_map(|n| history.read(n).ok()).filter(has).collect();
    runs.reverse();
    Ok(runs)
}

/// Runs by the value of a tag; the value that comes first is side A, the latest two values count.
fn by_tag(runs: &[Record], tag: &str) -> Result<[Vec<Record>; 2]> {
    let value = |r: &Record| r.run.tags.get(tag).cloned();
    let mut values: Vec<String> = Vec::new();
    for v in runs.iter().filter_map(value) {
        if !values.contains(&v) {
            values.push(v);
        }
    }
    let [a, b] = values.as_slice() else {
        let found = if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        let what = format!("--by {tag}: a comparison has two values, here are {}: {found}", values.len());
        return Err(Failure::usage(what).help(format!("measure with --tag {tag}=VALUE, or name the runs")));
    };
    let of = |v: &String| -> Vec<Record> {
        let named = |mut r: Record| {
            r.run.tags.insert("name".to_owned(), format!("{tag}={v}"));
            r
        };
        runs.iter().filter(|r| value(r).as_ref() == Some(v)).cloned().map(named).collect()
    };
    Ok([of(a), of(b)])
}

/// Refuses files of a comparison that could not be written now.
pub(super) fn writable(globals: &Globals) -> Result<()> {
    if let Some(other) = globals.output.iter().find(|t| t.extension().is_none_or(|e| e != "html")) {
        let what = format!("-o {}: only .html (forest plot) can be written", other.display());
        return Err(Failure::usage(what).help("--json=FILE, --csv=FILE, --md=FILE write other forms"));
    }
    view::could_write(globals)
}

pub(super) fn show(comparison: &Comparison, globals: &Globals) -> Result<()> {
    let put = |target: &Path, text: &str| output::put(target, text).map_err(Failure::cannot);
    if let Some(t) = &globals.json {
        put(t, &serde_json::to_string_pretty(comparison).map_err(Failure::cannot)?)?;
    }
    if let Some(t) = &globals.csv {
        put(t, &csv(comparison))?;
    }
    if let Some(t) = &globals.md {
        put(t, &markdown(comparison))?;
    }
    for t in &globals.output {
        put(t, &html(comparison))?;
    }
    if !globals.stdout_is_taken() {
        put(Path::new("-"), &text(comparison, view::style(globals).width, globals.verbose > 0))?;
    }
    Ok(())
}
