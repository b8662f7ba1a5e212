//! Members made and joined: threads and processes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;

use machmeter_engine::cost::Proof;
use machmeter_engine::sampling::Subject;
use machmeter_sys::process::fork::{Ended, fork_run};

/// Exit code by which a child shows that it ran.
const CODE: u8 = 42;

/// Made and joined on the CPU of the thread that measures.
#[derive(Default)]
pub(super) struct Threads {
    made: u64,
    ran: AtomicU64,
}

impl Subject for Threads {
    fn run(&mut self, turns: u64) -> bool {
        self.made += turns;
        let ran = &self.ran;
        (0..turns).all(|_| {
            // The end of the scope joins.
            std::thread::scope(|s| {
                Builder::new().spawn_scoped(s, || ran.fetch_add(1, Ordering::Relaxed)).is_ok()
            })
        })
    }

    fn proof(&mut self) -> Option<Proof> {
        let seen = self.ran.load(Ordering::Relaxed);
        Some(Proof { what: "threads that added one".to_owned(), expected: self.made, seen })
    }
}

/// Forked without exec, ended, and waited for.
#[derive(Default)]
pub(super) struct Processes {
    made: u64,
    ended: u64,
}

impl Subject for Processes {
    fn run(&mut self, turns: u64) -> bool {
        self.made += turns;
        (0..turns).all(|_| {
            let ended = fork_run(&|| CODE).and_then(|mut child| child.wait());
            let well = matches!(ended, Ok(Ended::Exited(CODE)));
            self.ended += u64::from(well);
            well
        })
    }

    fn proof(&mut self) -> Option<Proof> {
        let what = format!("children that exited with {CODE}");
        Some(Proof { what, expected: self.made, seen: self.ended })
    }
}
