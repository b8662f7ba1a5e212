//! Rows beside looks at the placement, which moves in a virtual machine: told where the CPUs were most of the time.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_stats::regimes::{LEVEL_RATIO, Regime, Regimes, regimes};
use machmeter_sys::thread::monotonic_ns;

use super::distance::one_way_ns;
use crate::cost::estimate::{FEWEST, LEVEL};
use crate::cost::{Cost, Pair, Row, Rows};
use crate::part::PartContext;
use crate::team::Seats;
use crate::team::sampler::HostClock;

machmeter_data::code! { pub MOVES = "W421" "placement changed",
    what: "The host moved the CPUs during the measurement: the latency of a cache line between them jumped.",
    why: "No single figure describes the whole run. The cost of everything that two CPUs share follows the placement.",
    how: "Levels of the logarithm of compare-and-swap latency, at least a factor of 1.5 apart, each confirmed by its samples.",
    next: "Read the figures of each placement separately. On a virtual machine, request pinned CPUs; else measure longer until the shares settle.",
}

/// The placement is looked at again after so many times what the last look took.
const EVERY: u64 = 3;
/// Time of a look that starting and ending its team takes, ns.
const TEAM_NS: u64 = 3_000_000;

pub struct PlacementDetector {
    clock: HostClock,
    seats: Seats,
    /// Shortest time from one look to the next, ns.
    least_ns: u64,
    regime_ns: f64,
    next_ns: u64,
}

impl PlacementDetector {
    /// Of the first two measured CPUs; `None` where there is only one.
    pub fn of(at: &PartContext<'_>) -> Option<Self> {
        let [first, second, ..] = at.cpus()[..] else { return None };
        let seats = Seats { cpus: vec![first, second], policy: at.policy };
        Some(Self { clock: at.clock(), seats, least_ns: 0, regime_ns: 0.0, next_ns: 0 })
    }

    /// The same, and no more than one look in so many ns: for visits that are short against a look.
    #[must_use]
    pub fn rarely(mut self, least_ns: u64) -> Self {
        self.least_ns = least_ns;
        self
    }

    /// Latency of a line from one to the other, ns, now or a little before; 0 where a look failed.
    pub fn one_way_ns(&mut self, seed: u64) -> f64 {
        let before_ns = monotonic_ns();
        if before_ns >= self.next_ns {
            self.regime_ns = one_way_ns(&self.clock, &self.seats, seed);
            let after_ns = monotonic_ns();
            let rest_ns = EVERY * (after_ns - before_ns).saturating_sub(TEAM_NS);
            self.next_ns = after_ns + rest_ns.max(self.least_ns);
        }
        self.regime_ns
    }

    /// The same beside a row whose members sit on `cpus`; 0 unless these are the two: other rows are not told by where they are.
    pub fn beside(&mut self, cpus: &[usize], seed: u64) -> f64 {
        if are_the_two(&self.seats.cpus, cpus) { self.one_way_ns(seed) } else { 0.0 }
    }
}

/// Whether members sit on both of `two`, and nowhere else.
fn are_the_two(two: &[usize], cpus: &[usize]) -> bool {
    two.iter().all(|c| cpus.contains(c)) && cpus.iter().all(|c| two.contains(c))
}

/// Levels of the placement over all rows of a part; `None` where it was not looked at often enough.
pub fn levels(rows: &Rows, part: &str) -> Option<Regimes> {
    let mut seen: Vec<(f64, f64)> = rows
        .part(part)
        .flat_map(|r| r.pairs.iter().map(|p| (p.at_ns, p.regime_ns)))
        .filter(|(_, ns)| *ns > 0.0)
        .collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    // One look at the placement serves several visits: it counts once.
    seen.dedup_by(|a, b| a.1.to_bits() == b.1.to_bits());
    let (times, values): (Vec<f64>, Vec<f64>) = seen.into_iter().unzip();
    regimes(&times, &values, LEVEL_RATIO, LEVEL).ok()
}

/// Samples taken on the most frequent level; all where the placement did not move, or nobody looked at it beside this row.
pub fn on_main(row: &Row, levels: Option<&Regimes>) -> Vec<Pair> {
    let looked = row.pairs.iter().any(|p| p.regime_ns > 0.0);
    let Some(levels) = levels.filter(|l| looked && l.regimes.len() > 1) else { return row.pairs.clone() };
    let at_main = |p: &&Pair| p.regime_ns > 0.0 && levels.nearest(p.regime_ns) == levels.main();
    row.pairs.iter().filter(at_main).copied().collect()
}

