//! Rows: what an operation costs, as it was measured. A row holds pairs of timed batches, one of `short_turns` and one of
//! `long_turns` turns of the same operation; what is constant in both cancels in their difference (method of nanoBench and
//! lmbench's interval test; research behind `docs/memory.md`).
//!
//! Raw ticks are kept; [`estimate`] converts later.

pub mod estimate;
mod facts;
mod leak;
mod tables;

use std::collections::BTreeMap;

use machmeter_data::metric::Params;
use serde::{Deserialize, Serialize};

use estimate::Clock;
pub use estimate::Cost;
pub use facts::{Fact, Facts};
pub use machmeter_loops::subject::{Estimator, Kind, Proof};

use crate::disturbance::quick_clock::{self, AtQuickClock};
use crate::disturbance::sibling::CoreLook;
use crate::disturbance::{Rejected, sibling};

const WHOLE_WIDTH: Fact<f64> = Fact::named("core.width");
/// Share of shared pairs that pass for undisturbed ones, by the widths of the run.
const LEAK: Fact<f64> = Fact::named("core.leak");
/// What it was on this kind of machine before, at most.
const WIDTH_BEFORE: Fact<f64> = Fact::named("core.width_before");
/// Ticks of a dependent addition at the quick clock, at which costs are told.
const QUICK_TICKS: Fact<f64> = Fact::named("core.quick_ticks");
/// What one took at the quick clock of an earlier run, at least, ns.
const ADDITION_BEFORE: Fact<f64> = Fact::named("core.addition_before_ns");
/// Pairs alone on the core, and their share of all, from which on its whole width is sure.
const SURE_PAIRS: f64 = 100.0;
const SURE_SHARE: f64 = 0.1;

/// Two timed batches, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Pair {
    /// When, ns after the start of the measurement.
    pub at_ns: f64,
    /// Number of the visit of its row, from 1: pairs of one visit are alike ([`machmeter_stats::visits`]).
    pub visit: u32,
    /// Ticks of `short_turns` turns; where these are 0, what the meter takes by itself, or 0 where nobody measured it.
    pub short_ticks: u64,
    pub long_ticks: u64,
    /// What a probe of the placement said beside it (one-way transfer between two CPUs, ns); 0 where nobody asked.
    pub regime_ns: f64,
    /// The core around and between the batches; zeros where nobody looked.
    pub core: CoreLook,
}

/// One operation under one set of conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Part of the probe it belongs to (`ladder`).
    pub part: String,
    /// Operation (`chase`, `fork`, `cas`).
    pub operation: String,
    /// Conditions; with the operation the key of the row.
    pub params: Params,
    pub kind: Kind,
    /// How its pairs become a cost.
    pub estimator: Estimator,
    /// Whether its operations are dependent additions, which wait for themselves: no neighbor on the core can slow them, and looks at the
    /// core take them for its clock.
    pub is_core_clock: bool,
    /// Turns of the short batch; 0 where batches are timed alone, or beside the meter's own time.
    pub short_turns: u64,
    pub long_turns: u64,
    /// Operations (loads, bytes, trips) per turn.
    pub per_turn: f64,
    pub pairs: Vec<Pair>,
    pub rejected: Rejected,
    /// Proof that it happened, where the loop itself is none.
    pub proof: Option<Proof>,
    /// Other measured facts by name with unit suffix (`share_max`, `achieved_bytes_per_s`).
    pub extras: BTreeMap<String, f64>,
    /// Why there are no samples: one line.
    pub refused: Option<String>,
}

