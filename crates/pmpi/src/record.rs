//! What happens around a call: a slot is filled before it, and its time written after it. No lock, no allocation and no system call,
//! but for each 127th call of a thread (a new block) and for handles that the thread did not use lately.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::format::{
    ABSENT, Arguments, Bytes, Handle, MOST_BYTES, NO_NUMBER, Number, OPEN, OPERATIONS, kind_word, peer_word,
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
}

impl Form {
    const fn is_fortran(self) -> bool {
        matches!(self, Self::Fortran)
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

/// Whether a buffer argument is `MPI_IN_PLACE`. The first word of a descriptor is the address of its buffer.
#[inline(always)]
fn is_in_place(form: Form, has_descriptors: bool, word: usize) -> bool {
    let address = if has_descriptors { referenced::<usize>(word) } else { word };
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

/// Fills a slot for a call that begins, whose buffers Fortran may pass by descriptors.
#[inline(always)]
pub(crate) fn enter(
    number: Number,
    places: &Arguments,
    form: Form,
    has_descriptors: bool,
    words: &[usize],
) -> Call {
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
    let what = if places.in_place.0 != ABSENT && is_in_place(form, has_descriptors, word(places.in_place.0)) {
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
    places: &Arguments,
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

/// [`enter`] for all calls with large counts. They are rare: a copy for each would only make the recorder larger.
#[inline(never)]
pub(crate) fn enter_large(number: Number, words: &[usize]) -> Call {
    enter(number, &OPERATIONS[number as usize].arguments, Form::LargeCount, false, words)
}

#[inline(never)]
fn learn(thread: &mut Thread, places: &Arguments, form: Form, words: &[usize]) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::tests::thread;
    use std::ptr::from_ref;

    /// Rank 1 of three, which are ranks 4, 2 and 7 of the program.
    const OVER: Known = Known { index_word: 0, ranks: &[4, 2, 7], rank: 1, is_world: false, is_inter: false };
    const FORMS: [Form; 3] = [Form::C, Form::LargeCount, Form::Fortran];

    /// Words of a call in one of the forms: counts, then datatypes.
    fn bytes(form: Form, what: Bytes, counts: &[i64], datatypes: &[u32]) -> u64 {
        let narrow: Vec<i32> = counts.iter().map(|n| *n as i32).collect();
        let wide: Vec<u64> = datatypes.iter().map(|d| u64::from(*d)).collect();
        let is_array = matches!(what, Bytes::Own(..) | Bytes::Counts(..) | Bytes::Types(..));
        let counts = match form {
            Form::LargeCount if is_array => counts.as_ptr() as usize,
            _ if is_array || form.is_fortran() => narrow.as_ptr() as usize,
            // The upper half of an int argument is undefined.
            Form::C => counts[0] as u32 as usize | 0xdead << 32,
            _ => counts[0] as usize,
        };
        let datatype = match what {
            // C handles are pointers until a library of another family is found.
            Bytes::Types(..) if !form.is_fortran() => wide.as_ptr() as usize,
            _ if form.is_fortran() => datatypes.as_ptr() as usize,
            _ => datatypes[0] as usize,
        };
        let mark = if form.is_fortran() { FORTRAN } else { 0 };
        thread(&[(mark + 10, 8), (mark + 11, 4)]).bytes(what, form, &[counts, datatype], &OVER)
    }

    #[test]
    fn bytes_are_counts_times_sizes_in_each_form() {
        for form in FORMS {
            let bytes = |what, counts: &[i64], datatypes: &[u32]| bytes(form, what, counts, datatypes);
            assert_eq!(bytes(Bytes::Count(0, 1), &[5], &[10]), 40);
            assert_eq!(
                bytes(Bytes::Count(0, 1), &[-5], &[99]),
                0,
                "the datatype of nothing need not be valid"
            );
            assert_eq!(bytes(Bytes::One(1), &[0], &[11]), 4);
            assert_eq!(bytes(Bytes::PerRank(0, 1), &[5], &[10]), 120);
            assert_eq!(bytes(Bytes::Own(0, 1), &[1, 2, 3], &[10]), 16);
            assert_eq!(bytes(Bytes::Counts(0, 1), &[1, 2, 3], &[11]), 24);
            assert_eq!(bytes(Bytes::Types(0, 1), &[1, 2, 3], &[10, 11, 10]), 40);
            assert_eq!(bytes(Bytes::None, &[1], &[10]), 0);
        }
        assert_eq!(bytes(Form::LargeCount, Bytes::Count(0, 1), &[1 << 40], &[10]), 1 << 43);
    }

    #[test]
    fn a_buffer_in_place_is_known_by_its_address_or_its_descriptor() {
        let (place, other) = (0_u64, 0_u64);
        let address = |of: &u64| from_ref(of) as usize;
        IN_PLACE[1].store(address(&place), Ordering::Relaxed);
        let is_in_place = |descriptors, word| is_in_place(Form::Fortran, descriptors, word);
        assert!(is_in_place(false, address(&place)) && !is_in_place(false, address(&other)));
        let descriptors = [address(&place), address(&other), 0];
        let found = descriptors.each_ref().map(|first| is_in_place(true, from_ref(first) as usize));
        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn ranks_are_those_of_the_program() {
        let peers = [0, 2, 3, -1, -2, i32::MAX].map(|rank| world_rank(&OVER, rank));
        assert_eq!(peers, [4, 7, NO_NUMBER, -1, -2, NO_NUMBER]);
        assert_eq!(world_rank(&UNKNOWN, 0), NO_NUMBER);
    }

    #[test]
    fn fortran_tells_success_in_its_last_argument() {
        let code = |code: i32| fortran_succeeded(&[0, from_ref(&code) as usize]);
        assert!(code(0) && !code(5) && fortran_succeeded(&[1, 0]) && fortran_succeeded(&[]));
    }
}
