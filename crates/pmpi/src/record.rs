//! What happens around a call: a slot is filled before it, and its time written after it. No lock, no allocation and no system call,
//! but for each 127th call of a thread (a new block) and for handles that the thread did not use lately.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use machmeter_data::trace::{
    ABSENT, ALL_RANKS, Arguments, Bytes, COMMUNICATOR, Handle, INTER, MARK, MEMBERS, MEMBERS_PER_SLOT,
    NO_COMMUNICATOR, NO_NUMBER, Number, OPEN, kind_word, peer_word, size_word,
};

use crate::clock;
use crate::communicators::{self, Known, UNKNOWN};
use crate::file::{self, Begin, RECORDING, SLOT_WORDS, take_block};
use crate::library::{HANDLE_BITS, IN_PLACE, Library, Of, library};

/// How a function takes its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Values; counts are ints.
    C,
    /// Values; counts have 64 bits.
    LargeCount,
    /// References.
    Fortran,
    /// References, and buffers by descriptors whose first word is the address.
    Descriptors,
}

impl Form {
    const fn is_fortran(self) -> bool {
        matches!(self, Self::Fortran | Self::Descriptors)
    }
}

/// Mark of a key that is a Fortran handle: C handles are ints or addresses below it.
const FORTRAN: usize = 1 << 62;
/// Mark of a key that is a window.
const WINDOW: usize = 1 << 61;
/// Key that no handle has.
const EMPTY: usize = usize::MAX;
/// Handles that a thread remembers, of communicators and of datatypes.
const REMEMBERED: usize = 8;

/// Counts frees of handles, after which threads ask again.
static FREED: AtomicU32 = AtomicU32::new(0);

/// A thread.
struct Local {
    /// Calls that have not returned: those inside others are the library's own.
    depth: Cell<u32>,
    thread: UnsafeCell<Thread>,
}

/// What a thread remembers.
struct Thread {
    freed: u32,
    /// Slots of its block that are free.
    free: &'static [AtomicU64],
    number: Option<u64>,
    communicators: [(usize, Known); REMEMBERED],
    datatypes: [(usize, i64); REMEMBERED],
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            depth: Cell::new(0),
            thread: UnsafeCell::new(Thread {
                freed: 0,
                free: &[],
                number: None,
                communicators: [(EMPTY, UNKNOWN); REMEMBERED],
                datatypes: [(EMPTY, 0); REMEMBERED],
            }),
        }
    };
}

/// Counts a call; whether it is the outermost.
#[inline(always)]
pub(crate) fn nest() -> bool {
    LOCAL.with(|local| {
        local.depth.set(local.depth.get() + 1);
        local.depth.get() == 1
    })
}

/// Whether one call is counted.
pub(crate) fn is_outermost() -> bool {
    LOCAL.with(|local| local.depth.get() == 1)
}

/// Counts its return.
#[inline(always)]
pub(crate) fn unnest() {
    LOCAL.with(|local| local.depth.set(local.depth.get().wrapping_sub(1)));
}

/// Runs on what the thread remembers. Only an outermost call may, and only while [`nest`] counts it.
#[inline(always)]
fn with<R>(work: impl FnOnce(&mut Thread) -> R) -> R {
    // SAFETY: of this thread alone. `work` calls functions of the MPI library at most, from which calls of recorded names have a depth
    // above 1, at which nothing gets here.
    LOCAL.with(|local| work(unsafe { &mut *local.thread.get() }))
}

/// A call that is recorded; `slot` is missing where it is not.
pub(crate) struct Call {
    slot: Option<&'static [AtomicU64]>,
}

/// A value that Fortran passes by reference.
#[inline(always)]
fn referenced<T: Copy>(word: usize) -> T {
    // SAFETY: the MPI standard has a value of this type here; addresses of arguments need not be aligned in Fortran.
    unsafe { (word as *const T).read_unaligned() }
}

/// An int argument.
#[inline(always)]
fn int(form: Form, word: usize) -> i32 {
    if form.is_fortran() { referenced::<i32>(word) } else { word as i32 }
}

