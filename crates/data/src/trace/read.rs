//! Reads the trace file of one rank. Every number is checked against the file and the other numbers before it is used.

use thiserror::Error;

use super::{
    ALL_RANKS, BLOCK_BYTES, COMMUNICATOR, INTER, MAGIC, MARK, MEMBERS, MEMBERS_PER_SLOT, NO_COMMUNICATOR,
    NO_NUMBER, OPEN, OPERATIONS, SLOTS, VERSION, header,
};
use crate::text::printable;

/// Any rank, any tag.
pub const ANY: i32 = -1;
/// Peer `MPI_PROC_NULL`.
pub const NOBODY: i32 = -2;
/// No peer, no tag.
pub const NONE: i32 = -3;

/// Range of the length of a tick, ns: 100 GHz to 1 MHz.
const TICK_NS: [f64; 2] = [0.01, 1000.0];
/// Longest trace, ns: a year.
const MOST_NS: f64 = 3.2e16;

/// Reason in one line why a file was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TraceError(String);

/// End of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Not ended: the program was killed, crashed, or left without `MPI_Finalize`.
    Unfinished,
    /// `MPI_Finalize` was called.
    Finalized,
    /// The disk was full.
    NoSpace,
    /// The recording reached its limit.
    Limit,
}

/// A communicator as seen by a rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Communicator {
    /// Ranks of the program, by rank in the communicator; `None` for all in order. An intercommunicator has those of its remote group. [`u32::MAX`] is a
    /// process of another program.
    pub members: Option<Vec<u32>>,
    /// True for an intercommunicator.
    pub is_inter: bool,
}

/// A thread that called MPI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thread {
    /// CPU time between its first and its last mark, ns.
    pub cpu_ns: u64,
    /// Wall time between the same marks, ns.
    pub wall_ns: u64,
    /// Number of calls.
    pub calls: u64,
}

/// A call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Index in [`Trace::threads`].
    pub thread: usize,
    /// Index in [`OPERATIONS`].
    pub operation: usize,
    /// Start on the monotonic clock of its machine, ns.
    pub start_ns: u64,
    /// Duration, ns; `None` if the call had not returned at the end of the trace.
    pub duration_ns: Option<u64>,
    /// Bytes, by the rule in [`super::Bytes`].
    pub bytes: u64,
    /// Rank of the program, or one of the negative constants of this module.
    pub peer: i32,
    /// Tag, [`ANY`] or [`NONE`].
    pub tag: i32,
    /// Index in [`Trace::communicators`].
    pub communicator: Option<usize>,
}

/// The trace of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace<'a> {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Number of ranks of the program.
    pub size: u32,
    /// End of the recording.
    pub end: End,
    /// Host name of the machine.
    pub host: String,
    /// Boot id; processes with the same id share one monotonic clock.
    pub boot: String,
    /// First line of the version text of the MPI library.
    pub library: String,
    /// Command line.
    pub program: String,
    /// Return of `MPI_Init` on the monotonic clock, ns.
    pub start_ns: u64,
    /// The same on the wall clock, ns since 1970.
    pub start_real_ns: u64,
    /// Begin of `MPI_Finalize`, or the last known time, ns.
    pub end_ns: u64,
    /// Communicators in the order of their creation; the first is `MPI_COMM_WORLD`.
    pub communicators: Vec<Communicator>,
    /// Threads.
    pub threads: Vec<Thread>,
    blocks: &'a [u8],
    ticks: Ticks,
    special: [i32; 2],
}

/// Converts ticks to nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ticks {
    at: u64,
    at_ns: u64,
    ns_per_tick: f64,
}

impl Ticks {
    fn ns(&self, ticks: u64) -> u64 {
        self.at_ns.saturating_add((ticks.saturating_sub(self.at) as f64 * self.ns_per_tick).round() as u64)
    }
}

fn bad<T>(what: impl Into<String>) -> Result<T, TraceError> {
    Err(TraceError(what.into()))
}