impl Row {
    pub fn new(part: &str, operation: &str, kind: Kind) -> Self {
        Self {
            part: part.to_owned(),
            operation: operation.to_owned(),
            params: Params::new(),
            kind,
            estimator: Estimator::Differences,
            is_core_clock: false,
            short_turns: 0,
            long_turns: 0,
            per_turn: 1.0,
            pairs: Vec::new(),
            rejected: Rejected::default(),
            proof: None,
            extras: BTreeMap::new(),
            refused: None,
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<machmeter_data::metric::ParamValue>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn per_turn(mut self, operations: f64) -> Self {
        self.per_turn = operations;
        self
    }

    /// Of whole batches ([`Estimator::Batches`]).
    #[must_use]
    pub fn of_batches(mut self) -> Self {
        self.estimator = Estimator::Batches;
        self
    }

    /// Of dependent additions ([`Row::is_core_clock`]).
    #[must_use]
    pub fn core_clock(mut self) -> Self {
        self.is_core_clock = true;
        self
    }

    #[must_use]
    pub fn refused(mut self, why: impl Into<String>) -> Self {
        self.refused = Some(why.into());
        self
    }

    /// With pairs of `turns` and twice as many turns, each at a moment of its own: what a test plants.
    #[must_use]
    pub fn planted(mut self, turns: u64, ticks: impl IntoIterator<Item = (u64, u64)>) -> Self {
        (self.short_turns, self.long_turns) = (turns, 2 * turns);
        let pair = |(i, (short_ticks, long_ticks))| {
            let at_ns = i as f64;
            Pair { at_ns, short_ticks, long_ticks, ..Pair::default() }
        };
        self.pairs = ticks.into_iter().enumerate().map(pair).collect();
        self
    }

    /// Adds to its proof what was seen of what was to be.
    pub fn prove(&mut self, what: &str, expected: u64, seen: u64) {
        let before = self.proof.take().map_or((0, 0), |p| (p.expected, p.seen));
        self.proof = Some(Proof::new(what, before.0 + expected, before.1 + seen));
    }

    /// Number of the visit that begins now.
    pub fn next_visit(&self) -> u32 {
        self.pairs.last().map_or(0, |p| p.visit).saturating_add(1)
    }

    /// Refused where it was never visited.
    #[must_use]
    pub fn reached(mut self) -> Self {
        if self.refused.is_none() && self.pairs.is_empty() && self.rejected.total() == 0 {
            self.refused = Some("not reached in the time given".to_owned());
        }
        self
    }

    /// A condition that is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.params.get(name)? {
            machmeter_data::metric::ParamValue::Int(i) => Some(*i),
            machmeter_data::metric::ParamValue::Text(_) => None,
        }
    }

    /// A condition as text; empty when there is none.
    pub fn text(&self, name: &str) -> String {
        self.params.get(name).map(ToString::to_string).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    pub tick_hz: f64,
    /// Distance of neighboring values of the clock, ticks.
    pub step_ticks: u64,
    pub rows: Vec<Row>,
    /// What the analysis needs beside them: sizes the system claims, CPUs.
    pub facts: Facts,
}

impl Rows {
    /// On a clock whose tick and step are a nanosecond.
    pub fn in_nanoseconds(rows: Vec<Row>) -> Self {
        Self { tick_hz: 1e9, step_ticks: 1, rows, ..Self::default() }
    }

    pub fn ns_per_tick(&self) -> f64 {
        1e9 / self.tick_hz
    }

