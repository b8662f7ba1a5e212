//! Rows whose turns were timed one by one: their quantiles, the modes of what spins before it sleeps, and how often members slept. Pure.

use machmeter_data::record::Warning;
use machmeter_data::shape::Cell;
use machmeter_data::{Metric, MetricInfo, Params};
use machmeter_engine::cost::estimate::values_ns;
use machmeter_engine::cost::{Cost, Row, Rows};
use machmeter_engine::team::sampler::{SLEEPS as SLEPT, TURNS_SEEN};
use machmeter_stats::quantile::sorted;
use machmeter_stats::regimes::{Regime, Regimes};

use super::cost::{COST, one_cpu};
use crate::modes;
use machmeter_engine::disturbance::placement;

/// Trips of a visit. The ten visits of a short run make 640: six beyond the 99 % quantile, the fewest that have a rank interval.
pub(super) const TRIPS: u64 = 64;
/// Least ratio of two modes. Spinning takes a few transfers of a line, sleeping two switches of a microsecond each.
const GAP: f64 = 3.0;

machmeter_data::metrics! {
    ["operation", "lock", "from", "to", "cpus", "model", "kind", "wake"] Count Neither weakened by [Preemption, SharedCore] {
        SLEEPS = "sync.sleeps"
            "Sleeps of all members per operation, counted by the kernel: 0 if all members spin, 1 if each operation wakes a sleeping thread.";
    }
    ["operation", "lock", "from", "to", "cpus", "model", "kind", "wake", "mode"]
    Nanoseconds Lower weakened by [Frequency, WakeUp, SharedCore, Clock, ClockOffset] {
        MODE = "sync.mode"
            "Median of the trips of one mode, if the trips of a row form several modes (spinning, sleeping). Mode 1 is the fastest.";
    }
    ["operation", "lock", "from", "to", "cpus", "model", "kind", "wake", "mode"]
    One Neither weakened by [Preemption, WakeUp, SharedCore] {
        MODE_SHARE = "sync.mode_share" "Share of the trips of a row that belong to one mode.";
    }
}

/// A row with its cost, and what it says beside.
pub(super) struct Priced<'r> {
    pub(super) row: &'r Row,
    pub(super) cost: Cost,
    /// Trips in ascending order, ns; none of a row of batches.
    trips_ns: Vec<f64>,
    /// Two at least, or none.
    modes: Vec<Regime>,
    /// Sleeps per operation, and operations.
    sleeps: Option<(f64, u64)>,
}

impl<'r> Priced<'r> {
    /// All rows of a part, and what all parts warn of: moves, and rows that need two CPUs (`text` of so many).
    pub(super) fn all(
        rows: &'r Rows,
        part: &'r str,
        text: impl FnOnce(usize) -> String,
    ) -> (Vec<Self>, Vec<Warning>) {
        let levels = placement::levels(rows, part);
        let own = || rows.part(part).filter(|r| r.operation != "part");
        let moved = placement::moved(part, levels.as_ref());
        let warnings = one_cpu(own(), text).into_iter().chain(moved).collect();
        (own().map(|row| Self::of(rows, row, levels.as_ref())).collect(), warnings)
    }

    fn of(rows: &Rows, row: &'r Row, levels: Option<&Regimes>) -> Self {
        let cost = placement::cost(rows, row, levels);
        let extra = |name: &str| row.extras.get(name).copied().unwrap_or(0.0);
        let operations = extra(TURNS_SEEN) * row.per_turn;
        let single = row.short_turns == 0 && row.long_turns > 0;
        let sleeps = (single && operations > 0.0).then(|| (extra(SLEPT) / operations, operations as u64));
        let pairs = if row.long_turns == 1 { placement::on_main(row, levels) } else { Vec::new() };
        let trips_ns = values_ns(row, &pairs, rows.ns_per_tick());
        let modes = modes::modes(&trips_ns, GAP);
        Self { row, cost, trips_ns: sorted(&trips_ns).unwrap_or_default(), modes, sleeps }
    }

    /// Keys of its metrics: the conditions of the row, and its operation by this name.
    pub(super) fn keys(&self, operation: &str) -> Params {
        let mut keys = self.row.params.clone();
        keys.remove("state");
        keys.insert(operation.to_owned(), self.row.operation.as_str().into());
        keys
    }

    /// Its metrics as a cost, under the conditions of the row.
    pub(super) fn costs(&self) -> Vec<Metric> {
        let mut keys = self.keys("operation");
        keys.insert("kind".to_owned(), self.row.kind.name().into());
        self.metrics(&COST, &keys)
    }

    /// The metric of the cost with its quantiles, and those beside it.
    pub(super) fn metrics(&self, info: &MetricInfo, keys: &Params) -> Vec<Metric> {
        let mut cost = self.cost.metric(info, keys.clone());
        if cost.value.is_none() {
            return vec![cost];
        }
        if !self.trips_ns.is_empty() {
            cost = modes::with_tail(cost, &self.trips_ns);
        }
        let apart_ns = cost.apart_ns;
        let mut out = vec![cost];
        out.extend(
            self.sleeps.map(|(sleeps, n)| Metric::new(&SLEEPS, keys.clone(), sleeps, "switches counted", n)),
        );
        out.extend(modes::metrics(&self.modes, self.trips_ns.len(), [&MODE, &MODE_SHARE], keys));
        out.into_iter().map(|m| m.with_apart(apart_ns)).collect()
    }

    /// CPUs that took part.
    pub(super) fn cpus(&self) -> i64 {
        self.row.int("cpus").unwrap_or(2)
    }

