//! Switches between two threads on one CPU, which give it up in turns. Through a pipe: `sync`, part wakeups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::subject::{Kind, Proof, Subject};
use machmeter_sys::call;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{PlacedThread, spawn_placed};

use super::repeated::Planned;

pub const OPERATION: &str = "yield_two_threads";

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    turns: AtomicU64,
}

/// A partner on the same CPU, there only during visits.
pub struct Switches {
    cpu: usize,
    policy: Policy,
    partner: Option<(Arc<Shared>, PlacedThread<()>)>,
    expected: u64,
    seen: u64,
}

impl Switches {
    fn new(cpu: usize, policy: Policy) -> Self {
        Self { cpu, policy, partner: None, expected: 0, seen: 0 }
    }

    /// The row: two switches per turn, there and back.
    pub fn plan<'a>(cpu: usize, policy: Policy) -> Planned<'a> {
        Planned::new(OPERATION, Kind::Latency, Self::new(cpu, policy)).per_turn(2.0)
    }
}

fn partner(shared: &Shared) {
    while !shared.stop.load(Ordering::Relaxed) {
        shared.turns.fetch_add(1, Ordering::Relaxed);
        if call::yield_cpu().is_err() {
            return;
        }
    }
}

impl Subject for Switches {
    fn prepare(&mut self) -> Result<(), String> {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let thread = spawn_placed("mm-partner", Some(self.cpu), self.policy, move || partner(&seen));
        self.partner = Some((shared, thread.map_err(|e| e.to_string())?));
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let Some((shared, _)) = &self.partner else { return false };
        let before = shared.turns.load(Ordering::Relaxed);
        for _ in 0..turns {
            if call::yield_cpu().is_err() {
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
            thread.join();
        }
    }

    fn proof(&mut self) -> Option<Proof> {
        // The scheduler may leave out a yield now and then, when something else is ready.
        Proof::of("turns of the partner", self.expected - self.expected / 20, self.seen)
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
    fn the_partner_has_turns_and_goes() {
        let cpu = affinity::mask().unwrap().first().unwrap();
        let policy = Policy::ordinary();
        let main = spawn_placed("main", Some(cpu), policy, move || {
            let mut s = Switches::new(cpu, policy);
            assert!(!s.run(1), "nobody is there");
            for _ in 0..3 {
                s.prepare().unwrap();
                assert!(s.run(3_000));
                s.leave();
            }
            let p = s.proof().unwrap();
            assert!(p.expected == 8_550 && p.seen > 3_000, "{p:?}");
        });
        main.unwrap().join();
    }
}
