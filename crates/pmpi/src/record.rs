//! What happens around a call: a slot is filled before it, and its time written after it. No lock, no allocation and no system call,
//! but for each 127th call of a thread (a new block) and for handles that the thread did not use lately.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use machmeter_data::trace::{
    ABSENT, Arguments, Bytes, Handle, MOST_BYTES, NO_NUMBER, Number, OPEN, kind_word, peer_word,
};

use crate::clock;
use crate::communicators::{self, Known, UNKNOWN};
use crate::file::{self, Begin, Slot};
use crate::library::{HANDLE_BITS, IN_PLACE, Of, library};
use crate::thread::{FORTRAN, FREED, Local, Thread, c_handle, local, write};

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

/// A call; `slot` is missing where it is not recorded.
pub(crate) struct Call {
    local: &'static Local,
    slot: Option<&'static Slot>,
}

/// A value that Fortran passes by reference.
#[inline(always)]
fn referenced<T: Copy>(word: usize) -> T {
    // SAFETY: the MPI standard has a value of this type here; addresses of arguments need not be aligned in Fortran.
    unsafe { (word as *const T).read_unaligned() }
}

#[inline(always)]
fn int(form: Form, word: usize) -> i32 {
    if form.is_fortran() { referenced::<i32>(word) } else { word as i32 }
}

#[inline(always)]
fn count(form: Form, word: usize) -> i64 {
    if form == Form::LargeCount { word as i64 } else { i64::from(int(form, word)) }
}

fn count_at(form: Form, array: usize, index: i32) -> i64 {
    if form == Form::LargeCount {
        referenced::<i64>(array + index as usize * 8)
    } else {
        i64::from(referenced::<i32>(array + index as usize * 4))
    }
}

#[inline(always)]
fn key(form: Form, word: usize) -> usize {
    if form.is_fortran() { referenced::<u32>(word) as usize | FORTRAN } else { word }
}

fn handle_bytes(form: Form) -> usize {
    if form.is_fortran() || HANDLE_BITS.load(Ordering::Relaxed) != usize::MAX { 4 } else { 8 }
}

/// The key of a handle behind an address, as in arrays and for results.
fn key_at(form: Form, address: usize) -> usize {
    if form.is_fortran() {
        key(form, address)
    } else if handle_bytes(form) == 4 {
        referenced::<u32>(address) as usize
    } else {
        referenced::<usize>(address)
    }
}

/// Whether a buffer argument is `MPI_IN_PLACE`.
#[inline(always)]
fn is_in_place(form: Form, word: usize) -> bool {
    let address = if form == Form::Descriptors { referenced::<usize>(word) } else { word };
    let place = &IN_PLACE[usize::from(form.is_fortran())];
    address != 0 && address == place.load(Ordering::Relaxed)
}

/// The rank of the program behind a rank; special ranks are negative.
#[inline(always)]
fn world_rank(over: &Known, rank: i32) -> i32 {
    match over.ranks.get(rank as u32 as usize) {
        Some(rank) => *rank,
        None if rank < 0 => rank,
        None => NO_NUMBER,
    }
}

impl Thread {
    /// Bytes of `n` elements; the datatype of none need not be valid.
    #[inline(always)]
    fn bytes_of(&mut self, n: i64, datatype: impl FnOnce() -> usize) -> u64 {
        // At most 2^31 elements of 2^31 bytes, or what 64 bits hold of a count that has as many.
        if n <= 0 { 0 } else { (n as u64).wrapping_mul(self.element(datatype()) as u64) }
    }

    #[inline(always)]
    fn bytes(&mut self, what: Bytes, form: Form, words: &[usize], over: &Known) -> u64 {
        let word = |place: u8| words[usize::from(place)];
        match what {
            Bytes::Count(n, datatype) => self.bytes_of(count(form, word(n)), || key(form, word(datatype))),
            Bytes::One(datatype) => self.bytes_of(1, || key(form, word(datatype))),
            Bytes::PerRank(n, datatype) => {
                let n = count(form, word(n)).saturating_mul(i64::from(over.size()));
                self.bytes_of(n, || key(form, word(datatype)))
            }
            Bytes::Own(n, datatype) if over.rank >= 0 => {
                self.bytes_of(count_at(form, word(n), over.rank), || key(form, word(datatype)))
            }
            Bytes::Counts(n, datatype) => {
                self.bytes_of(sum(form, word(n), over.size()), || key(form, word(datatype)))
            }
            Bytes::Types(n, datatypes) => self.bytes_of_types(form, word(n), word(datatypes), over.size()),
            Bytes::None | Bytes::Own(..) => 0,
        }
    }

