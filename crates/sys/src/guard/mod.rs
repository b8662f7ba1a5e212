//! Undo actions for everything the program changes outside itself.
//!
//! A [`Guard`] restores on drop, which covers the normal end, errors and panics. A process-wide registry holds the same
//! actions, so that a second signal (see [`signals`]) restores even when the program is stuck. After SIGKILL nothing can run:
//! prefer changes that vanish with the process, such as those bound to a file descriptor.

pub mod signals;

pub use signals::{Signal, sleep_until, stop_flag, stop_requested};

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Undo = Box<dyn FnOnce() + Send>;

struct Registry {
    next_id: u64,
    actions: BTreeMap<u64, (String, Undo)>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { next_id: 0, actions: BTreeMap::new() });

fn registry() -> MutexGuard<'static, Registry> {
    // A panic while the lock is held can't leave the map half changed, so a poisoned registry is still good.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An undo action that runs exactly once: on drop, or when [`restore_all`] comes first.
#[derive(Debug)]
#[must_use = "the undo action runs when the guard is dropped"]
pub struct Guard {
    id: u64,
}

impl Guard {
    /// Registers `undo` under `name` (what is restored, for messages). Make the guard before the change it undoes.
    pub fn new(name: impl Into<String>, undo: impl FnOnce() + Send + 'static) -> Self {
        let mut registry = registry();
        let id = registry.next_id;
        registry.next_id += 1;
        registry.actions.insert(id, (name.into(), Box::new(undo)));
        Self { id }
    }

    /// Forgets the undo action: the change shall stay, or has been undone otherwise.
    pub fn disarm(self) {
        registry().actions.remove(&self.id);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let action = registry().actions.remove(&self.id);
        // The lock is released before the action runs, so an action may make or drop guards itself.
        if let Some((_, undo)) = action {
            run(undo);
        }
    }
}

/// A panicking undo must not abort an unwinding program nor keep later actions from running.
fn run(undo: Undo) {
    let _ = catch_unwind(AssertUnwindSafe(undo));
}

/// Runs every pending undo action, newest first, and returns their names.
pub fn restore_all() -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let newest = registry().actions.pop_last();
        let Some((_, (name, undo))) = newest else { return names };
        run(undo);
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn counted() -> (Arc<AtomicU32>, impl FnOnce() + Send + 'static) {
        let count = Arc::new(AtomicU32::new(0));
        let inner = Arc::clone(&count);
        (count, move || {
            inner.fetch_add(1, Ordering::SeqCst);
        })
    }

    #[test]
    fn undo_runs_once_on_drop_and_not_after_disarm() {
        let (count, undo) = counted();
        drop(Guard::new("a drop", undo));
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let (count, undo) = counted();
        Guard::new("a disarm", undo).disarm();
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn undo_runs_on_panic_also_in_a_thread_and_despite_a_panicking_neighbor() {
        let (count, undo) = counted();
        std::thread::scope(|s| {
            let ended = s.spawn(move || {
                let _first = Guard::new("panic first", undo);
                let _second = Guard::new("panic second", || panic!("undo fails"));
                panic!("the probe fails");
            });
            assert!(ended.join().is_err());
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(!registry().actions.values().any(|(n, _)| n.starts_with("panic ")));
    }

    #[test]
    fn an_undo_may_use_guards_itself() {
        let (count, undo) = counted();
        drop(Guard::new("outer", move || drop(Guard::new("inner", undo))));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
