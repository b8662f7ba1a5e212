//! A traced program as a schedule in GOAL: collectives become messages of patterns.

use std::collections::BTreeMap;

use crate::goal::{Builder, Goal};
use crate::patterns::{Shape, find};

use super::calls::Calls;
use super::expand::{Options, Replay, ReplayError, replay};
use super::matching::base;

/// The pattern of each of [`super::BASES`]; parts of `reduce_scatter` go to all at once.
const PATTERNS: [(&str, &str); 10] = [
    ("barrier", "dissemination"),
    ("bcast", "binomial"),
    ("scatter", "scatter"),
    ("gather", "gather"),
    ("allgather", "ring"),
    ("alltoall", "linear"),
    ("reduce", "reduce"),
    ("allreduce", "recursive-doubling"),
    ("reduce_scatter", "linear"),
    ("scan", "pipelined"),
];

/// Operations of the schedule of calls, about, before it is made: messages of collectives are many where ranks are.
pub fn operations(calls: &Calls) -> u64 {
    let mut by_kind: BTreeMap<(&str, u32), (u64, u64)> = BTreeMap::new();
    let mut all = 0;
    for call in calls.threads.iter().flat_map(|t| &t.calls) {
        // A calculation, and a message where it has a peer.
        all += 2;
        if let (Some(base), Some(communicator)) = (base(call.operation), call.communicator) {
            let (count, most_bytes) = by_kind.entry((base, communicator)).or_default();
            (*count, *most_bytes) = (*count + 1, call.bytes.max(*most_bytes));
        }
    }
    for ((base, communicator), (count, bytes)) in by_kind {
        let ranks = calls.members.get(&communicator).map_or(calls.ranks, |m| m.len() as u32);
        let shape = Shape { ranks, bytes: bytes.max(1), segment_bytes: 4096, seed: 1 };
        let info = PATTERNS.iter().find(|p| p.0 == base).and_then(|p| find(p.1));
        let messages = info.filter(|_| ranks > 1).map_or(0, |info| (info.make)(shape).messages());
        all += (count / u64::from(ranks.max(1))).saturating_mul(2 * messages);
    }
    all
}

/// The schedule of calls, and the replay that it was taken out of, which says what was left out and guessed. Calculation is in whole ns.
///
/// # Errors
/// As [`replay`].
pub fn schedule(calls: &Calls) -> Result<(Goal, Replay), ReplayError> {
    let algorithms = PATTERNS.iter().filter_map(|(base, name)| Some((*base, find(name)?))).collect();
    let options = Options { algorithms, others: find("dissemination"), ..Options::default() };
    let mut replay = replay(calls, &options)?;
    let mut goal = std::mem::replace(&mut replay.goal, Builder::default().build());
    goal.map_calculations(|ps| (ps + 500) / 1000);
    Ok((goal, replay))
}
