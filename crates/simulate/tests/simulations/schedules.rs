//! Random schedules that end, with parameters, by seed.

use std::collections::BTreeMap;

use machmeter_simulate::goal::{Builder, Goal, Require};
use machmeter_simulate::{ANY, Dialect, Line, Op, PER_PS, Params};
use machmeter_stats::random::Random;

/// Costs in whole ns, as the reference takes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) l: u64,
    pub(crate) o: u64,
    pub(crate) g: u64,
    pub(crate) per_byte: u64,
    pub(crate) cpu_per_byte: u64,
    pub(crate) eager_bytes: u64,
}

impl Costs {
    /// Few values, so that events tie.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xC057);
        let mut pick = |of: &[u64]| of[random.below(of.len())];
        Self {
            l: pick(&[0, 100, 2500]),
            o: pick(&[10, 100, 1500]),
            g: pick(&[6, 100, 1000, 3000]),
            per_byte: pick(&[0, 1, 6]),
            cpu_per_byte: pick(&[0, 0, 1, 7]),
            eager_bytes: pick(&[999, 65_535]),
        }
    }

    pub(crate) fn params(&self, dialect: Dialect) -> Params {
        let cpu = Line { first_ps: self.o * 1000, per_byte: self.cpu_per_byte * 1000 * PER_PS };
        let gap = Line { first_ps: self.g * 1000, per_byte: self.per_byte * 1000 * PER_PS };
        Params::simple(cpu, gap, self.l * 1000, self.eager_bytes, dialect)
    }
}

/// A schedule in which every operation requires earlier ones alone. Messages of one sender, receiver and tag have one class of
/// sizes and begin in order on both sides, so that each receive meets its own. Every fifth seed has one receiver that takes any;
/// every third has ranks of several CPUs and interfaces.
pub(crate) fn schedule(seed: u64) -> Goal {
    let mut random = Random::new(seed);
    let ranks = 2 + random.below(11);
    let takes_any = seed.is_multiple_of(5);
    let several = seed.is_multiple_of(3);
    let messages = 5 + random.below(if seed.is_multiple_of(7) { 400 } else { 60 });
    // Per rank: (operation, requirements); built rank by rank in the end.
    let mut ops: Vec<Vec<WithRequirements>> = (0..ranks).map(|_| Vec::new()).collect();
    // Last send and receive of the messages between two ranks with one tag.
    let mut keys: BTreeMap<(usize, usize, u32), [Option<u32>; 2]> = BTreeMap::new();
    for _ in 0..messages {
        let to = if takes_any { 0 } else { random.below(ranks) };
        let from = (to + 1 + random.below(ranks - 1)) % ranks;
        let class = if takes_any { 0 } else { random.below(4) as u32 };
        let sizes: [&[u64]; 4] = [&[0, 1, 2], &[8, 600], &[1000, 3000], &[70_000, 100_000]];
        let bytes = sizes[class as usize][random.below(sizes[class as usize].len())];
        let tag = if takes_any && seed.is_multiple_of(10) { 0 } else { class * 2 + random.below(2) as u32 };
        for rank in [from, to] {
            if random.below(3) == 0 {
                let ns = [0, 1, 100, 1600, 50_000][random.below(5)];
                let requires = requirements(&mut random, ops[rank].len(), None);
                let cpu = random.below(if several { 3 } else { 1 }) as u8;
                ops[rank].push((Op { cpu, ..Op::calculate(ns) }, requires));
            }
        }
        // Messages of a key stay in order on one CPU and interface.
        let (cpu, nic) = if several { ((tag % 3) as u8, (class % 2) as u8) } else { (0, 0) };
        let [send, receive] = keys.entry((from, to, tag)).or_default();
        let requires = requirements(&mut random, ops[from].len(), *send);
        *send = Some(ops[from].len() as u32);
        ops[from].push((Op { cpu, nic, ..Op::send(to as u32, bytes, tag) }, requires));
        let requires = requirements(&mut random, ops[to].len(), *receive);
        *receive = Some(ops[to].len() as u32);
        let (source, tag) = if takes_any {
            (if seed.is_multiple_of(10) { from as u32 } else { ANY }, ANY)
        } else {
            (from as u32, tag)
        };
        ops[to].push((Op { cpu, nic, ..Op::receive(source, bytes, tag) }, requires));
    }
    build(ops, takes_any)
}

/// Calculations are ns.
type WithRequirements = (Op, Vec<(u32, Require)>);

fn requirements(random: &mut Random, earlier: usize, same_key: Option<u32>) -> Vec<(u32, Require)> {
    let mut all: Vec<(u32, Require)> = same_key.map(|op| (op, Require::Start)).into_iter().collect();
    for _ in 0..random.below(3).min(earlier) {
        let back = 1 + random.below(earlier.min(6));
        let what = if random.below(3) == 0 { Require::Start } else { Require::End };
        let op = (earlier - back) as u32;
        if !all.contains(&(op, what)) {
            all.push((op, what));
        }
    }
    all
}

fn build(ops: Vec<Vec<WithRequirements>>, takes_any: bool) -> Goal {
    let mut builder = Builder::default();
    for (rank, all) in ops.into_iter().enumerate() {
        for (op, requires) in all {
            let op = builder.add(op);
            for (required, what) in requires {
                // A receiver of any must not keep a message of one sender from the receive that needs it.
                if !(takes_any && rank == 0 && what == Require::End) {
                    builder.require(op, required, what);
                }
            }
        }
        assert!(builder.end_rank().is_ok(), "requirements go back");
    }
    builder.build()
}

/// FNV-1a of the ends of all ranks, ns.
pub(crate) fn hash(ends_ps: &[u64]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for byte in ends_ps.iter().flat_map(|ps| (ps / 1000).to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    hash
}

/// Gaps of the comparisons with noise: start and duration, ns.
pub(crate) fn gaps_ns() -> Vec<(u64, u64)> {
    let mut random = Random::new(99);
    (0..3000)
        .map(|i| (i * 100_000 + 1000 + random.below(50_000) as u64, 100 + random.below(9000) as u64))
        .collect()
}
