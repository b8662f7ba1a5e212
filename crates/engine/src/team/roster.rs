//! The roster: the shared memory through which the members of a team and its caller know of each other, the same in every
//! model. Members report that they are placed, wait asleep until the gate opens (so that a real-time member never keeps the
//! caller from starting the next one), then meet and begin together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_sys::process::{self, start_gate};
use machmeter_sys::thread;

use super::{Arena, Member, Seats, TeamError, Work, read_bytes, write_bytes};

/// Cells: of the gate, of the deadline, of reports, of arrivals; then the state of each member.
const GATE: usize = 0;
const DEADLINE: usize = 1;
const REPORTS: usize = 2;
const ARRIVALS: usize = 3;
const FIRST_MEMBER: usize = 4;

const CLOSED: u64 = 0;
const OPEN: u64 = 1;
const CANCELED: u64 = 2;

/// Longest text of a member, bytes.
const TEXT_BYTES: usize = 240;
/// Words of a member's entry on the heap: length of the text, then the text.
const ENTRY_WORDS: usize = 1 + TEXT_BYTES / 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    /// It could not be placed.
    Refused,
    Placed,
    /// The others did not come until the deadline, and it did nothing.
    Alone,
    Working,
    Done,
    Panicked,
}

impl State {
    const ALL: [Self; 7] =
        [Self::Absent, Self::Refused, Self::Placed, Self::Alone, Self::Working, Self::Done, Self::Panicked];
}

/// Shared memory of one run of a team.
#[derive(Debug)]
pub(super) struct Roster {
    model: &'static str,
    arena: Arena,
    members: usize,
}

impl Roster {
    pub(super) fn new(model: &'static str, seats: &Seats) -> Result<Self, TeamError> {
        let members = seats.cpus.len();
        let arena = Arena::new(FIRST_MEMBER + members, members * ENTRY_WORDS * 8);
        let arena = arena.map_err(|e| TeamError::Start { model, rank: 0, why: e.to_string() })?;
        Ok(Self { model, arena, members })
    }

    /// That a member could not be started.
    pub(super) fn not_started(&self, rank: usize, why: String) -> TeamError {
        TeamError::Start { model: self.model, rank, why }
    }

    fn state_cell(&self, rank: usize) -> &AtomicU64 {
        self.arena.cell(FIRST_MEMBER + rank)
    }

    pub(super) fn state(&self, rank: usize) -> State {
        let code = self.state_cell(rank).load(Ordering::Acquire);
        State::ALL.get(code as usize).copied().unwrap_or(State::Absent)
    }

    fn set_state(&self, rank: usize, state: State) {
        self.state_cell(rank).store(state as u64, Ordering::Release);
    }

    fn entry(&self, rank: usize) -> &[AtomicU64] {
        self.arena.heap().atomics().get(rank * ENTRY_WORDS..(rank + 1) * ENTRY_WORDS).unwrap_or(&[])
    }

    fn write_text(&self, rank: usize, text: &str) {
        write_bytes(self.entry(rank), &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES)]);
    }

    /// What a member left: why it was refused, or what its panic said.
    pub(super) fn text(&self, rank: usize) -> String {
        String::from_utf8_lossy(&read_bytes(self.entry(rank))).replace('\n', " ")
    }

    /// A member reports that it sits where it should, or why not.
    pub(super) fn report(&self, rank: usize, placed: Result<(), String>) {
        match placed {
            Ok(()) => self.set_state(rank, State::Placed),
            Err(why) => {
                self.write_text(rank, &why);
                self.set_state(rank, State::Refused);
            }
        }
        self.arena.cell(REPORTS).fetch_add(1, Ordering::AcqRel);
        start_gate::wake_all(self.arena.cell(REPORTS));
    }

    /// Sleeps until another member has reported, `until_ns` at the latest; returns how many have.
    pub(super) fn wait_report(&self, seen: u64, until_ns: u64) -> u64 {
        start_gate::sleep_while(self.arena.cell(REPORTS), seen, until_ns);
        self.arena.cell(REPORTS).load(Ordering::Acquire)
    }

    pub(super) fn open(&self, limit_ns: u64) -> u64 {
        let deadline_ns = thread::monotonic_ns().saturating_add(limit_ns);
        self.arena.cell(DEADLINE).store(deadline_ns, Ordering::Relaxed);
        self.set_gate(OPEN);
        deadline_ns
    }

    pub(super) fn cancel(&self) {
        self.set_gate(CANCELED);
    }

    fn set_gate(&self, to: u64) {
        self.arena.cell(GATE).store(to, Ordering::Release);
        start_gate::wake_all(self.arena.cell(GATE));
    }

    /// Sleeps until the gate opens; the deadline, or `None` when there is nothing to do.
    pub(super) fn enter(&self) -> Option<u64> {
        loop {
            match self.arena.cell(GATE).load(Ordering::Acquire) {
                CLOSED => start_gate::sleep_while(self.arena.cell(GATE), CLOSED, u64::MAX),
                OPEN => return Some(self.arena.cell(DEADLINE).load(Ordering::Relaxed)),
                _ => return None,
            }
        }
    }

    /// Meets the others and does the work; a panic ends here. True when the work ended well.
    pub(super) fn perform(&self, rank: usize, deadline_ns: u64, relax: &dyn Fn(), work: Work<'_>) -> bool {
        let member =
            Member { rank, members: self.members, deadline_ns, relax, now_ns: &thread::monotonic_ns };
        if !member.meet(self.arena.cell(ARRIVALS), 0) {
            self.set_state(rank, State::Alone);
            return false;
        }
        self.set_state(rank, State::Working);
        let ended = catch_unwind(AssertUnwindSafe(|| work(&member)));
        let state = match &ended {
            Ok(()) => State::Done,
            Err(payload) => {
                self.write_text(rank, process::fork::panic_text(payload.as_ref()));
                State::Panicked
            }
        };
        self.set_state(rank, state);
        ended.is_ok()
    }

    /// What became of the team, when nobody works any more. `fate` says of a member what only the model knows.
    pub(super) fn result(&self, fate: impl Fn(usize) -> Option<String>) -> Result<(), TeamError> {
        let lost = |rank, why| Err(TeamError::Lost { model: self.model, rank, why });
        let ranks = 0..self.members;
        if let Some(rank) = ranks.clone().find(|r| self.state(*r) == State::Refused) {
            return Err(self.not_started(rank, self.text(rank)));
        }
        for rank in ranks.clone() {
            match (self.state(rank), fate(rank)) {
                (State::Panicked, _) => return lost(rank, format!("panicked: {}", self.text(rank))),
                (_, Some(why)) => return lost(rank, why),
                _ => {}
            }
        }
        // The one that stayed away is to blame, not those that waited for it.
        let unfinished = |r: &usize| self.state(*r) != State::Done;
        let away = |r: &usize| !matches!(self.state(*r), State::Done | State::Alone);
        if let Some(rank) = ranks.clone().find(away).or_else(|| ranks.clone().find(unfinished)) {
            return lost(rank, "did not begin before the deadline".to_owned());
        }
        Ok(())
    }
}
