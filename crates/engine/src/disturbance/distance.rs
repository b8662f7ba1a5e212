//! How far two CPUs are from each other: what a word costs that both compare and swap, half a round trip, and how that is named.

use machmeter_stats::quantile::median_of;
use machmeter_sys::topology::Topology;

use machmeter_loops::team::ping_pong::{PingPong, TRIPS};

use super::Rejected;
use crate::team::sampler::{Batches, HostClock, Rule, TeamCell, TeamClock, TeamSample, TeamVisit, Turns};
use crate::team::{Arena, Seats, threads::Threads};

/// Batches in a lap.
pub const BATCHES: usize = 12;
const LAPS: usize = 3;
/// No lap but the first begins later than this after the start of a look, ns.
const LAPS_NS: u64 = 1_000_000;
/// Longest time of a look, ns: a partner may be without its CPU for some scheduler slices.
const LIMIT_NS: u64 = 20_000_000;
/// Fewest clean batches of a lap that make a sample.
const FEWEST_CLEAN: usize = 3;
/// Quantile of a lap's clean batches that stands for it, the middle of the lower half: disturbances only add.
const LOWER: f64 = 0.25;

machmeter_data::named! { pub enum Distance {
    SameCore = "same core",
    /// Cores that share the last cache.
    SameCache = "same cache",
    /// One package, other caches.
    OtherCache = "same package",
    OtherPackage = "other package",
} }

impl Distance {
    /// As the system shows it. Of a virtual machine's CPUs it holds as long as the host keeps them where it says.
    pub fn shown(topology: &Topology, a: usize, b: usize) -> Self {
        if topology.cpu(a).is_some_and(|cpu| cpu.siblings.contains(b)) {
            return Self::SameCore;
        }
        let last = topology.caches.iter().filter(|c| c.cpus.contains(a)).max_by_key(|c| c.level);
        // A last cache of level 1 or 2 is a core's own: that two share it says the same as siblings, if anything.
        if last.is_some_and(|c| c.level > 1 && c.cpus.contains(b)) {
            return Self::SameCache;
        }
        let package = |cpu: usize| topology.cpu(cpu).and_then(|c| c.package);
        if package(a) == package(b) { Self::OtherCache } else { Self::OtherPackage }
    }
}

/// What a lap's batches say: the lower part of the clean ones, and those that are not clean.
pub fn condense<'s>(batches: impl Iterator<Item = &'s TeamSample>) -> (Option<u64>, Rejected) {
    let (mut rejected, mut clean) = (Rejected::default(), Vec::new());
    for batch in batches {
        match batch.disturbance {
            Some(why) => rejected.count(why),
            None => clean.push(batch.long_ticks),
        }
    }
    clean.sort_unstable();
    let low = (clean.len() >= FEWEST_CLEAN).then(|| clean[(clean.len() as f64 * LOWER) as usize]);
    (low, rejected)
}

/// Latency of a line between the CPUs of `seats`, ns, found in a millisecond; 0 when they never ran together.
pub(super) fn one_way_ns(clock: &HostClock, seats: &Seats, seed: u64) -> f64 {
    let laps = || -> Option<Vec<f64>> {
        let arena = Arena::new(0, 4_096).ok()?;
        let exchange = PingPong(arena.heap().atomics().first()?);
        let turns = Turns::fixed(TRIPS);
        let cell = TeamCell {
            batches: Batches::Single(turns),
            rule: Rule::Awake,
            ..TeamCell::new(&exchange, 2, turns, BATCHES)
        };
        let visit = TeamVisit::new(&Threads, seats, clock, 0, LIMIT_NS, seed);
        let found = TeamVisit { laps: LAPS, laps_ns: LAPS_NS, ..visit }.take(&[cell]).ok()?;
        let lap = |lap| condense(found.of(0, 0).filter(|s| s.lap == lap)).0;
        Some((0..LAPS).filter_map(lap).map(|ticks| clock.rate().ns(ticks)).collect())
    };
    laps().and_then(|ns| median_of(&ns)).map_or(0.0, |ns| ns / (2 * TRIPS) as f64)
}