fn sure(is_so: bool, or: impl FnOnce() -> String) -> Result<(), TraceError> {
    if is_so { Ok(()) } else { bad(or()) }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let at = bytes.get(index * 8..index * 8 + 8).and_then(|b| b.try_into().ok());
    at.map_or(0, u64::from_le_bytes)
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// First line of the text in the words from `first` to `after`; spaces replace the zeros between words.
fn text(bytes: &[u8], first: usize, after: usize) -> String {
    let all = bytes.get(first * 8..after * 8).unwrap_or_default();
    let end = all.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let spaced: Vec<u8> = all[..end].iter().map(|b| if *b == 0 { b' ' } else { *b }).collect();
    let text = String::from_utf8_lossy(&spaced);
    printable(text.lines().next().unwrap_or_default().trim())
}

/// Slots of a block up to the first unfinished one: words and number.
fn slots(block: &[u8]) -> impl Iterator<Item = ([u64; 4], u16)> + '_ {
    let of = |slot: &[u8]| [0, 1, 2, 3].map(|i| word(slot, i));
    block.chunks_exact(32).map(of).map(|w| (w, (w[1] >> 48) as u16)).take_while(|(_, number)| *number != 0)
}

impl<'a> Trace<'a> {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// One line with the reason: no trace, another version, truncated, or numbers that contradict each other.
    pub fn read(bytes: &'a [u8]) -> Result<Self, TraceError> {
        let is_trace = bytes.len() >= BLOCK_BYTES && word(bytes, header::MAGIC) == MAGIC;
        sure(is_trace, || "not a trace of an MPI program".to_owned())?;
        let [version, source] = halves(word(bytes, header::VERSION));
        sure(version == VERSION, || {
            format!("trace format {version} is not supported: this version reads {VERSION}")
        })?;
        let (body, blocks) = (&bytes[BLOCK_BYTES..], word(bytes, header::BLOCKS));
        let there = (body.len() / BLOCK_BYTES) as u64;
        let is_whole = blocks <= there && body.len().is_multiple_of(BLOCK_BYTES);
        sure(is_whole, || format!("truncated: {} bytes, but {blocks} blocks were written", bytes.len()))?;
        let [rank, size] = halves(word(bytes, header::RANK));
        sure(rank < size && i32::try_from(size).is_ok(), || format!("rank {rank} of {size}"))?;
        let end = match word(bytes, header::END) {
            0 => End::Unfinished,
            1 => End::Finalized,
            2 => End::NoSpace,
            3 => End::Limit,
            other => return bad(format!("unknown end {other} of a recording")),
        };
        let init_ticks = word(bytes, header::INIT_TICKS);
        let start_ticks = word(bytes, header::START_TICKS);
        let mut trace = Self {
            rank,
            size,
            end,
            host: text(bytes, header::HOST, header::LIBRARY),
            boot: text(bytes, header::BOOT, header::HOST),
            library: text(bytes, header::LIBRARY, header::PROGRAM),
            program: text(bytes, header::PROGRAM, header::WORDS),
            start_ns: 0,
            start_real_ns: word(bytes, header::START_REAL_NS),
            end_ns: 0,
            communicators: Vec::new(),
            threads: Vec::new(),
            blocks: &body[..blocks as usize * BLOCK_BYTES],
            ticks: Ticks { at: init_ticks, at_ns: word(bytes, header::INIT_NS), ns_per_tick: 1.0 },
            special: halves(word(bytes, header::SPECIAL)).map(|half| half as i32),
        };
        let marks = trace.marks()?;
        trace.calibrate(&marks, source == 1)?;
        sure(start_ticks >= init_ticks, || "MPI_Init returned before it was called".to_owned())?;
        trace.start_ns = trace.ticks.ns(start_ticks);
        trace.find_communicators()?;
        trace.check_calls(start_ticks, &marks)?;
        Ok(trace)
    }

