//! A visit of one operation in one model: two members, of whom the leader times batches. The team lives for the visit only; all
//! it finds it leaves in shared memory, since a forked leader's own memory ends with it.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::calibration::{self, Tried};
use machmeter_engine::cost::Pair;
use machmeter_engine::sampling::{HostTiming, Timing};
use machmeter_engine::team::heap::Heap;
use machmeter_engine::team::{Arena, Member, Seats, Team};
use machmeter_stats::random::Random;
use machmeter_sys::clock::{SourceId, TickRate};
use machmeter_sys::thread::{Usage, monotonic_ns};

use super::operations::{Operation, Places, buffer, layout};

/// Pairs of a visit at most.
const PAIRS_MAX: usize = 200;
/// Words on the heap before the pairs: turns, pairs, preempted.
const HEAD_WORDS: usize = 3;
/// Cells: what the leader orders, what the follower answers, three for the operation.
const CELLS: usize = 8;
/// The order that ends the visit.
const END: u64 = u64::MAX;

/// What to do.
#[derive(Clone, Copy)]
pub(super) struct Visit<'v> {
    pub(super) operation: Operation,
    pub(super) team: &'v dyn Team,
    pub(super) seats: &'v Seats,
    pub(super) source: SourceId,
    pub(super) rate: TickRate,
    /// Length of the short batch, ns.
    pub(super) batch_ns: f64,
    /// Turns of the short batch; 0: to be found.
    pub(super) short_turns: u64,
    /// Time for pairs, ns.
    pub(super) pairs_ns: u64,
    /// When it must have ended, ns from its start.
    pub(super) limit_ns: u64,
    pub(super) seed: u64,
}

/// One pair of batches: when (monotonic ns), ticks of the short and the long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken(u64, u64, u64);

impl Taken {
    /// As a sample of a row whose times count from `start_ns`, beside a look at the placement (0: nobody looked).
    pub(super) fn pair(&self, start_ns: u64, regime_ns: f64) -> Pair {
        Pair {
            at_ns: self.0.saturating_sub(start_ns) as f64,
            short_ticks: self.1,
            long_ticks: self.2,
            regime_ns,
            ..Pair::default()
        }
    }
}

/// What a visit found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Found {
    pub(super) short_turns: u64,
    pub(super) pairs: Vec<Taken>,
    pub(super) preempted: u64,
}

/// Memory of a visit.
struct Desk<'a> {
    order: &'a AtomicU64,
    turns: &'a AtomicU64,
    ready: &'a AtomicU64,
    done: &'a AtomicU64,
    switches: &'a AtomicU64,
    places: Places<'a>,
    /// Head and pairs.
    out: &'a [AtomicU64],
}

impl<'a> Desk<'a> {
    fn on(arena: &'a Arena) -> Option<Self> {
        let (mut layout, taken) = layout();
        let out = layout.take(HEAD_WORDS + 3 * PAIRS_MAX);
        let heap = Heap::new(arena, layout, 2)?;
        let cell = |i| arena.cell(i);
        Some(Self {
            order: cell(0)?,
            turns: cell(1)?,
            ready: cell(2)?,
            done: cell(3)?,
            switches: cell(4)?,
            places: Places::new(heap, taken, [cell(5)?, cell(6)?, cell(7)?]),
            out: heap.at(0, out),
        })
    }
}

fn heap_bytes() -> usize {
    let (mut layout, _) = layout();
    layout.take(HEAD_WORDS + 3 * PAIRS_MAX);
    layout.heap_bytes(2)
}

