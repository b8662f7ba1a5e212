//! The session's side: starts the ranks one launch after the other, or leads those of a launcher, and takes their rows.

use std::sync::atomic::Ordering;

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::cost::{Fact, Row};
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::part::PartContext;
use machmeter_engine::placement::Priority;
use machmeter_engine::{Host, ProbeError, Progress, Role, RoleError};
use machmeter_sys::affinity;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::mpi::launcher::{Start, command};
use machmeter_sys::mpi::{Installed, launched};
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::process::{Spawn, note_lost};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::monotonic_ns;

use crate::Params;
use crate::ensemble::{Ensemble, Leader, Setup};
use crate::launch::{Plan, measure as measure_launch};
use crate::operations::Operation;
use crate::plan::{isolated, memory_bytes, numbers_of_ranks, sizes};
use crate::stage::Shared;
use crate::worker::{About, HAS_LED, Reply, WORKER};

pub(crate) const LAUNCHES: Fact<Vec<About>> = Fact::named("mpi.launches");
/// Names of the machines, where they are several; what is `private` names machines, and can be taken out.
pub(crate) const MACHINES: Fact<Vec<String>> = Fact::named("private.mpi.machines");
/// Why launches ended before their time, one line each.
pub(crate) const ENDED_EARLY: Fact<Vec<String>> = Fact::named("mpi.ended_early");
/// Whether there were more ranks than CPUs.
pub(crate) const OVERSUBSCRIBED: Fact<bool> = Fact::named("mpi.oversubscribed");

/// Ranks that do not answer so long after their time are ended, ns.
const GRACE_NS: u64 = 15_000_000_000;
/// How long the end of a launch may take, ns.
const END_WITHIN_NS: u64 = 5_000_000_000;
const LOOK_NS: u64 = 200_000_000;
/// Share of the memory there is that buffers may take.
const MEMORY_SHARE: f64 = 0.5;

pub(crate) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let launched = launched();
    let cpus = at.cpus();
    let ranks = launched.as_ref().map_or_else(|| params.ranks.map_or(cpus.len(), |n| n as usize), |l| l.size);
    let local = launched.as_ref().map_or(ranks, |l| l.local_size.unwrap_or(ranks));
    let here = if launched.is_some() { at.host.topology.cpus.len() } else { cpus.len() };
    let is_oversubscribed = refuse(params, ranks, local, here)?;
    let plan = plan(at.host, params, ranks, local)?;
    at.facts.set(&OVERSUBSCRIBED, is_oversubscribed);
    if launched.is_some() {
        at.host.begin()?;
        return lead(at, params, plan);
    }
    let mpi = Installed::find(params.lib.as_deref()).map_err(|e| ProbeError::Cannot(e.to_string()))?;
    at.host.begin()?;
    launch_all(at, params, &mpi, &plan)
}

/// What cannot be measured with so many ranks; whether there are more than CPUs.
fn refuse(params: &Params, ranks: usize, local: usize, cpus: usize) -> Result<bool, ProbeError> {
    if ranks < 2 {
        let what = format!("MPI needs two ranks, has {ranks}: give -n 2 or more, and at least two CPUs (-c)");
        return Err(ProbeError::Usage(what));
    }
    if local > cpus && !params.oversubscribe {
        return Err(ProbeError::Usage(format!(
            "{local} ranks on {cpus} CPU{}: a waiting rank keeps its CPU busy and delays the others; give -n {} or --oversubscribe",
            if cpus == 1 { "" } else { "s" },
            cpus.max(2)
        )));
    }
    Ok(local > cpus)
}