    #[inline(never)]
    fn bytes_of_types(&mut self, form: Form, counts: usize, datatypes: usize, size: i32) -> u64 {
        let width = handle_bytes(form);
        let datatype = |i: i32| key_at(form, datatypes + i as usize * width);
        (0..size).map(|i| self.bytes_of(count_at(form, counts, i), || datatype(i))).sum()
    }
}

#[inline(never)]
fn sum(form: Form, counts: usize, size: i32) -> i64 {
    (0..size).map(|i| count_at(form, counts, i)).sum()
}

/// Fills a slot for a call that begins.
#[inline(always)]
pub(crate) fn enter(number: Number, places: Arguments, form: Form, words: &[usize]) -> Call {
    let local = local();
    if !local.nest() {
        return Call { local, slot: None };
    }
    let thread = local.thread();
    // Taken before handles are learned, whose slots then follow it: asked once whether there is room.
    let Some(slot) = thread.slot() else { return Call { local, slot: None } };
    thread.forget_freed();
    let word = |place: u8| words[usize::from(place)];
    let over = if places.communicator != ABSENT {
        thread.known(Of::Communicator, key(form, word(places.communicator)))
    } else if places.window != ABSENT {
        thread.known(Of::Window, key(form, word(places.window)))
    } else {
        &UNKNOWN
    };
    let what = if places.in_place.0 != ABSENT && is_in_place(form, word(places.in_place.0)) {
        places.in_place.1
    } else {
        places.bytes
    };
    let bytes = thread.bytes(what, form, words, over);
    let peer = if places.peer == ABSENT { NO_NUMBER } else { world_rank(over, int(form, word(places.peer))) };
    let tag = if places.tag == ABSENT { NO_NUMBER } else { int(form, word(places.tag)) };
    match places.handle {
        Handle::FreesCommunicator(place) => forget(form, word(place), Of::Communicator),
        Handle::FreesWindow(place) => forget(form, word(place), Of::Window),
        _ => {}
    }
    let kind = kind_word(number as u16 + 1, OPEN);
    write(slot, [clock::ticks(), kind, peer_word(peer, tag), bytes.min(MOST_BYTES) | over.index_word]);
    Call { local, slot: Some(slot) }
}

/// Writes the time of a call that returned, and learns of the handle that it made.
#[inline(always)]
pub(crate) fn leave(
    call: &Call,
    number: Number,
    places: Arguments,
    form: Form,
    words: &[usize],
    succeeded: bool,
) {
    if let Some(slot) = call.slot {
        // Backwards, which no call can be, becomes as long as can be told.
        let took = clock::ticks().wrapping_sub(slot[0].load(Ordering::Relaxed)).min(OPEN - 1);
        slot[1].store(kind_word(number as u16 + 1, took), Ordering::Release);
        let made = matches!(places.handle, Handle::NewCommunicator(_) | Handle::NewWindow(_));
        if made && succeeded {
            learn(call.local.thread(), places, form, words);
        }
    }
    call.local.unnest();
}

#[inline(never)]
fn learn(thread: &mut Thread, places: Arguments, form: Form, words: &[usize]) {
    let Some(library) = library() else { return };
    let word = |place: u8| words[usize::from(place)];
    let handle = |place: u8, of: Of| c_handle(library, key_at(form, word(place)), of);
    match places.handle {
        Handle::NewCommunicator(place) => {
            thread.add(library, handle(place, Of::Communicator));
        }
        Handle::NewWindow(place) => {
            let over = thread.known(Of::Communicator, key(form, word(places.communicator)));
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
#[inline(always)]
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
        local().thread().add(library, library.world);
    }
}

/// Ends the recording, before `MPI_Finalize`.
pub(crate) fn finish() {
    local().thread().finish();
    file::finish();
}
