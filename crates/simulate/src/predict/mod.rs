//! Predictions: a replay on the costs of a machine, with what is not known of them, beside noise.
//!
//! Each run draws costs from their intervals and a place in the noise, by its number: an interval of runs has the errors of both.

mod draw;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;

use machmeter_data::metric::Interval;
use machmeter_model::laws::LEVEL;

use crate::engine::{Part, SimulateError};
use crate::expr::{Answer, Outside, Sheet};
use crate::machine::OfLink;
use crate::noise::{Machine, OnMachines, Quiet, Starts, last_end_ps};
use crate::params::Params;
use crate::replay::{Replay, Split, split};

pub use record::{Told, fill};

/// Fewest runs whose least and largest hold the next one with 95 %: 2 / (n + 1) are beyond them.
pub const RUNS: u32 = 39;

/// One parameter with another value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation {
    /// [`Part::Latency`], [`Part::Overhead`], [`Part::Gap`] or [`Part::GapBytes`].
    pub part: Part,
    /// Times what was measured.
    pub factor: f64,
}

/// Parameters that can be varied, by the names of the literature.
pub const PARAMETERS: [(&str, Part); 4] =
    [("L", Part::Latency), ("o", Part::Overhead), ("g", Part::Gap), ("G", Part::GapBytes)];

impl Variation {
    /// `L 2x`
    pub fn name(&self) -> String {
        let name = PARAMETERS.iter().find(|(_, part)| *part == self.part).map_or("", |(name, _)| name);
        format!("{name} {}x", self.factor)
    }
}

impl std::str::FromStr for Variation {
    type Err = String;

    /// `L=2x`
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('=').and_then(|(name, factor)| {
            let (_, part) = PARAMETERS.iter().find(|(known, _)| *known == name.trim())?;
            let factor = factor.trim().strip_suffix('x')?.parse::<f64>().ok()?;
            (0.0..=1e6).contains(&factor).then_some(Self { part: *part, factor })
        });
        parsed.ok_or_else(|| {
            format!("'{text}' is not L, o, g or G with a factor from 0x to 1000000x, such as L=2x")
        })
    }
}

/// A replay on the costs of a machine.
#[derive(Debug, Clone)]
pub struct Prediction<'a> {
    replay: &'a Replay,
    link: &'a OfLink,
    noise: Option<(Arc<Machine>, bool)>,
    /// Costs of [`Replay::priced`], in their order.
    prices: Vec<Answer>,
}

impl<'a> Prediction<'a> {
    /// Costs of collectives are those of `sheet`; `noise` has whether all machines begin at one place of it. Or names an operation without cost.
    pub fn new(
        replay: &'a Replay,
        link: &'a OfLink,
        sheet: &Sheet,
        noise: Option<(Arc<Machine>, bool)>,
    ) -> Result<Self, &'static str> {
        let price = |p: &crate::replay::Priced| sheet.cost(p.operation, p.ranks, p.bytes).ok_or(p.operation);
        let prices = replay.priced.iter().map(price).collect::<Result<_, _>>()?;
        Ok(Self { replay, link, noise, prices })
    }

    /// Whether runs differ: costs have intervals, or there is noise.
    pub fn differs(&self) -> bool {
        let is_known = |a: &Answer| a.interval.is_some_and(|(low, high)| low < high);
        let errs = self.link.errors.iter().any(|e| e.relative.iter().any(|r| *r > 0.0));
        self.noise.is_some() || errs || self.prices.iter().any(is_known)
    }

    /// Where costs of collectives were asked beyond their points.
    pub fn outside(&self) -> Outside {
        let mut all = Outside::default();
        self.prices.iter().for_each(|p| all.add(&p.outside));
        all
    }

    /// Costs of run number `run`, ps: as measured where runs do not differ.
    fn costs(&self, run: u64, change: Option<Variation>) -> (Params, Vec<u64>) {
        let mut draw = draw::Draw::new(self.differs().then_some(run));
        let mut params = draw.params(self.link);
        if let Some(change) = change {
            params = params.map(|segment| draw::scale(segment, change.part, change.factor));
        }
        let mut by_operation = BTreeMap::new();
        let price = |(of, answer): (&crate::replay::Priced, &Answer)| {
            let deviation = *by_operation.entry(of.operation).or_insert_with(|| draw.deviation());
            draw::price(answer, deviation)
        };
        (params, self.replay.priced.iter().zip(&self.prices).map(price).collect())
    }

    fn noise_of(&self, run: u64) -> Option<OnMachines> {
        let (machine, coincident) = self.noise.clone()?;
        let starts = if coincident { Starts::Together(run) } else { Starts::Apart(run) };
        Some(OnMachines::new(machine, self.replay.ranks(), starts, self.link.params.dialect))
    }

    /// The end of the last rank in run number `run`, ps.
    pub fn time(
        &self,
        number: u64,
        change: Option<Variation>,
        stop: &dyn Fn() -> bool,
    ) -> Result<u64, SimulateError> {
        let (params, prices) = self.costs(number, change);
        last_end_ps(&mut self.replay.running(&prices), &params, self.noise_of(number), stop)
    }

    /// What the time of run number `run` is made of.
    pub fn split(&self, run: u64, stop: &dyn Fn() -> bool) -> Result<Split, SimulateError> {
        let (params, prices) = self.costs(run, None);
        match self.noise_of(run) {
            Some(mut noise) => split(self.replay, &prices, &params, &mut noise, stop),
            None => split(self.replay, &prices, &params, &mut Quiet, stop),
        }
    }
}

/// Times of runs of one prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// Number and time of each run, ps, shortest first.
    runs: Vec<(u64, u64)>,
}

impl Times {
    /// Of runs by number, ps; `None` without one.
    pub fn of(runs: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut runs: Vec<(u64, u64)> = runs.into_iter().collect();
        runs.sort_unstable_by_key(|(number, ps)| (*ps, *number));
        (!runs.is_empty()).then_some(Self { runs })
    }

    /// Number and time of the median run, ps: the lower of two.
    pub fn median(&self) -> (u64, u64) {
        self.runs[(self.runs.len() - 1) / 2]
    }

    pub fn count(&self) -> u64 {
        self.runs.len() as u64
    }

    /// Where the next run lies with 95 %, ns: between runs in the order of their times, whatever the distribution (Wilks 1941). `None`
    /// for fewer runs than [`RUNS`].
    pub fn interval(&self) -> Option<Interval> {
        let n = self.runs.len();
        // The k-th from both ends: 2 k / (n + 1) lie beyond.
        let k = ((1.0 - LEVEL) / 2.0 * (n + 1) as f64 + 1e-9) as usize;
        let ns = |at: usize| self.runs[at].1 as f64 / 1000.0;
        let at = k.checked_sub(1)?;
        Interval::new(LEVEL, ns(at), ns(n - k), "order of runs with costs and noise drawn")
    }
}

#[cfg(test)]
mod tests;
