//! What a thread keeps: how deep it is in calls, the free slots of its block, and handles that it used lately.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::format::{ALL_RANKS, COMMUNICATOR, INTER, MARK, MEMBERS, MEMBERS_PER_SLOT, kind_word};

use crate::clock;
use crate::communicators::{self, Known, UNKNOWN};
use crate::file::{RECORDING, Slot, take_block};
use crate::library::{HANDLE_BITS, Library, Of, library};
use crate::system;

/// Key that no handle has.
const EMPTY: usize = usize::MAX;
/// Handles of a kind that a thread remembers beside the last one.
const REMEMBERED: usize = 8;

/// Counts frees of handles, after which threads ask again.
pub(crate) static FREED: AtomicU32 = AtomicU32::new(0);

/// A thread that called MPI; it is never freed.
pub(crate) struct Local {
    /// Calls that have not returned: those inside others are the library's own.
    depth: Cell<u32>,
    thread: UnsafeCell<Thread>,
}

/// Handles of a kind by their keys, with what is known of them.
struct Remembered<T> {
    last: (usize, T),
    others: [(usize, T); REMEMBERED],
}

impl<T: Copy> Remembered<T> {
    const fn new(nothing: T) -> Self {
        Self { last: (EMPTY, nothing), others: [(EMPTY, nothing); REMEMBERED] }
    }

    /// Place among the others: the upper bits of a product with an odd constant (Knuth 3, 6.4).
    fn place(key: usize) -> usize {
        const { assert!(REMEMBERED == 8) };
        ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize
    }

    fn find(&mut self, key: usize) -> Option<T> {
        let found = self.others[Self::place(key)];
        if found.0 != key {
            return None;
        }
        self.last = found;
        Some(found.1)
    }

    fn add(&mut self, key: usize, value: T) -> T {
        self.last = (key, value);
        self.others[Self::place(key)] = self.last;
        value
    }
}