/// A count argument.
#[inline(always)]
fn count(form: Form, word: usize) -> i64 {
    if form == Form::LargeCount { word as i64 } else { i64::from(int(form, word)) }
}

/// A key for a handle argument: the same handle always has the same.
#[inline(always)]
fn key(form: Form, word: usize) -> usize {
    if form.is_fortran() {
        referenced::<u32>(word) as usize | FORTRAN
    } else {
        word & HANDLE_BITS.load(Ordering::Relaxed)
    }
}

/// A key for a handle behind an address, as in arrays and for results.
fn key_at(form: Form, address: usize) -> usize {
    if form.is_fortran() || HANDLE_BITS.load(Ordering::Relaxed) != usize::MAX {
        referenced::<u32>(address) as usize | if form.is_fortran() { FORTRAN } else { 0 }
    } else {
        referenced::<usize>(address)
    }
}

/// The C handle of a key.
fn c_handle(library: &Library, key: usize, of: Of) -> usize {
    if key & FORTRAN == 0 { key & !WINDOW } else { library.from_fortran(of, key as u32) }
}

/// Place of a key among the remembered: the upper bits of a product with an odd constant (Knuth 3, 6.4).
#[inline(always)]
fn place(key: usize) -> usize {
    const { assert!(REMEMBERED == 8) };
    ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize
}

impl Thread {
    /// A free slot, from a new block where the last one is full.
    #[inline(always)]
    fn slot(&mut self) -> Option<&'static [AtomicU64]> {
        if self.free.is_empty() && !self.refill() {
            return None;
        }
        let (slot, rest) = self.free.split_at(SLOT_WORDS);
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
        write(slot, [ticks, kind_word(MARK, number), at_ns, clock::now_ns(libc::CLOCK_THREAD_CPUTIME_ID)]);
    }

    #[inline(always)]
    fn communicator(&mut self, key: usize) -> Known {
        let (remembered, known) = &self.communicators[place(key)];
        if *remembered == key { *known } else { self.learn(key) }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, key: usize) -> Known {
        let Some(library) = library() else { return UNKNOWN };
        let is_window = key & WINDOW != 0;
        let of = if is_window { Of::Window } else { Of::Communicator };
        let handle = c_handle(library, key, of);
        let known = communicators::find(handle, of);
        let known =
            known.or_else(|| if is_window { None } else { self.add(library, handle) }).unwrap_or(UNKNOWN);
        self.communicators[place(key)] = (key, known);
        known
    }

    /// Asks for a communicator and writes what the library says.
    fn add(&mut self, library: &Library, handle: usize) -> Option<Known> {
        if handle == library.no_communicator {
            return None;
        }
        let added = communicators::add(library, handle)?;
        let known = added.known;
        if known.index == NO_COMMUNICATOR {
            return Some(known);
        }
        let flags =
            if added.is_inter { INTER } else { 0 } | if known.ranks.is_none() { ALL_RANKS } else { 0 };
        write(
            self.slot()?,
            [flags, kind_word(COMMUNICATOR, 0), known.size as u64, u64::from(known.index) << 48],
        );
        for six in known.ranks.unwrap_or_default().chunks(MEMBERS_PER_SLOT) {
            let rank = |i: usize| six.get(i).map_or(0, |r| u64::from((*r).max(-1) as u32));
            let two = |i: usize| rank(i) | rank(i + 1) << 32;
            write(self.slot()?, [two(0), kind_word(MEMBERS, 0), two(2), two(4)]);
        }
        Some(known)
    }

    /// Bytes of an element.
    #[inline(always)]
    fn element(&mut self, key: usize) -> i64 {
        let (remembered, bytes) = self.datatypes[place(key)];
        if remembered == key { bytes } else { self.learn_datatype(key) }
    }

    #[cold]
    #[inline(never)]
    fn learn_datatype(&mut self, key: usize) -> i64 {
        let Some(library) = library() else { return 0 };
        let mut bytes: c_int = 0;
        (library.call.type_size)(c_handle(library, key, Of::Datatype), &raw mut bytes);
        let bytes = i64::from(bytes.max(0));
        self.datatypes[place(key)] = (key, bytes);
        bytes
    }

    /// Bytes of `n` elements; the datatype of none need not be valid.
    #[inline(always)]
    fn bytes_of(&mut self, n: i64, datatype: impl FnOnce() -> usize) -> u64 {
        if n <= 0 { 0 } else { (n as u64).saturating_mul(self.element(datatype()) as u64) }
    }

    #[inline(always)]
    fn bytes(&mut self, what: Bytes, form: Form, words: &[usize], over: Known) -> u64 {
        let word = |place: u8| words[usize::from(place)];
        match what {
            Bytes::None => 0,
            Bytes::Count(n, datatype) => self.bytes_of(count(form, word(n)), || key(form, word(datatype))),
            Bytes::One(datatype) => self.bytes_of(1, || key(form, word(datatype))),
            Bytes::PerRank(n, datatype) => {
                let n = count(form, word(n)).saturating_mul(i64::from(over.size));
                self.bytes_of(n, || key(form, word(datatype)))
            }
            Bytes::Counts(n, datatype) => {
                let n = (0..over.size).map(|i| count_at(form, word(n), i)).sum();
                self.bytes_of(n, || key(form, word(datatype)))
            }
            Bytes::Own(n, datatype) if over.rank >= 0 => {
                self.bytes_of(count_at(form, word(n), over.rank), || key(form, word(datatype)))
            }
            Bytes::Own(..) => 0,
            Bytes::Types(n, datatypes) => {
                let (width, base) = (handle_bytes(form), word(datatypes));
                let of = |i: i32| {
                    self.bytes_of(count_at(form, word(n), i), || key_at(form, base + i as usize * width))
                };
                (0..over.size).map(of).sum()
            }
        }
    }
}

