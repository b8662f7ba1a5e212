//! Makes the links, and the cells that are known beforehand.

use std::cell::RefCell;

use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::PartContext;
use machmeter_engine::sampling::{Company, Pace};
use machmeter_engine::{Level, ProbeError};
use machmeter_model::loggps::TRAIN;
use machmeter_sys::link::{Transport, Wait};
use machmeter_sys::thread::monotonic_ns;

use crate::cells::{Ends, Pattern, PatternCell, ThresholdCell};
use crate::near::{Near, name_of};
use crate::orders::Turns;
use crate::plan::{Operation, Sizes, Way};
use crate::set::{Cost, Links};
use crate::{Params, loaded, peer};

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
    let load = params.load.as_deref().map(|name| loaded::request(at.host, name)).transpose()?;
    let cpus = at.cpus();
    if cpus.len() < 2 && peer.is_none() {
        return Err(ProbeError::Cannot(format!(
            "a link needs two CPUs, one for each end, and CPU {} is one",
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
        loaded::measure(at, near, &request)?;
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
            let why = "left out: a search takes dozens of fresh links, and a peer gives one";
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
                at.rows.push(row.refused("left out: its trains would take the time of the others"));
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
    Cost::of(&seen).ok_or_else(|| "no message came back".to_owned())
}
