//! Runs of one plan, which differ in where noise begins: shares of them anywhere, the same figures wherever they were computed.

use std::sync::Arc;

use machmeter_data::metric::Interval;
use machmeter_model::laws::LEVEL;
use machmeter_stats::distribution::t_quantile;
use machmeter_stats::spread::{mean, stddev};

use crate::engine::SimulateError;
use crate::goal::{Goal, Schedule};
use crate::noise::{Machine, OnMachines, Starts, last_end_ps};
use crate::params::Params;
use crate::patterns::{PatternInfo, Shape, Stepped};

/// Fewest runs that tell a spread.
const MIN_RUNS: usize = 3;

/// A pattern in rounds, each after a calculation; all of its shape but the number of ranks. Or a schedule, whose number of ranks is its own.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    Pattern { info: &'a PatternInfo, shape: Shape, rounds: u32, calculation_ps: u64 },
    Schedule(&'a Goal),
}

/// What a run will need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Operations and messages.
    pub events: u64,
    /// Bound of its memory, bytes.
    pub bytes: u64,
}

impl What<'_> {
    /// What a run at this number of ranks needs.
    pub fn estimate(&self, ranks: u32) -> Estimate {
        // Bytes of a rank, and of an operation under way: of the structures, with room to grow. 1 M ranks of a dissemination took 232 MB,
        // of a stencil with 6 neighbors 680 MB.
        let bytes = |under_way: u64| u64::from(ranks) * 140 + under_way.saturating_mul(100);
        match self {
            Self::Pattern { info, shape, rounds, calculation_ps } => {
                let pattern = (info.make)(Shape { ranks, ..*shape });
                let calculations = if *calculation_ps > 0 { u64::from(ranks) } else { 0 };
                let events = (3 * pattern.messages() + calculations).saturating_mul(u64::from(*rounds));
                let under_way = u64::from(ranks) * u64::from(pattern.lanes());
                Estimate { events, bytes: bytes(under_way) }
            }
            Self::Schedule(goal) => {
                let operations = goal.operations();
                Estimate { events: operations + goal.messages(), bytes: bytes(operations) }
            }
        }
    }

    /// Numbers of operations of a rank in the largest step times its steps: what 32 bits must hold.
    pub fn operations_of_rank(&self, ranks: u32) -> u64 {
        match self {
            Self::Pattern { info, shape, rounds, .. } => {
                let pattern = (info.make)(Shape { ranks, ..*shape });
                let steps = (0..ranks.min(2)).map(|rank| pattern.steps(rank)).max().unwrap_or(0);
                (u64::from(steps) + 1) * 2 * u64::from(pattern.lanes()) * u64::from(*rounds)
            }
            Self::Schedule(goal) => goal.operations(),
        }
    }

    /// The end of the last rank of run number `run`, ps: its number is the seed of where noise begins. `None` for the noise is a quiet
    /// run.
    pub fn simulate(
        &self,
        ranks: u32,
        params: &Params,
        noise: Option<(&Arc<Machine>, Starts)>,
        stop: &dyn Fn() -> bool,
    ) -> Result<u64, SimulateError> {
        let noise = noise.map(|(machine, at)| OnMachines::new(machine.clone(), ranks, at, params.dialect));
        match self {
            Self::Pattern { info, shape, rounds, calculation_ps } => {
                let pattern = (info.make)(Shape { ranks, ..*shape });
                let mut program = Stepped::new(pattern.as_ref(), ranks, *rounds, *calculation_ps);
                last_end_ps(&mut program, params, noise, stop)
            }
            Self::Schedule(goal) => last_end_ps(&mut Schedule::new(goal), params, noise, stop),
        }
    }
}

/// A share of the runs of a plan: part k of n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 1 to `of`.
    pub part: u64,
    pub of: u64,
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((part, of)) if part >= 1 && part <= of => Ok(Self { part, of }),
            _ => Err(format!("'{text}' is not a share K/N with K from 1 to N, such as 2/3")),
        }
    }
}

impl Share {
    /// Numbers of its runs among all, which count from 0.
    pub fn runs(self, all: u64) -> impl Iterator<Item = u64> {
        (self.part - 1..all).step_by(usize::try_from(self.of).unwrap_or(usize::MAX))
    }
}

/// The mean of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Mean {
    pub ns: f64,
    /// Its 95 % interval (Student's t over runs); none for fewer than 3.
    pub interval: Option<Interval>,
}

/// The mean of the ends of runs in the order of their numbers: the same bits for the same runs. No run ends before the quiet one.
pub fn mean_of_runs(times_ps: &[u64], quiet_ps: u64) -> Option<Mean> {
    let ns: Vec<f64> = times_ps.iter().map(|ps| *ps as f64 / 1000.0).collect();
    let value = mean(&ns)?;
    let interval = (ns.len() >= MIN_RUNS).then(|| {
        let n = ns.len() as f64;
        let half = t_quantile(f64::midpoint(1.0, LEVEL), n - 1.0)? * stddev(&ns)? / n.sqrt();
        let least = quiet_ps as f64 / 1000.0;
        Interval::new(LEVEL, (value - half).max(least.min(value)), value + half, "student-t over runs")
    });
    Some(Mean { ns: value, interval: interval.flatten() })
}
