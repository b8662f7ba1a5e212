//! The only unsafe code of the crate: boxes of any type behind one call, memory behind ports, and the loop that fires.
//!
//! What it relies on, and who sees to it: a static port's place has room for the firings it is applied with (`schedule`,
//! `scheduler`); no box has two ports on the same memory of which one writes (`graph`); one worker, so that one apply runs at a time.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index};
use std::ptr::NonNull;

use rustfft::num_complex::Complex;

use crate::graph::Binder;
use crate::names::Name;
use crate::schedule::Schedule;
use crate::scheduler::Core;
use crate::timer::Timer;
use crate::views::{Reader, Writer};
use crate::{Outcome, Primitive};

mod ports;
mod watched;
pub use ports::{Many, Port};
pub use watched::{Call, Watch};
pub(crate) use watched::{Control, Watched, watch};

/// What can be in a queue.
///
/// # Safety
/// Any bytes are a valid value, and it has no padding.
pub unsafe trait Token: Copy + 'static {}

macro_rules! tokens {
    ($($t:ty)*) => { $(
        // SAFETY: a number: all bytes are valid, none is padding.
        unsafe impl Token for $t {}
    )* };
}
tokens!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);
// SAFETY: two numbers of one type, `repr(C)`.
unsafe impl<T: Token> Token for Complex<T> {}
// SAFETY: values in a row, without padding between them.
unsafe impl<T: Token, const N: usize> Token for [T; N] {}

/// Which firings of an iteration one apply does.
#[derive(Debug, Clone, Copy)]
pub struct Firings {
    pub(crate) first: u32,
    pub(crate) times: u32,
}

struct Node<B: Primitive> {
    state: B,
    ports: B::Ports,
}

impl<B: Primitive> Node<B> {
    /// # Safety
    /// It is a `Node<B>`, no other call of it runs, and places have room for these firings.
    unsafe fn apply(p: NonNull<()>, core: &Core, first: u32, times: u32) -> Outcome {
        // SAFETY: as the caller promises.
        let node = unsafe { p.cast::<Self>().as_mut() };
        // SAFETY: as the caller promises.
        node.state.apply(unsafe { node.ports.view(core, Firings { first, times }) })
    }
}

/// What is asked of a box outside of the loop.
pub(crate) trait Methods {
    fn reset(&mut self);
    fn eos(&mut self, core: &Core);
    fn destroy(&mut self);
}

impl<B: Primitive> Methods for Node<B> {
    fn reset(&mut self) {
        self.state.reset();
    }
    fn eos(&mut self, core: &Core) {
        // SAFETY: no firings, so that static ports are empty; no apply runs.
        self.state.eos(unsafe { self.ports.view(core, Firings { first: 0, times: 0 }) });
    }
    fn destroy(&mut self) {
        self.state.destroy();
    }
}

type Apply = unsafe fn(NonNull<()>, &Core, u32, u32) -> Outcome;

/// A box whose type is forgotten.
pub(crate) struct Erased {
    node: NonNull<dyn Methods>,
    apply: Apply,
}

impl Erased {
    pub(crate) fn new<B: Primitive>(state: B, mut ports: B::Ports, binder: &mut Binder<'_>) -> Self {
        ports.bind(binder);
        Self { node: NonNull::from(Box::leak(Box::new(Node { state, ports }))), apply: Node::<B>::apply }
    }
    #[allow(clippy::mut_from_ref, reason = "entries have the pointer as well, and one call runs at a time")]
    pub(crate) fn node(&self) -> &mut dyn Methods {
        // SAFETY: it lives as long as this value, and one call runs at a time.
        unsafe { &mut *self.node.as_ptr() }
    }
    /// What the loop calls, for the box of this number.
    pub(crate) fn entry(&self, number: usize, [first, times, per_iteration]: [u64; 3]) -> Entry {
        let [number, first, times, per_iteration] =
            [number as u64, first, times, per_iteration].map(|n| n as u32);
        Entry { apply: self.apply, node: self.node.cast(), number, first, times, per_iteration }
    }
}

