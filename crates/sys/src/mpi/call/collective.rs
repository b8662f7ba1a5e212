//! Calls that all ranks of a communicator make together.

use super::{Comm, Element, Number, Operation, count, same};
use crate::mpi::Error;

impl Comm {
    #[inline]
    pub fn barrier(&self) -> Result<(), Error> {
        // SAFETY: a live communicator.
        unsafe { self.core.functions().barrier(self.handle) }
    }

    /// The root's `data` goes to all.
    #[inline]
    pub fn bcast<T: Element>(&self, data: &mut [T], root: usize) -> Result<(), Error> {
        let (n, root, kind) = (count(data.len())?, self.peer(root)?, (T::OF)(self.core.constants()));
        // SAFETY: live handles; `n` elements of this kind to read and write.
        unsafe { self.core.functions().bcast(data.as_mut_ptr().cast(), n, kind, root, self.handle) }
    }

    /// Every rank's `data`, in order of ranks, into the root's `into` (as many for each rank); others give an empty one.
    #[inline]
    pub fn gather<T: Element>(&self, data: &[T], into: &mut [T], root: usize) -> Result<(), Error> {
        let (n, to, kind) = (count(data.len())?, self.peer(root)?, (T::OF)(self.core.constants()));
        if self.rank == root {
            same(into.len(), data.len() * self.size)?;
        }
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements to read; at the root, the only one to write, room for `n` of each rank.
        unsafe { self.core.functions().gather(data, n, kind, into, n, kind, to, comm) }
    }

    /// As `gather`, into all.
    #[inline]
    pub fn allgather<T: Element>(&self, data: &[T], into: &mut [T]) -> Result<(), Error> {
        let (n, kind) = (count(data.len())?, (T::OF)(self.core.constants()));
        same(into.len(), data.len() * self.size)?;
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements to read, room for `n` of each rank.
        unsafe { self.core.functions().allgather(data, n, kind, into, n, kind, comm) }
    }

    /// The root's `data` in equal parts, one to each rank; others give an empty one.
    #[inline]
    pub fn scatter<T: Element>(&self, data: &[T], into: &mut [T], root: usize) -> Result<(), Error> {
        let (n, from, kind) = (count(into.len())?, self.peer(root)?, (T::OF)(self.core.constants()));
        if self.rank == root {
            same(data.len(), into.len() * self.size)?;
        }
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; room for `n` elements; at the root, the only one to read, `n` for each rank.
        unsafe { self.core.functions().scatter(data, n, kind, into, n, kind, from, comm) }
    }

    /// Part i of `data` goes to rank i, which has it as part of this rank; both of one part for each rank.
    #[inline]
    pub fn alltoall<T: Element>(&self, data: &[T], into: &mut [T]) -> Result<(), Error> {
        let (part, kind) = (data.len() / self.size, (T::OF)(self.core.constants()));
        same(data.len(), part * self.size)?;
        same(into.len(), data.len())?;
        let n = count(part)?;
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements for each rank to read, room for as many.
        unsafe { self.core.functions().alltoall(data, n, kind, into, n, kind, comm) }
    }

    /// Element by element over all ranks, into the root's `into` of the same length; others give an empty one.
    #[inline]
    pub fn reduce<T: Number>(
        &self,
        data: &[T],
        into: &mut [T],
        op: Operation,
        root: usize,
    ) -> Result<(), Error> {
        let (n, to, constants) = (count(data.len())?, self.peer(root)?, self.core.constants());
        if self.rank == root {
            same(into.len(), data.len())?;
        }
        let (kind, op) = ((T::OF)(constants), op.handle(constants));
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements to read; at the root, the only one to write, room for as many.
        unsafe { self.core.functions().reduce(data, into, n, kind, op, to, comm) }
    }

    /// As `reduce`, into all.
    #[inline]
    pub fn allreduce<T: Number>(&self, data: &[T], into: &mut [T], op: Operation) -> Result<(), Error> {
        let (n, constants) = (count(data.len())?, self.core.constants());
        same(into.len(), data.len())?;
        let (kind, op) = ((T::OF)(constants), op.handle(constants));
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements to read, room for as many.
        unsafe { self.core.functions().allreduce(data, into, n, kind, op, comm) }
    }

    /// As `allreduce`, over `data` itself.
    #[inline]
    pub fn allreduce_in_place<T: Number>(&self, data: &mut [T], op: Operation) -> Result<(), Error> {
        let (n, constants) = (count(data.len())?, self.core.constants());
        let (kind, op, mark) = ((T::OF)(constants), op.handle(constants), constants.in_place as *const _);
        let (data, comm) = (data.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; the library's own mark for in place; `n` elements to read and write.
        unsafe { self.core.functions().allreduce(mark, data, n, kind, op, comm) }
    }

    /// As `reduce`, of which rank i gets part i: `data` has `into.len()` elements for each rank.
    #[inline]
    pub fn reduce_scatter_block<T: Number>(
        &self,
        data: &[T],
        into: &mut [T],
        op: Operation,
    ) -> Result<(), Error> {
        let (n, constants) = (count(into.len())?, self.core.constants());
        same(data.len(), into.len() * self.size)?;
        let (kind, op) = ((T::OF)(constants), op.handle(constants));
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements for each rank to read, room for `n`.
        unsafe { self.core.functions().reduce_scatter_block(data, into, n, kind, op, comm) }
    }

    /// As `allreduce`, over the ranks up to this one.
    #[inline]
    pub fn scan<T: Number>(&self, data: &[T], into: &mut [T], op: Operation) -> Result<(), Error> {
        let (n, constants) = (count(data.len())?, self.core.constants());
        same(into.len(), data.len())?;
        let (kind, op) = ((T::OF)(constants), op.handle(constants));
        let (data, into, comm) = (data.as_ptr().cast(), into.as_mut_ptr().cast(), self.handle);
        // SAFETY: live handles; `n` elements to read, room for as many.
        unsafe { self.core.functions().scan(data, into, n, kind, op, comm) }
    }
}
