//! Every model does the same work; what goes wrong has a cause, ends in time and leaves nothing behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};
use machmeter_sys::{affinity, process, sched};

use super::heap::{Barrier, Heap, Layout};
use super::*;

const SECOND_NS: u64 = 1_000_000_000;
/// Far more than the work takes, also on a busy machine.
const LIMIT_NS: u64 = 20 * SECOND_NS;
const OTHER: Policy = Policy::Other { nice: 0 };

/// Held for writing by the test that takes all CPUs in real time: beside it no other team would be placed in time.
static CPUS: RwLock<()> = RwLock::new(());

/// `members` seats over the CPUs there are, in turn.
fn seats(members: usize, policy: Policy) -> Seats {
    let allowed = affinity::mask().unwrap().to_vec();
    Seats { cpus: (0..members).map(|i| allowed[i % allowed.len()]).collect(), policy }
}

fn count(model: &dyn Team, seats: &Seats) {
    let members = seats.cpus.len();
    let arena = Arena::new(members + 2, 0).unwrap();
    let cell = |i: usize| arena.cell(i);
    model
        .run(seats, LIMIT_NS, &|m: &Member<'_>| {
            assert_eq!(affinity::current_cpu(), Some(seats.cpus[m.rank]), "{}", model.model());
            for round in 0..20 {
                cell(m.rank).fetch_add(m.rank as u64 + 1, Ordering::Relaxed);
                cell(m.members).fetch_add(1, Ordering::Relaxed);
                assert!(m.meet(cell(m.members + 1), round));
                assert!(cell(m.members).load(Ordering::Relaxed) >= (round + 1) * m.members as u64);
            }
        })
        .unwrap();
    for rank in 0..members {
        assert_eq!(cell(rank).load(Ordering::Acquire), 20 * (rank as u64 + 1), "{}: {rank}", model.model());
    }
    assert_eq!(cell(members).load(Ordering::Acquire), 20 * members as u64);
}

#[test]
fn every_member_works_once_and_they_meet() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    for model in models() {
        for members in [1, 2, 5] {
            count(*model, &seats(members, OTHER));
        }
        assert!(named(model.model()).is_some());
    }
    assert!(named("fibers").is_none());
    assert!(models().iter().all(|m| m.run(&seats(0, OTHER), LIMIT_NS, &|_| {}).is_ok()));
}

#[test]
#[cfg(feature = "user-threads")]
fn many_user_threads_meet_on_few_workers() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    count(&user_threads::UserThreads, &seats(64, OTHER));
}

#[test]
fn who_does_not_come_is_waited_for_until_the_deadline_only() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    for model in models() {
        let arena = Arena::new(1, 0).unwrap();
        let begin_ns = monotonic_ns();
        let limit_ns = SECOND_NS / 5;
        let met = AtomicU64::new(0);
        let run = model.run(&seats(3, OTHER), limit_ns, &|m: &Member<'_>| {
            if m.rank != 1 && m.meet(arena.cell(0), 0) {
                met.fetch_add(1, Ordering::Relaxed);
            }
        });
        let took_ns = monotonic_ns() - begin_ns;
        assert!(run.is_ok() && met.load(Ordering::Relaxed) == 0, "{}: {run:?}", model.model());
        assert!(took_ns >= limit_ns && took_ns < limit_ns + 5 * SECOND_NS, "{}: {took_ns} ns", model.model());
    }
}

#[test]
fn a_member_that_panics_is_lost_with_what_it_said() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    for model in models() {
        let run = model.run(&seats(3, OTHER), LIMIT_NS, &|m: &Member<'_>| {
            assert!(m.rank != 1, "rank {} on purpose", m.rank);
        });
        let said = run.unwrap_err().to_string();
        assert_eq!(said, format!("{}: member 1 panicked: rank 1 on purpose", model.model()));
    }
}

#[test]
fn a_killed_process_is_lost_and_nothing_stays() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    let pids = Arena::new(3, 0).unwrap();
    let begin_ns = monotonic_ns();
    let run = processes::Processes.run(&seats(3, OTHER), SECOND_NS / 5, &|m: &Member<'_>| {
        let me = std::process::id();
        pids.cell(m.rank).store(u64::from(me), Ordering::Release);
        match m.rank {
            1 => process::kill_process(me as i32).unwrap(),
            // Past every deadline: only its parent can end it.
            2 => nanosleep_until(monotonic_ns() + 60 * SECOND_NS),
            _ => {}
        }
    });
    assert_eq!(run.unwrap_err().to_string(), "processes: member 1 was killed by SIGKILL");
    assert!(monotonic_ns() - begin_ns < SECOND_NS / 5 + SECOND_NS);
    for rank in 0..3 {
        let pid = pids.cell(rank).load(Ordering::Acquire) as i32;
        assert!(pid > 0 && process::state_of(pid).is_none(), "{rank}: neither alive nor a zombie");
    }
}

#[test]
fn a_process_past_its_limit_is_killed_and_named() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    let run = processes::Processes.run(&seats(1, OTHER), SECOND_NS / 20, &|_: &Member<'_>| {
        nanosleep_until(monotonic_ns() + 60 * SECOND_NS);
    });
    let said = run.unwrap_err().to_string();
    assert_eq!(said, "processes: member 0 did not end within its limit of 0.050 s and was killed");
}

