//! Calls of a traced program from the tables of its record. Of these nothing is believed: they may come from anywhere.

use std::collections::BTreeMap;

use machmeter_data::Table;
use machmeter_data::trace::{COMMUNICATORS, EVENTS, OPERATIONS, SPANS};

/// Most ranks that tables may name.
const MAX_RANKS: usize = 1 << 20;
/// Most threads of a rank: CPUs of a rank have 8 bits.
const MAX_THREADS: usize = 255;

/// A call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Index in [`OPERATIONS`].
    pub operation: usize,
    /// Start after that of the first rank, ns.
    pub start_ns: u64,
    /// Return; the start for a call that did not return.
    pub end_ns: u64,
    /// Bytes, as the recorder has them.
    pub bytes: u64,
    /// Rank of the program, or as [`machmeter_data::trace::ANY`] and the others.
    pub peer: i32,
    /// Tag, likewise.
    pub tag: i32,
    /// Number of the communicator; `None` without one.
    pub communicator: Option<u32>,
}

/// Calls of one thread in the order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    pub rank: u32,
    pub calls: Vec<Call>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    pub ranks: u32,
    /// Threads in the order of ranks, at least one of each.
    pub threads: Vec<Thread>,
    /// Members of the communicators that are not all ranks in order, as ranks of the program.
    pub members: BTreeMap<u32, Vec<u32>>,
    /// End of each rank, ns; not before its last call ends.
    pub end_ns: Vec<u64>,
}

impl Calls {
    /// The calls in the tables of a record, or what is missing or wrong first.
    pub fn find(tables: &[Table]) -> Result<Self, String> {
        let named = |name: &str| tables.iter().find(|t| t.name == name);
        let missing = |what: &str| format!("no table mpi_events with {what}");
        let events = named(EVENTS).ok_or_else(|| missing("calls"))?;
        let ints = |name| events.i32s(name).ok_or_else(|| missing(name));
        let longs = |name| events.i64s(name).ok_or_else(|| missing(name));
        let (rank, thread, operation) = (ints("rank")?, ints("thread")?, ints("operation")?);
        let (start, duration, bytes) = (longs("start_ns")?, longs("duration_ns")?, longs("bytes")?);
        let (peer, tag, communicator) = (ints("peer")?, ints("tag")?, ints("communicator")?);
        let known = operations(events);
        let mut threads: BTreeMap<(u32, i32), Vec<Call>> = BTreeMap::new();
        for row in 0..events.rows() {
            let wrong = |what: String| format!("row {row} of mpi_events: {what}");
            let own = u32::try_from(rank[row]).ok().filter(|r| (*r as usize) < MAX_RANKS);
            let own = own.ok_or_else(|| wrong(format!("rank {}", rank[row])))?;
            let index = usize::try_from(operation[row]).ok().and_then(|o| *known.get(o)?);
            let index = index.ok_or_else(|| wrong(format!("unknown operation {}", operation[row])))?;
            let start_ns = u64::try_from(start[row]).map_err(|_| wrong(format!("start {}", start[row])))?;
            let call = Call {
                operation: index,
                start_ns,
                end_ns: start_ns.saturating_add(duration[row].max(0) as u64),
                bytes: bytes[row].max(0) as u64,
                peer: peer[row],
                tag: tag[row],
                communicator: u32::try_from(communicator[row]).ok(),
            };
            threads.entry((own, thread[row])).or_default().push(call);
        }
        let mut all = Self { members: members(named(COMMUNICATORS)), ..Self::default() };
        let spans = spans(named(SPANS));
        let last = threads.keys().map(|(rank, _)| *rank).max();
        let last = last.ok_or_else(|| "the trace has no calls".to_owned())?;
        all.ranks = spans.keys().copied().max().unwrap_or(0).max(last) + 1;
        for rank in 0..all.ranks {
            if threads.range((rank, i32::MIN)..=(rank, i32::MAX)).next().is_none() {
                threads.insert((rank, 0), Vec::new());
            }
        }
        for ((rank, _), mut calls) in threads {
            calls.sort_by_key(|c| c.start_ns);
            all.threads.push(Thread { rank, calls });
        }
        for own in all.threads.chunk_by(|a, b| a.rank == b.rank) {
            let (rank, count) = (own[0].rank, own.len());
            if count > MAX_THREADS {
                return Err(format!(
                    "row 0 of mpi_events: rank {rank} has {count} threads, at most {MAX_THREADS} are replayed"
                ));
            }
            let last_ns = own.iter().flat_map(|t| &t.calls).map(|c| c.end_ns).max().unwrap_or(0);
            all.end_ns.push(spans.get(&rank).copied().unwrap_or(0).max(last_ns));
        }
        Ok(all)
    }

    pub fn count(&self) -> usize {
        self.threads.iter().map(|t| t.calls.len()).sum()
    }
}

/// Codes of a table as indices of operations, by the names that it gives them.
fn operations(events: &Table) -> Vec<Option<usize>> {
    let names = events.note("names.operation").unwrap_or_default();
    let names = names.trim_matches(['[', ']']).split(',').map(|name| name.trim().trim_matches('"'));
    let index = |name: &str| OPERATIONS.iter().position(|o| Some(o.name) == name.strip_prefix("MPI_"));
    names.map(index).collect()
}

/// Ends of ranks, ns.
fn spans(table: Option<&Table>) -> BTreeMap<u32, u64> {
    let columns = || {
        let table = table?;
        let (ranks, ends) = (table.i32s("rank")?, table.i64s("end_ns")?);
        let of = |(rank, end): (&i32, &i64)| {
            let rank = u32::try_from(*rank).ok().filter(|r| (*r as usize) < MAX_RANKS)?;
            Some((rank, u64::try_from(*end).ok()?))
        };
        Some(ranks.iter().zip(ends).filter_map(of).collect())
    };
    columns().unwrap_or_default()
}

fn members(table: Option<&Table>) -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<(i32, u32)>> = BTreeMap::new();
    let columns = || Some((table?.i32s("communicator")?, table?.i32s("member")?, table?.i32s("rank")?));
    if let Some((communicators, members, ranks)) = columns() {
        for ((communicator, member), rank) in communicators.iter().zip(members).zip(ranks) {
            if let (Ok(communicator), Ok(rank)) = (u32::try_from(*communicator), u32::try_from(*rank)) {
                all.entry(communicator).or_default().push((*member, rank));
            }
        }
    }
    for own in all.values_mut() {
        own.sort_unstable();
    }
    all.into_iter()
        .map(|(communicator, own)| (communicator, own.into_iter().map(|m| m.1).collect()))
        .collect()
}