fn plan(host: &Host<'_>, params: &Params, ranks: usize, local: usize) -> Result<Plan, ProbeError> {
    let range = params.range()?;
    let sizes = sizes(range, host.level);
    let plan = Plan {
        operations: params.operations()?,
        isolated: isolated(&sizes, host.level),
        sizes,
        ranks: numbers_of_ranks(ranks),
        pairs: params.pairs(ranks),
        level: host.sampling_level(),
        seed: host.seed,
        until_ns: 0,
        source: host.source(),
        tick_hz: host.rate.hz(),
    };
    let needed = memory_bytes(range.1, ranks, local, plan.has(|o| o.is_collective));
    let there = MemoryLeft::of_this_process(&FsRoot::host()).map(|m| m.available_bytes).ok();
    if let Some(there) = there.filter(|there| needed as f64 > MEMORY_SHARE * *there as f64) {
        return Err(ProbeError::Usage(format!(
            "--sizes {}: buffers of {local} ranks take {}, more than half of the {} of memory; give smaller sizes or fewer ranks",
            params.sizes,
            human(needed as f64, Unit::Bytes),
            human(there as f64, Unit::Bytes)
        )));
    }
    if matches!(host.priority, Priority::Asked(Policy::Fifo(1) | Policy::Rr(1))) {
        let what = "--prio: ranks run one priority below the given one, so that their launcher can run; give 2 or more";
        return Err(ProbeError::Usage(what.to_owned()));
    }
    Ok(plan)
}

/// Puts what is new of a row to what is there of it.
pub(crate) fn merge(rows: &mut Vec<Row>, index: usize, new: Row) {
    if index >= rows.len() {
        rows.resize(index, Row::new("", "", new.kind));
        rows.push(new);
        return;
    }
    let mut pairs = std::mem::take(&mut rows[index].pairs);
    pairs.extend(new.pairs.iter().copied());
    rows[index] = Row { pairs, ..new };
}

/// Rows of a launch, marked with its number, at the time of all launches: this one began at `start_ns`.
fn of_launch(rows: Vec<Row>, launch: usize, start_ns: u64) -> impl Iterator<Item = Row> {
    let number = i64::try_from(launch).unwrap_or(0);
    rows.into_iter().filter(|r| !r.part.is_empty()).map(move |mut row| {
        row.pairs.iter_mut().for_each(|p| p.at_ns += start_ns as f64);
        row.reached().with("launch", number)
    })
}

/// Leads the ranks of a launcher from this process.
fn lead(at: &mut PartContext<'_>, params: &Params, plan: Plan) -> Result<(), ProbeError> {
    let setup = setup(&plan);
    HAS_LED.store(true, Ordering::Relaxed);
    let ensemble = Ensemble::start(params.lib.as_deref(), || Some(setup)).map_err(ProbeError::Cannot)?;
    let (about, names) = About::of(&ensemble).map_err(ProbeError::Cannot)?;
    at.facts.set(&LAUNCHES, vec![about]);
    if names.len() > 1 {
        at.facts.set(&MACHINES, names);
    }
    let until_ns = monotonic_ns() + at.left_ns();
    let stage = Shared::new(Leader::of(ensemble));
    let mut rows = Vec::new();
    let mut hand = |index: usize, row: Row| merge(&mut rows, index, row);
    let ended = measure_launch(&stage, &Plan { until_ns, ..plan }, at.host.progress, &mut hand);
    at.rows.extend(of_launch(rows, 1, 0));
    ended_early(at, ended.err().into_iter().collect())
}

pub(crate) fn setup(plan: &Plan) -> Setup {
    let (collectives, shmem) = (plan.has(|o| o.is_collective), plan.has(Operation::is_shmem));
    Setup { most_bytes: plan.most_bytes(), collectives, source: plan.source, tick_hz: plan.tick_hz, shmem }
}

/// Keeps why launches ended early; an error where none gave samples, unless a signal ended them.
fn ended_early(at: &mut PartContext<'_>, why: Vec<String>) -> Result<(), ProbeError> {
    if at.rows.iter().all(|r| r.pairs.is_empty())
        && !stop_requested()
        && let Some(why) = why.first()
    {
        return Err(ProbeError::Cannot(why.clone()));
    }
    if !why.is_empty() {
        note_lost();
        at.facts.set(&ENDED_EARLY, why);
    }
    Ok(())
}

