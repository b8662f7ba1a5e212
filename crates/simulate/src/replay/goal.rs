//! A traced program as a schedule in GOAL: collectives become messages of patterns.

use std::collections::BTreeMap;

use crate::goal::Goal;
use crate::patterns::{Shape, find, of_operation};

use super::calls::Calls;
use super::expand::{Options, Replay, replay};
use super::matching::{BASES, base, started_together};

/// Operations of the schedule of calls, about, before it is made: messages of collectives are many where ranks are.
pub fn operations(calls: &Calls) -> u64 {
    let mut by_kind: BTreeMap<(&str, u32), (u64, u64)> = BTreeMap::new();
    let mut all = calls.threads.iter().map(|t| started_together(&t.calls)).sum();
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
        let pattern = of_operation(base).filter(|_| ranks > 1);
        let messages = pattern.map_or(0, |info| (info.make)(Shape::of(ranks, bytes.max(1))).messages());
        all += (count / u64::from(ranks.max(1))).saturating_mul(2 * messages);
    }
    all
}

/// The schedule of calls, and the replay that it was taken out of, which says what was left out and guessed. Calculation is in whole ns.
pub fn schedule(calls: &Calls) -> Result<(Goal, Replay), String> {
    let algorithms = BASES.iter().filter_map(|(base, _)| Some((*base, of_operation(base)?))).collect();
    let options = Options { algorithms, others: find("dissemination"), ..Options::default() };
    let mut replay = replay(calls, &options)?;
    let mut goal = std::mem::take(&mut replay.goal);
    goal.map_calculations(|ps| (ps + 500) / 1000);
    Ok((goal, replay))
}
