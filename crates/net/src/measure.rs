//! Makes the links, and the cells that are known beforehand; and round trips beside a load that wants the CPUs of both ends.

use std::cell::RefCell;

use machmeter_engine::attributes::Attributes;
use machmeter_engine::cost::{Fact, Pair, Row};
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::load::{LoadError, LoadRequest};
use machmeter_engine::part::PartContext;
use machmeter_engine::sampling::{Company, Pace};
use machmeter_engine::{Host, Level, ProbeError};
use machmeter_model::loggps::TRAIN;
use machmeter_sys::clock;
use machmeter_sys::link::{Transport, Wait};
use machmeter_sys::thread::monotonic_ns;

use crate::cells::{Ends, Pattern, PatternCell, ThresholdCell};
use crate::near::{Near, OpenLink, name_of};
use crate::orders::Turns;
use crate::plan::{Operation, Sizes, Way};
use crate::set::{Cost, Links};
use crate::{Params, peer};

/// Single trips of a visit.
const TRIPS: usize = 256;
/// From one look at the placement to the next at least, ns.
const LOOK_EVERY_NS: u64 = 50_000_000;
/// Share of the time that the first round of trains may plan with; the rest is for breaks, overheads and single trips.
const TRAINS_SHARE: f64 = 0.6;
/// First looks at what messages take: sizes, turns, time of them at most, and what a turn may take before a larger size, ns.
const FIRST_SIZES: [u64; 4] = [1, 4 << 10, 64 << 10, 1 << 20];
const FIRST_TURNS: usize = 24;
const FIRST_TAKES_NS: u64 = 20_000_000;
const FIRST_WITHIN_NS: f64 = 5e6;

pub(crate) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let transports = params.transports()?;
    let range = params.range()?;
    let peer = params.peer()?;
    let load = params.load.as_deref().map(|name| request(at.host, name)).transpose()?;
    let cpus = at.cpus();
    if cpus.len() < 2 && peer.is_none() {
        return Err(ProbeError::Cannot(format!(
            "a link needs two CPUs, one for each end, but only CPU {} is selected",
            at.host.cpus
        )));
    }
    at.host.begin()?;
    let mut kinds: Vec<(&'static Transport, Wait)> = Vec::new();
    for t in &transports {
        kinds.push((t, Wait::Polling));
        if t.sleeps {
            kinds.push((t, Wait::Sleeping));
        }
    }
    let congestion = params.congestion.as_deref();
    let near = match &peer {
        Some((address, token)) => peer::connect(address, token, &kinds, congestion)?,
        None => Near::start(cpus[1], &kinds, congestion).map_err(ProbeError::Cannot)?,
    };
    let placement =
        if peer.is_some() { None } else { PlacementDetector::of(at).map(|p| p.rarely(LOOK_EVERY_NS)) };
    let ends = Ends::new(near, placement, at.host.rate);
    let near = &ends.near;
    if let Some((address, _)) = peer {
        at.facts.set(&crate::PEER, address.to_owned());
    }
    if let Some(request) = load {
        measure_loaded(at, near, &request)?;
    }
    let tracks = transports.len() * params.directions().len();
    let share_ns = (at.left_ns() as f64 * TRAINS_SHARE) as u64 / tracks.max(1) as u64;
    let mut links = Links::new(&ends, at.host.progress);
    for (link, (transport, wait)) in kinds.iter().enumerate() {
        let way = |direction| Way { transport: transport.name, wait: name_of(*wait), direction };
        let trips = Turns { link, ..ONE };
        let pace = Pace::of(1e5, TRIPS).among(Company::Everybody);
        let mut row = way("there").row(Operation::TRIP).with("size_bytes", 1_i64);
        row.long_turns = 1;
        links.push(PatternCell::new(&ends, row, Pattern::new(near, trips, 0), pace));
        if *wait == Wait::Sleeping {
            continue;
        }
        // A search takes dozens of fresh links, which a peer does not give.
        if params.peer.is_none() {
            links.push(ThresholdCell::new(transport, at.host.level == Level::Quick));
        } else {
            let why = "left out: a search needs dozens of fresh links, and a peer offers only one";
            at.rows.push(way("there").row(Operation::THRESHOLD).refused(why));
        }
        let segment_bytes = near.borrow().links[link].link.segment_bytes();
        let mut sizes = Sizes::of((range.0, range.1.min(largest(transport))), segment_bytes);
        for direction in params.directions() {
            let cost = match first_look(near, link, &sizes.all) {
                Ok(cost) => cost,
                Err(why) => {
                    at.rows.push(way(direction).train(sizes.all[0], 1, 0).refused(why));
                    continue;
                }
            };
            let most = cost.most_sizes(&sizes.all, share_ns);
            if most < sizes.all.len() {
                let row = way(direction).train(sizes.all[most], TRAIN, 0);
                at.rows.push(row.refused("left out: its trains would use the time of the other sizes"));
                sizes.all.truncate(most);
                let last = sizes.all.last().copied().unwrap_or(0);
                sizes.overheads.retain(|s| *s <= last);
                sizes.kept_back.retain(|s| *s <= last);
            }
            links.add_link(link, way(direction), sizes.clone(), cost);
        }
    }
    let described: Vec<(String, String)> = near
        .borrow()
        .links
        .iter()
        .filter(|l| l.wait == Wait::Polling)
        .map(|l| (l.transport.name.to_owned(), l.link.describe()))
        .collect();
    at.facts.set(&crate::LINKS, described);
    at.run(links);
    Ok(())
}