#[test]
fn a_missing_cpu_is_one_clear_line_and_nobody_works() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    for model in models() {
        let mut seats = seats(2, OTHER);
        seats.cpus[1] = 1_023;
        let arena = Arena::new(1, 0).unwrap();
        let run = model.run(&seats, LIMIT_NS, &|_: &Member<'_>| {
            arena.cell(0).fetch_add(1, Ordering::Relaxed);
        });
        let said = run.unwrap_err().to_string();
        assert!(said.contains("1023") && said.contains("member 1") && !said.contains('\n'), "{said}");
        assert_eq!(arena.cell(0).load(Ordering::Acquire), 0);
    }
}

#[test]
fn a_real_time_team_on_all_cpus_ends_in_time() {
    let _alone = CPUS.write().unwrap_or_else(PoisonError::into_inner);
    let allowed = affinity::mask().unwrap().len();
    let permitted = std::thread::scope(|s| s.spawn(|| sched::apply(Policy::Fifo(1))).join().unwrap());
    if let Err(e) = permitted {
        println!("skipped: {e}");
        return;
    }
    for model in models() {
        // Two on the first CPU: they must not keep each other from running.
        count(*model, &seats(allowed + 1, Policy::Fifo(1)));
        let begin_ns = monotonic_ns();
        let limit_ns = SECOND_NS / 5;
        let run = model.run(&seats(allowed, Policy::Fifo(1)), limit_ns, &|m: &Member<'_>| {
            assert!(!m.wait(|| false));
        });
        assert!(run.is_ok(), "{run:?}");
        assert!(monotonic_ns() - begin_ns < limit_ns + SECOND_NS, "{}", model.model());
    }
}

#[test]
fn locks_exclude_and_what_is_put_is_got() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    for model in models() {
        let mut layout = Layout::default();
        let (lock, sum) = (layout.take(1), layout.take(1));
        let (block, flag) = (layout.take(100), layout.take(1));
        let arena = Arena::new(2, layout.heap_bytes(2)).unwrap();
        let heap = Heap::new(&arena, layout, 2).unwrap();
        let barrier = Barrier::new(arena.cell(0), arena.cell(1));
        let run = model.run(&seats(2, OTHER), LIMIT_NS, &|m: &Member<'_>| {
            for _ in 0..10_000 {
                assert!(heap.set_lock(lock, m));
                // Not one operation on purpose: only the lock makes the sum right.
                let word = &heap.at(0, sum)[0];
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                heap.clear_lock(lock);
            }
            let other = 1 - m.rank;
            for round in 1..=50_u64 {
                let mine: Vec<u64> = (0..100).map(|i| i * round + m.rank as u64).collect();
                assert_eq!(heap.put(other, block, &mine), 100);
                heap.quiet();
                heap.signal(other, flag, round);
                assert_eq!(heap.wait(flag, round - 1, m), Some(round));
                let mut got = [0; 100];
                assert_eq!(heap.get(m.rank, block, &mut got), 100);
                assert!((0..100).all(|i| got[i] == i as u64 * round + other as u64), "round {round}");
                assert!(barrier.wait(m));
            }
        });
        assert!(run.is_ok(), "{run:?}");
        assert_eq!(heap.at(0, sum)[0].load(Ordering::Acquire), 20_000, "{}", model.model());
        assert!(heap.test_lock(lock) && !heap.test_lock(lock), "set once");
        assert!(heap.at(2, sum).is_empty() && Heap::new(&arena, layout, 100).is_none());
    }
}

#[test]
fn what_is_taken_from_a_layout_shares_no_line() {
    let mut layout = Layout::default();
    let taken: Vec<_> = [1, 16, 17, 3].map(|w| layout.take(w)).into();
    let arena = Arena::new(0, layout.heap_bytes(2)).unwrap();
    let heap = Heap::new(&arena, layout, 2).unwrap();
    let mut lines: Vec<usize> = Vec::new();
    for rank in 0..2 {
        for t in &taken {
            let words = heap.at(rank, *t);
            assert_eq!(words.len(), t.words());
            let (first, last) = (&raw const words[0], &raw const words[words.len() - 1]);
            lines.extend(first as usize / CELL_BYTES..=last as usize / CELL_BYTES);
        }
    }
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), all);
}

#[test]
fn repeated_runs_do_not_grow() {
    let _shared = CPUS.read().unwrap_or_else(PoisonError::into_inner);
    let resident_kb = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let run = |times: usize| {
        for _ in 0..times {
            for model in models() {
                model.run(&seats(2, OTHER), LIMIT_NS, &|_: &Member<'_>| {}).unwrap();
            }
        }
    };
    run(20);
    let before_kb = resident_kb();
    run(100);
    let after_kb = resident_kb();
    // Other tests of this program run meanwhile; a leak of one arena or stack per run would be 100 times its size.
    assert!(after_kb < before_kb + 16 * 1024, "{before_kb} kB, then {after_kb} kB");
}
