//! One-sided calls.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::{Comm, count};
use crate::mpi::Error;
use crate::region::Region;

/// Bytes of a number that `fetch_and_op` works on.
const WORD_BYTES: usize = size_of::<i64>();

/// Memory on every rank that all may read and write, and an origin of this rank's own that transfers start from and end in. Between
/// a call and its flush nobody else gets at the origin. To be freed by [`Self::free`]; one that is not ends the session by an abort.
#[derive(Debug)]
pub struct Window {
    comm: Comm,
    handle: usize,
    base: NonNull<u8>,
    /// Of every rank's memory.
    bytes: usize,
    /// The origin, behind it the value and the result of `fetch_and_op`.
    origin: ManuallyDrop<Region>,
    /// The rank that calls since the last flush go to.
    pending: Option<c_int>,
    freed: bool,
}

impl Comm {
    /// Memory of `bytes` on every rank, open to all (`MPI_Win_lock_all`); collective. Errors: uneven sizes.
    pub fn window(&self, bytes: usize) -> Result<Window, Error> {
        self.even(bytes, "a window")?;
        let origin_bytes =
            bytes.checked_next_multiple_of(WORD_BYTES).and_then(|b| b.checked_add(2 * WORD_BYTES));
        let too_large = || Error::Argument(format!("a window of {bytes} bytes"));
        let origin = ManuallyDrop::new(Region::new(origin_bytes.ok_or_else(too_large)?)?);
        let (functions, constants) = (self.core.functions(), self.core.constants());
        let (mut handle, mut base, room) = (0, std::ptr::null_mut::<u8>(), bytes as isize);
        let place = (&raw mut base).cast::<c_void>();
        // SAFETY: live handles; room for an address and a handle.
        unsafe { functions.win_allocate(room, 1, constants.info_null, self.handle, place, &raw mut handle) }?;
        // SAFETY: the new window and the handler that returns errors.
        unsafe { functions.win_set_errhandler(handle, constants.errors_return) }?;
        // SAFETY: the new window, which is not locked yet.
        unsafe { functions.win_lock_all(0, handle) }?;
        let base = NonNull::new(base).ok_or_else(|| Error::Argument("a window without memory".to_owned()))?;
        // SAFETY: as many bytes as were asked for; nobody else writes them before the barrier.
        unsafe { base.write_bytes(0, bytes) };
        let window = Window { comm: self.clone(), handle, base, bytes, origin, pending: None, freed: false };
        window.synchronize()?;
        self.barrier()?;
        Ok(window)
    }
}

impl Window {
    /// As many bytes as the window has. Errors: a call was not flushed yet.
    pub fn origin(&mut self) -> Result<&mut [u8], Error> {
        self.flushed()?;
        let bytes = self.bytes;
        Ok(&mut self.origin.as_mut_slice()[..bytes])
    }

    /// Writes the first `bytes` of the origin to `at` in the memory of rank `to`; done after a flush.
    #[inline]
    pub fn put(&mut self, bytes: usize, to: usize, at: usize) -> Result<(), Error> {
        let (n, to, at) = (self.span(bytes, at)?, self.target(to)?, at as isize);
        let (kind, data) = (self.comm.core.constants().byte, self.origin.start().as_ptr().cast());
        self.pending = Some(to);
        // SAFETY: live handles; `n` bytes that stay until the flush; `span` lies in the target's memory, as large as here.
        unsafe { self.comm.core.functions().put(data, n, kind, to, at, n, kind, self.handle) }
    }

    /// Reads `bytes` at `at` of the memory of rank `from` into the origin; there after a flush.
    #[inline]
    pub fn get(&mut self, bytes: usize, from: usize, at: usize) -> Result<(), Error> {
        let (n, from, at) = (self.span(bytes, at)?, self.target(from)?, at as isize);
        let (kind, into) = (self.comm.core.constants().byte, self.origin.start().as_ptr().cast());
        self.pending = Some(from);
        // SAFETY: live handles; room for `n` bytes that stays until the flush; `span` lies in the target's memory.
        unsafe { self.comm.core.functions().get(into, n, kind, from, at, n, kind, self.handle) }
    }

