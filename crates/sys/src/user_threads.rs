//! User-level threads: many of them on one thread of the system, with a run queue of their own (the user side of Solaris' M:N
//! threads). They are switched by themselves, never by the kernel: a thread goes on until it yields or ends.

use std::hint::black_box;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::{MIN_STACK_SIZE, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustix::mm::{MapFlags, MprotectFlags};

use crate::process::fork::panic_text;
use crate::region::{Mapping, READ_WRITE};

/// A mapped stack. Its lowest page is a guard that nobody can touch.
struct MappedStack(Mapping);

impl MappedStack {
    fn new(bytes: usize) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let bytes = bytes.max(MIN_STACK_SIZE).checked_next_multiple_of(page_bytes);
        let bytes = bytes.and_then(|b| b.checked_add(page_bytes)).ok_or(io::ErrorKind::OutOfMemory)?;
        let kind = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
        let mapping = Mapping::anonymous(bytes, READ_WRITE, kind)?;
        // SAFETY: the first page of the mapping just made, in which nothing lies.
        unsafe { rustix::mm::mprotect(mapping.start().as_ptr().cast(), page_bytes, MprotectFlags::empty()) }?;
        Ok(Self(mapping))
    }
}

// SAFETY: base and limit are the ends of one mapping with a guard page at its lower end and at least the smallest size above;
// both are multiples of a page, hence of the alignment of stacks.
unsafe impl Stack for MappedStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.limit().saturating_add(self.0.bytes())
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.0.start().addr()
    }
}

/// Stacks to run on, kept from one run to the next, so that their pages are touched once.
#[derive(Default)]
pub struct Stacks {
    stacks: Vec<MappedStack>,
}

impl Stacks {
    /// `count` stacks of at least `bytes` each, with a guard page below.
    pub fn new(count: usize, bytes: usize) -> io::Result<Self> {
        let stacks = (0..count).map(|_| MappedStack::new(bytes)).collect::<io::Result<_>>()?;
        Ok(Self { stacks })
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.stacks.len()
    }
}

/// The running user thread's way to let the next one go on.
pub struct Turn<'y>(&'y Yielder<(), ()>);

impl Turn<'_> {
    /// Lets the others go on; returns when all that are ready had their turn.
    #[inline]
    pub fn yield_now(&self) {
        self.0.suspend(());
    }
}

/// Runs `work(i, turn)` as user thread `i` for every stack, in turns on the calling thread, until all have ended. A panic ends
/// its own thread and is returned as its text.
pub fn run_all<F: Fn(usize, &Turn<'_>)>(stacks: &mut Stacks, work: &F) -> Vec<Result<(), String>> {
    let mut ends = vec![Ok(()); stacks.count()];
    let mut queue = Vec::with_capacity(ends.len());
    for (i, (stack, end)) in stacks.stacks.iter_mut().zip(&mut ends).enumerate() {
        let body = move |yielder: &Yielder<(), ()>, ()| {
            let ended = catch_unwind(AssertUnwindSafe(|| work(i, &Turn(yielder))));
            *end = ended.map_err(|payload| panic_text(payload.as_ref()).to_owned());
        };
        // SAFETY: the thread ends or is dropped in this function, which `work`, its stack and its end outlive.
        queue.push(unsafe { Coroutine::<(), (), (), _>::with_stack_unchecked(stack, body) });
    }
    while !queue.is_empty() {
        black_box(until_one_ends(&mut queue));
        queue.retain(|thread| !thread.done());
    }
    drop(queue);
    ends
}

/// Resumes all threads in rounds, until a thread ended in a round; returns the rounds. A function of its own, because only two
/// registers survive a switch; counting keeps the jump back from becoming a conditional move. Generic, so that it is compiled
/// in the crate that calls [`run_all`].
#[inline(never)]
fn until_one_ends<S: Stack>(queue: &mut [Coroutine<(), (), (), S>]) -> u64 {
    let mut rounds = 0;
    let mut ended = queue.is_empty();
    while !ended {
        rounds += 1;
        for thread in &mut *queue {
            ended |= matches!(thread.resume(()), CoroutineResult::Return(()));
        }
    }
    rounds
}

