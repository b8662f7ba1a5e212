//! Calls as a schedule: calculation between them, messages, and collectives either of a known cost or as messages of a pattern.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use machmeter_data::trace::OPERATIONS;

use crate::goal::{Builder, Gate, Goal, Require, Schedule};
use crate::patterns::{Pattern, PatternInfo};
use crate::program::Op;

use super::calls::{Call, Calls};
use super::matching::{Guesses, Matched, NONE, Step, matched};

/// Mark of the tags of messages of patterns; others are numbers of messages.
pub(super) const PATTERN_TAG: u32 = 1 << 31;
/// Origin of calculations between calls.
pub(super) const CALCULATION: u16 = u16::MAX;

/// What is changed on the way from the traced program to the predicted one.
#[derive(Debug, Clone)]
pub struct Options {
    /// Factor of all calculation.
    pub cpu_scale: f64,
    /// Factor of the bytes of messages and collectives.
    pub bytes_scale: f64,
    /// How often the ranks of the program are there.
    pub copies: u32,
    /// Operations of [`super::BASES`] that become messages.
    pub algorithms: BTreeMap<&'static str, &'static PatternInfo>,
    /// What calls become that have no cost, as those that make communicators; without it their ranks wait for each other.
    pub others: Option<&'static PatternInfo>,
}

impl Default for Options {
    fn default() -> Self {
        Self { cpu_scale: 1.0, bytes_scale: 1.0, copies: 1, algorithms: BTreeMap::new(), others: None }
    }
}

/// A collective operation whose cost is to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priced {
    /// As the mpi probe names it.
    pub operation: &'static str,
    pub ranks: u32,
    /// Bytes of a rank; of a pair of ranks in an all-to-all.
    pub bytes: u64,
}

/// A traced program, ready to run on any costs.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    pub(super) goal: Goal,
    pub(super) gates: Vec<Gate>,
    /// Index in [`OPERATIONS`] of what each operation comes from, or [`CALCULATION`]; all ranks.
    pub(super) origins: Vec<u16>,
    /// Collectives whose cost is to be known.
    pub priced: Vec<Priced>,
    /// Calculation of each rank, ps.
    pub calculation_ps: Vec<u64>,
    /// Largest message, bytes; of messages between two ranks and of patterns. `None` without messages.
    pub largest_bytes: Option<u64>,
    /// Calls that are not replayed, by name.
    pub left_out: BTreeMap<String, u64>,
    /// What was taken from the order of calls.
    pub guesses: Guesses,
    /// Collectives over all ranks that were rebuilt for more of them.
    pub rebuilt: u64,
}

impl Replay {
    pub fn ranks(&self) -> u32 {
        self.goal.ranks()
    }

    /// Names of the collectives whose cost is to be known.
    pub fn priced_operations(&self) -> Vec<&'static str> {
        let names: BTreeSet<&str> = self.priced.iter().map(|p| p.operation).collect();
        names.into_iter().collect()
    }

    /// Ready to run with costs of [`Replay::priced`], ps.
    pub fn running<'a>(&'a self, prices_ps: &'a [u64]) -> Schedule<'a> {
        Schedule::with_gates(&self.goal, 1, &self.gates, prices_ps)
    }

    /// Operations and messages.
    pub fn events(&self) -> u64 {
        self.goal.operations() + self.goal.messages()
    }
}

/// A request that is not done.
pub(super) enum Request {
    /// Operations, and the half of a message that tells when it can have been done.
    Operations(Front, u32),
    /// A collective that was entered.
    Group(u32),
}

/// Operations, and what of them is required.
pub(super) type Front = Vec<(u32, Require)>;

pub(super) struct Writer<'a> {
    pub(super) calls: &'a Calls,
    pub(super) matched: &'a Matched,
    pub(super) options: &'a Options,
    pub(super) builder: Builder,
    pub(super) replay: Replay,
    pub(super) prices: HashMap<Priced, u64>,
    pub(super) patterns: HashMap<(&'static str, u32, u64), Box<dyn Pattern>>,
    /// Rank and copy at hand, and CPU.
    pub(super) rank: u32,
    pub(super) copy: u32,
    pub(super) cpu: u8,
    /// Of the thread at hand: what its next operation requires, and what it has not waited for.
    pub(super) front: Front,
    pub(super) requests: VecDeque<Request>,
    /// Members of communicators by rank, as far as they were looked up.
    pub(super) index: HashMap<(u32, u32), u32>,
}

