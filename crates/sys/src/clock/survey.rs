//! Reads of every available source on one CPU: the material for step, read cost and backward steps.

use super::{SourceId, TickSource, WithSource, dispatch, pinned};
use crate::Refused;

const COST_READS: usize = 4096;
const STEP_READS: usize = 1024;

/// Differences of successive reads of one source, in its ticks.
pub(super) struct Deltas {
    pub(super) source: SourceId,
    pub(super) close_ticks: Vec<i64>,
    /// With varied work between the reads, so that the differences are not all the same multiple of the step.
    pub(super) varied_ticks: Vec<i64>,
}

/// Reads all sources on `cpu`; gives up at `deadline_ns` of `CLOCK_MONOTONIC_RAW`.
pub(super) fn survey(cpu: usize, deadline_ns: u64) -> Result<Vec<Deltas>, Refused> {
    let all = || SourceId::ALL.into_iter().filter_map(|id| dispatch(id, Read).ok()).collect();
    pinned::start(cpu, all)?.wait_until(deadline_ns)
}

struct Read;

impl WithSource for Read {
    type Output = Deltas;

    fn run<S: TickSource>(self) -> Deltas {
        // Written once beforehand: a page fault in the loop would be taken for a slow clock.
        let mut close = vec![1_u64; COST_READS];
        let mut varied = vec![1_u64; STEP_READS];
        read_close::<S>(&mut close);
        read_varied::<S>(&mut varied);
        Deltas { source: S::ID, close_ticks: differences(&close), varied_ticks: differences(&varied) }
    }
}

#[inline(never)]
fn read_close<S: TickSource>(stamps_ticks: &mut [u64]) {
    for stamp in stamps_ticks {
        *stamp = S::now();
    }
}

#[inline(never)]
fn read_varied<S: TickSource>(stamps_ticks: &mut [u64]) {
    for (i, stamp) in stamps_ticks.iter_mut().enumerate() {
        for turn in 0..i % 29 {
            std::hint::black_box(turn);
        }
        *stamp = S::now();
    }
}

fn differences(stamps_ticks: &[u64]) -> Vec<i64> {
    stamps_ticks.windows(2).map(|w| w[1].wrapping_sub(w[0]) as i64).collect()
}