/// Creates a user thread on the first stack, runs it to its end and joins it, `times` times; `work` says whether it did its
/// share. Returns how many did. Nothing without a stack.
#[inline]
pub fn create_and_join<F: Fn(&Turn<'_>) -> bool>(stacks: &mut Stacks, times: u64, work: &F) -> u64 {
    let Some(stack) = stacks.stacks.first_mut() else { return 0 };
    let mut done = 0;
    for _ in 0..times {
        let body = move |yielder: &Yielder<(), ()>, ()| work(&Turn(yielder));
        // SAFETY: the thread ends or is dropped in this turn of the loop, which `work` and the stack outlive.
        let mut thread = unsafe { Coroutine::<(), (), bool, _>::with_stack_unchecked(&mut *stack, body) };
        loop {
            if let CoroutineResult::Return(ok) = thread.resume(()) {
                done += u64::from(ok);
                break;
            }
        }
    }
    done
}

/// What [`run_all`] takes without its queue: the stacks' threads in turns, resumed by a plain loop over them, `turns` times each.
/// (Two threads resumed from two places of the code take half as long: the processor then foresees each jump. No loop over any
/// number of threads can have that.) Returns the switches made. They are not counted one by one: few registers outlive a switch,
/// and with a count in memory the loop took a tenth longer on Zen 4. A thread that returns when it is resumed after `turns` turns yielded in
/// each of them, since resuming one that has ended panics.
#[inline]
pub fn bare_switches(stacks: &mut Stacks, turns: u64) -> u64 {
    let body = move |yielder: &Yielder<(), ()>, ()| (0..turns).for_each(|_| yielder.suspend(()));
    let thread = |stack| {
        // SAFETY: the thread ends or is dropped in this function, which its stack outlives; it borrows nothing.
        unsafe { Coroutine::<(), (), (), _>::with_stack_unchecked(stack, body) }
    };
    let mut threads: Vec<_> = stacks.stacks.iter_mut().map(thread).collect();
    for _ in 0..turns {
        for thread in &mut threads {
            let _ = thread.resume(());
        }
    }
    threads
        .iter_mut()
        .map(|t| if matches!(t.resume(()), CoroutineResult::Return(())) { turns } else { 0 })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::monotonic_ns;
    use std::cell::{Cell, RefCell};

    #[test]
    fn threads_take_turns_and_a_panic_ends_one_alone() {
        let mut stacks = Stacks::new(3, 64 * 1024).unwrap();
        for _ in 0..2 {
            let log = RefCell::new(Vec::new());
            let ends = run_all(&mut stacks, &|i, turn| {
                for step in 0..=i {
                    assert!(!(i == 1 && step == 1), "thread {i} on purpose");
                    log.borrow_mut().push((i, step));
                    turn.yield_now();
                }
            });
            assert_eq!(ends, [Ok(()), Err("thread 1 on purpose".to_owned()), Ok(())]);
            assert_eq!(log.into_inner(), [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]);
        }
    }

    #[test]
    fn created_threads_are_joined_with_what_they_did() {
        let mut stacks = Stacks::new(1, 16 * 1024).unwrap();
        let count = Cell::new(0_u64);
        let work = |turn: &Turn<'_>| {
            count.set(count.get() + 1);
            turn.yield_now();
            count.get().is_multiple_of(2)
        };
        assert_eq!(create_and_join(&mut stacks, 1_000, &work), 500);
        assert_eq!(count.get(), 1_000);
        assert_eq!(create_and_join(&mut Stacks::default(), 10, &work), 0);
    }

    /// The run queue adds little to what the library itself takes to switch to two threads in turn.
    #[test]
    fn a_turn_costs_what_two_bare_switches_cost() {
        const TURNS: u64 = 100_000;
        let timed = |work: &mut dyn FnMut()| {
            let begin_ns = monotonic_ns();
            work();
            monotonic_ns() - begin_ns
        };
        let mut stacks = Stacks::new(2, 64 * 1024).unwrap();
        let mut ours = || {
            let ends = run_all(&mut stacks, &|_, turn| (0..TURNS).for_each(|_| turn.yield_now()));
            assert!(ends.iter().all(Result::is_ok));
        };
        let mut others = Stacks::new(2, 64 * 1024).unwrap();
        let mut bare = || assert_eq!(bare_switches(&mut others, TURNS), 2 * TURNS);
        // In turns, so that a slower moment of the machine meets both.
        let pairs: Vec<(u64, u64)> = (0..25).map(|_| (timed(&mut ours), timed(&mut bare))).collect();
        let (ours_ns, bare_ns) =
            (pairs.iter().map(|p| p.0).min().unwrap(), pairs.iter().map(|p| p.1).min().unwrap());
        let ratio = ours_ns as f64 / bare_ns as f64;
        // Unoptimized builds weigh the queue more than the switch.
        assert!((0.3..4.0).contains(&ratio), "{ours_ns} ns against {bare_ns} ns");
    }
}
