//! Messages between two ranks.

use super::{Comm, Element, count, tagged};
use crate::mpi::Error;

/// Blocking sends, which differ in what they wait for.
macro_rules! sends {
    ($($(#[$text:meta])* $name:ident;)*) => {$(
        $(#[$text])*
        #[inline]
        pub fn $name<T: Element>(&self, data: &[T], to: usize, tag: i32) -> Result<(), Error> {
            let (n, to, tag) = (count(data.len())?, self.peer(to)?, tagged(tag)?);
            let kind = (T::OF)(self.core.constants());
            // SAFETY: live handles; `n` elements of this kind to read.
            unsafe { self.core.functions().$name(data.as_ptr().cast(), n, kind, to, tag, self.handle) }
        }
    )*};
}

impl Comm {
    sends! {
        /// Returns when `data` may be changed: copied, or received.
        send;
        /// Returns when the receive has begun.
        ssend;
        /// As `send`, where the receive has been posted already; else MPI may do anything, mostly that of `send`.
        rsend;
    }

    /// Receives at most `into.len()` elements; a longer message is an error.
    #[inline]
    pub fn recv<T: Element>(&self, into: &mut [T], from: usize, tag: i32) -> Result<(), Error> {
        let (n, from, tag) = (count(into.len())?, self.peer(from)?, tagged(tag)?);
        let constants = self.core.constants();
        let (kind, ignored) = ((T::OF)(constants), constants.status_ignore as *mut _);
        // SAFETY: live handles; room for `n` elements of this kind; the library's own mark for a status not wanted.
        unsafe {
            self.core.functions().recv(into.as_mut_ptr().cast(), n, kind, from, tag, self.handle, ignored)
        }
    }

    /// Sends and receives with one tag.
    #[inline]
    pub fn sendrecv<T: Element>(
        &self,
        data: &[T],
        to: usize,
        into: &mut [T],
        from: usize,
        tag: i32,
    ) -> Result<(), Error> {
        let (n, to, tag) = (count(data.len())?, self.peer(to)?, tagged(tag)?);
        let (m, from, constants) = (count(into.len())?, self.peer(from)?, self.core.constants());
        let (kind, ignored) = ((T::OF)(constants), constants.status_ignore as *mut _);
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        let f = self.core.functions();
        // SAFETY: live handles; `n` elements to read, room for `m`; the library's own mark for a status not wanted.
        unsafe { f.sendrecv(data, n, kind, to, tag, into, m, kind, from, tag, comm, ignored) }
    }

    /// Whether such a message could be received now. Lets MPI make progress.
    #[inline]
    pub fn iprobe(&self, from: usize, tag: i32) -> Result<bool, Error> {
        let (from, tag, mut flag) = (self.peer(from)?, tagged(tag)?, 0);
        let ignored = self.core.constants().status_ignore as *mut _;
        // SAFETY: a live communicator, room for the answer, the library's own mark for a status not wanted.
        unsafe { self.core.functions().iprobe(from, tag, self.handle, &raw mut flag, ignored) }?;
        Ok(flag != 0)
    }
}
