//! From parameters to a recording: what is asked for, whether it can be had, how the time is shared.

use std::fmt::Display;
use std::path::PathBuf;

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::placement::Priority;
use machmeter_engine::probe::Measured;
use machmeter_engine::{Attributes, Host, Level, LoadRequest, ProbeError};
use machmeter_sys::sched::{Policy, RtLimits};
use machmeter_sys::thread;

use super::params::Params;
use super::predict;
use super::run::{self, CellPlan};
use super::samples::{Cell, Samples, Segment};

/// Policy of `--rt`.
const REAL_TIME: Policy = Policy::Fifo(50);
/// Kept back from the budget for analysis, views and storage, ns; and this share of it.
const RESERVE_NS: u64 = 500_000_000;
const RESERVE_SHARE: f64 = 0.03;

/// Wall time of a run by level, ns: at most so much per cell, and for all cells together.
pub(super) fn default_ns(params: &Params, level: Level) -> Result<u64, ProbeError> {
    const S: u64 = 1_000_000_000;
    let tasks = params.tasks()?.len() as u64;
    let (per_cell_ns, all_ns) = match level {
        Level::Quick => (2 * S, 85 * S),
        Level::Standard => (10 * S, 290 * S),
        Level::Thorough => (60 * S, 1_150 * S),
        Level::Soak => return Ok(level.probe_seconds() * S),
    };
    if params.predict_from.is_some() {
        return Ok(level.probe_seconds() * S);
    }
    // The loads are the host's to know; a list of names has as many as it has words.
    let words = || params.loads.split(',').map(str::trim).filter(|w| !w.is_empty() && !w.starts_with('-'));
    let sets = words().any(|w| ["usual", "classic", "all"].contains(&w));
    let loads = if sets || words().count() == 0 { 12 } else { words().count() as u64 };
    Ok((tasks * loads * per_cell_ns + loads * S).min(all_ns))
}

pub(super) fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Samples>, ProbeError> {
    if let Some(name) = &params.predict_from {
        return predicted(host, params, name);
    }
    let attributes = task_attributes(host, params)?;
    let loads = load_requests(host, params)?;
    let tasks = Vec::new();
    let mut plan = CellPlan { tasks, loads, attributes, segment_ns: 0, rounds: 1, within_ns: None };
    let tasks = params.tasks()?;
    let total_ns = host.budget.total_ns();
    let reserve_ns = (RESERVE_NS + (total_ns as f64 * RESERVE_SHARE) as u64).min(total_ns / 4);
    let within_ns = host.budget.left_ns().saturating_sub(reserve_ns);
    let least_ns = plan.least_ns(tasks.len());
    if within_ns < least_ns {
        return Err(ProbeError::Usage(format!(
            "{} is too short for {} tasks under {} loads: give {:.0} s or more, or select fewer",
            human(total_ns as f64, Unit::Nanoseconds),
            tasks.len(),
            plan.loads.len(),
            // A second more for what comes before the first segment.
            ((least_ns + RESERVE_NS) as f64 / (1.0 - RESERVE_SHARE) / 1e9).ceil() + 1.0
        )));
    }
    plan.fit(tasks.len(), within_ns);
    let choices = params.choices(plan.segment_ns)?;
    plan.tasks = tasks.iter().filter_map(|t| Some((t.name.to_owned(), t.stream(&choices)?))).collect();
    let mut tell = |cell: &Cell, segment: &Segment| host.progress.figure(&run::brief(cell, segment));
    let mut samples = run::record_cells(host, &plan, &mut tell)?;
    samples.setup.real_time = params.rt;
    samples.setup.comment = params.comment.clone().unwrap_or_default();
    samples.setup.conditions = conditions(host, &plan);
    let side_effects = side_effects(&samples, &plan, params);
    // What was not asked for by name need not be had.
    let failed = |name: &str| samples.loads.iter().any(|l| l.name == name && l.failure.is_some());
    let out = plan.loads.iter().filter(|(request, by_name)| !by_name && failed(&request.name)).count();
    let cells = plan.tasks.len() * plan.loads.len().saturating_sub(out);
    // A task or load that was killed leaves a segment that says so.
    let is_intact = |c: &&Cell| !c.segments.is_empty() && c.segments.iter().all(|s| s.trouble.is_none());
    let recorded = samples.cells.iter().filter(is_intact).count();
    let complete = recorded >= cells && !machmeter_engine::deadline::stop_requested();
    let policy = samples.setup.task_policy.clone();
    Ok(Measured { policy, samples, side_effects, complete, outputs: Vec::new() })
}
fn predicted(host: &Host<'_>, params: &Params, name: &str) -> Result<Measured<Samples>, ProbeError> {
    let stored = (host.open_record)(name).map_err(ProbeError::Usage)?;
    let tasks = params.tasks()?;
    let choices = params.choices(10_000_000_000)?;
    let streams =
        tasks.iter().filter_map(|t| Some((t.name.to_owned(), t.stream(&choices)?))).collect::<Vec<_>>();
    let samples = predict::predict(&stored, &streams, &host.cpus, name)?;
    host.begin()?;
    Ok(Measured {
        samples,
        policy: "simulated".to_owned(),
        side_effects: Vec::new(),
        complete: true,
        outputs: Vec::new(),
    })
}

