//! `machmeter compare A B`: reports what changed between two sides, each of one or more runs, and the smallest detectable change.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_compare::{
    Comparison, FailOn, Options, Reports, calibrate, calibrate_one, calibration, compare, csv, exit_code,
    html, is_alike, markdown, text,
};
use machmeter_data::Record;
use machmeter_store::foreign::SideFacts;

use super::report;
use crate::{Exit, Failure, Globals, Registries, Result, output, state, view};

/// Most earlier runs of the same kind of machine used for the variation between runs.
const MAX_HISTORY: usize = 30;
/// Most records opened to find them; this takes about a second.
const MAX_FILES: usize = 300;
/// Most runs of a side. A range such as `last~999..last` is a mistake.
const MOST_RUNS: usize = 200;

/// Compare two runs, or two groups of runs
///
/// Two runs: `compare last~1 last`. Groups: `compare last~11..last~6 -- last~5..last`, or `compare --by side last~11..last` for runs
/// with the tags side=a and side=b. A run is last, last~N, a tag, a record or a report.
#[derive(Args)]
pub(super) struct Asked {
    /// First and second run; or the runs of side A, then --, then the runs of side B
    #[arg(value_name = "RUN", num_args = 0.., required_unless_present_any = ["by", "itself"])]
    a: Vec<PathBuf>,
    /// Runs of side B
    #[arg(value_name = "B", last = true, num_args = 1.., conflicts_with = "by")]
    b: Vec<PathBuf>,
    /// Use the two values of this tag as sides, in order of time; without named runs, of the last 200 runs
    #[arg(long, value_name = "TAG")]
    by: Option<String>,
    /// Test the comparison itself: stored runs with the plan of RUN (last) against each other, unchanged and 1, 3, 5 % slower
    #[arg(long = "self", conflicts_with_all = ["b", "by"])]
    itself: bool,
    /// Smallest change that matters; a tenth of it for shares, in points
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    at_least: f64,
    /// Only matching metrics; they count as one family
    #[arg(long, value_name = "GLOB")]
    metric: Option<String>,
    /// Result that gives exit code 1
    #[arg(long, value_name = "WHAT", default_value = "worse", value_parser = ["worse", "any", "none"])]
    fail_on: String,
    /// Do not estimate the variation between runs from earlier runs
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
    let ([a, b], pages) = sides(registries, &asked)?;
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
    show(&comparison, &pages, globals)?;
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

/// Compares stored runs with the state and plan of one run, by default the latest.
fn itself(registries: &Registries, globals: &Globals, runs: &[PathBuf]) -> Result<Exit> {
    let name = match runs {
        [] => PathBuf::from("last"),
        [one] => one.clone(),
        more => {
            let what = format!(
                "--self takes one run, which gives state and plan of the stored runs; got {}",
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
        let what = format!("--self needs two stored runs with the same state and plan, found {}", found.runs);
        return Err(Failure::usage(what).help("measure some: machmeter ops -l quick -n 8"));
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

/// HTML reports beside the records of a comparison, by the id of the run.
pub(super) type Pages = Vec<(String, PathBuf)>;

fn sides(registries: &Registries, asked: &Asked) -> Result<([Vec<Record>; 2], Pages)> {
    let mut pages = Pages::new();
    let option = asked.b.iter().find(|name| name.to_string_lossy().starts_with('-') && !name.exists());
    if let Some(option) = option {
        let what = format!("{}: options stand before the runs", option.display());
        return Err(Failure::usage(what).help("machmeter compare -o FILE.html A... -- B..."));
    }
    let mut all = |names: &[PathBuf]| -> Result<Vec<Record>> {
        let names: Vec<PathBuf> = names.iter().map(|n| range(n)).collect::<Result<Vec<_>, _>>()?.concat();
        if names.len() > MOST_RUNS {
            let named = names.len();
            return Err(Failure::usage(format!("too many runs: {named}, at most {MOST_RUNS}")));
        }
        let mut runs = Vec::new();
        for name in &names {
            let run = report::load(registries, std::slice::from_ref(name), &SideFacts::default())?;
            let page = Some(name.with_extension("html")).filter(|page| name.is_file() && page.is_file());
            pages.extend(page.map(|page| (run.id.clone(), page)));
            runs.push(run);
        }
        Ok(runs)
    };
    let sides = if let Some(tag) = &asked.by {
        let stored = || tagged(tag).map(|runs| of_latest_values(runs, tag));
        let runs = if asked.a.is_empty() { stored()? } else { all(&asked.a)? };
        by_tag(&runs, tag)?
    } else {
        match (asked.a.as_slice(), asked.b.as_slice()) {
            ([a, b], []) => [all(std::slice::from_ref(a))?, all(std::slice::from_ref(b))?],
            (_, []) => {
                let what = format!("compare needs two runs, got {}", asked.a.len());
                return Err(Failure::usage(what)
                    .help("for more runs, give the runs of A, then --, then the runs of B"));
            }
            (a, b) => [all(a)?, all(b)?],
        }
    };
    Ok((sides, pages))
}

/// Links from a page to the reports in its directory or below. Other paths may be invalid on the reader's machine.
fn links(target: &Path, pages: &Pages) -> Reports {
    let directory = target.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(directory) = fs::canonicalize(directory) else { return Reports::new() };
    let link = |(id, page): &(String, PathBuf)| {
        let page = fs::canonicalize(page).ok()?;
        let below = page.strip_prefix(&directory).ok()?;
        let parts =
            below.components().map(Component::as_os_str).map(OsStr::to_str).collect::<Option<Vec<_>>>()?;
        Some((id.clone(), format!("./{}", parts.iter().map(|p| encoded(p)).collect::<Vec<_>>().join("/"))))
    };
    pages.iter().filter_map(link).collect()
}

/// Encodes a part of a path for a link: all but unreserved characters become percent signs and digits (RFC 3986, 2.1).
fn encoded(part: &str) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    part.bytes().map(byte).collect()
}

/// Expands `last~6..last~3` to four names; any other name is unchanged.
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
        return Err(Failure::usage(format!(
            "{text}: a range goes from an older to a newer run, at most {MOST_RUNS} runs"
        )));
    }
    Ok((to..=from).rev().map(|n| PathBuf::from(format!("last~{n}"))).collect())
}

/// Latest runs of the history with the tag, the oldest first.
fn tagged(tag: &str) -> Result<Vec<Record>> {
    let history = state::history().map_err(Failure::usage)?;
    let names = history.list().map_err(Failure::usage)?;
    let has = |r: &Record| r.run.tags.contains_key(tag);
    let mut runs: Vec<Record> =
        names.iter().rev().take(MOST_RUNS).filter_map(|n| history.read(n).ok()).filter(has).collect();
    runs.reverse();
    Ok(runs)
}

/// Runs with the two values of a tag that the latest runs have.
fn of_latest_values(mut runs: Vec<Record>, tag: &str) -> Vec<Record> {
    let mut latest: Vec<String> = Vec::new();
    for v in runs.iter().rev().filter_map(|r| r.run.tags.get(tag)) {
        if latest.len() < 2 && !latest.contains(v) {
            latest.push(v.clone());
        }
    }
    runs.retain(|r| r.run.tags.get(tag).is_some_and(|v| latest.contains(v)));
    runs
}

/// Runs by the value of a tag, of which there must be two; the earlier one is side A.
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
        let what =
            format!("--by {tag}: a comparison needs two values of the tag, found {}: {found}", values.len());
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

/// Rejects files of a comparison that cannot be written.
pub(super) fn writable(globals: &Globals) -> Result<()> {
    if let Some(other) = globals.output.iter().find(|t| t.extension().is_none_or(|e| e != "html")) {
        let what = format!("-o {}: a comparison writes .html (forest plot) only", other.display());
        return Err(Failure::usage(what).help("--json=FILE, --csv=FILE and --md=FILE write other formats"));
    }
    view::could_write(globals)
}

pub(super) fn show(comparison: &Comparison, pages: &Pages, globals: &Globals) -> Result<()> {
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
        put(t, &html(comparison, &links(t, pages)))?;
    }
    if !globals.stdout_is_taken() {
        put(Path::new("-"), &text(comparison, view::style(globals).width, globals.verbose > 0))?;
    }
    Ok(())
}