/// One message of one byte there, and one back.
pub(crate) const ONE: Turns =
    Turns { link: 0, pattern: 0, there: 1, back: 1, bytes: 1, work: 0, delay_ns: 0 };

/// Largest message of a transport, bytes: a datagram's length field, half of the usual buffer of a socket that keeps messages.
fn largest(transport: &Transport) -> u64 {
    match transport.name {
        "udp" => 65_507,
        "seqpacket" => 100_000,
        _ => u64::MAX,
    }
}

/// What round trips take, by single ones.
fn first_look(near: &RefCell<Near>, link: usize, sizes: &[u64]) -> Result<Cost, String> {
    let mut near = near.borrow_mut();
    let mut seen = Vec::new();
    let last = sizes.last().copied().unwrap_or(1);
    for bytes in FIRST_SIZES.into_iter().filter(|b| *b <= last.max(1)) {
        near.begin(Turns { link, bytes, ..ONE })?;
        let until_ns = monotonic_ns() + FIRST_TAKES_NS;
        let once = |_| {
            let begin_ns = monotonic_ns();
            let done = begin_ns < until_ns && near.turn(0);
            if done { (monotonic_ns() - begin_ns) as f64 } else { f64::INFINITY }
        };
        let least_ns = (0..FIRST_TURNS).map(once).fold(f64::INFINITY, f64::min);
        near.end()?;
        if least_ns.is_finite() {
            seen.push((bytes, least_ns));
        }
        if least_ns > FIRST_WITHIN_NS {
            break;
        }
    }
    Cost::of(&seen).ok_or_else(|| "no message returned".to_owned())
}

/// Share of the time of the probe that they take, the start of the load not counted.
const LOADED_SHARE: f64 = 0.2;
/// Trips of a link before the next has its turn, and samples of a link at most.
const LOADED_TRIPS: usize = 64;
const MOST_TRIPS: usize = 200_000;

/// Work that the load got done beside the round trips: the price of their latency.
pub(crate) const WORK: Fact<String> = Fact::named("net.load_work");

/// What the load says of itself: what weakens it here, why it ended early.
pub(crate) const NOTES: Fact<Vec<String>> = Fact::named("net.load_notes");

fn request(host: &Host<'_>, name: &str) -> Result<LoadRequest, ProbeError> {
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
fn measure_loaded(
    at: &mut PartContext<'_>,
    near: &RefCell<Near>,
    request: &LoadRequest,
) -> Result<(), ProbeError> {
    let mut near = near.borrow_mut();
    let row = |link: &OpenLink| {
        let way = Way { transport: link.transport.name, wait: name_of(link.wait), direction: "there" };
        let mut row = way.row(Operation::TRIP).with("size_bytes", 1_i64).with("load", request.name.as_str());
        row.long_turns = 1;
        row
    };
    let mut rows: Vec<Row> = near.links.iter().map(row).collect();
    let share_ns = (at.left_ns() as f64 * LOADED_SHARE) as u64;
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
    at.facts.set(&WORK, format!("{}: {rate:.4} {work} a second during the round trips", request.name));
    let report = load.stop();
    let notes = report.failure.into_iter().chain(report.caveats).chain(report.side_effects);
    at.facts.set(&NOTES, notes.map(|n| format!("{}: {n}", request.name)).collect());
    at.rows.extend(rows.into_iter().map(Row::reached));
    Ok(())
}

fn trips(near: &mut Near, at: &PartContext<'_>, link: usize) -> Result<Vec<Pair>, String> {
    near.begin(Turns { link, ..ONE })?;
    let mut pairs = Vec::with_capacity(LOADED_TRIPS);
    for _ in 0..LOADED_TRIPS {
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
