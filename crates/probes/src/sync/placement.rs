//! Rows beside a probe of the placement: a virtual machine's CPUs move under it, and what two of them share costs several times as
//! much at some places as at others. Such rows are told at the place where the CPUs were most of the time.

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Pair, Row, Rows};
use machmeter_stats::regimes::{RegimeOptions, Regimes, regimes};
use machmeter_sys::thread::monotonic_ns;

use super::transfer::RegimeProbe;
use crate::part::At;

/// The placement is looked at again after so many times what the last look took.
const EVERY: u64 = 3;
/// Time of a look that starting and ending its team takes, ns.
const TEAM_NS: u64 = 3_000_000;

/// Looks at the placement of two CPUs from time to time.
pub(super) struct Watch {
    probe: RegimeProbe,
    regime_ns: f64,
    next_ns: u64,
}

impl Watch {
    /// Of these two CPUs.
    pub(super) fn new(at: &At<'_, '_>, first: usize, second: usize) -> Self {
        Self { probe: RegimeProbe::new(at.host, at.policy, first, second), regime_ns: 0.0, next_ns: 0 }
    }

    /// What they pay each other one way, ns, now or a little before; 0 where a look failed.
    pub(super) fn one_way_ns(&mut self, seed: u64) -> f64 {
        let before_ns = monotonic_ns();
        if before_ns >= self.next_ns {
            self.regime_ns = self.probe.one_way_ns(seed);
            let after_ns = monotonic_ns();
            self.next_ns = after_ns + EVERY * (after_ns - before_ns).saturating_sub(TEAM_NS);
        }
        self.regime_ns
    }
}

/// Levels of the placement over all rows of a part; `None` where it was not looked at often enough.
pub(super) fn levels(rows: &Rows, part: &str) -> Option<Regimes> {
    let mut seen: Vec<(f64, f64)> = rows
        .part(part)
        .flat_map(|r| r.pairs.iter().map(|p| (p.at_ns, p.regime_ns)))
        .filter(|(_, ns)| *ns > 0.0)
        .collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    // One look at the placement serves several visits: it counts once.
    seen.dedup_by(|a, b| a.1.to_bits() == b.1.to_bits());
    let (times, values): (Vec<f64>, Vec<f64>) = seen.into_iter().unzip();
    regimes(&times, &values, &RegimeOptions { level: LEVEL, ..RegimeOptions::default() }).ok()
}

/// Samples taken on the most frequent level; all where the placement did not move, or nobody looked at it beside this row.
pub(super) fn on_main(row: &Row, levels: Option<&Regimes>) -> Vec<Pair> {
    let looked = row.pairs.iter().any(|p| p.regime_ns > 0.0);
    let Some(levels) = levels.filter(|l| looked && l.regimes.len() > 1) else { return row.pairs.clone() };
    let main = levels.main();
    row.pairs.iter().filter(|p| p.regime_ns > 0.0 && levels.nearest(p.regime_ns) == main).copied().collect()
}

/// One line where the placement moved.
pub(super) fn moved(part: &str, levels: Option<&Regimes>) -> Option<String> {
    let levels = levels.filter(|l| l.regimes.len() > 1)?;
    let main = &levels.regimes[levels.main()];
    Some(format!(
        "{part}: the CPUs' placement moved between {} levels; costs are those at {} one way ({} of the time)",
        levels.regimes.len(),
        human(main.center, Unit::Nanoseconds),
        human(main.share, Unit::One)
    ))
}