    /// Operation, and model where it is not threads.
    pub(super) fn name(&self) -> String {
        let (operation, model) = (&self.row.operation, self.row.text("model"));
        if model == "threads" { operation.clone() } else { format!("{operation} ({model})") }
    }

    /// A condition of the row, as text.
    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.row.text(name) == value
    }

    /// The cost in a line: each mode with its share, where there are several.
    pub(super) fn text(&self) -> Option<String> {
        let words = self.cost.words()?;
        Some(modes::words(&self.modes).unwrap_or(words))
    }

    /// The same in a cell of a table.
    pub(super) fn cell(&self) -> Cell {
        match self.cost.value_ns() {
            Some(ns) if self.modes.is_empty() => Cell::Number(ns),
            _ => self.text().map_or(Cell::Empty(()), Cell::Text),
        }
    }

    pub(super) fn sleeps(&self) -> Option<f64> {
        self.sleeps.map(|s| s.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_engine::cost::{Estimator, Kind, Pair};
    use machmeter_stats::random::Random;

    /// Visits of 64 trips, of which a share is quick; one in a hundred takes up to a hundred times as long.
    fn trips(random: &mut Random, visits: usize, quick: f64, quick_ns: f64) -> Vec<f64> {
        let trip = |_| {
            let tail = if random.unit() < 0.01 { 100_f64.powf(random.unit()) } else { 1.0 };
            let mode_ns = if random.unit() < quick { quick_ns } else { 17_000.0 };
            mode_ns * (0.12 * random.normal()).exp() * tail
        };
        (0..64 * visits).map(trip).collect()
    }

    fn timed(trips_ns: &[f64]) -> (Rows, Row) {
        let mut row = Row::new("locks", "mutex", Kind::Latency).per_turn(2.0);
        (row.long_turns, row.estimator) = (1, Estimator::Trips);
        row.pairs = trips_ns
            .iter()
            .enumerate()
            .map(|(i, ns)| Pair { at_ns: i as f64 * 4e4, long_ticks: (2.0 * ns) as u64, ..Pair::default() })
            .collect();
        row.extras.insert(TURNS_SEEN.to_owned(), trips_ns.len() as f64);
        row.extras.insert(SLEPT.to_owned(), 1.4 * trips_ns.len() as f64);
        (Rows::in_nanoseconds(Vec::new()), row)
    }

    #[test]
    fn planted_mixtures_are_told_apart_with_their_shares() {
        let mut random = Random::new(3);
        for (visits, quick, quick_ns) in
            [(10, 0.5, 210.0), (10, 0.2, 210.0), (20, 0.85, 1_500.0), (60, 0.1, 3_000.0)]
        {
            let ns = trips(&mut random, visits, quick, quick_ns);
            let (rows, row) = timed(&ns);
            let timed = Priced::of(&rows, &row, None);
            let [a, b] = &timed.modes[..] else { panic!("{quick} {quick_ns}: {:?}", timed.modes) };
            assert!(
                (a.share - quick).abs() < 0.05 && (a.share + b.share - 1.0).abs() < 1e-9,
                "{quick}: {a:?}"
            );
            assert!(
                (a.center / quick_ns - 1.0).abs() < 0.1 && (b.center / 17_000.0 - 1.0).abs() < 0.1,
                "{b:?}"
            );
            let text = timed.text().unwrap();
            assert!(text.contains(" or ") && matches!(timed.cell(), Cell::Text(t) if t == text), "{text}");
            let all = timed.metrics(&COST, &row.params);
            let ids: Vec<&str> = all.iter().map(|m| m.id.as_str()).collect();
            assert_eq!(ids[1..], [SLEEPS.id, MODE.id, MODE_SHARE.id, MODE.id, MODE_SHARE.id]);
            assert!((all[1].value.unwrap() - 0.7).abs() < 1e-9 && all[0].estimator == "median of trips");
            let of = |p: &str| all[0].quantiles[p];
            assert!(0.0 < of("0.05") && of("0.9") < of("0.99") && of("0.99") <= all[0].max.unwrap());
            assert!(all[0].ci.as_ref().is_some_and(|ci| ci.low > 0.0));
        }
    }

    #[test]
    fn modes_are_numbered_by_cost_whichever_is_more_frequent() {
        let found = |quick: f64| {
            let (rows, row) = timed(&trips(&mut Random::new(5), 20, quick, 210.0));
            let all = Priced::of(&rows, &row, None).metrics(&COST, &row.params);
            let of = |m: &Metric| (m.key(), m.value.filter(|_| m.id == MODE.id));
            all.iter().map(of).collect::<Vec<_>>()
        };
        let (often, seldom) = (found(0.8), found(0.2));
        assert_eq!(often.len(), 6);
        for (a, b) in often.iter().zip(&seldom) {
            assert_eq!(a.0, b.0);
            let ratio = a.1.zip(b.1).map_or(1.0, |(a, b)| a / b);
            assert!((0.8..1.25).contains(&ratio), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn one_mode_with_a_tail_is_one_figure() {
        for seed in 0..40 {
            let ns = trips(&mut Random::new(seed), 10, if seed % 2 == 0 { 0.0 } else { 0.02 }, 210.0);
            let (rows, row) = timed(&ns);
            let timed = Priced::of(&rows, &row, None);
            assert!(timed.modes.is_empty(), "{seed}: {:?}", timed.modes);
            let value_ns = timed.cost.value_ns().unwrap();
            assert!((value_ns / 17_000.0 - 1.0).abs() < 0.05);
            assert!(matches!(timed.cell(), Cell::Number(ns) if ns.to_bits() == value_ns.to_bits()));
            assert_eq!(timed.metrics(&COST, &row.params).len(), 2);
        }
    }
}
