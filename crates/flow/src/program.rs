//! A graph that can be run, and the kernels that can run it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::build::build;
use crate::graph::{FlowError, Graph};
use crate::kernel::{self, Id, Watch};
use crate::laws::broken;
use crate::names::Name;
use crate::ready::{Bitmap, Heap, ReadySet};
use crate::schedule::{Schedule, Waiter};
use crate::scheduler::{Core, Sampling, drive};
use crate::timer::{Log, Timer};
use crate::topology;

/// How tokens get between queues and boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queues {
    /// As in the published kernel: copied into and out of the memory of schedules, and within queues.
    Copying,
    /// Ports point into queues that are mapped twice.
    Mirrored,
}

/// How it is known who is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// As in the published kernel: a heap, and a look at all ports of a schedule when a queue of it changes.
    Heap,
    /// A bitmap, and counts of conditions that do not hold.
    Bitmap,
}

/// The kernel that runs a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub queues: Queues,
    pub ready: Ready,
    /// Iterations of a run at most.
    pub granularity: u32,
}

impl Choice {
    pub const FAST: Self = Self { queues: Queues::Mirrored, ready: Ready::Bitmap, granularity: 1 };
}

pub(crate) trait ReadyWay: 'static {
    /// Whether it counts conditions that do not hold.
    const COUNTS: bool;
    fn insert(set: &ReadySet, schedule: Id<Schedule>);
    fn is_empty(set: &ReadySet) -> bool;
    /// The ready schedule of the highest number.
    fn take(set: &ReadySet) -> Option<Id<Schedule>>;
    /// What somebody waits for holds, which is noted in `is_met`.
    fn now_holds<T: Timer>(core: &Core, is_met: &Cell<bool>, waiter: Waiter);
    /// Whether all conditions of a schedule that does not run hold.
    fn can_run(core: &Core, s: &Schedule) -> bool;
}

/// A kernel, as a type: its loop is compiled for each.
pub(crate) trait Kernel: 'static {
    const COPIES: bool;
    type Ready: ReadyWay;
}
pub(crate) struct Of<const COPIES: bool, R>(PhantomData<R>);
impl<const COPIES: bool, R: ReadyWay> Kernel for Of<COPIES, R> {
    const COPIES: bool = COPIES;
    type Ready = R;
}

/// Why a program stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Sources are over, and nothing more can run.
    Over,
    /// After the turns that were asked for.
    Paused,
}

pub struct Program {
    core: Core,
    choice: Choice,
}

impl Program {
    /// Checks a graph and makes it ready to run.
    /// Errors: what is wrong with it, naming boxes, ports and rates; or no memory.
    pub fn new(graph: Graph, choice: Choice) -> Result<Self, FlowError> {
        Ok(Self { core: build(graph, choice)?, choice })
    }

    /// The same, with somebody who watches each firing.
    pub fn watched(graph: Graph, choice: Choice, by: &Rc<dyn Watch>) -> Result<Self, FlowError> {
        let controls = topology::controls(&graph);
        let mut program = Self::new(graph, choice)?;
        kernel::watch(&mut program.core, by, &controls);
        Ok(program)
    }

    /// Runs until sources are over, or for so many turns of the scheduler.
    pub fn run(&mut self, sampling: Sampling, most_turns: u64, seed: u64) -> Ended {
        let drive = match (self.choice.queues, self.choice.ready) {
            (Queues::Copying, Ready::Heap) => drive::<Of<true, Heap>>,
            (Queues::Copying, Ready::Bitmap) => drive::<Of<true, Bitmap>>,
            (Queues::Mirrored, Ready::Heap) => drive::<Of<false, Heap>>,
            (Queues::Mirrored, Ready::Bitmap) => drive::<Of<false, Bitmap>>,
        };
        drive(&self.core, sampling, most_turns, seed)
    }

    pub fn log(&self) -> &Log {
        &self.core.log
    }

    /// Laws that the counts of a timed run break, one line each.
    pub fn broken_laws(&self) -> Vec<String> {
        let sums = self.core.log.sums();
        let at = |name: &str| Name::TEXTS.iter().position(|t| *t == name);
        broken(&|name| Some(sums.of(at(name)? as u8).called), self.core.schedules.len() as u64)
    }

    /// Bytes copied into, out of and within queues.
    pub fn copied_bytes(&self) -> u64 {
        self.core.queues.iter().map(|q| q.copied.get()).sum()
    }

    /// Capacity of each queue, and what was written to it so far, tokens.
    pub fn capacities(&self) -> impl Iterator<Item = (u64, u64)> {
        self.core.queues.iter().map(|q| (q.capacity, q.written.get()))
    }

    /// Of each queue: name, most tokens in it while timers were on, tokens left in it, tokens discarded at ends of segments.
    pub fn queues(&self) -> impl Iterator<Item = (&str, u64, u64, u64)> {
        self.core.queues.iter().map(|q| {
            let discarded = q.readers.iter().map(|end| self.core.ends[*end].discarded.get()).sum();
            (q.name.as_str(), q.high_water.get(), q.written.get() - q.least_read.get(), discarded)
        })
    }
}
