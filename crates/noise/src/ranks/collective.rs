//! A program that computes and synchronizes in turns: who keeps the others waiting, and what that costs.

use machmeter_stats::lateness::{Turn, turn};
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};
use machmeter_sys::mpi::clock::RankClock;
use machmeter_sys::mpi::{Comm, Error, Operation};
use serde::{Deserialize, Serialize};

use super::team::text;
use machmeter_loops::noise::kernel::Quantum63;
use machmeter_loops::noise::measure::WorkUnit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collective {
    Barrier,
    /// Of one 64-bit number.
    Allreduce,
}

pub const COLLECTIVES: [Collective; 2] = [Collective::Barrier, Collective::Allreduce];

impl Collective {
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Allreduce => "allreduce",
        }
    }
}

/// A rank that is held up before every so many-th operation, for self-tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) rank: usize,
    pub(crate) every: usize,
    pub(crate) ticks: u64,
}

/// Turns that all ranks take: `units` of work, then the operation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) collective: Collective,
    pub(crate) turns: usize,
    pub(crate) units: u64,
    pub(crate) hold: Option<Hold>,
}

/// This rank's part of a batch; ticks of its clock, begin and end of each operation.
struct Part<'a> {
    comm: &'a Comm,
    batch: Batch,
    stamps: &'a mut [[i64; 2]],
}

impl WithSource for Part<'_> {
    type Output = Result<(), Error>;

    fn run<S: TickSource>(self) -> Result<(), Error> {
        let (mut unit, mut sum) = (Quantum63::default(), [0.0]);
        let Batch { collective, units, hold, .. } = self.batch;
        let hold = hold.filter(|h| h.rank == self.comm.rank());
        for (i, stamps) in self.stamps.iter_mut().enumerate() {
            for _ in 0..units {
                unit.unit();
            }
            if let Some(h) = hold.filter(|h| i.is_multiple_of(h.every)) {
                let until = S::now() + h.ticks;
                while S::now() < until {}
            }
            let begin = S::now();
            match collective {
                Collective::Barrier => self.comm.barrier()?,
                Collective::Allreduce => self.comm.allreduce(&[1.0], &mut sum, Operation::Sum)?,
            }
            *stamps = [begin as i64, S::now() as i64];
        }
        Ok(())
    }
}

/// Takes part in a batch; what it cost, on rank 0, in ticks. Collective.
pub(super) fn play(
    comm: &Comm,
    source: SourceId,
    batch: Batch,
    clock: &RankClock,
) -> Result<Vec<Turn>, String> {
    let mut stamps = vec![[0_i64; 2]; batch.turns];
    dispatch(source, Part { comm, batch, stamps: &mut stamps }).map_err(|e| e.to_string())?.map_err(text)?;
    // On the clock of rank 0: what lies between the two is the same for all stamps of a batch.
    let offset = stamps.first().map_or(0, |s| (s[0] as u64).wrapping_sub(clock.there(s[0] as u64)) as i64);
    let own: Vec<i64> = stamps.iter().flatten().map(|t| t.wrapping_sub(offset)).collect();
    let ranks = comm.size();
    let mut all = vec![0_i64; if comm.rank() == 0 { own.len() * ranks } else { 0 }];
    comm.gather(&own, &mut all, 0).map_err(text)?;
    let base = own.first().copied().unwrap_or(0);
    let of = |i: usize| -> Vec<f64> {
        (0..ranks).map(|r| all[r * own.len() + i].wrapping_sub(base) as f64).collect()
    };
    let turns = if all.is_empty() { 0 } else { batch.turns };
    Ok((0..turns).filter_map(|i| turn(&of(2 * i), &of(2 * i + 1))).collect())
}
