//! Ranks on virtual clocks, with planted costs of every step: the scripts, cells, sampler and analysis are the real ones. What waits
//! for what is played out, so that a script whose ranks wait for each other for ever is an error.

mod cast;

use machmeter_engine::sampling::Mark;
use machmeter_stats::random::Random;

use crate::operations::Collective;
use crate::pairing::Pairing;
use crate::stage::{Play, Stage, Stamp, Windows};
use cast::{Cast, Rank};

/// Planted times, ns.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "units")]
pub(crate) struct Planted {
    pub(crate) send_ns: f64,
    pub(crate) recv_ns: f64,
    pub(crate) post_ns: f64,
    pub(crate) wait_ns: f64,
    pub(crate) latency_ns: f64,
    pub(crate) put_ns: f64,
    pub(crate) flush_ns: f64,
    /// Of a stamp: half of it before the moment it says, half after.
    pub(crate) stamp_ns: f64,
    /// Of a send, a receive, a put and on the way.
    pub(crate) per_byte_ns: f64,
    /// Messages longer than this wait for their receive.
    pub(crate) inline_bytes: u64,
    pub(crate) eager_bytes: u64,
    /// Of the way from a rank to another, as a multiple of the others.
    pub(crate) link: fn(usize, usize) -> f64,
    /// A collective operation: ns by ranks and bytes.
    pub(crate) collective: fn(Collective, f64, f64) -> f64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    /// Relative, of every batch.
    pub(crate) base: f64,
    /// Share of the batches and windows that take up to as long again.
    pub(crate) spikes: f64,
    /// Share of the batches in which a rank loses its CPU for 4 ms, and of the windows to which it comes late.
    pub(crate) preempted: f64,
    /// Share of every half second in which the ranks are apart: everything takes twice as long.
    pub(crate) apart: f64,
}

const PREEMPTED_NS: f64 = 4e6;
/// The ranks move together and apart with this period, ns.
const MOVE_NS: f64 = 5e8;
pub(crate) const STEP_NS: u64 = 10;
const ORDER_NS: f64 = 700.0;

pub(crate) struct Simulated {
    planted: Planted,
    noise: Noise,
    ranks: usize,
    now_ns: f64,
    random: Random,
    switches: u64,
    others_disturbed: bool,
}

impl Simulated {
    pub(crate) fn new(planted: Planted, noise: Noise, ranks: usize, seed: u64) -> Self {
        let random = Random::new(seed);
        Self { planted, noise, ranks, now_ns: 1.0, random, switches: 0, others_disturbed: false }
    }

    fn factor(&mut self) -> f64 {
        let spike = if self.random.unit() < self.noise.spikes { self.random.unit() } else { 0.0 };
        let apart = if (self.now_ns / MOVE_NS).fract() < self.noise.apart { 2.0 } else { 1.0 };
        self.jitter() * (1.0 + spike) * apart
    }

    fn jitter(&mut self) -> f64 {
        (1.0 + self.noise.base * self.random.normal()).max(0.5)
    }

    fn played(&self, play: &Play, turns: u64, is_isolated: bool) -> Result<Vec<Rank>, String> {
        if play.ranks < 2 || play.ranks > self.ranks {
            return Err(format!("{} of {} ranks", play.ranks, self.ranks));
        }
        Cast::new(&self.planted, play, [0, 1], is_isolated).play(turns)
    }

    /// What the ranks of pairs, or all, stamp in a window by themselves.
    fn stamped(&self, play: &Play) -> Result<Vec<Rank>, String> {
        if play.pairing == Pairing::Script {
            return self.played(play, 1, true);
        }
        let mut all = vec![Rank::default(); play.ranks];
        for pair in play.pairing.pairs(play.ranks) {
            let both = Play { ranks: 2, ..*play };
            let cast = Cast::new(&self.planted, &both, pair, true);
            for (rank, played) in pair.into_iter().zip(cast.play(1)?) {
                all[rank] = played;
            }
        }
        Ok(all)
    }
}

impl Stage for Simulated {
    fn back_to_back(&mut self, play: &Play, turns: u64) -> Result<u64, String> {
        let root = self.played(play, turns, false)?.swap_remove(0);
        let mut took_ns = (root.end_ns - root.begin_ns - root.beside_ns) * self.factor();
        if self.random.unit() < self.noise.preempted {
            took_ns += PREEMPTED_NS;
            if self.random.unit() < 0.5 { self.switches += 1 } else { self.others_disturbed = true }
        }
        self.now_ns += ORDER_NS + root.now_ns.max(took_ns);
        Ok((took_ns / STEP_NS as f64).round() as u64 * STEP_NS)
    }

    fn isolated(&mut self, play: &Play, windows: Windows) -> Result<Vec<Vec<Stamp>>, String> {
        let ranks = self.stamped(play)?;
        let of_cost = if play.operation.is_collective { play.ranks } else { 1 };
        // Ranks are made ready before the agreed moment.
        let begin_ns = ranks.iter().take(of_cost).map(|r| r.begin_ns).fold(0.0, f64::max);
        let mut late_ns = 0.0_f64;
        let mut played = Vec::new();
        for _ in 0..windows.count {
            late_ns = (late_ns - windows.period_ns as f64).max(0.0);
            if self.random.unit() < self.noise.preempted {
                late_ns = PREEMPTED_NS;
            }
            let factor = self.factor();
            let mut of = |r: &Rank| {
                let own = if play.pairing == Pairing::Script { 1.0 } else { self.jitter() };
                if r.end_ns > 0.0 { (r.end_ns - r.beside_ns - begin_ns) * factor * own } else { 0.0 }
            };
            let took_ns: Vec<f64> = ranks.iter().map(&mut of).collect();
            let longest_ns = took_ns.iter().copied().fold(0.0, f64::max);
            // What does not fit its window was late, too.
            let fits = longest_ns + ORDER_NS < windows.period_ns as f64;
            let begin = if fits { late_ns } else { PREEMPTED_NS } as i64;
            let end = |ns: &f64| begin + (ns / STEP_NS as f64).round() as i64 * STEP_NS as i64;
            played.push(took_ns.iter().map(|ns| Stamp { begin, end: end(ns), off: 0 }).collect());
        }
        self.now_ns += windows.period_ns as f64 * f64::from(windows.count) + ORDER_NS;
        Ok(played)
    }

    fn others_disturbed(&mut self) -> Result<bool, String> {
        Ok(std::mem::take(&mut self.others_disturbed))
    }

    fn mark(&self) -> Mark {
        Mark { involuntary_switches: self.switches, ..Mark::default() }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns as u64
    }

    fn ticks(&self) -> u64 {
        self.now_ns as u64
    }
}
