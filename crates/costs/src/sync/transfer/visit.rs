//! A visit to a pair of CPUs: a team of two that measures batches of every kind, lap after lap. A batch counts only if
//! neither member was switched out in it; each looks at its own counter between batches, never inside one.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::Rejected;
use machmeter_engine::team::{Arena, Member, Seats, Team};
use machmeter_sys::clock::{SourceId, dispatch};
use machmeter_sys::thread::{self, Usage};

use super::trips::{Batch, Kind, Lines, WORDS, accompany};

/// Batches of a kind in a lap.
pub(super) const BATCHES: usize = 12;
/// Fewest clean batches of a lap that make a sample.
const FEWEST_CLEAN: usize = 3;
/// Quantile of a lap's clean batches that stands for it: the median of their lower half. What disturbs without a switch (a
/// host that takes the CPU, a neighbor on the core, an interrupt) only adds.
const LOWER: f64 = 0.25;

/// Cells: number of the lap that may begin, the partner's batches with its switches, arrivals.
const GO: usize = 0;
const PARTNER: usize = 1;
const ARRIVALS: usize = 2;
/// Told in place of a lap's number.
const END: u64 = u64::MAX;
/// Low bits of the partner's cell, which hold its switches.
const SWITCH_BITS: u32 = 24;

/// Written in place of ticks.
const OWN_SWITCH: u64 = u64::MAX;
const PARTNER_SWITCH: u64 = u64::MAX - 1;

/// What to do in a visit.
#[derive(Debug, Clone)]
pub(super) struct Plan<'k> {
    /// Kinds, in this order in each lap.
    pub(super) kinds: &'k [Kind],
    /// Laps at most.
    pub(super) laps: usize,
    /// No lap begins later than this after the start, ns.
    pub(super) laps_ns: u64,
    /// Everything ends by then, ns.
    pub(super) limit_ns: u64,
    /// Order of the lines that are read.
    pub(super) seed: u64,
}

/// One lap.
#[derive(Debug, Clone)]
pub(super) struct Lap {
    /// When it began, monotonic ns.
    pub(super) at_ns: u64,
    /// By kind, in the plan's order: ticks of a batch, and batches thrown away.
    pub(super) kinds: Vec<(Option<u64>, Rejected)>,
}

/// Visits the pair of `seats` (member 0 measures; pages come from its memory). Laps that were begun; empty when the partner
/// never came.
///
/// # Errors
/// One line: no memory, no member, a member that did not stay where it was put.
pub(super) fn visit(
    team: &dyn Team,
    source: SourceId,
    seats: &Seats,
    plan: &Plan<'_>,
) -> Result<Vec<Lap>, String> {
    let lap_words = 1 + plan.kinds.len() * BATCHES;
    let bytes = (WORDS + plan.laps * lap_words) * size_of::<u64>();
    let arena = Arena::new(3, bytes).map_err(|e| e.to_string())?;
    let heap = arena.heap().atomics();
    let (Some(go), Some(partner), Some(arrivals)) =
        (arena.cell(GO), arena.cell(PARTNER), arena.cell(ARRIVALS))
    else {
        return Err("the shared memory has no cells".to_owned());
    };
    if heap.len() * size_of::<u64>() < bytes {
        return Err("the shared memory is too small".to_owned());
    }
    let (lines, results) = heap.split_at(WORDS);
    let pair = Pair { go, partner, lines: Lines(lines), results, lap_words, source, plan };
    let work = |member: &Member<'_>| {
        if member.rank == 0 {
            pair.lines.prepare(plan.seed);
            for word in results {
                word.store(0, Ordering::Relaxed);
            }
        }
        if !member.meet(arrivals, 0) {
            return;
        }
        match member.rank {
            0 => {
                pair.measure(member);
                go.store(END, Ordering::Release);
            }
            1 => pair.partner(member),
            _ => {}
        }
    };
    let attended = team.run(seats, plan.limit_ns, &work).map_err(|e| e.to_string())?;
    if attended.iter().any(|a| !a.stayed) {
        return Err("a member was moved to another CPU".to_owned());
    }
    Ok(pair.laps())
}