/// The program that calls make up.
pub fn replay(calls: &Calls, options: &Options) -> Result<Replay, String> {
    let matched = matched(calls);
    let gates = (matched.groups.len() as u64).saturating_mul(u64::from(options.copies));
    let numbers = gates.max(matched.halves.len() as u64);
    if numbers >= u64::from(PATTERN_TAG) {
        return Err(format!("{numbers} collective calls or messages, more than 2^31: trace a shorter run"));
    }
    let replay = Replay {
        gates: vec![Gate::default(); gates as usize],
        left_out: matched.left_out.clone(),
        guesses: matched.guesses,
        ..Replay::default()
    };
    let mut writer = Writer {
        calls,
        matched: &matched,
        options,
        builder: Builder::default(),
        replay,
        prices: HashMap::new(),
        patterns: HashMap::new(),
        rank: 0,
        copy: 0,
        cpu: 0,
        front: Front::new(),
        requests: VecDeque::new(),
        index: HashMap::new(),
    };
    for (communicator, members) in &calls.members {
        let of = |(index, rank): (usize, &u32)| ((*communicator, *rank), index as u32);
        writer.index.extend(members.iter().enumerate().map(of));
    }
    for copy in 0..options.copies {
        writer.copy = copy;
        let mut first = 0;
        for own in calls.threads.chunk_by(|a, b| a.rank == b.rank) {
            writer.rank = own[0].rank;
            writer.replay.calculation_ps.push(0);
            for cpu in 0..own.len() {
                writer.cpu = cpu as u8;
                writer.thread(first + cpu);
            }
            first += own.len();
            // Requirements go back to earlier operations alone, so that there is no cycle.
            let _ = writer.builder.end_rank();
        }
    }
    let mut replay = writer.replay;
    if options.copies > 1 {
        replay.rebuilt =
            matched.groups.iter().filter(|g| !calls.members.contains_key(&g.communicator)).count() as u64;
    }
    replay.goal = writer.builder.build();
    Ok(replay)
}

impl Writer<'_> {
    fn thread(&mut self, thread: usize) {
        let (calls, matched) = (self.calls, self.matched);
        let mut steps = matched.steps[thread].iter().peekable();
        (self.front, self.requests) = (Front::new(), VecDeque::new());
        let mut now_ns = 0;
        for (number, call) in calls.threads[thread].calls.iter().enumerate() {
            self.calculate(call.start_ns.saturating_sub(now_ns));
            now_ns = now_ns.max(call.end_ns);
            while let Some((_, step)) = steps.next_if(|(of, _)| *of as usize == number) {
                match *step {
                    Step::Message { halves, blocks } => self.message(call, halves, blocks),
                    Step::Await { all } => self.wait(call, all),
                    Step::Together { group: NONE, .. } => {}
                    Step::Together { group, blocks } => self.together(group, blocks),
                }
            }
        }
        if self.cpu == 0 {
            let end_ns = calls.end_ns[self.rank as usize];
            self.calculate(end_ns.saturating_sub(now_ns));
        }
    }

    /// Adds an operation after what is required; its number.
    pub(super) fn add(&mut self, op: Op, origin: u16) -> u32 {
        let op = self.builder.add(Op { cpu: self.cpu, ..op });
        for (required, what) in &self.front {
            self.builder.require(op, *required, *what);
        }
        self.replay.origins.push(origin);
        op
    }

    /// The same, and the next one waits for it.
    pub(super) fn then(&mut self, op: Op, origin: u16) -> u32 {
        let op = self.add(op, origin);
        self.front = vec![(op, Require::End)];
        op
    }

    fn calculate(&mut self, ns: u64) {
        let ps = (ns as f64 * 1000.0 * self.options.cpu_scale).round() as u64;
        if ps == 0 {
            return;
        }
        if let Some(sum) = self.replay.calculation_ps.last_mut() {
            *sum = sum.saturating_add(ps);
        }
        self.then(Op::calculate(ps), CALCULATION);
    }

    fn scaled(&mut self, bytes: u64) -> u64 {
        let bytes = (bytes as f64 * self.options.bytes_scale).round() as u64;
        self.replay.largest_bytes = self.replay.largest_bytes.max(Some(bytes));
        bytes
    }

    fn message(&mut self, call: &Call, halves: [u32; 2], blocks: bool) {
        let offset = self.copy * self.calls.ranks;
        let mut next = Front::new();
        for (half, sends) in halves.into_iter().zip([true, false]).filter(|(half, _)| *half != NONE) {
            let partner = self.matched.partner[half as usize];
            let Some(other) = self.matched.halves.get(partner as usize) else { continue };
            let (peer, tag) = (other.rank + offset, if sends { half } else { partner });
            let bytes = self.scaled(self.matched.halves[tag as usize].bytes);
            let op = if sends { Op::send(peer, bytes, tag) } else { Op::receive(peer, bytes, tag) };
            let what = if blocks { Require::End } else { Require::Start };
            next.push((self.add(op, call.operation as u16), what));
        }
        if next.is_empty() {
            return;
        }
        // A buffered send has no request.
        if !blocks && OPERATIONS[call.operation].name != "Bsend" {
            let ends = next.iter().map(|(op, _)| (*op, Require::End)).collect();
            let half = if halves[1] == NONE { halves[0] } else { halves[1] };
            self.requests.push_back(Request::Operations(ends, half));
        }
        self.front = next;
    }

    fn wait(&mut self, call: &Call, all: bool) {
        let matched = self.matched;
        let can_be_over = |r: &Request| match r {
            Request::Operations(_, half) => matched.can_be_over(*half, call.end_ns),
            Request::Group(_) => true,
        };
        if !all && self.requests.len() > 1 {
            self.replay.guesses.waits += 1;
        }
        while let Some(at) = self.requests.iter().position(can_be_over) {
            match self.requests.remove(at) {
                Some(Request::Operations(mut ends, _)) => {
                    ends.retain(|end| !self.front.contains(end));
                    self.front.append(&mut ends);
                }
                Some(Request::Group(group)) => self.leave(group),
                None => {}
            }
            if !all {
                break;
            }
        }
    }
}
