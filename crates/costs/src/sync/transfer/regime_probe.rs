//! A probe of the placement: what two CPUs pay each other right now, in about a millisecond. Other measurements take it beside
//! their samples ([`Subject::regime_ns`](machmeter_engine::sampling::Subject::regime_ns)), because a virtual machine's CPUs
//! move under it.

use machmeter_engine::Host;
use machmeter_engine::team::sampler::HostClock;
use machmeter_engine::team::{Seats, threads::Threads};
use machmeter_stats::quantile::median_of;
use machmeter_sys::sched::Policy;

use super::laps::{Plan, visit};
use super::trips::Kind;

const LAPS: usize = 3;
/// Longest time of a probe, ns: a partner may be without its CPU for some scheduler slices.
const LIMIT_NS: u64 = 20_000_000;

#[derive(Debug, Clone)]
pub(crate) struct RegimeProbe {
    seats: Seats,
    clock: HostClock,
}

impl RegimeProbe {
    pub(crate) fn new(host: &Host<'_>, policy: Policy, from: usize, to: usize) -> Self {
        let clock = HostClock { source: host.source(), rate: host.rate };
        Self { seats: Seats { cpus: vec![from, to], policy }, clock }
    }

    /// One way of a compared-and-swapped line now, ns; 0 when the two were never on their CPUs together.
    pub(crate) fn one_way_ns(&self, seed: u64) -> f64 {
        let plan = Plan { kinds: &[Kind::Cas], laps: LAPS, laps_ns: 1_000_000, limit_ns: LIMIT_NS, seed };
        let laps = visit(&Threads, &self.clock, &self.seats, &plan, 0).unwrap_or_default();
        let ticks: Vec<f64> =
            laps.iter().filter_map(|lap| lap.kinds.first()?.0).map(|t| self.clock.rate.ns(t)).collect();
        let (trips, ways) = Kind::Cas.batch();
        median_of(&ticks).map_or(0.0, |ns| ns / (trips as f64 * ways))
    }
}
