//! The processes of this program that a launcher started: rank 0 orders, all answer, and whatever fails on one ends all.

use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_data::text::printable;
use machmeter_sys::mpi::{Comm, Error, Operation, Session, launched};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What all ranks have to run.
const PROGRAM: &str = concat!("machmeter ", env!("CARGO_PKG_VERSION"), " noise");
const TAG: i32 = 32_002;
static HAS_STARTED: AtomicBool = AtomicBool::new(false);
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub node: String,
    pub cpu: usize,
}

pub(super) struct Team {
    session: Session,
    pub(super) world: Comm,
}

/// Number among the ranks of a launcher, where there are several.
pub(super) fn rank() -> Option<usize> {
    launched().filter(|l| l.size > 1).map(|l| l.rank)
}

/// Ends the others where rank 0 fails before it leads them.
pub(super) fn give_up<T: Serialize>(end: &T) {
    if rank() == Some(0)
        && !HAS_STARTED.load(Ordering::Relaxed)
        && let Ok(team) = Team::start()
    {
        let _ = team.tell(end);
        team.finish();
    }
}

impl Team {
    /// Starts MPI in this process. Errors: one line: MPI's, or a rank is another version, which all ranks then say.
    pub(super) fn start() -> Result<Self, String> {
        HAS_STARTED.store(true, Ordering::Relaxed);
        let session = Session::start(None, true).map_err(text)?;
        let world = session.world().clone();
        let team = Self { session, world };
        match team.world.all_run(PROGRAM) {
            Ok(()) => Ok(team),
            // All ranks know it, and end in order.
            Err(why) => {
                team.finish();
                Err(why)
            }
        }
    }

    /// Gives an order from rank 0 to all.
    pub(super) fn tell<T: Serialize>(&self, order: &T) -> Result<(), String> {
        let mut bytes = serde_json::to_vec(order).map_err(|e| e.to_string())?;
        self.world.bcast(&mut [bytes.len() as i64], 0).map_err(text)?;
        self.world.bcast(&mut bytes, 0).map_err(text)
    }

    /// The next order.
    pub(super) fn heed<T: DeserializeOwned>(&self) -> Result<T, String> {
        let mut length = [0_i64];
        self.world.bcast(&mut length, 0).map_err(text)?;
        let mut bytes = vec![0_u8; usize::try_from(length[0]).unwrap_or(0)];
        self.world.bcast(&mut bytes, 0).map_err(text)?;
        serde_json::from_slice(&bytes).map_err(|e| e.to_string())
    }

    /// What each rank has, by rank, on rank 0; nothing on the others. Collective, also for a rank that failed: rank 0 then has why.
    pub(super) fn gather<T>(&self, own: Result<T, String>) -> Result<Vec<T>, String>
    where
        T: Serialize + DeserializeOwned,
    {
        let size = self.world.size();
        let bytes = serde_json::to_vec(&own).map_err(|e| e.to_string())?;
        let is_first = self.world.rank() == 0;
        let mut lengths = vec![0_i64; if is_first { size } else { 0 }];
        self.world.gather(&[bytes.len() as i64], &mut lengths, 0).map_err(text)?;
        if !is_first {
            self.world.send(&bytes, 0, TAG).map_err(text)?;
            return own.map(|_| Vec::new());
        }
        let mut all = vec![own];
        for (rank, length) in lengths.iter().enumerate().skip(1) {
            let mut bytes = vec![0_u8; usize::try_from(*length).unwrap_or(0)];
            self.world.recv(&mut bytes, rank, TAG).map_err(text)?;
            all.push(serde_json::from_slice(&bytes).map_err(|e| e.to_string())?);
        }
        let named = |(rank, one): (usize, Result<T, String>)| one.map_err(|e| format!("rank {rank}: {e}"));
        all.into_iter().enumerate().map(named).collect()
    }

    /// Whether all ranks are; collective.
    pub(super) fn all(&self, own: bool) -> Result<bool, String> {
        let mut least = [i64::from(own)];
        self.world.allreduce_in_place(&mut least, Operation::Min).map_err(text)?;
        Ok(least[0] != 0)
    }

    /// A number of rank 0 on all ranks; collective.
    pub(super) fn number(&self, own: u64) -> Result<u64, String> {
        let mut number = [own as i64];
        self.world.bcast(&mut number, 0).map_err(text)?;
        Ok(number[0] as u64)
    }

    /// Name of this machine, which strangers chose.
    pub(super) fn node(&self) -> String {
        printable(&self.session.processor_name().unwrap_or_default())
    }

    pub(super) fn finish(self) {
        drop(self.world);
        self.session.finish();
    }

    /// Ends MPI's part without the others: the launcher is ending all, and what was recorded is still to be written.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn text(e: Error) -> String {
    e.to_string()
}