impl Drop for Erased {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`, and nothing calls it any more: entries live in the same program.
        drop(unsafe { Box::from_raw(self.node.as_ptr()) });
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Entry {
    apply: Apply,
    node: NonNull<()>,
    number: u32,
    first: u32,
    times: u32,
    per_iteration: u32,
}

/// Fires all boxes of a schedule from where it was left; where and how it stopped.
#[inline(always)]
pub(crate) fn run_schedule<T: Timer>(
    core: &Core,
    s: &Schedule,
    is_cyclic: bool,
    from: usize,
    granularity: u32,
) -> (usize, Outcome) {
    T::enter(&core.log, Name::RunSchedule as u8);
    T::enter(&core.log, Name::RunSchedPass as u8);
    let ended = if is_cyclic {
        run_by_iteration::<T>(core, s, from, granularity)
    } else {
        run_flat::<T>(core, &s.entries, from, granularity)
    };
    T::leave(&core.log);
    T::leave(&core.log);
    ended
}

/// Each box once, for all iterations.
#[inline(always)]
fn run_flat<T: Timer>(core: &Core, entries: &[Entry], from: usize, granularity: u32) -> (usize, Outcome) {
    let mut rest = entries[from..].iter();
    while let Some(e) = rest.next() {
        let outcome = fire::<T>(core, e, 0, e.times * granularity);
        if outcome != Outcome::Done {
            let outcome = again::<T>(core, e, granularity, outcome);
            if outcome != Outcome::Done {
                return (entries.len() - rest.len() - 1, outcome);
            }
        }
    }
    (0, Outcome::Done)
}

/// Calls a box that was not done until it is.
#[cold]
fn again<T: Timer>(core: &Core, e: &Entry, granularity: u32, mut outcome: Outcome) -> Outcome {
    while outcome == Outcome::NotDone {
        outcome = fire::<T>(core, e, 0, e.times * granularity);
    }
    outcome
}

#[inline(always)]
fn fire<T: Timer>(core: &Core, e: &Entry, first: u32, times: u32) -> Outcome {
    T::enter(&core.log, Name::Apply as u8);
    // SAFETY: the entry's node lives in the same program; places have room for these firings.
    let outcome = unsafe { (e.apply)(e.node, core, first, times) };
    T::turn(&core.log, Name::RunSchedPass as u8);
    outcome
}

/// All boxes iteration by iteration: a cycle lets none of them run ahead.
#[inline(never)]
fn run_by_iteration<T: Timer>(core: &Core, s: &Schedule, from: usize, granularity: u32) -> (usize, Outcome) {
    let n = s.entries.len();
    let mut at = from;
    while at < n * granularity as usize {
        let (e, iteration) = (&s.entries[at % n], (at / n) as u32);
        match fire::<T>(core, e, e.first + iteration * e.per_iteration, e.times) {
            Outcome::Done => at += 1,
            Outcome::NotDone => {}
            other => return (at, other),
        }
    }
    (0, Outcome::Done)
}

pub(crate) struct Id<T>(u32, PhantomData<fn() -> T>);

impl<T> Id<T> {
    /// `program` sees to it that the table has it: it numbers what it puts there.
    pub(crate) const fn new(number: usize) -> Self {
        Self(number as u32, PhantomData)
    }
    pub(crate) const fn number(self) -> usize {
        self.0 as usize
    }
}
impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}

/// What a program has many of; a look at it is checked in debug builds.
pub(crate) struct Table<T>(Box<[T]>);

impl<T> FromIterator<T> for Table<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}
impl<T> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}
impl<T> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
impl<T> Index<Id<T>> for Table<T> {
    type Output = T;
    #[inline]
    fn index(&self, id: Id<T>) -> &T {
        debug_assert!(id.number() < self.0.len());
        // SAFETY: ids are made by `program` for what it puts into the table, which never shrinks.
        unsafe { self.0.get_unchecked(id.number()) }
    }
}

pub(crate) fn bytes_of<T: Token>(tokens: &[T]) -> &[u8] {
    // SAFETY: tokens have no padding.
    unsafe { std::slice::from_raw_parts(tokens.as_ptr().cast(), size_of_val(tokens)) }
}

impl<T: Token> Reader<'_, T> {
    /// `n` tokens in a row, if that many are there (of this segment).
    #[inline]
    pub fn read(&mut self, n: usize) -> Option<&[T]> {
        // SAFETY: `n` tokens lie there, and stay until they are consumed, which needs this value.
        self.has(n).then(|| unsafe { std::slice::from_raw_parts(self.window.at.cast(), n) })
    }
}

impl<T: Token> Writer<'_, T> {
    /// Room for `n` tokens in a row, if there is.
    #[inline]
    pub fn write(&mut self, n: usize) -> Option<&mut [T]> {
        // SAFETY: that much room is there, any bytes are tokens, and nobody reads it before it is produced, which needs this value.
        self.has(n).then(|| unsafe { std::slice::from_raw_parts_mut(self.window.at.cast(), n) })
    }
}

pub(crate) type Place = Cell<*mut u8>;
