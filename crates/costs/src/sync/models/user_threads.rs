//! User threads made, joined and switched, on the thread that measures.

use std::cell::Cell;

use machmeter_engine::cost::Proof;
use machmeter_engine::sampling::Subject;
use machmeter_sys::user_threads::{Stacks, create_and_join, run_all};

pub(super) const STACK_BYTES: usize = 64 * 1024;

/// Maps `n` stacks, the first time.
pub(super) fn map_stacks(stacks: &mut Stacks, n: usize) -> Result<(), String> {
    if stacks.count() == 0 {
        *stacks = Stacks::new(n, STACK_BYTES).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Made on a stack that was in use before, or on a new one each time.
pub(super) struct Create {
    new_stack: bool,
    stacks: Stacks,
    made: u64,
    ran: Cell<u64>,
}

impl Create {
    pub(super) fn new(new_stack: bool) -> Self {
        Self { new_stack, stacks: Stacks::default(), made: 0, ran: Cell::new(0) }
    }
}

impl Subject for Create {
    fn prepare(&mut self) -> Result<(), String> {
        map_stacks(&mut self.stacks, 1)
    }

    fn run(&mut self, turns: u64) -> bool {
        self.made += turns;
        let ran = &self.ran;
        let work = |_: &machmeter_sys::user_threads::Turn<'_>| {
            ran.set(ran.get() + 1);
            true
        };
        if !self.new_stack {
            return create_and_join(&mut self.stacks, turns, &work) == turns;
        }
        (0..turns)
            .all(|_| Stacks::new(1, STACK_BYTES).is_ok_and(|mut s| create_and_join(&mut s, 1, &work) == 1))
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(Proof::new("user threads that added one", self.made, self.ran.get()))
    }
}

/// Two user threads of one worker in turns: a turn here is one of each.
#[derive(Default)]
pub(super) struct Switch {
    stacks: Stacks,
    asked: u64,
    switched: Cell<u64>,
}

impl Subject for Switch {
    fn prepare(&mut self) -> Result<(), String> {
        map_stacks(&mut self.stacks, 2)
    }

    fn run(&mut self, turns: u64) -> bool {
        self.asked += 2 * turns;
        let switched = &self.switched;
        let ends = run_all(&mut self.stacks, &|_, turn| {
            for _ in 0..turns {
                turn.yield_now();
            }
            switched.set(switched.get() + turns);
        });
        ends.iter().all(Result::is_ok)
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(Proof::new("switches made", self.asked, self.switched.get()))
    }
}
