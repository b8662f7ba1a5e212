//! Warns about gaps and weaknesses of traces.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_data::trace::{ANY, End, NOBODY, OPERATIONS, Trace};

use super::Rank;
use super::collectives::AllMatched;
use super::info::{MISSING_RANKS, NOT_MATCHED, OPEN_CALL, SEVERAL_CLOCKS, STOPPED, UNFINISHED};

/// Most ranks, and most calls, in a warning.
const MOST_NAMED: usize = 8;

/// True if all ranks exist and recorded until their end.
pub(super) fn is_complete(traces: &[Trace<'_>]) -> bool {
    let size = traces.first().map_or(0, |t| t.size as usize);
    traces.len() == size && traces.iter().all(|t| matches!(t.end, End::Finalized | End::Unfinished))
}

/// `rank 3`, `ranks 0, 4, 7, ...`.
fn named(ranks: &[u32]) -> String {
    let listed: Vec<String> = ranks.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more =
        if ranks.len() > MOST_NAMED { format!(", ... ({} in all)", ranks.len()) } else { String::new() };
    format!("rank{} {}{more}", if ranks.len() == 1 { "" } else { "s" }, listed.join(", "))
}

pub(super) fn warnings(ranks: &[Rank<'_>], matched: &AllMatched, is_one_clock: bool) -> Vec<Warning> {
    let mut out = Vec::new();
    let size = ranks.first().map_or(0, |r| r.trace.size);
    if (ranks.len() as u32) < size {
        let there: Vec<u32> = ranks.iter().map(|r| r.trace.rank).collect();
        let text = format!("only {} of {size} ranks left a trace: {}", there.len(), named(&there));
        out.push(MISSING_RANKS.note(text));
    }
    for (end, code, what) in [
        (End::NoSpace, &STOPPED, "the recording stopped because the disk was full"),
        (End::Limit, &STOPPED, "the recording stopped at its limit (--limit)"),
        (End::Unfinished, &UNFINISHED, "MPI_Finalize was not called"),
    ] {
        let ended = ranks.iter().filter(|r| r.trace.end == end);
        let those: Vec<u32> = ended.map(|r| r.trace.rank).collect();
        if !those.is_empty() {
            out.push(code.note(format!("{what}: {}", named(&those))));
        }
    }
    let open =
        ranks.iter().flat_map(|r| r.trace.calls().filter(|c| c.duration_ns.is_none()).map(move |c| (r, c)));
    for (r, call) in open.take(MOST_NAMED) {
        let peer = match call.peer {
            ANY => ", any rank".to_owned(),
            p if p <= NOBODY => String::new(),
            p => format!(", rank {p}"),
        };
        let tag = if call.tag >= 0 { format!(", tag {}", call.tag) } else { String::new() };
        let at = human(r.after_start_ns(call.start_ns) as f64, Unit::Nanoseconds);
        let (name, rank) = (OPERATIONS[call.operation].name, r.trace.rank);
        let text = format!("rank {rank} did not return from MPI_{name}, entered at {at}{peer}{tag}");
        out.push(OPEN_CALL.note(text));
    }
    if !is_one_clock {
        out.push(SEVERAL_CLOCKS.note("the ranks ran on several machines: the delaying rank is unknown"));
    }
    for (communicator, call, what) in matched.broken.iter().take(MOST_NAMED) {
        out.push(
            NOT_MATCHED.note(format!(
                "collectives do not match on communicator {communicator}, call {call}: {what}"
            )),
        );
    }
    out
}