    pub fn part<'a>(&'a self, part: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |r| r.part == part)
    }

    /// What a row costs: by the pairs during which nobody else used the core; marked where there are too few of them.
    pub fn cost(&self, row: &Row) -> Cost {
        self.cost_of(row, &row.pairs)
    }

    /// The same by some of its pairs (those of one regime), at the quick clock of the core where somebody looked.
    pub fn cost_of(&self, row: &Row, pairs: &[Pair]) -> Cost {
        let Some((quick, quick_ticks)) = self.at_quick_clock(row, pairs) else {
            return self.cost_as_timed(row, pairs);
        };
        let at = Clock { hz: self.tick_hz / quick_ticks, follows: quick.follows, error: quick.error };
        self.cost_as_timed(row, &quick.pairs).told_at(&at, estimate::spread(row, pairs, self.ns_per_tick()))
    }

    /// Pairs of a row as they would have been at the quick clock of the core; as they are where nobody looked.
    pub fn pairs_at_quick_clock(&self, row: &Row, pairs: &[Pair]) -> Vec<Pair> {
        self.at_quick_clock(row, pairs).map_or_else(|| pairs.to_vec(), |(quick, _)| quick.pairs)
    }

    fn at_quick_clock(&self, row: &Row, pairs: &[Pair]) -> Option<(AtQuickClock, f64)> {
        let ticks = self.facts.get(&QUICK_TICKS).filter(|t| t.is_finite() && *t > 0.0)?;
        pairs.iter().find(|p| p.core.addition_ticks > 0.0)?;
        let values = estimate::values_ns(row, pairs, self.ns_per_tick());
        let filter = self.filter();
        let is_own = |p: &Pair| filter.is_none_or(|f| f.alone(p) != Some(false));
        Some((AtQuickClock::of(pairs, &values, is_own, ticks), ticks))
    }

    fn cost_as_timed(&self, row: &Row, pairs: &[Pair]) -> Cost {
        match self.filter() {
            Some(filter) if pairs.iter().any(|p| filter.alone(p).is_some()) => {
                Cost::by_population(row, pairs, filter, self.ns_per_tick(), self.step_ticks)
            }
            _ => Cost::of_pairs(row, pairs, self.ns_per_tick(), self.step_ticks),
        }
    }

    /// Keeps the whole width of the core as pairs saw it, or as it was before, if that was more, with what leaks through its edge; and its quick clock.
    pub fn store_core(&mut self) {
        let widths = self.rows.iter().flat_map(|r| &r.pairs).map(|p| p.core.width).filter(|w| *w > 0.0);
        let widths: Vec<f64> = widths.collect();
        if let Some(whole) = sibling::whole_width(&widths) {
            let whole = self.width(&WIDTH_BEFORE).map_or(whole, |before| whole.max(before));
            self.facts.set(&WHOLE_WIDTH, whole);
            self.facts.set(&LEAK, sibling::leak(&widths, whole));
        }
        if let Some(own) = quick_clock::quick_ticks(self.rows.iter().flat_map(|r| &r.pairs)) {
            let before = self.addition_before_ns().map(|ns| ns / self.ns_per_tick());
            self.facts.set(&QUICK_TICKS, quick_clock::told(own, before));
        }
    }

    /// What tells undisturbed pairs from shared ones; `None` where nobody looked. Samples without their leak have that of other machines.
    fn filter(&self) -> Option<sibling::Filter> {
        let leak = self.facts.get(&LEAK).filter(|l| (0.0..=1.0).contains(l)).unwrap_or(sibling::LEAK);
        Some(sibling::Filter { whole: self.whole_width()?, leak })
    }

    /// Takes over what the whole width of the core was before, as [`Rows::inverse_width`] told it.
    pub fn restore_core(&mut self, inverse_width: Option<f64>) {
        if let Some(width) = inverse_width.map(|n| 1.0 / n).filter(|w| w.is_finite() && *w > 0.0) {
            self.facts.set(&WIDTH_BEFORE, width);
        }
    }

    /// Takes over what a dependent addition took at the quick clock of an earlier run, ns.
    pub fn restore_quick_addition(&mut self, ns: Option<f64>) {
        if let Some(ns) = ns.filter(|ns| ns.is_finite() && *ns > 0.0) {
            self.facts.set(&ADDITION_BEFORE, ns);
        }
    }

    /// What a dependent addition took at the quick clock of an earlier run, ns; `None` where none is remembered.
    pub fn addition_before_ns(&self) -> Option<f64> {
        self.facts.get(&ADDITION_BEFORE)
    }

    /// Cost of an independent over a dependent addition on the whole core. `None` where too few pairs were alone to be sure.
    pub fn inverse_width(&self) -> Option<f64> {
        let (shared, pairs) = self.shared_core()?;
        let alone = (1.0 - shared) * pairs as f64;
        (alone >= SURE_PAIRS && 1.0 - shared >= SURE_SHARE)
            .then(|| 1.0 / self.whole_width().unwrap_or(f64::NAN))
    }

    /// The whole width of the core, where somebody looked.
    pub fn whole_width(&self) -> Option<f64> {
        self.width(&WHOLE_WIDTH)
    }

    fn width(&self, fact: &Fact<f64>) -> Option<f64> {
        self.facts.get(fact).filter(|w| w.is_finite() && *w > 0.0)
    }

    /// Share of the pairs during which somebody else used the core, and their number; `None` where nobody looked.
    pub fn shared_core(&self) -> Option<(f64, usize)> {
        let whole = self.whole_width()?;
        let seen: Vec<bool> =
            self.rows.iter().flat_map(|r| &r.pairs).filter_map(|p| sibling::alone(p, whole)).collect();
        let shared = seen.iter().filter(|alone| !**alone).count();
        (!seen.is_empty()).then(|| (shared as f64 / seen.len() as f64, seen.len()))
    }
}