    /// Adds `value` to the 64-bit number at `at` of rank `to`; what was there is [`Self::fetched`] after a flush.
    #[inline]
    pub fn fetch_and_op(&mut self, value: i64, to: usize, at: usize) -> Result<(), Error> {
        self.span(WORD_BYTES, at)?;
        aligned(at)?;
        self.flushed()?;
        let (to, at, constants) = (self.target(to)?, at as isize, self.comm.core.constants());
        let words = self.words();
        let (kind, op) = (constants.int64, constants.sum);
        // SAFETY: the first of the two words behind the origin, which no call works on.
        unsafe { words.write(value) };
        // SAFETY: two words lie there.
        let result = unsafe { words.add(1) };
        self.pending = Some(to);
        let (value, result, window) = (words.as_ptr().cast(), result.as_ptr().cast(), self.handle);
        // SAFETY: live handles; two words that stay until the flush; an aligned one in the target's memory.
        unsafe { self.comm.core.functions().fetch_and_op(value, result, kind, to, at, op, window) }
    }

    /// What the last `fetch_and_op` found. Errors: it was not flushed yet.
    pub fn fetched(&self) -> Result<i64, Error> {
        self.flushed()?;
        // SAFETY: the second of the two words behind the origin.
        let result = unsafe { self.words().add(1) };
        // SAFETY: zero or written by MPI, which is done with it.
        Ok(unsafe { result.read() })
    }

    /// Waits until all calls since the last flush are done, here and there.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Error> {
        if let Some(to) = self.pending {
            // SAFETY: a live, locked window.
            unsafe { self.comm.core.functions().win_flush(to, self.handle) }?;
            self.pending = None;
        }
        Ok(())
    }

    /// The 64-bit number at `at` of this rank's own memory.
    pub fn local_word(&mut self, at: usize) -> Result<i64, Error> {
        self.span(WORD_BYTES, at)?;
        aligned(at)?;
        self.synchronize()?;
        // SAFETY: `span` lies in the memory.
        let word = unsafe { self.base.add(at) }.cast::<i64>();
        // SAFETY: aligned; others may write it at any time.
        Ok(unsafe { word.read_volatile() })
    }

    /// Gives it back; collective.
    pub fn free(mut self) -> Result<(), Error> {
        self.flush()?;
        let functions = *self.comm.core.functions();
        // SAFETY: a live, locked window.
        unsafe { functions.win_unlock_all(self.handle) }?;
        // SAFETY: a live window that is not locked any more.
        unsafe { functions.win_free(&raw mut self.handle) }?;
        self.freed = true;
        Ok(())
    }

    /// Makes what others wrote visible here, and the other way round.
    fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: a live, locked window.
        unsafe { self.comm.core.functions().win_sync(self.handle) }
    }

    /// `bytes` as a count, if they lie in the memory from `at` on.
    #[inline]
    fn span(&self, bytes: usize, at: usize) -> Result<c_int, Error> {
        if at.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return count(bytes);
        }
        Err(Error::Argument(format!("{bytes} bytes at {at} of a window of {}", self.bytes)))
    }

    /// The rank that a call goes to: one between two flushes, which then is the one to flush.
    #[inline]
    fn target(&self, rank: usize) -> Result<c_int, Error> {
        let rank = self.comm.peer(rank)?;
        match self.pending {
            Some(other) if other != rank => {
                Err(Error::Argument(format!("calls to rank {other} are not flushed")))
            }
            _ => Ok(rank),
        }
    }

    #[inline]
    fn flushed(&self) -> Result<(), Error> {
        let pending = || Error::Argument("calls of its window are not flushed".to_owned());
        if self.pending.is_some() { Err(pending()) } else { Ok(()) }
    }

    /// The two words behind the origin.
    fn words(&self) -> NonNull<i64> {
        let at = self.bytes.next_multiple_of(WORD_BYTES);
        // SAFETY: the origin's mapping is longer by two words, and begins at a page.
        unsafe { self.origin.start().add(at) }.cast()
    }
}

#[inline]
fn aligned(at: usize) -> Result<(), Error> {
    let aligned = at.is_multiple_of(WORD_BYTES);
    if aligned { Ok(()) } else { Err(Error::Argument(format!("a number at {at}: multiples of 8 are"))) }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.freed {
            self.comm.core.clean.set(false);
            return;
        }
        // SAFETY: dropped here only, and all calls are done.
        unsafe { ManuallyDrop::drop(&mut self.origin) };
    }
}
