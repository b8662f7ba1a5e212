//! Who plays scripts: ranks of an MPI job, or a simulation of them.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::sampling::{Mark, Subject, Timing};

use machmeter_loops::mpi::player::{Player, Sizes};
use machmeter_sys::mpi::Error;

use crate::operations::{MOST_POSTED, Operation, Step};
use crate::pairing::Pairing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Play {
    pub(crate) operation: &'static Operation,
    pub(crate) bytes: u64,
    /// The first so many ranks take part.
    pub(crate) ranks: usize,
    /// What `Compute`, `Sleep` and `Poll` take, ns.
    pub(crate) beside_ns: u64,
    pub(crate) pairing: Pairing,
}

/// What a rank stamped in a window, ticks of rank 0 after the agreed moment; zeros where its script has no stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// By how much its clock may be off.
    pub(crate) off: i64,
}

/// A window as all of a script played it, ticks after the agreed moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Last Begin of all ranks that make the cost.
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Begin of the rank that came last.
    pub(crate) late: i64,
}

impl Window {
    pub(crate) fn of(stamps: &[Stamp], operation: &Operation) -> Self {
        let of_cost = || stamps.iter().take(if operation.is_collective { stamps.len() } else { 1 });
        Self {
            begin: of_cost().map(|s| s.begin).max().unwrap_or(0),
            end: of_cost().map(|s| s.end).max().unwrap_or(0),
            late: stamps.iter().map(|s| s.begin).max().unwrap_or(0),
        }
    }
}

/// Windows that are played with one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) count: u32,
    /// From one agreed moment to the next, ns.
    pub(crate) period_ns: u64,
}

pub(crate) trait Stage {
    /// Plays turns one after the other: ticks between the root's stamps. An error ends the stage.
    fn back_to_back(&mut self, play: &Play, turns: u64) -> Result<u64, String>;

    /// Plays one turn at each of a row of agreed moments; what each of the ranks stamped, by window.
    fn isolated(&mut self, play: &Play, windows: Windows) -> Result<Vec<Vec<Stamp>>, String>;

    /// Whether a rank beside the root was switched out against its will, or moved, since the last call.
    fn others_disturbed(&mut self) -> Result<bool, String>;

    /// Of the root.
    fn mark(&self) -> Mark;

    /// Time for budgets, ns.
    fn now_ns(&self) -> u64;

    /// The root's clock.
    fn ticks(&self) -> u64;
}

/// A stage that cells and the sampler share, with the time that its stamps said last and why it failed.
#[derive(Clone)]
pub(crate) struct Shared(Rc<RefCell<Inner>>);

struct Inner {
    stage: Box<dyn Stage>,
    stamped_ticks: u64,
    failed: Option<String>,
}

impl Shared {
    pub(crate) fn new(stage: impl Stage + 'static) -> Self {
        Self(Rc::new(RefCell::new(Inner { stage: Box::new(stage), stamped_ticks: 0, failed: None })))
    }

    /// Does something with the stage; after an error nothing more.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut dyn Stage) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut inner = self.0.borrow_mut();
        if let Some(why) = &inner.failed {
            return Err(why.clone());
        }
        let done = work(inner.stage.as_mut());
        inner.failed = done.as_ref().err().cloned();
        done
    }

    pub(crate) fn failed(&self) -> Option<String> {
        self.0.borrow().failed.clone()
    }

    /// Plays turns back to back; the time is that of the next [`Timing::time`]. False where that failed.
    fn turn(&self, play: &Play, turns: u64) -> bool {
        let ticks = self.with(|s| s.back_to_back(play, turns));
        self.0.borrow_mut().stamped_ticks = *ticks.as_ref().unwrap_or(&0);
        ticks.is_ok()
    }
}

/// The time of what was played is what the stamps of the script say, without the order and what makes ready.
impl Timing for Shared {
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        work();
        self.0.borrow().stamped_ticks
    }

    fn ticks(&mut self) -> u64 {
        self.0.borrow().stage.ticks()
    }

    fn mark(&mut self) -> Mark {
        self.0.borrow().stage.mark()
    }

    fn now_ns(&self) -> u64 {
        self.0.borrow().stage.now_ns()
    }
}

/// Turns back to back, for [`machmeter_engine::sampling`].
pub(crate) struct Turns {
    pub(crate) stage: Shared,
    pub(crate) play: Play,
}

impl Subject for Turns {
    fn prepare(&mut self) -> Result<(), String> {
        self.stage.failed().map_or(Ok(()), Err)
    }

    fn run(&mut self, turns: u64) -> bool {
        self.stage.turn(&self.play, turns)
    }

    fn partners_moved(&mut self) -> bool {
        self.stage.with(|s| s.others_disturbed()).is_ok_and(|disturbed| !disturbed)
    }
}

impl Play {
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { bytes: self.bytes, beside_ns: self.beside_ns }
    }

    /// Seats a player and makes its requests; not timed.
    pub(crate) fn prepare(&self, player: &mut Player) -> Result<(), Error> {
        let operation = self.operation;
        let seat = self.pairing.seat(player.comm.rank(), player.comm.size());
        let requests =
            operation.uses(|s| matches!(s, Step::Isend | Step::Irecv | Step::Start(_))).then(|| {
                let bytes = self.bytes as usize * if operation.is_collective { self.ranks } else { 1 };
                let count =
                    if operation.posts { operation.most_turns(self.bytes) } else { 1 }.min(MOST_POSTED);
                (count as usize, bytes)
            });
        player.prepare(seat, requests)
    }

    /// Of the first so many ranks, by the script.
    pub(crate) fn of(operation: &'static Operation, bytes: u64, ranks: usize) -> Self {
        Self { operation, bytes, ranks, beside_ns: 0, pairing: Pairing::Script }
    }
}