/// Cost on the most frequent level, named in [`Known::apart_ns`](crate::cost::estimate::Known); of all samples where nothing moved.
pub fn cost(rows: &Rows, row: &Row, levels: Option<&Regimes>) -> Cost {
    let looked = row.pairs.iter().any(|p| p.regime_ns > 0.0);
    let levels = levels.filter(|l| looked && !l.regimes.is_empty());
    let at_main = levels.map(|l| l.regimes[l.main()].center);
    let main = on_main(row, levels);
    let mut cost = rows.cost_of(row, &main).apart(at_main);
    let elsewhere = row.pairs.len() - main.len();
    let proven = row.proof.as_ref().is_none_or(|p| p.seen >= p.expected);
    if let (Cost::Unknown { why }, Some(levels)) = (&mut cost, levels)
        && elsewhere > 0
        && proven
        && main.len() < FEWEST
    {
        let (main, of) = (levels.main(), levels.regimes.len());
        let one_way = human(levels.regimes[main].center, Unit::Nanoseconds);
        why.push_str(&format!(
            " at the main placement of the CPUs (level {} of {of} at {one_way} one way); {elsewhere} at others",
            main + 1
        ));
    }
    cost
}

/// Begin of the note; what stands behind the colon is joined ([`machmeter_data::Record::warn`]).
pub const MOVED: &str = "the host moved the CPUs";

/// Levels that are told at most, those of most time.
const NAMED: usize = 3;

pub fn moved(part: &str, levels: Option<&Regimes>) -> Option<Warning> {
    let levels = levels.filter(|l| l.regimes.len() > 1)?;
    let mut all: Vec<_> = levels.regimes.iter().collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    let one = |(i, r): (usize, &&Regime)| {
        let (way, time) = if i == 0 { (" one way", " of the time") } else { ("", "") };
        format!("{}{way} {:.0} %{time}", human(r.center, Unit::Nanoseconds), r.share * 100.0)
    };
    let told: Vec<String> = all.iter().take(NAMED).enumerate().map(one).collect();
    Some(MOVES.note(format!("{MOVED}: {part} at {}", told.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Kind;

    #[test]
    fn rows_of_the_two_follow_them_and_no_others() {
        assert!(are_the_two(&[0, 4], &[4, 0]) && are_the_two(&[0, 4], &[0, 4, 0, 4]));
        for others in [&[0, 0][..], &[0, 1], &[0, 4, 5], &[]] {
            assert!(!are_the_two(&[0, 4], others), "{others:?}");
        }
    }

    #[test]
    fn a_row_that_was_elsewhere_says_so_instead_of_giving_a_figure() {
        let at = |i: usize, regime_ns: f64| Pair {
            at_ns: i as f64 * 1e6,
            short_ticks: 100,
            long_ticks: 200 + (regime_ns as u64),
            regime_ns,
            ..Pair::default()
        };
        let mut main = Row::new("part", "long", Kind::Latency);
        // A look differs a little from the next, or it would be the same look.
        let wiggle = |i: usize| 1.0 + 0.001 * (i % 17) as f64 + 1e-6 * i as f64;
        main.pairs = (0..200).map(|i| at(i, 24.0 * wiggle(i))).collect();
        let mut brief = Row::new("part", "brief", Kind::Latency);
        brief.pairs = (200..230).map(|i| at(i, 105.0 * wiggle(i))).collect();
        let mut other = Row::new("part", "elsewhere", Kind::Latency);
        other.pairs = (0..20).map(|i| at(i, 0.0)).collect();
        let rows = Rows::in_nanoseconds(vec![main, brief, other]);
        let levels = levels(&rows, "part").expect("two levels");
        assert_eq!(levels.regimes.len(), 2);
        let of = |i: usize| cost(&rows, &rows.rows[i], Some(&levels));
        let at_24 = |ns: f64| (23.9..24.6).contains(&ns);
        assert!(matches!(of(0), Cost::Known(k) if k.n == 200 && k.apart_ns.is_some_and(at_24)));
        assert!(
            matches!(of(1), Cost::Unknown { why } if why.contains("0 undisturbed samples") && why.contains("level 1 of 2 at 24.") && why.ends_with("30 at others"))
        );
        assert!(matches!(of(2), Cost::Known(k) if k.n == 20 && k.apart_ns.is_none()), "nobody looked");
        let said = moved("part", Some(&levels)).expect("a warning");
        let texts = [" ns one way ", " % of the time, "];
        assert!(said.code == MOVES.id && texts.iter().all(|t| said.text.contains(t)), "{}", said.text);
    }
}
