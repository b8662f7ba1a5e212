//! Switches between two threads on one CPU: by a token through two pipes, and by giving up the CPU in turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use machmeter_engine::cost::Proof;
use machmeter_engine::sampling::Subject;
use machmeter_sys::call::{self, event::Pipe};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{PlacedThread, spawn_placed};

use super::PART_NAME;
use crate::ops::repeated::{Planned, one_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// A byte written to the partner, and one read from it.
    Pipe,
    /// `sched_yield` by both.
    Yield,
}

/// Byte that ends the partner.
const END: u8 = 0;

/// What both threads share.
struct Shared {
    there: Pipe,
    back: Pipe,
    stop: AtomicBool,
    turns: AtomicU64,
}

/// A partner on the same CPU, there only during visits.
pub(super) struct Switches {
    by: By,
    cpu: usize,
    policy: Policy,
    partner: Option<(Arc<Shared>, PlacedThread<()>)>,
    expected: u64,
    seen: u64,
}

impl Switches {
    /// The row: two switches per turn, there and back.
    pub(super) fn plan<'a>(operation: &str, by: By, cpu: usize, policy: Policy) -> Planned<'a> {
        let subject = Self { by, cpu, policy, partner: None, expected: 0, seen: 0 };
        Planned::new(PART_NAME, operation, subject).row(|row| row.per_turn(2.0))
    }
}

fn partner(shared: &Shared, by: By) {
    while !shared.stop.load(Ordering::Relaxed) {
        match by {
            By::Yield => {
                shared.turns.fetch_add(1, Ordering::Relaxed);
                if call::yield_cpu().is_err() {
                    return;
                }
            }
            By::Pipe => match shared.there.take() {
                Ok(Some(byte)) if byte != END => {
                    shared.turns.fetch_add(1, Ordering::Relaxed);
                    if shared.back.put(byte).is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

impl Subject for Switches {
    fn prepare(&mut self) -> Result<(), String> {
        let pipe = || Pipe::new().map_err(|e| one_line(&e));
        let shared = Arc::new(Shared {
            there: pipe()?,
            back: pipe()?,
            stop: AtomicBool::new(false),
            turns: AtomicU64::new(0),
        });
        let (seen, by) = (Arc::clone(&shared), self.by);
        let thread = spawn_placed("mm-partner", Some(self.cpu), self.policy, move || partner(&seen, by));
        self.partner = Some((shared, thread.map_err(|e| e.to_string())?));
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let Some((shared, _)) = &self.partner else { return false };
        let before = shared.turns.load(Ordering::Relaxed);
        for i in 0..turns {
            let done = match self.by {
                By::Yield => call::yield_cpu().is_ok(),
                By::Pipe => {
                    // Any byte but the one that ends.
                    let byte = (i % 255) as u8 + 1;
                    shared.there.put(byte).is_ok() && shared.back.take().is_ok_and(|b| b == Some(byte))
                }
            };
            if !done {
                return false;
            }
        }
        self.expected += turns;
        // Turns of the partner beyond ours are none of ours.
        self.seen += (shared.turns.load(Ordering::Relaxed) - before).min(turns);
        true
    }

    fn leave(&mut self) {
        if let Some((shared, thread)) = self.partner.take() {
            shared.stop.store(true, Ordering::Relaxed);
            let _ = shared.there.put(END);
            thread.join();
        }
    }

    fn proof(&mut self) -> Option<Proof> {
        (self.expected > 0).then(|| {
            // The scheduler may leave out a yield now and then, when something else is ready.
            let enough = self.expected - self.expected / 20;
            let what = if self.by == By::Pipe { "bytes that came back" } else { "turns of the partner" };
            Proof { what: what.to_owned(), expected: enough, seen: self.seen }
        })
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_sys::affinity;

    #[test]
    fn the_partner_has_a_turn_for_each_of_ours_and_goes() {
        let cpu = affinity::mask().unwrap().first().unwrap();
        let policy = Policy::ordinary();
        let main = spawn_placed("main", Some(cpu), policy, move || {
            let mut s = Switches { by: By::Pipe, cpu, policy, partner: None, expected: 0, seen: 0 };
            assert!(!s.run(1), "nobody is there");
            for _ in 0..3 {
                s.prepare().unwrap();
                assert!(s.run(300));
                s.leave();
            }
            let p = s.proof().unwrap();
            assert_eq!((p.seen, p.expected), (900, 855));
        });
        main.unwrap().join();
    }
}