/// An entry of an array of counts.
fn count_at(form: Form, array: usize, index: i32) -> i64 {
    if form == Form::LargeCount {
        referenced::<i64>(array + index as usize * 8)
    } else {
        i64::from(referenced::<i32>(array + index as usize * 4))
    }
}

/// Distance of handles in an array.
fn handle_bytes(form: Form) -> usize {
    if form.is_fortran() || HANDLE_BITS.load(Ordering::Relaxed) != usize::MAX { 4 } else { 8 }
}

/// Whether a buffer argument is `MPI_IN_PLACE`.
#[inline(always)]
fn is_in_place(form: Form, word: usize) -> bool {
    let address = if form == Form::Descriptors { referenced::<usize>(word) } else { word };
    let place = &IN_PLACE[usize::from(form == Form::Fortran)];
    address != 0 && address == place.load(Ordering::Relaxed)
}

/// The second word last: a slot without it is none.
#[inline(always)]
fn write(slot: &[AtomicU64], words: [u64; 4]) {
    slot[0].store(words[0], Ordering::Relaxed);
    slot[2].store(words[2], Ordering::Relaxed);
    slot[3].store(words[3], Ordering::Relaxed);
    slot[1].store(words[1], Ordering::Release);
}

/// The rank of the program behind a rank.
#[inline(always)]
fn world_rank(over: Known, rank: i32) -> i32 {
    if rank < 0 {
        return rank;
    }
    match over.ranks {
        None if rank < over.size => rank,
        None => NO_NUMBER,
        Some(ranks) => ranks.get(rank as usize).copied().unwrap_or(NO_NUMBER),
    }
}

