//! Noise across the ranks of a launcher: one CPU of each in windows aligned on one clock, then collective operations.
//! Rank 0 has the session and the record; the others follow its orders and print nothing.

mod collective;
mod lead;
mod member;
mod team;

pub(crate) use collective::{Batch, Hold};
pub use collective::{COLLECTIVES, Collective};
pub(super) use lead::measure;
pub use team::Place;

use machmeter_stats::lateness::Turn;
use machmeter_sys::clock::SourceId;
use serde::{Deserialize, Serialize};

use super::Params;
use super::samples::CpuSamples;
use super::selftest::Planted;
use machmeter_loops::noise::measure::{Gap, Schedule, Sums};

/// Turns of a collective operation; [`Turn`] in ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveSamples {
    pub collective: Collective,
    pub turns: Vec<Turn>,
}

/// What rank 0 orders.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Say where you are and what you take for a gap.
    Begin {
        params: Box<Params>,
        source: SourceId,
        policy: String,
        seed: u64,
    },
    Record(Schedule),
    Collective(Batch),
    End,
}

/// What a rank says before it measures.
#[derive(Serialize, Deserialize)]
struct Ready {
    place: Place,
    threshold_ticks: u64,
    tick_hz: f64,
}

/// What a rank recorded; the columns, which its samples are written without, stand beside them.
#[derive(Serialize, Deserialize)]
struct Report {
    counts: Vec<u32>,
    sums: Vec<Sums>,
    gaps: Vec<Gap>,
    buckets: Vec<[u64; 3]>,
    samples: CpuSamples,
}

/// As [`machmeter_engine::Probe::attend`]: follows rank 0 where this is another rank.
pub(super) fn attend() -> Option<bool> {
    team::rank().filter(|r| *r > 0).map(|_| member::follow().is_ok())
}

/// As [`machmeter_engine::Probe::give_up`].
pub(super) fn give_up() {
    team::give_up(&Order::End);
}

/// Turns of two ranks, one of which is held up, for the self-test; rank 0 has the order, and gets them.
pub(super) fn late_turns(order: Option<Planted>) -> Result<Vec<Turn>, String> {
    let team = team::Team::start()?;
    let done = member::planted(&team, order);
    team.finish();
    done
}

/// Whether a launcher started several of this program.
pub(super) fn are_there() -> bool {
    team::rank().is_some()
}
