//! Random programs of messages and reductions, and their schedules.

use machmeter_simulate::goal::{Builder, Goal, Require};
use machmeter_simulate::patterns::{Shape, find};
use machmeter_simulate::{Op, Verb};
use machmeter_stats::random::Random;

/// What a rank does; messages by number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Do {
    Compute(u64),
    Send { to: u32, bytes: u64, tag: u32, blocks: bool },
    Receive { from: u32, tag: u32, blocks: bool },
    Waitall,
    Allreduce(u64),
}

/// Ranks that take part in one thing after the other, so that none waits for ever.
pub(crate) fn program(seed: u64) -> Vec<Vec<Do>> {
    let mut random = Random::new(seed);
    let ranks = 2 + random.below(9);
    let is_small = seed.is_multiple_of(2);
    let mut all: Vec<Vec<Do>> = vec![Vec::new(); ranks];
    for number in 0..20 + random.below(120) as u32 {
        let rank = random.below(ranks);
        if random.below(2) == 0 {
            all[rank].push(Do::Compute(1 + random.below(60_000) as u64));
        }
        match random.below(12) {
            0 => all[rank].push(Do::Waitall),
            1 => {
                let bytes = 8 << random.below(8);
                for own in &mut all {
                    own.push(Do::Allreduce(bytes));
                }
            }
            _ => {
                let to = (rank + 1 + random.below(ranks - 1)) % ranks;
                // Messages with one tag come in order where they are alike; others have tags of their own.
                let (bytes, tag) = if is_small {
                    (1 + random.below(8) as u64, random.below(3) as u32)
                } else {
                    ([1, 600, 3000, 70_000][random.below(4)], number)
                };
                let [send, receive] = [random.below(2) == 0, random.below(2) == 0];
                all[rank].push(Do::Send { to: to as u32, bytes, tag, blocks: send });
                all[to].push(Do::Receive { from: rank as u32, tag, blocks: receive });
            }
        }
    }
    for own in &mut all {
        own.push(Do::Waitall);
        if random.below(2) == 0 {
            own.push(Do::Compute(500));
        }
    }
    all
}

/// The schedule of a program, and for what each rank does the operation that its CPU works on.
pub(crate) fn schedule(program: &[Vec<Do>]) -> (Goal, Vec<Vec<Option<u32>>>) {
    let mut builder = Builder::default();
    let mut works = Vec::new();
    for (rank, all) in program.iter().enumerate() {
        let (mut front, mut requests, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for what in all {
            let mut add = |op, front: &[(u32, Require)]| {
                let op = builder.add(op);
                for (required, what) in front {
                    builder.require(op, *required, *what);
                }
                op
            };
            let (op, blocks, is_work) = match *what {
                Do::Compute(ns) => (Op::calculate(ns), true, true),
                Do::Send { to, bytes, tag, blocks } => (Op::send(to, bytes, tag), blocks, true),
                Do::Receive { from, tag, blocks } => (Op::receive(from, 0, tag), blocks, false),
                Do::Waitall => {
                    front.append(&mut requests);
                    own.push(None);
                    continue;
                }
                Do::Allreduce(bytes) => {
                    let pattern = (find("allreduce").unwrap().make)(Shape::of(program.len() as u32, bytes));
                    let mut first = None;
                    for step in 0..pattern.steps(rank as u32) {
                        let mut ends = Vec::new();
                        for op in pattern.operations(rank as u32, step) {
                            let id = add(Op { tag: 1 << 20 | op.tag, ..op }, &front);
                            first = first.or((op.verb == Verb::Send).then_some(id));
                            ends.push((id, Require::End));
                        }
                        front = if ends.is_empty() { front } else { ends };
                    }
                    own.push(first);
                    continue;
                }
            };
            let op = add(op, &front);
            front = vec![(op, if blocks { Require::End } else { Require::Start })];
            if !blocks {
                requests.push((op, Require::End));
            }
            own.push(is_work.then_some(op));
        }
        works.push(own);
        builder.end_rank().unwrap();
    }
    (builder.build(), works)
}