fn task_attributes(host: &Host<'_>, params: &Params) -> Result<Attributes, ProbeError> {
    let policy = match (host.priority, params.rt) {
        (Priority::Asked(p), true) if !p.is_real_time() => {
            return Err(ProbeError::Usage(format!("--rt and --prio {p} exclude each other")));
        }
        (Priority::Asked(p), _) => p,
        (Priority::Auto, true) => REAL_TIME,
        (Priority::Auto, false) => Policy::ordinary(),
    };
    let everywhere = host.cpus == host.allowed;
    if matches!(policy, Policy::Fifo(99) | Policy::Rr(99)) {
        return Err(ProbeError::Usage(format!(
            "policy {policy} leaves no priority for the thread that stops a task: use {}:98",
            policy.name()
        )));
    }
    let cpus = (!everywhere).then(|| host.cpus.to_string());
    let attributes = params.task_attributes(policy.to_string(), cpus)?;
    try_it(&attributes, "")?;
    Ok(attributes)
}

/// Applies attributes to a thread that ends at once: what is refused is refused before anything runs.
fn try_it(attributes: &Attributes, of: &str) -> Result<(), ProbeError> {
    let tried = thread::on_its_own(|| attributes.apply());
    let tried = tried.map_err(|e| ProbeError::Cannot(format!("cannot start a thread: {e}")))?;
    tried.map_err(|e| ProbeError::Usage(format!("{of}{e}")))
}

fn load_requests(host: &Host<'_>, params: &Params) -> Result<Vec<(LoadRequest, bool)>, ProbeError> {
    let attributes = params.load_attributes()?;
    try_it(&attributes, "loads: ")?;
    // Each load makes a group of its own; that one can be had is found out now.
    drop(attributes.make_group("try").map_err(|e| ProbeError::Usage(format!("loads: {e}")))?);
    let directory = directory(params)?;
    let custom = params.custom()?;
    let infos = host.loads.infos();
    let mut chosen = params.loads(&infos)?;
    // The undisturbed machine comes first in every table.
    chosen.sort_by_key(|(info, _)| info.name != "none");
    Ok(chosen
        .into_iter()
        .map(|(info, by_name)| {
            let request = LoadRequest {
                name: info.name.to_owned(),
                threads: params.load_threads,
                // Another load takes it only when the user named that load.
                custom: custom.filter(|_| by_name || info.name == "custom"),
                attributes: attributes.clone(),
                cpus: host.allowed.to_string(),
                directory: directory.clone(),
                disk_bytes: params.disk_budget << 20,
                memory_bytes: params.memory_budget.map(|m| m << 20),
                seed: host.seed,
            };
            (request, by_name)
        })
        .collect())
}

fn directory(params: &Params) -> Result<PathBuf, ProbeError> {
    let directory = params.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let usage = |why: &dyn Display| ProbeError::Usage(format!("--directory {}: {why}", directory.display()));
    let absolute = std::fs::canonicalize(&directory).map_err(|e| usage(&e))?;
    if absolute.is_dir() { Ok(absolute) } else { Err(usage(&"not a directory")) }
}

fn conditions(host: &Host<'_>, plan: &CellPlan) -> Vec<String> {
    let mut out = Vec::new();
    if plan.attributes.policy().is_ok_and(|p| p.is_real_time()) {
        let limits = RtLimits::read();
        out.extend(host.cpus.iter().find(|c| limits.loss_ns_per_s(*c).is_some()).map(|c| limits.explain(c)));
    }
    if let Ok(slack_ns) = thread::timer_slack_ns()
        && slack_ns > 1
    {
        out.push(format!("tasks run with a timer slack of 1 ns; programs here have {} us", slack_ns / 1000));
    }
    out
}

fn side_effects(samples: &Samples, plan: &CellPlan, params: &Params) -> Vec<String> {
    let mut out = Vec::new();
    if plan.attributes.policy().is_ok_and(|p| p.is_real_time()) {
        out.push(format!("tasks ran as {}", samples.setup.task_policy));
    }
    out.extend(params.task_cgroup.iter().map(|g| format!("tasks ran in a control group of their own ({g})")));
    out.extend(params.load_cgroup.iter().map(|g| format!("loads ran in a control group of their own ({g})")));
    for l in &samples.loads {
        out.extend(l.side_effects.iter().map(|s| format!("load {}: {s}", l.name)));
    }
    out
}
