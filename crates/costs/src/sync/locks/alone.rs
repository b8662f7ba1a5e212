//! One thread alone: lock and unlock without anybody else, and the other operations of synchronization when nobody waits.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::{Kind, Proof, Row};
use machmeter_engine::sampling::Subject;
use machmeter_engine::team::Member;
use machmeter_sys::sync::{Monitor, Semaphore, Sharing};

use super::contended::PROOF;
use super::lock::{Lock, WithLocks};
use super::plan;

/// The only member there is.
const ALONE: Member<'static> = Member {
    rank: 0,
    members: 1,
    deadline_ns: u64::MAX,
    relax: &std::hint::spin_loop,
    now_ns: &machmeter_sys::thread::monotonic_ns,
};

/// A lock taken and given back by one thread; the number it protects is the proof.
struct Uncontended<L> {
    lock: L,
    number: AtomicU64,
    turns: u64,
}

impl<L: Lock> Subject for Uncontended<L> {
    #[inline(never)]
    fn run(&mut self, turns: u64) -> bool {
        for done in 0..turns {
            let Some(held) = self.lock.acquire(&ALONE) else {
                self.turns += done;
                return false;
            };
            self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            drop(held);
        }
        self.turns += turns;
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(Proof::new(PROOF, self.turns, self.number.load(Ordering::Relaxed)))
    }
}

pub(super) struct UncontendedVisit;

impl<'m> WithLocks<'m> for UncontendedVisit {
    type Output = Result<Box<dyn Subject + 'm>, String>;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output {
        let lock = locks.into_iter().next().ok_or("no lock")?;
        Ok(Box::new(Uncontended { lock, number: AtomicU64::new(0), turns: 0 }))
    }
}

/// Something that one thread does over and over, and that says whether it happened.
struct Repeated<F> {
    once: F,
    done: Proof,
}

impl<F: FnMut() -> bool> Subject for Repeated<F> {
    #[inline(never)]
    fn run(&mut self, turns: u64) -> bool {
        let mut happened = 0;
        for _ in 0..turns {
            happened += u64::from((self.once)());
        }
        self.done.expected += turns;
        self.done.seen += happened;
        happened == turns
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(self.done.clone())
    }
}

/// A row of an operation done by one thread.
pub(super) fn row(operation: &str) -> Row {
    plan::row(operation, Kind::Latency, "alone", "threads").with("cpus", 1_i64)
}

/// A row, and what is done for it or why nothing can be.
pub(super) type Attempt<'a> = (Row, Result<Box<dyn Subject + 'a>, String>);

/// The other operations when nobody waits; those that are calls into the kernel: `machmeter ops`.
pub(super) fn primitives<'a>() -> [Attempt<'a>; 2] {
    [
        attempt("semaphore_post_wait", Semaphore::new(Sharing::Threads), |s| s.post() && s.wait()),
        attempt("condvar_signal_unheard", Monitor::new(Sharing::Threads), |m| {
            m.signal();
            true
        }),
    ]
}

fn attempt<'a, T: 'a>(
    operation: &str,
    object: std::io::Result<T>,
    once: impl Fn(&T) -> bool + 'a,
) -> Attempt<'a> {
    let done = Proof::new("operations that succeeded", 0, 0);
    let subject = object.map(|o| Box::new(Repeated { once: move || once(&o), done }) as Box<dyn Subject>);
    (row(operation), subject.map_err(|e| e.to_string()))
}
