//! Calls that return before their work is done.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

use super::{Comm, Functions, Operation, count, tagged};
use crate::mpi::Error;
use crate::region::Region;

/// A request of a communicator and the memory that it works on. While it is in flight nobody else gets at the memory; a request
/// dropped then leaves its memory to MPI, and the session ends by an abort.
#[derive(Debug)]
pub struct Request {
    comm: Comm,
    outgoing: ManuallyDrop<Region>,
    incoming: ManuallyDrop<Region>,
    handle: usize,
    in_flight: bool,
}

impl Request {
    /// Maps both memories, whole pages.
    pub fn new(comm: &Comm, outgoing_bytes: usize, incoming_bytes: usize) -> Result<Self, Error> {
        let outgoing = ManuallyDrop::new(Region::new(outgoing_bytes)?);
        let incoming = ManuallyDrop::new(Region::new(incoming_bytes)?);
        Ok(Self { comm: comm.clone(), outgoing, incoming, handle: 0, in_flight: false })
    }

    /// What it sends from. Errors: it is in flight.
    pub fn outgoing(&mut self) -> Result<&mut [u8], Error> {
        self.idle()?;
        Ok(self.outgoing.as_mut_slice())
    }

    /// What it receives into. Errors: it is in flight.
    pub fn incoming(&mut self) -> Result<&mut [u8], Error> {
        self.idle()?;
        Ok(self.incoming.as_mut_slice())
    }

    /// Sends the first `bytes` of the outgoing memory.
    #[inline]
    pub fn isend(&mut self, bytes: usize, to: usize, tag: i32) -> Result<(), Error> {
        let (n, data) = self.part(&self.outgoing, bytes)?;
        let (to, tag, kind) = (self.comm.peer(to)?, tagged(tag)?, self.byte());
        // SAFETY: live handles; `n` bytes that stay until the request is done; room for its handle.
        self.post(|f, comm, handle| unsafe { f.isend(data, n, kind, to, tag, comm, handle) })
    }

    /// Receives at most `bytes` into the incoming memory.
    #[inline]
    pub fn irecv(&mut self, bytes: usize, from: usize, tag: i32) -> Result<(), Error> {
        let (n, into) = self.part(&self.incoming, bytes)?;
        let (from, tag, kind) = (self.comm.peer(from)?, tagged(tag)?, self.byte());
        // SAFETY: live handles; room for `n` bytes that stays until the request is done; room for its handle.
        self.post(|f, comm, handle| unsafe { f.irecv(into, n, kind, from, tag, comm, handle) })
    }

    /// The first `bytes` of the root's incoming memory go to that of all.
    #[inline]
    pub fn ibcast(&mut self, bytes: usize, root: usize) -> Result<(), Error> {
        let (n, data) = self.part(&self.incoming, bytes)?;
        let (root, kind) = (self.comm.peer(root)?, self.byte());
        // SAFETY: live handles; `n` bytes that stay until the request is done; room for its handle.
        self.post(|f, comm, handle| unsafe { f.ibcast(data, n, kind, root, comm, handle) })
    }

    /// Reduces the first `doubles` 64-bit floating-point numbers of the outgoing memories into all incoming ones.
    #[inline]
    pub fn iallreduce(&mut self, doubles: usize, op: Operation) -> Result<(), Error> {
        let bytes = doubles.saturating_mul(size_of::<f64>());
        let ((_, data), (_, into), n) =
            (self.part(&self.outgoing, bytes)?, self.part(&self.incoming, bytes)?, count(doubles)?);
        let constants = self.comm.core.constants();
        let (kind, op) = (constants.double, op.handle(constants));
        // SAFETY: live handles; `n` aligned numbers each, which stay until the request is done; room for its handle.
        self.post(|f, comm, handle| unsafe { f.iallreduce(data, into, n, kind, op, comm, handle) })
    }

    /// Part i of `bytes_each` of the outgoing memory goes to rank i.
    #[inline]
    pub fn ialltoall(&mut self, bytes_each: usize) -> Result<(), Error> {
        let bytes = bytes_each.saturating_mul(self.comm.size);
        let ((_, data), (_, into), n) =
            (self.part(&self.outgoing, bytes)?, self.part(&self.incoming, bytes)?, count(bytes_each)?);
        let kind = self.byte();
        // SAFETY: live handles; `n` bytes for each rank on both sides, which stay until it is done; room for its handle.
        self.post(|f, comm, handle| unsafe { f.ialltoall(data, n, kind, into, n, kind, comm, handle) })
    }

    /// Waits until it is done; at once where nothing is in flight.
    #[inline]
    pub fn wait(&mut self) -> Result<(), Error> {
        if self.in_flight {
            let ignored = self.comm.core.constants().status_ignore as *mut c_void;
            let handle = &raw mut self.handle;
            // SAFETY: a request in flight; the library's own mark for a status not wanted.
            unsafe { self.comm.core.functions().wait(handle, ignored) }?;
            self.in_flight = false;
        }
        Ok(())
    }

    fn byte(&self) -> usize {
        self.comm.core.constants().byte
    }

    #[inline]
    fn idle(&self) -> Result<(), Error> {
        if self.in_flight { Err(Error::Argument("its request is in flight".to_owned())) } else { Ok(()) }
    }

    /// The first `bytes` of one of its memories, as a count, and where they begin.
    #[inline]
    fn part(&self, memory: &Region, bytes: usize) -> Result<(c_int, *mut c_void), Error> {
        self.idle()?;
        let room = memory.bytes();
        if bytes > room {
            return Err(Error::Argument(format!("{bytes} bytes in a memory of {room}")));
        }
        Ok((count(bytes)?, memory.start().as_ptr().cast()))
    }

    /// Makes a call that takes the communicator and room for the request's handle.
    #[inline]
    fn post(
        &mut self,
        call: impl FnOnce(&Functions, usize, *mut usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        call(self.comm.core.functions(), self.comm.handle, &raw mut self.handle)?;
        self.in_flight = true;
        Ok(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.in_flight {
            self.comm.core.clean.set(false);
            return;
        }
        // SAFETY: dropped here only, and MPI is done with it.
        unsafe { ManuallyDrop::drop(&mut self.outgoing) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.incoming) };
    }
}