    /// All calls, block by block; those of one thread are in order of time.
    pub fn calls(&self) -> impl Iterator<Item = Call> + '_ {
        self.blocks.chunks_exact(BLOCK_BYTES).flat_map(move |block| {
            let thread = word(block, 1) & OPEN;
            slots(block)
                .filter(|(_, number)| *number < MEMBERS)
                .map(move |(w, number)| self.call(w, number, thread))
        })
    }

    fn call(&self, w: [u64; 4], number: u16, thread: u64) -> Call {
        let start_ns = self.ticks.ns(w[0]);
        let took = w[1] & OPEN;
        let [peer, tag] = halves(w[2]).map(|half| half as i32);
        let [any, nobody] = self.special;
        let index = (w[3] >> 48) as u16;
        Call {
            thread: thread as usize,
            operation: usize::from(number) - 1,
            start_ns,
            duration_ns: (took != OPEN).then(|| self.ticks.ns(w[0].saturating_add(took)) - start_ns),
            bytes: w[3] & OPEN,
            peer: match peer {
                p if p >= 0 => p,
                p if p == any => ANY,
                p if p == nobody => NOBODY,
                _ => NONE,
            },
            tag: match tag {
                NO_NUMBER => NONE,
                tag => tag.max(ANY),
            },
            communicator: (index != NO_COMMUNICATOR).then_some(usize::from(index)),
        }
    }

    /// Marks in the order of blocks: words and thread. Threads are numbered from 0 in the order of their first blocks.
    fn marks(&mut self) -> Result<Vec<([u64; 4], usize)>, TraceError> {
        let mut marks: Vec<([u64; 4], usize)> = Vec::new();
        for block in self.blocks.chunks_exact(BLOCK_BYTES) {
            for (i, (w, number)) in slots(block).enumerate() {
                sure(i > 0 || number == MARK, || "a block does not start with a mark".to_owned())?;
                if number == MARK {
                    let thread = w[1] & OPEN;
                    let known = self.threads.len();
                    let follows = thread <= known as u64 && (i == 0 || thread == word(block, 1) & OPEN);
                    sure(follows, || format!("thread {thread} after {known} threads"))?;
                    if thread == known as u64 {
                        self.threads.push(Thread::default());
                    }
                    marks.push((w, thread as usize));
                }
            }
        }
        Ok(marks)
    }

    /// Sets the length of a tick from the latest mark, and CPU times from the first and last marks of threads.
    fn calibrate(&mut self, marks: &[([u64; 4], usize)], is_processor: bool) -> Result<(), TraceError> {
        let Some((last, _)) = marks.iter().max_by_key(|(w, _)| w[0]) else {
            // Nothing was written, for example because the disk was full from the start.
            self.ticks.ns_per_tick = 0.0;
            return Ok(());
        };
        if is_processor {
            let span = |to: u64, from: u64| to.checked_sub(from).filter(|d| *d > 0).map(|d| d as f64);
            let ns_per_tick =
                span(last[2], self.ticks.at_ns).zip(span(last[0], self.ticks.at)).map(|(ns, t)| ns / t);
            match ns_per_tick.filter(|ns| (TICK_NS[0]..=TICK_NS[1]).contains(ns)) {
                Some(ns) => self.ticks.ns_per_tick = ns,
                None => return bad("its clock stood still or had an impossible rate"),
            }
        }
        for (thread, out) in self.threads.iter_mut().enumerate() {
            let own: Vec<&[u64; 4]> = marks.iter().filter(|m| m.1 == thread).map(|m| &m.0).collect();
            if let (Some(first), Some(last)) = (own.first(), own.last()) {
                out.wall_ns = last[2].saturating_sub(first[2]);
                out.cpu_ns = last[3].saturating_sub(first[3]);
            }
        }
        Ok(())
    }

    fn find_communicators(&mut self) -> Result<(), TraceError> {
        // Per thread, the communicator that still lacks members: index and number.
        let mut open: Vec<Option<(usize, usize)>> = vec![None; self.threads.len()];
        let mut found: Vec<Option<Communicator>> = Vec::new();
        for block in self.blocks.chunks_exact(BLOCK_BYTES) {
            let thread = (word(block, 1) & OPEN) as usize;
            for (w, number) in slots(block) {
                if number == COMMUNICATOR {
                    let (index, members, size) = ((w[3] >> 48) as usize, w[2], self.size);
                    let is_inter = w[0] & INTER != 0;
                    sure(members <= u64::from(size) || is_inter, || {
                        format!("a communicator of {members} ranks in a program of {size}")
                    })?;
                    if found.len() <= index {
                        found.resize(index + 1, None);
                    }
                    let all = w[0] & ALL_RANKS != 0;
                    found[index] = Some(Communicator { members: (!all).then(Vec::new), is_inter });
                    open[thread] = (!all).then_some((index, members as usize));
                } else if number == MEMBERS {
                    let Some((index, members)) = open[thread] else {
                        return bad("members without a communicator");
                    };
                    let six: Vec<u32> = [w[0], w[2], w[3]].into_iter().flat_map(halves).collect();
                    let list = found[index].as_mut().and_then(|c| c.members.as_mut());
                    let Some(list) = list.filter(|l| l.len() < members) else {
                        return bad("more members than the communicator has");
                    };
                    let six = &six[..MEMBERS_PER_SLOT.min(members - list.len())];
                    list.extend(six);
                    let are_ranks = six.iter().all(|r| *r < self.size || *r == u32::MAX);
                    sure(are_ranks, || format!("a member outside of a program of {} ranks", self.size))?;
                }
            }
        }
        // An incomplete communicator (after a kill, or while another thread writes it) is not used by any call yet.
        let unknown = || Communicator { members: Some(Vec::new()), is_inter: false };
        self.communicators = found.into_iter().map(|c| c.unwrap_or_else(unknown)).collect();
        Ok(())
    }

    fn check_calls(&mut self, start_ticks: u64, marks: &[([u64; 4], usize)]) -> Result<(), TraceError> {
        let most_ticks = (MOST_NS / self.ticks.ns_per_tick) as u64;
        let mut end_ns = marks.iter().map(|(w, _)| self.ticks.ns(w[0])).max().unwrap_or(0);
        let mut calls = vec![0_u64; self.threads.len()];
        for (i, block) in self.blocks.chunks_exact(BLOCK_BYTES).enumerate() {
            let thread = word(block, 1) & OPEN;
            for (j, (w, number)) in slots(block).enumerate() {
                let told = |what: &str| format!("block {i}, slot {j} of {SLOTS}: {what}");
                let has_no_time = matches!(number, COMMUNICATOR | MEMBERS);
                let is_soon = has_no_time || w[0].saturating_sub(start_ticks) <= most_ticks;
                sure(is_soon, || told("a time more than a year after the start"))?;
                if number >= MEMBERS {
                    continue;
                }
                let is_known = usize::from(number) <= OPERATIONS.len();
                sure(is_known, || told(&format!("unknown operation {number}")))?;
                sure(w[0] >= start_ticks, || told("a call before MPI_Init returned"))?;
                let call = self.call(w, number, thread);
                let is_rank = call.peer < 0 || (call.peer as u32) < self.size;
                sure(is_rank, || told(&format!("rank {} of {}", call.peer, self.size)))?;
                let was_made = call.communicator.is_none_or(|c| c < self.communicators.len());
                sure(was_made, || told("a communicator that was never created"))?;
                calls[thread as usize] += 1;
                end_ns = end_ns.max(call.start_ns.saturating_add(call.duration_ns.unwrap_or(0)));
            }
        }
        self.threads.iter_mut().zip(calls).for_each(|(t, n)| t.calls = n);
        self.end_ns = end_ns.max(self.start_ns);
        Ok(())
    }
}