pub(crate) struct Thread {
    freed: u32,
    /// Slots of its block that are free.
    free: &'static [Slot],
    number: Option<u64>,
    /// Communicators, and windows with what is known of their communicators.
    known: [Remembered<&'static Known>; 2],
    datatypes: Remembered<i64>,
}

// The library is there when the program starts, so that its thread-local word can be at a fixed distance from the thread's own address
// (initial-exec model): two instructions in place of a call. Rust's `thread_local` cannot choose the model.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
std::arch::global_asm!(
    ".section .tbss,\"awT\",%nobits",
    ".p2align 3",
    ".globl machmeter_pmpi_local",
    ".hidden machmeter_pmpi_local",
    ".type machmeter_pmpi_local,%object",
    ".size machmeter_pmpi_local,8",
    "machmeter_pmpi_local:",
    ".zero 8",
    ".text",
);

/// Address of the calling thread's word.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn word() -> *mut *const Local {
    let (offset, base): (usize, usize);
    // SAFETY: reads the word's distance, and the thread's own address, which the System V ABI keeps at fs:0.
    unsafe {
        std::arch::asm!(
            "mov {offset}, qword ptr [rip + machmeter_pmpi_local@GOTTPOFF]", "mov {base}, qword ptr fs:[0]",
            offset = out(reg) offset, base = out(reg) base,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    base.wrapping_add(offset) as *mut *const Local
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn word() -> *mut *const Local {
    let (offset, base): (usize, usize);
    // SAFETY: reads the word's distance and the thread pointer.
    unsafe {
        std::arch::asm!(
            "adrp {offset}, :gottprel:machmeter_pmpi_local",
            "ldr {offset}, [{offset}, #:gottprel_lo12:machmeter_pmpi_local]",
            "mrs {base}, tpidr_el0",
            offset = out(reg) offset, base = out(reg) base,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    base.wrapping_add(offset) as *mut *const Local
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn word() -> *mut *const Local {
    thread_local! {
        static LOCAL: Cell<*const Local> = const { Cell::new(std::ptr::null()) };
    }
    LOCAL.with(Cell::as_ptr)
}

#[inline(always)]
pub(crate) fn local() -> &'static Local {
    // SAFETY: the word is this thread's, aligned, and 0 or what `make` wrote.
    let local = unsafe { *word() };
    if local.is_null() {
        return make();
    }
    // SAFETY: never freed, and used by this thread alone.
    unsafe { &*local }
}

#[cold]
#[inline(never)]
fn make() -> &'static Local {
    let thread = UnsafeCell::new(Thread::new());
    let local = Box::leak(Box::new(Local { depth: Cell::new(0), thread }));
    // SAFETY: the word is this thread's.
    unsafe { *word() = local };
    local
}

impl Local {
    /// Counts a call; whether it is the outermost.
    #[inline(always)]
    pub(crate) fn nest(&self) -> bool {
        if self.depth.get() > 0 {
            self.nest_deeper();
            return false;
        }
        self.depth.set(1);
        true
    }

    #[cold]
    #[inline(never)]
    fn nest_deeper(&self) {
        self.depth.set(self.depth.get() + 1);
    }

    #[inline(always)]
    pub(crate) fn unnest(&self) {
        self.depth.set(self.depth.get().wrapping_sub(1));
    }

    pub(crate) fn is_outermost(&self) -> bool {
        self.depth.get() == 1
    }

    /// What the thread remembers. Only an outermost call may ask, while [`Self::nest`] counts it and while it has no other such
    /// reference.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "a cell; the depth guards it")]
    pub(crate) fn thread(&self) -> &mut Thread {
        // SAFETY: of this thread alone. While the reference is used there are calls of the MPI library at most, from which calls of
        // recorded names have a depth above 1, at which nothing gets here.
        unsafe { &mut *self.thread.get() }
    }
}

impl Thread {
    fn new() -> Self {
        Self {
            freed: 0,
            free: &[],
            number: None,
            known: [const { Remembered::new(&UNKNOWN) }; 2],
            datatypes: Remembered::new(0),
        }
    }

    /// Forgets what it remembers of handles where one was freed.
    #[inline(always)]
    pub(crate) fn forget_freed(&mut self) {
        if FREED.load(Ordering::Relaxed) != self.freed {
            self.forget();
        }
    }

    /// A free slot, from a new block where the last one is full.
    #[inline(always)]
    pub(crate) fn slot(&mut self) -> Option<&'static Slot> {
        if self.free.is_empty() && !self.refill() {
            return None;
        }
        let (slot, rest) = self.free.split_first()?;
        self.free = rest;
        Some(slot)
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> bool {
        if !RECORDING.load(Ordering::Acquire) {
            return false;
        }
        let Some((block, number)) = take_block(self.number) else { return false };
        self.number = Some(number);
        self.free = block;
        self.mark();
        true
    }

    /// Writes the time and the CPU time of the thread.
    fn mark(&mut self) {
        let (Some(number), Some(slot)) = (self.number, self.slot()) else { return };
        let (ticks, at_ns) = clock::pair();
        let cpu_ns = clock::now_ns(system::CLOCK_THREAD_CPUTIME_ID);
        write(slot, [ticks, kind_word(MARK, number), at_ns, cpu_ns]);
    }

    /// Writes the last mark and takes no more slots.
    pub(crate) fn finish(&mut self) {
        if self.free.is_empty() {
            // A new block begins with a mark.
            self.refill();
        } else {
            self.mark();
        }
        self.free = &[];
    }

    #[cold]
    #[inline(never)]
    fn forget(&mut self) {
        self.freed = FREED.load(Ordering::Relaxed);
        self.known = [const { Remembered::new(&UNKNOWN) }; 2];
        self.datatypes = Remembered::new(0);
    }

    /// What is known of a communicator, or of that of a window, by its key: see [`c_handle`].
    #[inline(always)]
    pub(crate) fn known(&mut self, of: Of, key: usize) -> &'static Known {
        let (last, known) = self.known[of as usize].last;
        if last == key { known } else { self.learn(of, key) }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, of: Of, key: usize) -> &'static Known {
        if let Some(known) = self.known[of as usize].find(key) {
            return known;
        }
        let Some(library) = library() else { return &UNKNOWN };
        let handle = c_handle(library, key, of);
        let mut known = communicators::find(handle, of);
        if known.is_none() && of == Of::Communicator {
            known = self.add(library, handle);
        }
        self.known[of as usize].add(key, known.unwrap_or(&UNKNOWN))
    }

    /// Asks for a communicator and writes what the library says.
    pub(crate) fn add(&mut self, library: &Library, handle: usize) -> Option<&'static Known> {
        if handle == library.no_communicator {
            return None;
        }
        let known = communicators::add(library, handle)?;
        if known.index_word == UNKNOWN.index_word {
            return Some(known);
        }
        let flags = if known.is_inter { INTER } else { 0 } | if known.is_world { ALL_RANKS } else { 0 };
        let size = known.ranks.len() as u64;
        write(self.slot()?, [flags, kind_word(COMMUNICATOR, 0), size, known.index_word]);
        let listed = if known.is_world { &[] } else { known.ranks };
        for six in listed.chunks(MEMBERS_PER_SLOT) {
            let rank = |i: usize| six.get(i).map_or(0, |r| u64::from((*r).max(-1) as u32));
            let two = |i: usize| rank(i) | rank(i + 1) << 32;
            write(self.slot()?, [two(0), kind_word(MEMBERS, 0), two(2), two(4)]);
        }
        Some(known)
    }

    #[inline(always)]
    pub(crate) fn element(&mut self, key: usize) -> i64 {
        let (last, bytes) = self.datatypes.last;
        if last == key { bytes } else { self.learn_datatype(key) }
    }

    #[cold]
    #[inline(never)]
    fn learn_datatype(&mut self, key: usize) -> i64 {
        if let Some(bytes) = self.datatypes.find(key) {
            return bytes;
        }
        let Some(library) = library() else { return 0 };
        let mut bytes: c_int = 0;
        (library.call.type_size)(c_handle(library, key, Of::Datatype), &raw mut bytes);
        self.datatypes.add(key, i64::from(bytes.max(0)))
    }
}

/// Mark of a key that is a Fortran handle: a C handle is an address, or its upper half is not looked at.
pub(crate) const FORTRAN: usize = 1 << 62;

/// The C handle of a key: a word as C passes it, or a Fortran handle with its mark.
pub(crate) fn c_handle(library: &Library, key: usize, of: Of) -> usize {
    let bits = HANDLE_BITS.load(Ordering::Relaxed);
    if key & FORTRAN == 0 || bits != usize::MAX { key & bits } else { library.c_handle(of, key as u32) }
}

/// The second word last: a slot without it is none.
#[inline(always)]
pub(crate) fn write(slot: &Slot, words: [u64; 4]) {
    slot[0].store(words[0], Ordering::Relaxed);
    slot[2].store(words[2], Ordering::Relaxed);
    slot[3].store(words[3], Ordering::Relaxed);
    slot[1].store(words[1], Ordering::Release);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A thread that knows the sizes of datatypes by their keys.
    pub(crate) fn thread(datatypes: &[(usize, i64)]) -> Thread {
        let mut thread = Thread::new();
        for (key, bytes) in datatypes {
            thread.datatypes.add(*key, *bytes);
        }
        thread
    }

    #[test]
    fn handles_are_remembered_by_key_and_the_last_one_beside_them() {
        let mut remembered = Remembered::new(0);
        for key in 1..=100 {
            assert_eq!(remembered.add(key, key * 10), key * 10);
            assert_eq!((remembered.last, remembered.find(key)), ((key, key * 10), Some(key * 10)));
        }
        let kept: Vec<usize> = (1..=100).filter(|key| remembered.find(*key).is_some()).collect();
        assert!((2..=REMEMBERED).contains(&kept.len()), "{kept:?}");
        for key in kept {
            assert_eq!(remembered.find(key), Some(key * 10));
            assert_eq!(remembered.last.0, key);
        }
    }

    #[test]
    fn only_the_outermost_call_counts_and_each_thread_for_itself() {
        let nested = || {
            let local = local();
            let outer = (local.nest(), local.is_outermost());
            let inner = (local.nest(), local.is_outermost());
            local.unnest();
            let after = local.is_outermost();
            local.unnest();
            (outer, inner, after)
        };
        let own = nested();
        assert_eq!(own, ((true, true), (false, false), true));
        local().nest();
        assert_eq!(std::thread::scope(|s| s.spawn(nested).join().unwrap()), own);
        local().unnest();
    }
}
