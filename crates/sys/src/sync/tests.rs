//! Laws of the objects: exclusion, nothing lost, everybody woken.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const TURNS: u64 = 3_000;

/// Four threads add to a number by load and store inside `exclusive`; nothing may be lost.
fn excludes(exclusive: impl Fn(&mut dyn FnMut()) + Sync) {
    let plain = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..TURNS {
                    exclusive(&mut || plain.store(plain.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
                }
            });
        }
    });
    assert_eq!(plain.into_inner(), 4 * TURNS);
}

#[test]
fn holders_exclude_each_other() {
    for sharing in [Sharing::Threads, Sharing::Processes] {
        let mutex = Mutex::new(sharing).unwrap();
        excludes(|work| {
            let _held = mutex.lock().unwrap();
            work();
        });
        let rw = RwLock::new(sharing).unwrap();
        excludes(|work| {
            let _held = rw.write().unwrap();
            work();
        });
        let (a, b) = (rw.read().unwrap(), rw.read().unwrap());
        drop((a, b));
        drop(rw.write().unwrap());
        let semaphore = Semaphore::new(sharing).unwrap();
        assert!(!semaphore.try_wait() && semaphore.post());
        excludes(|work| {
            assert!(semaphore.wait());
            work();
            assert!(semaphore.post());
        });
        let monitor = Monitor::new(sharing).unwrap();
        excludes(|work| {
            let mut inside = monitor.enter().unwrap();
            inside.set(inside.get() + 1);
            work();
        });
        assert_eq!(monitor.enter().unwrap().get(), 4 * TURNS);
    }
}

#[test]
fn waiters_are_woken() {
    let monitor = Monitor::new(Sharing::Threads).unwrap();
    let word = Word::new(Sharing::Threads).unwrap();
    let (events, pipe) = (EventCounter::new(false).unwrap(), Pipe::new(false).unwrap());
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut inside = monitor.enter().unwrap();
                while inside.get() == 0 {
                    inside.wait();
                }
            });
            s.spawn(|| {
                while word.value().load(Ordering::Acquire) == 0 {
                    word.wait(0, None);
                }
            });
            s.spawn(|| assert!(events.take()));
            s.spawn(|| assert!(pipe.take()));
        }
        monitor.enter().unwrap().set(1);
        monitor.broadcast();
        monitor.signal();
        word.value().store(1, Ordering::Release);
        word.wake(u32::MAX);
        assert!((0..3).all(|_| events.give() && pipe.give()));
    });
}

#[test]
fn a_word_that_changed_is_not_waited_for_and_a_wait_ends() {
    let word = Word::new(Sharing::Processes).unwrap();
    assert!(!word.wait(1, None));
    assert!(word.wait(0, Some(1_000_000)));
    assert_eq!(word.wake(1), 0);
}

#[test]
fn polling_channels_do_not_sleep() {
    let (events, pipe) = (EventCounter::new(true).unwrap(), Pipe::new(true).unwrap());
    assert!(!events.take() && !pipe.take());
    assert!(events.give() && events.give() && pipe.give());
    assert!(events.take() && events.take() && !events.take());
    assert!(pipe.take() && !pipe.take());
}

#[test]
fn a_barrier_lets_all_go_at_once() {
    assert!(Barrier::new(0, Sharing::Threads).is_err());
    let barrier = Barrier::new(3, Sharing::Threads).unwrap();
    let arrived = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for round in 1..=200 {
                    arrived.fetch_add(1, Ordering::Relaxed);
                    assert!(barrier.wait());
                    assert!(arrived.load(Ordering::Relaxed) >= 3 * round);
                    assert!(barrier.wait());
                }
            });
        }
    });
    assert_eq!(arrived.into_inner(), 600);
}
