//! Keeps what happened on all CPUs around the first wait that is too long.

use std::collections::VecDeque;

use super::wait::Wait;

/// Time before the end of the wait that is kept, ns.
pub const KEPT_NS: u64 = 200_000_000;
/// Turns that are kept at most; a CPU has some thousand per second, rarely a million.
const MOST_TURNS: usize = 1_000_000;

/// Who had a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A thread, by its id; 0 is the idle task.
    Thread(i32),
    /// A handler, by its name. It runs inside the turn of a thread.
    Handler(String),
}

/// A time in which a thread or a handler had a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The CPU.
    pub cpu: u16,
    /// Start, ns of the trace's clock.
    pub start_ns: u64,
    /// Duration, ns.
    pub ns: u64,
    /// Who had it.
    pub who: Who,
}

/// The last turns on all CPUs, until a wait exceeds a limit.
#[derive(Debug, Default)]
pub struct Keeper {
    limit_ns: u64,
    turns: VecDeque<Turn>,
    caught: Option<(Wait, u64)>,
}

impl Keeper {
    /// Keeps turns until a wait is longer than `limit_ns`.
    pub fn of(limit_ns: u64) -> Self {
        Self { limit_ns, ..Self::default() }
    }

    /// Adds a turn. Those that ended too early are forgotten.
    pub(super) fn add(&mut self, turn: Turn) {
        let from_ns = self.caught.as_ref().map_or(turn.start_ns, |c| c.1).saturating_sub(KEPT_NS);
        let is_old = |t: &Turn| t.start_ns + t.ns < from_ns;
        while self.turns.front().is_some_and(is_old) || self.turns.len() >= MOST_TURNS {
            self.turns.pop_front();
        }
        self.turns.push_back(turn);
    }

    /// True if a wait of this length is the first one beyond the limit.
    pub(super) fn is_beyond(&self, ns: u64) -> bool {
        self.caught.is_none() && ns > self.limit_ns
    }

    /// Notes the wait that ends the recording, at `now_ns`.
    pub(super) fn catch(&mut self, wait: Wait, now_ns: u64) {
        self.caught = Some((wait, now_ns));
    }

    /// True once a wait exceeded the limit.
    pub fn has_caught(&self) -> bool {
        self.caught.is_some()
    }

    /// The wait, and the turns of the last [`KEPT_NS`] before its end and those after it.
    pub fn caught(&self) -> Option<(&Wait, Vec<&Turn>)> {
        let (wait, now_ns) = self.caught.as_ref()?;
        let from_ns = now_ns.saturating_sub(KEPT_NS);
        Some((wait, self.turns.iter().filter(|t| t.start_ns + t.ns >= from_ns).collect()))
    }
}
