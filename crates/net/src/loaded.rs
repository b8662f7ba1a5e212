//! Round trips beside a load that wants the CPUs of both ends.

use std::cell::RefCell;

use machmeter_engine::attributes::Attributes;
use machmeter_engine::cost::{Fact, Pair, Row};
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::load::{LoadError, LoadRequest};
use machmeter_engine::part::PartContext;
use machmeter_engine::{Host, ProbeError};
use machmeter_sys::clock;
use machmeter_sys::thread::monotonic_ns;

use crate::measure::ONE;
use crate::near::{Near, name_of};
use crate::orders::Turns;
use crate::plan::{Operation, Way};

/// Share of the time of the probe that they take, the start of the load not counted.
const SHARE: f64 = 0.2;
/// Trips of a link before the next has its turn, and samples of a link at most.
const TRIPS: usize = 64;
const MOST_TRIPS: usize = 200_000;

/// Work that the load got done beside the round trips: the price of their latency.
pub(crate) const WORK: Fact<String> = Fact::named("net.load_work");

/// What the load says of itself: what weakens it here, why it ended early.
pub(crate) const NOTES: Fact<Vec<String>> = Fact::named("net.load_notes");

pub(crate) fn request(host: &Host<'_>, name: &str) -> Result<LoadRequest, ProbeError> {
    let directory = std::env::current_dir().map_err(|e| ProbeError::Usage(format!("--load {name}: {e}")))?;
    let request = LoadRequest {
        name: name.to_owned(),
        threads: None,
        custom: None,
        attributes: Attributes::default(),
        cpus: host.allowed.to_string(),
        directory,
        disk_bytes: 64 << 20,
        memory_bytes: None,
        seed: host.seed,
    };
    host.loads.check(&request).map_err(failed)?;
    Ok(request)
}

fn failed(e: LoadError) -> ProbeError {
    match e {
        LoadError::Usage(why) => ProbeError::Usage(format!("--load: {why}")),
        LoadError::Cannot(why) => ProbeError::Cannot(format!("--load: {why}")),
    }
}

/// Times single round trips of all links in turn while the load works.
pub(crate) fn measure(
    at: &mut PartContext<'_>,
    near: &RefCell<Near>,
    request: &LoadRequest,
) -> Result<(), ProbeError> {
    let mut near = near.borrow_mut();
    let row = |link: &crate::near::OpenLink| {
        let way = Way { transport: link.transport.name, wait: name_of(link.wait), direction: "there" };
        let mut row = way.row(Operation::TRIP).with("size_bytes", 1_i64).with("load", request.name.as_str());
        row.long_turns = 1;
        row
    };
    let mut rows: Vec<Row> = near.links.iter().map(row).collect();
    let share_ns = (at.left_ns() as f64 * SHARE) as u64;
    let mut load = at.host.loads.start(request).map_err(failed)?;
    let (begin_ns, work_before) = (monotonic_ns(), load.work());
    let until_ns = begin_ns + share_ns;
    while monotonic_ns() < until_ns && !stop_requested() && load.failure().is_none() {
        for (link, row) in rows.iter_mut().enumerate() {
            if row.refused.is_some() || row.pairs.len() >= MOST_TRIPS {
                continue;
            }
            let trips = trips(&mut near, at, link);
            let visit = row.next_visit();
            match trips {
                Ok(pairs) => row.pairs.extend(pairs.into_iter().map(|p| Pair { visit, ..p })),
                Err(why) => row.refused = Some(why),
            }
        }
        if rows.iter().all(|r| r.refused.is_some() || r.pairs.len() >= MOST_TRIPS) {
            break;
        }
    }
    let seconds = (monotonic_ns() - begin_ns) as f64 / 1e9;
    let rate = load.work().saturating_sub(work_before) as f64 / seconds;
    let infos = at.host.loads.infos();
    let work = infos.iter().find(|i| i.name == request.name).map_or("units of work", |i| i.work);
    at.facts.set(&WORK, format!("{}: {rate:.4} {work} a second beside the round trips", request.name));
    let report = load.stop();
    let notes = report.failure.into_iter().chain(report.caveats).chain(report.side_effects);
    at.facts.set(&NOTES, notes.map(|n| format!("{}: {n}", request.name)).collect());
    at.rows.extend(rows.into_iter().map(Row::reached));
    Ok(())
}

fn trips(near: &mut Near, at: &PartContext<'_>, link: usize) -> Result<Vec<Pair>, String> {
    near.begin(Turns { link, ..ONE })?;
    let mut pairs = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let at_ns = monotonic_ns().saturating_sub(at.start_ns) as f64;
        let ticks = || clock::now(at.host.source()).map_err(|e| e.to_string());
        let begin = ticks()?;
        if !near.turn(0) {
            break;
        }
        pairs.push(Pair { at_ns, long_ticks: ticks()?.saturating_sub(begin), ..Pair::default() });
    }
    near.end()?;
    Ok(pairs)
}
