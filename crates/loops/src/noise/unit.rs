//! Instances of the noise loop for a clock source and a work unit that are chosen at run time.
//!
//! Generic code is compiled in the crate that calls it with concrete types, at the optimization level of that crate. The calls
//! with concrete types are therefore here.

use std::sync::atomic::AtomicBool;

use machmeter_sys::Refused;
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};

use super::kernel::{CacheSweep, Quantum1, Quantum15, Quantum31, Quantum63, dependent_adds};
use super::measure::{Buffers, Ended, Schedule, WorkUnit, record, sample_bursts};
use crate::clock::SourceClock;

/// Most chains that [`chains`] times.
const MOST_CHAINS: usize = 4096;

/// A work unit of the real processor, with its state.
pub enum Unit {
    One(Quantum1),
    Fifteen(Quantum15),
    ThirtyOne(Quantum31),
    SixtyThree(Quantum63),
    Cache(CacheSweep),
}

/// Work that is generic over the clock and over the work unit.
trait WithUnit {
    type Output;
    fn run<S: TickSource, W: WorkUnit>(self, unit: &mut W) -> Self::Output;
}

struct OnSource<'a, F> {
    unit: &'a mut Unit,
    work: F,
}

impl<F: WithUnit> WithSource for OnSource<'_, F> {
    type Output = F::Output;

    fn run<S: TickSource>(self) -> F::Output {
        match self.unit {
            Unit::One(unit) => self.work.run::<S, _>(unit),
            Unit::Fifteen(unit) => self.work.run::<S, _>(unit),
            Unit::ThirtyOne(unit) => self.work.run::<S, _>(unit),
            Unit::SixtyThree(unit) => self.work.run::<S, _>(unit),
            Unit::Cache(unit) => self.work.run::<S, _>(unit),
        }
    }
}

struct Recording<'a, 'b> {
    schedule: &'a Schedule,
    notes: &'a mut Buffers<'b>,
    stop: &'a AtomicBool,
}

impl WithUnit for Recording<'_, '_> {
    type Output = Ended;

    fn run<S: TickSource, W: WorkUnit>(self, unit: &mut W) -> Ended {
        record(&mut SourceClock::<S>::new(), unit, self.schedule, self.notes, self.stop)
    }
}

/// [`record`] with this clock source and unit.
///
/// # Errors
/// If this machine has no such source; nothing was recorded then.
pub fn record_unit(
    source: SourceId,
    unit: &mut Unit,
    schedule: &Schedule,
    notes: &mut Buffers<'_>,
    stop: &AtomicBool,
) -> Result<Ended, Refused> {
    dispatch(source, OnSource { unit, work: Recording { schedule, notes, stop } })
}

struct Calibrating;

impl WithUnit for Calibrating {
    type Output = Vec<Vec<u64>>;

    fn run<S: TickSource, W: WorkUnit>(self, unit: &mut W) -> Vec<Vec<u64>> {
        sample_bursts(&mut SourceClock::<S>::new(), unit)
    }
}

/// Ticks of each turn of the calibration bursts ([`sample_bursts`]).
///
/// # Errors
/// As [`record_unit`].
pub fn bursts(source: SourceId, unit: &mut Unit) -> Result<Vec<Vec<u64>>, Refused> {
    dispatch(source, OnSource { unit, work: Calibrating })
}

struct Chains {
    duration_ticks: u64,
}

impl WithSource for Chains {
    type Output = Vec<u64>;

    fn run<S: TickSource>(self) -> Vec<u64> {
        let begin = S::now();
        let mut taken_ticks = Vec::with_capacity(MOST_CHAINS);
        while taken_ticks.len() < taken_ticks.capacity() {
            let start = S::now();
            std::hint::black_box(dependent_adds());
            let end = S::now();
            taken_ticks.push(end.saturating_sub(start));
            if end.saturating_sub(begin) > self.duration_ticks {
                break;
            }
        }
        taken_ticks
    }
}

/// Ticks of each chain of dependent additions, for `duration_ticks` or 4,096 chains, whichever ends first.
///
/// # Errors
/// As [`record_unit`].
pub fn chains(source: SourceId, duration_ticks: u64) -> Result<Vec<u64>, Refused> {
    dispatch(source, Chains { duration_ticks })
}