impl Visit<'_> {
    /// Makes the visit.
    ///
    /// # Errors
    /// One line: the team could not be started, lost a member, or found no time to begin.
    pub(super) fn make(&self) -> Result<Found, String> {
        let arena = Arena::new(CELLS, heap_bytes()).map_err(|e| e.to_string())?;
        let desk = Desk::on(&arena).ok_or("the heap is too small")?;
        let work = |m: &Member<'_>| if m.rank == 0 { self.lead(&desk, m) } else { self.follow(&desk, m) };
        self.team.run(self.seats, self.limit_ns, &work).map_err(|e| e.to_string())?;
        let word = |i: usize| desk.out.get(i).map_or(0, |w| w.load(Ordering::Acquire));
        let pair = |i: usize| {
            Taken(word(HEAD_WORDS + 3 * i), word(HEAD_WORDS + 3 * i + 1), word(HEAD_WORDS + 3 * i + 2))
        };
        let n = (word(1) as usize).min(PAIRS_MAX);
        Ok(Found { short_turns: word(0), pairs: (0..n).map(pair).collect(), preempted: word(2) })
    }

    fn follow(&self, desk: &Desk<'_>, m: &Member<'_>) {
        for batch in 1.. {
            if !m.wait(|| desk.order.load(Ordering::Acquire) >= batch)
                || desk.order.load(Ordering::Acquire) == END
            {
                return;
            }
            let turns = desk.turns.load(Ordering::Relaxed);
            desk.places.prepare(self.operation);
            desk.ready.store(batch, Ordering::Release);
            if !desk.places.follow(self.operation, turns, m) {
                return;
            }
            desk.switches.store(Usage::of_current_thread().involuntary_switches, Ordering::Relaxed);
            desk.done.store(batch, Ordering::Release);
        }
    }

    fn lead(&self, desk: &Desk<'_>, m: &Member<'_>) {
        let mut leader = Leader {
            visit: self,
            desk,
            member: m,
            timing: HostTiming::new(self.source),
            buffer: buffer(),
            batches: 0,
        };
        // None: the deadline came; what is there stands.
        let _ = leader.take_pairs();
        desk.order.store(END, Ordering::Release);
    }
}

struct Leader<'a> {
    visit: &'a Visit<'a>,
    desk: &'a Desk<'a>,
    member: &'a Member<'a>,
    timing: HostTiming,
    buffer: Vec<u64>,
    batches: u64,
}

impl Leader<'_> {
    /// Ticks of one batch.
    fn batch(&mut self, turns: u64) -> Option<u64> {
        self.batches += 1;
        let Self { desk, member, batches, .. } = *self;
        desk.turns.store(turns, Ordering::Relaxed);
        desk.order.store(batches, Ordering::Release);
        if !member.wait(|| desk.ready.load(Ordering::Acquire) >= batches) {
            return None;
        }
        let mut whole = false;
        let (operation, buffer) = (self.visit.operation, &mut self.buffer);
        let ticks = self.timing.time(&mut || whole = desk.places.lead(operation, turns, buffer, member));
        let done = whole && member.wait(|| desk.done.load(Ordering::Acquire) >= batches);
        done.then_some(ticks)
    }

    /// Turns of which a batch takes about as long as it should.
    fn find_turns(&mut self) -> Option<u64> {
        let visit = self.visit;
        calibration::turns_for(visit.batch_ns, 1, |turns| Some(Tried::of(visit.rate.ns(self.batch(turns)?))))
    }

    /// Involuntary switches of both so far. Members that share a CPU are switched on purpose, which the kernel counts alike.
    fn switches(&self) -> u64 {
        if self.visit.seats.cpus.windows(2).any(|two| two[0] == two[1]) {
            return 0;
        }
        Usage::of_current_thread().involuntary_switches + self.desk.switches.load(Ordering::Relaxed)
    }

    fn take_pairs(&mut self) -> Option<()> {
        let known = Some(self.visit.short_turns).filter(|turns| *turns > 0);
        let short = match self.visit.operation.fixed_turns().or(known) {
            Some(turns) => turns,
            None => self.find_turns()?,
        };
        let [turns, count, preempted, pairs @ ..] = self.desk.out else { return None };
        turns.store(short, Ordering::Release);
        // Warms what is new in this visit, and brings the follower's count of switches up to date.
        self.batch(short)?;
        let mut random = Random::new(self.visit.seed);
        let until_ns = monotonic_ns().saturating_add(self.visit.pairs_ns);
        let mut taken = 0;
        while taken < PAIRS_MAX && monotonic_ns() < until_ns {
            let at_ns = monotonic_ns();
            let before = self.switches();
            // In either order equally often, so that what changes over a pair favors neither.
            let (short_ticks, long_ticks) = if random.unit() < 0.5 {
                let long = self.batch(2 * short)?;
                (self.batch(short)?, long)
            } else {
                (self.batch(short)?, self.batch(2 * short)?)
            };
            if self.switches() != before {
                preempted.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            for (word, value) in pairs.iter().skip(3 * taken).zip([at_ns, short_ticks, long_ticks]) {
                word.store(value, Ordering::Relaxed);
            }
            taken += 1;
            count.store(taken as u64, Ordering::Release);
        }
        Some(())
    }
}
