//! Matches the calls of several ranks that form one collective call, and computes the time that each rank waited in it for the last one.

use std::collections::BTreeMap;

use machmeter_data::trace::{Communicator, Kind, OPERATIONS, Trace};

use super::Rank;

/// Communicators of each trace with numbers common to all ranks. Ranks share no name for a communicator. However, they create communicators with equal
/// members in one order, so the n-th of them is the same for all.
pub(super) fn numbered(traces: &[Trace<'_>]) -> Vec<Vec<usize>> {
    let mut numbers: BTreeMap<(&Communicator, usize), usize> = BTreeMap::new();
    traces
        .iter()
        .map(|t| {
            let mut made: BTreeMap<&Communicator, usize> = BTreeMap::new();
            let number = |c| {
                let nth = made.entry(c).or_default();
                *nth += 1;
                let next = numbers.len();
                *numbers.entry((c, *nth)).or_insert(next)
            };
            t.communicators.iter().map(number).collect()
        })
        .collect()
}

/// Matched blocking collective calls of one operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Matched {
    /// Number of matched calls; each is counted once for all its ranks.
    pub(super) calls: u64,
    /// Time in them, summed over ranks, ns.
    pub(super) time_ns: f64,
    /// Part of the time until the last rank entered, ns.
    pub(super) waiting_ns: f64,
    /// Number of calls in which a rank entered last.
    pub(super) last: BTreeMap<u32, u64>,
}

/// Matched calls by operation.
#[derive(Debug, Default)]
pub(super) struct AllMatched {
    pub(super) operations: BTreeMap<usize, Matched>,
    /// Waiting time of each rank, ns.
    pub(super) waiting_ns: BTreeMap<u32, f64>,
    /// Communicators whose calls stopped matching: communicator, index of the call, operations.
    pub(super) broken: Vec<(usize, usize, String)>,
}

/// A call in a sequence: operation, begin and length, ns.
type Step = (usize, i64, Option<u64>);

/// Matches the n-th collective call of each member of a communicator, if the ranks share a clock.
pub(super) fn matched(ranks: &[Rank<'_>], is_one_clock: bool) -> AllMatched {
    let mut out = AllMatched::default();
    if !is_one_clock {
        return out;
    }
    // Sequences by communicator and rank.
    let mut sequences: BTreeMap<usize, Vec<(u32, Vec<Step>)>> = BTreeMap::new();
    for r in ranks {
        let mut own: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
        for call in r.trace.calls() {
            let kind = OPERATIONS[call.operation].kind;
            let is_ordered = matches!(kind, Kind::Collective | Kind::CollectiveStart | Kind::Communicator);
            if let Some(communicator) = r.communicator(&call).filter(|_| is_ordered) {
                let step = (call.operation, r.after_start_ns(call.start_ns), call.duration_ns);
                own.entry(communicator).or_default().push(step);
            }
        }
        for (communicator, mut steps) in own {
            // The calls can come from several threads.
            steps.sort_by_key(|s| s.1);
            sequences.entry(communicator).or_default().push((r.trace.rank, steps));
        }
    }
    for (communicator, members) in sequences {
        let size = size_of(ranks, communicator);
        if size.is_none_or(|size| size != members.len() || size < 2) {
            continue;
        }
        let common = members.iter().map(|m| m.1.len()).min().unwrap_or(0);
        for n in 0..common {
            let steps: Vec<(u32, Step)> = members.iter().map(|(rank, all)| (*rank, all[n])).collect();
            let operation = steps[0].1.0;
            if let Some((rank, other)) = steps.iter().find(|(_, s)| s.0 != operation) {
                let [own, other] = [operation, other.0].map(|o| OPERATIONS[o].name);
                let what = format!("{own} of rank {} and {other} of rank {rank}", steps[0].0);
                out.broken.push((communicator, n, what));
                break;
            }
            if OPERATIONS[operation].kind == Kind::Collective {
                add(&mut out, operation, &steps);
            }
        }
    }
    out
}

/// Number of members of a communicator; `None` for an intercommunicator.
fn size_of(ranks: &[Rank<'_>], communicator: usize) -> Option<usize> {
    let of = |r: &Rank<'_>| {
        let own = r.communicators.iter().position(|c| *c == communicator)?;
        let known = &r.trace.communicators[own];
        let size = known.members.as_ref().map_or(r.trace.size as usize, Vec::len);
        (!known.is_inter).then_some(size)
    };
    ranks.iter().find_map(of)
}

fn add(out: &mut AllMatched, operation: usize, steps: &[(u32, Step)]) {
    let Some((last, entered_ns)) = steps.iter().map(|(r, s)| (*r, s.1)).max_by_key(|(_, at)| *at) else {
        return;
    };
    let to = out.operations.entry(operation).or_default();
    to.calls += 1;
    *to.last.entry(last).or_default() += 1;
    for (rank, (_, at_ns, took)) in steps {
        let took_ns = took.unwrap_or(0) as f64;
        // A rank that may continue before the last one enters (the root of a broadcast) does not wait.
        let waiting_ns = (entered_ns.saturating_sub(*at_ns) as f64).min(took_ns);
        to.time_ns += took_ns;
        to.waiting_ns += waiting_ns;
        *out.waiting_ns.entry(*rank).or_default() += waiting_ns;
    }
}
