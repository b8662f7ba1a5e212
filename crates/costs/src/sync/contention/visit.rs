//! A visit: a team of which every member repeats one operation until the first has its batches. A batch counts only if each
//! partner made progress beside it, seen by counters on lines of their own.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::Rejected;
use machmeter_engine::sampling::{HostTiming, Timing};
use machmeter_engine::team::{Arena, Member, Seats, Team};
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};
use machmeter_sys::thread::{self, Usage};

use super::operations::Operation;

/// Progress of a partner over one's own, within which the two are taken to have worked at once.
pub(super) const OVERLAP: (f64, f64) = (0.2, 5.0);

/// Cells: arrivals, the order to stop; then the progress of each member.
const ARRIVALS: usize = 0;
const STOP: usize = 1;
const FIRST: usize = 2;
/// Words of a batch in the results: ticks, own chunks, least and most chunks of any member, moment,
/// width of the core (bits of a number).
const BATCH_WORDS: usize = 6;
/// Written in place of ticks.
const SWITCHED: u64 = u64::MAX;

/// Members at most.
pub(super) const MEMBERS_MAX: usize = 256;
/// Reads of the clock in a batch, about, and chunks between two of them at most.
const LOOKS: u64 = 4;
const PER_LOOK_MAX: u64 = 64;
/// Chunks of a batch at least, so that the progress of partners can be compared.
const CHUNKS_MIN: u64 = 8;

/// What to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The operation.
    pub(super) operation: Operation,
    /// Bytes from one member's word to the next member's; 0 for one word.
    pub(super) distance_bytes: usize,
    /// Batches.
    pub(super) batches: usize,
    /// Length of a batch, ticks.
    pub(super) batch_ticks: u64,
    /// Everything ends by then, ns.
    pub(super) limit_ns: u64,
}

/// One batch in which every member worked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// When it began, monotonic ns.
    pub(super) at_ns: u64,
    /// Its length, ticks.
    pub(super) ticks: u64,
    /// Chunks of the measuring member.
    pub(super) chunks: u64,
    /// Chunks of the slowest member over chunks of the fastest.
    pub(super) fairness: f64,
    /// Width of the core around it at least, where one member is alone; 0 where several are.
    pub(super) core_width: f64,
}

/// Visits. Undisturbed batches, and the others by the reason.
///
/// # Errors
/// One line: no memory, no member, a member that did not stay.
pub(super) fn visit(
    team: &dyn Team,
    source: SourceId,
    seats: &Seats,
    plan: &Plan,
) -> Result<(Vec<Sample>, Rejected), String> {
    let members = seats.cpus.len();
    let words_bytes = 4_096 + members * plan.distance_bytes.max(8);
    let bytes = words_bytes.next_multiple_of(4_096) + plan.batches * BATCH_WORDS * 8;
    let arena = Arena::new(FIRST + members, bytes).map_err(|e| e.to_string())?;
    let (words, results) = arena.heap().atomics().split_at(words_bytes.next_multiple_of(4_096) / 8);
    let (Some(arrivals), Some(stop)) = (arena.cell(ARRIVALS), arena.cell(STOP)) else {
        return Err("the shared memory has no cells".to_owned());
    };
    let progress: Vec<&AtomicU64> = (0..members).filter_map(|rank| arena.cell(FIRST + rank)).collect();
    // Several cores would need one width each.
    let timing = (members == 1).then(|| HostTiming::new(source));
    let work = |member: &Member<'_>| {
        let (Some(word), Some(own)) =
            (words.get(member.rank * plan.distance_bytes / 8), progress.get(member.rank).copied())
        else {
            return;
        };
        for result in results.iter().filter(|_| member.rank == 0) {
            result.store(0, Ordering::Relaxed);
        }
        word.store(0, Ordering::Relaxed);
        own.store(0, Ordering::Relaxed);
        if !member.meet(arrivals, 0) {
            return;
        }
        let side = Side { plan, word, own, stop, progress: &progress, member };
        if member.rank == 0 {
            for batch in results.chunks_exact(BATCH_WORDS).take(plan.batches) {
                let _ = dispatch(source, Batch { side: &side, timing, results: batch });
            }
            stop.store(1, Ordering::Release);
        } else {
            side.work_until_stopped();
        }
    };
    let attended = team.run(seats, plan.limit_ns, &work).map_err(|e| e.to_string())?;
    if attended.iter().any(|a| !a.stayed) {
        return Err("a member was moved to another CPU".to_owned());
    }
    let read =
        |b: &[AtomicU64]| -> [u64; BATCH_WORDS] { std::array::from_fn(|i| b[i].load(Ordering::Acquire)) };
    Ok(judge(results.chunks_exact(BATCH_WORDS).take(plan.batches).map(read)))
}

