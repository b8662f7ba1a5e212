//! Ring memory whose windows never split: the same pages mapped twice, one behind the other.

use std::io;

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::region::{Mapping, READ_WRITE, Region};

/// Lengths of mirrored [`Memory`] are multiples of it.
pub fn page_bytes() -> usize {
    // Not by rustix: it follows the auxiliary vector to a vDSO that valgrind has unmapped.
    // SAFETY: a query without pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Memory for tokens, plain or mirrored. Its owner sees to it that nobody has references into it while it is copied.
#[derive(Debug)]
pub struct Memory {
    /// All that can be reached: of a mirror both mappings, of which the second begins anew.
    mapping: Mapping,
}

impl Memory {
    /// Plain memory (at least 1 byte, rounded up to pages), zero at first.
    pub fn plain(bytes: usize) -> io::Result<Self> {
        Ok(Self { mapping: Region::new(bytes)?.0 })
    }

    /// Pages of a `memfd` mapped twice in a row: byte `i` and byte `i + bytes` are the same, zero at first. Errors:
    /// `bytes` is no positive multiple of the page size; no memory, or too many mappings.
    pub fn mirrored(bytes: usize) -> io::Result<Self> {
        let both = bytes.checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes == 0 || !bytes.is_multiple_of(page_bytes()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let memory = rustix::fs::memfd_create(c"machmeter-mirror", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&memory, bytes as u64)?;
        // From here on dropping it unmaps both halves, whatever they hold.
        let mapping = Mapping::anonymous(both, ProtFlags::empty(), MapFlags::PRIVATE)?;
        for half in [0, bytes] {
            let at = mapping.start().as_ptr().wrapping_add(half).cast();
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: `at..at + bytes` lies in the reservation above, which nobody else knows.
            unsafe { rustix::mm::mmap(at, bytes, READ_WRITE, flags, &memory, 0) }?;
        }
        Ok(Self { mapping })
    }

    fn has(&self, offset: usize, bytes: usize) -> bool {
        offset <= self.mapping.bytes() && bytes <= self.mapping.bytes() - offset
    }

    /// Where it begins at this offset; `bytes` from there on are checked in debug builds.
    #[inline]
    pub fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        debug_assert!(self.has(offset, bytes), "{bytes} B at {offset} of {}", self.mapping.bytes());
        self.mapping.start().as_ptr().wrapping_add(offset)
    }
    /// Copies bytes, which may overlap.
    pub fn copy(&self, offset: usize, to: &Self, to_offset: usize, bytes: usize) {
        assert!(self.has(offset, bytes) && to.has(to_offset, bytes), "{bytes} B at {offset} and {to_offset}");
        // SAFETY: both have that many bytes; they may overlap.
        unsafe { std::ptr::copy(self.at(offset, bytes), to.at(to_offset, bytes), bytes) };
    }
    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        assert!(self.has(offset, bytes.len()), "{} B at {offset}", bytes.len());
        // SAFETY: it has that many bytes, and the source is no part of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset, bytes.len()), bytes.len()) };
    }
    /// Turns the first `bytes` to the left.
    pub fn rotate(&self, bytes: usize, by: usize) {
        assert!(self.has(0, bytes) && by <= bytes, "{bytes} B by {by}");
        // SAFETY: it has that many bytes, and nobody keeps references into it.
        unsafe { std::slice::from_raw_parts_mut(self.at(0, bytes), bytes) }.rotate_left(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_beyond_the_end_is_the_one_at_the_start() {
        let page = rustix::param::page_size();
        let ring = Memory::mirrored(3 * page).unwrap();
        // SAFETY: both mappings are readable and writable, and nobody else uses them.
        let all = unsafe { std::slice::from_raw_parts_mut(ring.at(0, 6 * page), 6 * page) };
        all[3 * page - 1..3 * page + 2].copy_from_slice(&[1, 2, 3]);
        assert_eq!(all[..2], [2, 3]);
        assert_eq!(all[6 * page - 1], 1);
        for wrong in [0, 1, page + 1, usize::MAX] {
            assert!(Memory::mirrored(wrong).is_err(), "{wrong}");
        }
    }
}