/// Fills a slot for a call that begins.
#[inline(always)]
pub(crate) fn enter(number: Number, places: Arguments, form: Form, words: &[usize]) -> Call {
    if !nest() {
        return Call { slot: None };
    }
    with(|thread| {
        if thread.free.is_empty() && !thread.refill() {
            return Call { slot: None };
        }
        let freed = FREED.load(Ordering::Relaxed);
        if freed != thread.freed {
            thread.freed = freed;
            thread.communicators = [(EMPTY, UNKNOWN); REMEMBERED];
            thread.datatypes = [(EMPTY, 0); REMEMBERED];
        }
        let word = |place: u8| words[usize::from(place)];
        let over = if places.communicator != ABSENT {
            thread.communicator(key(form, word(places.communicator)))
        } else if places.window != ABSENT {
            thread.communicator(key(form, word(places.window)) | WINDOW)
        } else {
            UNKNOWN
        };
        let what = if places.in_place.0 != ABSENT && is_in_place(form, word(places.in_place.0)) {
            places.in_place.1
        } else {
            places.bytes
        };
        let bytes = thread.bytes(what, form, words, over);
        let peer =
            if places.peer == ABSENT { NO_NUMBER } else { world_rank(over, int(form, word(places.peer))) };
        let tag = if places.tag == ABSENT { NO_NUMBER } else { int(form, word(places.tag)) };
        match places.handle {
            Handle::FreesCommunicator(place) => forget(form, word(place), Of::Communicator),
            Handle::FreesWindow(place) => forget(form, word(place), Of::Window),
            _ => {}
        }
        let Some(slot) = thread.slot() else { return Call { slot: None } };
        let kind = kind_word(number as u16 + 1, OPEN);
        write(slot, [clock::ticks(), kind, peer_word(peer, tag), size_word(bytes, over.index)]);
        Call { slot: Some(slot) }
    })
}

/// Writes the time of a call that returned, and learns of the handle that it made or freed.
#[inline(always)]
pub(crate) fn leave(call: Call, places: Arguments, form: Form, words: &[usize], succeeded: bool) {
    let ended = clock::ticks();
    if let Some(slot) = call.slot {
        let took = ended.saturating_sub(slot[0].load(Ordering::Relaxed)).min(OPEN - 1);
        let number = slot[1].load(Ordering::Relaxed) >> 48;
        slot[1].store(kind_word(number as u16, took), Ordering::Release);
        if places.handle != Handle::None && succeeded {
            made(places, form, words);
        }
    }
    unnest();
}

#[inline(never)]
fn made(places: Arguments, form: Form, words: &[usize]) {
    let Some(library) = library() else { return };
    let word = |place: u8| words[usize::from(place)];
    let handle = |place: u8, of: Of| c_handle(library, key_at(form, word(place)), of);
    match places.handle {
        Handle::NewCommunicator(place) => {
            let handle = handle(place, Of::Communicator);
            with(|thread| thread.add(library, handle));
        }
        Handle::NewWindow(place) => {
            let over = with(|thread| thread.communicator(key(form, word(places.communicator))));
            communicators::add_window(handle(place, Of::Window), over);
        }
        _ => {}
    }
}

/// Forgets a handle that is going to be freed, which takes the handle away.
#[inline(never)]
fn forget(form: Form, address: usize, of: Of) {
    if let Some(library) = library() {
        communicators::forget(c_handle(library, key_at(form, address), of), of);
    }
    forget_handles();
}

/// Has all threads ask again for handles.
pub(crate) fn forget_handles() {
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// Whether a Fortran procedure succeeded by its last argument, which `mpi_f08` may leave out.
pub(crate) fn fortran_succeeded(words: &[usize]) -> bool {
    words.last().is_none_or(|code| *code == 0 || referenced::<i32>(*code) == 0)
}

/// Begins to record, when `MPI_Init` has returned.
pub(crate) fn begin(begin: &Begin) {
    let Some(library) = library() else {
        return file::say(&[b"this MPI library is neither Open MPI, MPICH nor MPI 5: nothing is recorded"]);
    };
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    let asked = (library.call.comm_rank)(library.world, &raw mut rank);
    if asked == 0 && (library.call.comm_size)(library.world, &raw mut size) == 0 {
        file::begin(rank, size, library, begin);
        with(|thread| thread.add(library, library.world));
    }
}

/// Ends the recording, before `MPI_Finalize`.
pub(crate) fn finish() {
    with(|thread| {
        // A new block begins with a mark.
        if !thread.free.is_empty() {
            thread.mark();
        } else {
            thread.refill();
        }
        thread.free = &[];
    });
    file::finish();
}