/// Keeps the batches that nothing disturbed and in which every member took part.
pub(super) fn judge(batches: impl Iterator<Item = [u64; BATCH_WORDS]>) -> (Vec<Sample>, Rejected) {
    let mut rejected = Rejected::default();
    let mut samples = Vec::new();
    for [ticks, chunks, least, most, at_ns, width] in batches.filter(|b| b[0] != 0) {
        let (own, low, high) = (chunks.max(1) as f64, least as f64, most as f64);
        if ticks == SWITCHED {
            rejected.preempted += 1;
        } else if chunks == 0 || low < OVERLAP.0 * own || high > OVERLAP.1 * own {
            rejected.partner += 1;
        } else {
            samples.push(Sample {
                at_ns,
                ticks,
                chunks,
                fairness: low / high,
                core_width: f64::from_bits(width),
            });
        }
    }
    (samples, rejected)
}

struct Side<'a> {
    plan: &'a Plan,
    word: &'a AtomicU64,
    own: &'a AtomicU64,
    stop: &'a AtomicU64,
    progress: &'a [&'a AtomicU64],
    member: &'a Member<'a>,
}

impl Side<'_> {
    fn work_until_stopped(&self) {
        let mut chunks = 0_u64;
        while self.stop.load(Ordering::Relaxed) == 0 {
            self.plan.operation.chunk(self.word);
            chunks += 1;
            self.own.store(chunks, Ordering::Relaxed);
            if chunks.is_multiple_of(64) && thread::monotonic_ns() >= self.member.deadline_ns {
                return;
            }
        }
    }

    fn progress(&self, into: &mut [u64]) {
        for (to, cell) in into.iter_mut().zip(self.progress) {
            *to = cell.load(Ordering::Relaxed);
        }
    }
}

struct Batch<'a> {
    side: &'a Side<'a>,
    timing: Option<HostTiming>,
    results: &'a [AtomicU64],
}

impl WithSource for Batch<'_> {
    type Output = ();

    #[inline(never)]
    fn run<S: TickSource>(self) {
        let side = self.side;
        let at_ns = thread::monotonic_ns();
        if at_ns >= side.member.deadline_ns {
            return;
        }
        let operation = side.plan.operation;
        let width = || self.timing.map_or(0.0, |mut t| t.core_width());
        let width_before = width();
        // Warms the word, and tells how many chunks fit between two reads of the clock.
        let start = S::now();
        operation.chunk(side.word);
        let chunk_ticks = S::now().saturating_sub(start).max(1);
        let per_look = (side.plan.batch_ticks / LOOKS / chunk_ticks).clamp(1, PER_LOOK_MAX);
        let (mut before, mut after) = ([0; MEMBERS_MAX], [0; MEMBERS_MAX]);
        let switches = Usage::of_current_thread().switches();
        let mut chunks = 0_u64;
        side.progress(&mut before);
        let start = S::now();
        let ticks = loop {
            for _ in 0..per_look {
                operation.chunk(side.word);
            }
            chunks += per_look;
            let ticks = S::now().saturating_sub(start);
            if ticks >= side.plan.batch_ticks && chunks >= CHUNKS_MIN {
                break ticks;
            }
        };
        side.progress(&mut after);
        let switched = Usage::of_current_thread().switches() != switches;
        let others = (1..side.progress.len().min(MEMBERS_MAX)).map(|i| after[i].saturating_sub(before[i]));
        let least = others.clone().min().unwrap_or(chunks).min(chunks);
        let most = others.max().unwrap_or(chunks).max(chunks);
        let width = width_before.min(width());
        let ticks = if switched { SWITCHED } else { ticks.max(1) };
        for (word, value) in self.results.iter().zip([ticks, chunks, least, most, at_ns, width.to_bits()]) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
