//! What the time of a replay is made of: a run whose CPUs are observed, and the critical path through it.

use std::collections::BTreeMap;

use machmeter_data::trace::OPERATIONS;

use crate::engine::{SimulateError, Time as _, Traced, run};
use crate::noise::Noise;
use crate::params::Params;
use crate::program::{Moment, Program};

use super::expand::{CALCULATION, Replay};

/// Something that a CPU did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub rank: u32,
    pub cpu: u8,
    /// Whether a message was taken in; the operation is the sender's then.
    pub takes: bool,
    pub op: u32,
    pub begin_ps: u64,
    pub end_ps: u64,
    /// The work before it on the critical path to it; 0 without one.
    pub before: u32,
}

/// Noise, with what CPUs do beside it and what it takes from each rank.
#[derive(Debug)]
pub struct Observed<'a, N> {
    noise: &'a mut N,
    /// Works in the order in which they begin on each CPU; the first is none.
    pub works: Vec<Work>,
    taken_ps: Vec<u64>,
}

impl<'a, N: Noise> Observed<'a, N> {
    /// Before a run of so many ranks.
    pub fn new(noise: &'a mut N, ranks: u32) -> Self {
        let none = Work { rank: 0, cpu: 0, takes: false, op: 0, begin_ps: 0, end_ps: 0, before: 0 };
        Self { noise, works: vec![none], taken_ps: vec![0; ranks as usize] }
    }
}

impl<N: Noise> Noise for Observed<'_, N> {
    fn stolen_ps(&mut self, rank: u32, cpu: u8, at_ps: u64, work_ps: u64) -> u64 {
        let stolen = self.noise.stolen_ps(rank, cpu, at_ps, work_ps);
        self.taken_ps[rank as usize] += stolen;
        stolen
    }

    fn observe(&mut self, moment: Moment, rank: u32, cpu: u8, op: u32, at_ps: u64, work: u32) -> u32 {
        if moment == Moment::End {
            self.works[work as usize].end_ps = at_ps;
            return work;
        }
        let takes = moment == Moment::Take;
        self.works.push(Work { rank, cpu, takes, op, begin_ps: at_ps, end_ps: at_ps, before: work });
        (self.works.len() - 1) as u32
    }
}

/// What the time of a rank is made of, ps; the sum is the time of the whole for each of its threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfRank {
    pub end_ps: u64,
    pub compute_ps: u64,
    /// Messages and collectives: of its CPU, and under way when it waits for them.
    pub messages_ps: u64,
    /// While the one that it waits for was still busy, and after its end.
    pub waiting_ps: u64,
    pub noise_ps: u64,
    /// On the critical path: its work, and what it sent under way.
    pub path_ps: u64,
}

/// What a replay's time is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// End of the last rank, with its gradient.
    pub end: Traced,
    pub ranks: Vec<OfRank>,
    /// Operations on the critical path but calculation: name, how many, and for how long, ps; the longest first.
    pub path: Vec<(&'static str, u64, u64)>,
}

/// Runs a replay once, and splits its time.
pub fn split<N: Noise>(
    replay: &Replay,
    prices_ps: &[u64],
    params: &Params,
    noise: &mut N,
    stop: &dyn Fn() -> bool,
) -> Result<Split, SimulateError> {
    let mut program = replay.running(prices_ps);
    let mut observed = Observed::new(noise, replay.ranks());
    let done = run::<Traced, _, _>(&mut program, params, &mut observed, stop)?;
    let (_, end) = done.last();
    let of_rank = |(rank, end): (usize, &Traced)| OfRank {
        end_ps: end.ps(),
        compute_ps: replay.calculation_ps[rank],
        noise_ps: observed.taken_ps[rank],
        ..OfRank::default()
    };
    let mut all: Vec<OfRank> = done.ends.iter().enumerate().map(of_rank).collect();
    wait(&observed.works, program.cpus().into(), end.ps(), &mut all);
    let path = follow(replay, &observed.works, end, &mut all);
    Ok(Split { end, ranks: all, path })
}

/// Between two works a CPU waits until the one that leads to the second is over, where that is of another CPU; then for its message.
fn wait(works: &[Work], cpus: usize, end_ps: u64, ranks: &mut [OfRank]) {
    let lane = |w: &Work| w.rank as usize * cpus + usize::from(w.cpu);
    let mut free: Vec<Option<u64>> = vec![None; ranks.len() * cpus];
    for w in &works[1..] {
        let free_ps = free[lane(w)].replace(w.end_ps).unwrap_or(0);
        let before = &works[w.before as usize];
        if w.before != 0 && lane(before) != lane(w) {
            ranks[w.rank as usize].waiting_ps += before.end_ps.min(w.begin_ps).saturating_sub(free_ps);
        }
    }
    for (rank, of) in ranks.iter_mut().enumerate() {
        let own = &free[rank * cpus..(rank + 1) * cpus];
        // A rank that does nothing waits for the end.
        let lanes = own.iter().flatten().count().max(1) as u64;
        let busy: u64 = own.iter().flatten().sum();
        let all_ps = end_ps.saturating_mul(lanes);
        of.waiting_ps += all_ps - busy;
        of.waiting_ps = of.waiting_ps.min(all_ps.saturating_sub(of.compute_ps + of.noise_ps));
        of.messages_ps = all_ps.saturating_sub(of.compute_ps + of.noise_ps + of.waiting_ps);
    }
}

/// The critical path back from the end.
fn follow(
    replay: &Replay,
    works: &[Work],
    end: Traced,
    ranks: &mut [OfRank],
) -> Vec<(&'static str, u64, u64)> {
    let mut by_name: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    let (mut at, mut until_ps) = (end.work(), end.ps());
    while at != 0 {
        let w = &works[at as usize];
        let ps = until_ps - w.begin_ps;
        ranks[w.rank as usize].path_ps += ps;
        let origin = replay.goal.first_node(w.rank) + w.op as usize;
        let origin = if w.takes { CALCULATION } else { replay.origins[origin] };
        if let Some(o) = OPERATIONS.get(usize::from(origin)) {
            let own = by_name.entry(o.name).or_default();
            *own = (own.0 + 1, own.1 + ps);
        }
        (at, until_ps) = (w.before, w.begin_ps);
    }
    let mut path: Vec<_> = by_name.into_iter().map(|(name, (count, ps))| (name, count, ps)).collect();
    path.sort_by_key(|(name, _, ps)| (std::cmp::Reverse(*ps), *name));
    path
}