struct Pair<'a> {
    go: &'a AtomicU64,
    partner: &'a AtomicU64,
    lines: Lines<'a>,
    results: &'a [AtomicU64],
    lap_words: usize,
    source: SourceId,
    plan: &'a Plan<'a>,
}

impl Pair<'_> {
    /// The measuring member. Ends early, leaving zeros, when the deadline comes.
    fn measure(&self, member: &Member<'_>) {
        let mut batch = 0;
        let start_ns = thread::monotonic_ns();
        for (number, lap) in self.results.chunks_exact(self.lap_words).take(self.plan.laps).enumerate() {
            let now_ns = thread::monotonic_ns();
            if number > 0 && now_ns.saturating_sub(start_ns) > self.plan.laps_ns {
                return;
            }
            lap[0].store(now_ns, Ordering::Relaxed);
            self.go.store(number as u64 + 1, Ordering::Release);
            for (kind, words) in self.plan.kinds.iter().zip(lap[1..].chunks_exact(BATCHES)) {
                for word in words {
                    let Some(found) = self.batch(*kind, batch, member) else { return };
                    word.store(found, Ordering::Relaxed);
                    batch += 1;
                }
            }
        }
    }

    fn batch(&self, kind: Kind, index: u64, member: &Member<'_>) -> Option<u64> {
        let partner_before = self.partner_after(index, member)?;
        let before = Usage::of_current_thread().switches();
        let batch = Batch { kind, index, lines: self.lines, member };
        let ticks = dispatch(self.source, batch).ok()??;
        let own = Usage::of_current_thread().switches() != before;
        let others = self.partner_after(index + 1, member)? != partner_before;
        Some(if own {
            OWN_SWITCH
        } else if others {
            PARTNER_SWITCH
        } else {
            ticks
        })
    }

    /// The partner's switches when it had done so many batches.
    fn partner_after(&self, batches: u64, member: &Member<'_>) -> Option<u64> {
        let mut told = 0;
        let came = member.wait(|| {
            told = self.partner.load(Ordering::Acquire);
            told >> SWITCH_BITS == batches + 1
        });
        came.then_some(told).map(|told| told & ((1 << SWITCH_BITS) - 1))
    }

    fn partner(&self, member: &Member<'_>) {
        let mut batch = 0_u64;
        let tell = |batches: u64| {
            let switches = Usage::of_current_thread().switches() & ((1 << SWITCH_BITS) - 1);
            self.partner.store(((batches + 1) << SWITCH_BITS) | switches, Ordering::Release);
        };
        tell(0);
        for lap in 1..=self.plan.laps as u64 {
            let mut told = 0;
            let may = member.wait(|| {
                told = self.go.load(Ordering::Acquire);
                told >= lap
            });
            if !may || told == END {
                return;
            }
            for kind in self.plan.kinds {
                for _ in 0..BATCHES {
                    if !accompany(*kind, batch, self.lines, member) {
                        return;
                    }
                    batch += 1;
                    tell(batch);
                }
            }
        }
    }

    fn laps(&self) -> Vec<Lap> {
        self.results
            .chunks_exact(self.lap_words)
            .take(self.plan.laps)
            .map(|lap| lap.iter().map(|w| w.load(Ordering::Acquire)).collect::<Vec<u64>>())
            .take_while(|lap| lap[0] != 0)
            .map(|lap| Lap { at_ns: lap[0], kinds: lap[1..].chunks_exact(BATCHES).map(condense).collect() })
            .collect()
    }
}

/// What a lap's batches of one kind say: the lower part of the clean ones, and those that are not clean.
pub(super) fn condense(batches: &[u64]) -> (Option<u64>, Rejected) {
    let count = |what: u64| batches.iter().filter(|b| **b == what).count() as u64;
    let rejected = Rejected { preempted: count(OWN_SWITCH) + count(PARTNER_SWITCH), ..Rejected::default() };
    let mut clean: Vec<u64> = batches.iter().copied().filter(|b| *b > 0 && *b < PARTNER_SWITCH).collect();
    clean.sort_unstable();
    let low = (clean.len() >= FEWEST_CLEAN).then(|| clean[(clean.len() as f64 * LOWER) as usize]);
    (low, rejected)
}
