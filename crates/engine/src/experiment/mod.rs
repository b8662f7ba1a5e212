//! The experiment: cells of all parts, visited in random order until each has its undisturbed samples or the time is over.
//!
//! A disturbance stays for seconds: it would color a part that is measured in one piece, and colors no part of a pool.
//! Parts share the time by weight: the next visit belongs to the part that has used the least of its share. Within a part visits go
//! round: every open cell once in a random order, then what the part proposes from the samples so far. No part begins its second round
//! before all have ended their first.

mod pool;
mod set;
#[cfg(test)]
mod tests;

use crate::cost::Row;
use crate::level::Level;
use crate::sampling::Sampler;

pub use pool::{Experiment, Outlook};
pub use set::{BenchCell, CellList, Finished, Set, sample, sample_benches};

/// What is visited as a whole: one row, or rows that one visit fills together.
pub trait Cell {
    fn rows(&self) -> &[Row];

    /// Length of the first visit, ns.
    fn expected_ns(&self) -> u64;

    /// Whether it is to be visited once more; `enough` says whether its rows have enough undisturbed samples.
    fn wants(&self, enough: bool) -> bool {
        !enough
    }

    fn visit(&mut self, visit: &mut Visit<'_>);

    fn into_rows(self: Box<Self>) -> Vec<Row>;
}

pub struct Visit<'v> {
    /// Of the thread that measures.
    pub sampler: &'v mut Sampler,
    /// When the visit has to be over, ns on the sampler's clock.
    pub until_ns: u64,
    /// Number of the visit of this cell, from 0.
    pub number: u32,
    pub bits: u64,
}

impl Visit<'_> {
    pub fn left_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.sampler.now_ns())
    }
}

/// When a row has enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enough {
    /// Undisturbed samples.
    pub samples: usize,
    /// Visits they come from, at least: an interval is one of visits.
    pub visits: u32,
}

impl Enough {
    /// 24 samples were within 0.1 % of the full answer for calls, 1.7 % for processes (Zen 4); eight visits: t of 2.4.
    pub const QUICK: Self = Self { samples: 24, visits: 8 };

    pub const ENDLESS: Self = Self { samples: usize::MAX, visits: u32::MAX };

    pub const fn visits(visits: u32) -> Self {
        Self { samples: 0, visits }
    }

    pub const fn at(level: Level) -> Self {
        let Self { samples, visits } = Self::QUICK;
        match level {
            Level::Quick => Self::QUICK,
            Level::Standard => Self { samples: 4 * samples, visits: 2 * visits },
            Level::Thorough => Self { samples: 16 * samples, visits: 4 * visits },
            Level::Soak => Self::ENDLESS,
        }
    }
}