fn launch_all(
    at: &mut PartContext<'_>,
    params: &Params,
    mpi: &Installed,
    plan: &Plan,
) -> Result<(), ProbeError> {
    let (mut abouts, mut failures) = (Vec::new(), Vec::new());
    let first_ns = monotonic_ns();
    let end_ns = first_ns + at.left_ns();
    for launch in 1..=params.launches as usize {
        if stop_requested() {
            break;
        }
        let start_ns = monotonic_ns() - first_ns;
        let left_ns = end_ns.saturating_sub(monotonic_ns());
        let until_ns = monotonic_ns() + left_ns / (params.launches as usize + 1 - launch) as u64;
        let plan = Plan { until_ns, seed: plan.seed.wrapping_add(launch as u64), ..plan.clone() };
        at.host.progress.step(&format!("launch {launch} of {}: {} ranks", params.launches, plan.all_ranks()));
        let mut rows = Vec::new();
        let ended = one_launch(at.host, params, mpi, &plan, &mut rows);
        at.rows.extend(of_launch(rows, launch, start_ns));
        match ended {
            Ok(about) => abouts.push(about),
            Err(why) => {
                failures.push(format!("launch {launch}: {why}"));
                // What ends one launch at once ends the others, too.
                if at.rows.iter().all(|r| r.pairs.is_empty()) {
                    break;
                }
            }
        }
    }
    at.facts.set(&LAUNCHES, abouts);
    ended_early(at, failures)
}

/// Starts the ranks and takes their rows until they end.
fn one_launch(
    host: &Host<'_>,
    params: &Params,
    mpi: &Installed,
    plan: &Plan,
    rows: &mut Vec<Row>,
) -> Result<About, String> {
    let (ranks, cpus) = (plan.all_ranks(), host.cpus.to_vec());
    let bound: &[usize] = if ranks <= cpus.len() { &cpus[..ranks] } else { &[] };
    let start = Start { ranks, cpus: bound, oversubscribe: ranks > cpus.len() };
    let command = command(mpi, &start).map_err(|e| e.to_string())?;
    let mut spawn = Spawn::worker_under(command, WORKER.name).new_group().die_with_parent().piped();
    if let Some(lib) = &params.lib {
        spawn = spawn.arg(lib);
    }
    // Ranks inherit where this thread may run; it waits itself.
    let before = affinity::mask().map_err(|e| e.to_string())?;
    affinity::set_mask(&host.allowed).map_err(|e| e.to_string())?;
    let role = Role::<Plan, Reply>::start(spawn);
    let told = role.map_err(|e| e.to_string()).and_then(|mut role| {
        let told = converse(&mut role, plan, host.progress, rows);
        // Its requests stay open until it has ended: mpiexec of MPICH complains of a closed stdin.
        let ended = if told.is_ok() { role.peer_mut().wait(END_WITHIN_NS) } else { None };
        if ended.is_none() {
            role.kill();
        }
        told
    });
    affinity::set_mask(&before).map_err(|e| e.to_string())?;
    told
}

fn converse(
    role: &mut Role<Plan, Reply>,
    plan: &Plan,
    progress: &dyn Progress,
    rows: &mut Vec<Row>,
) -> Result<About, String> {
    let lost = |e: RoleError| format!("the ranks {e}");
    role.send(plan).map_err(lost)?;
    let mut about = None;
    let last_ns = plan.until_ns.saturating_add(GRACE_NS);
    loop {
        match role.receive(last_ns.min(monotonic_ns() + LOOK_NS)) {
            Ok(Reply::Started(started)) => about = Some(started),
            Ok(Reply::Step(text)) => progress.step(&text),
            Ok(Reply::Row(index, row)) => merge(rows, index, *row),
            Ok(Reply::Ended(None)) => return about.ok_or_else(|| "the ranks did not start".to_owned()),
            Ok(Reply::Ended(Some(why))) => return Err(why),
            Err(RoleError::Late) if stop_requested() => return Err("stopped by a signal".to_owned()),
            Err(RoleError::Late) if monotonic_ns() < last_ns => {}
            Err(e) => return Err(lost(e)),
        }
    }
}
