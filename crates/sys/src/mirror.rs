//! Ring memory whose windows never split: the same pages mapped twice, one behind the other.

use std::io;
use std::ptr::NonNull;

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::region::Region;

/// Pages of a `memfd` mapped twice in a row: byte `i` and byte `i + bytes` are the same. Reads as zero at first.
#[derive(Debug)]
pub struct Mirror {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mappings belong to this value alone, and any thread may use or unmap them.
unsafe impl Send for Mirror {}

/// Lengths of a [`Mirror`] are multiples of it.
pub fn page_bytes() -> usize {
    // Not by rustix: it follows the auxiliary vector to a vDSO that valgrind has unmapped.
    // SAFETY: a query without pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

impl Mirror {
    /// Maps `bytes`, a positive multiple of the page size.
    /// Errors: [`io::ErrorKind::InvalidInput`] for other lengths; else the system's error: no memory, or too many mappings.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let both = bytes.checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes == 0 || !bytes.is_multiple_of(page_bytes()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let memory = rustix::fs::memfd_create(c"machmeter-mirror", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&memory, bytes as u64)?;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), both, ProtFlags::empty(), MapFlags::PRIVATE)
        }?;
        // From here on dropping it unmaps both halves, whatever they hold.
        let made = Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes };
        for half in [0, bytes] {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            let at = made.start.as_ptr().wrapping_add(half).cast();
            // SAFETY: `at..at + bytes` lies in the reservation above, which nobody else knows.
            unsafe { rustix::mm::mmap(at, bytes, access, flags, &memory, 0) }?;
        }
        Ok(made)
    }

    /// First byte of the first of both mappings.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes of one of both mappings.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // SAFETY: exactly the reservation made in `new`; no reference to it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), 2 * self.bytes) };
    }
}

/// Memory for tokens, plain or mirrored. Its owner sees to it that nobody has references into it while it is copied.
#[derive(Debug)]
pub struct Memory {
    start: *mut u8,
    /// All that can be reached: of a mirror both mappings.
    bytes: usize,
    _owner: Owner,
}

#[derive(Debug)]
#[allow(dead_code, reason = "they unmap it when they are dropped")]
enum Owner {
    Plain(Region),
    /// What goes beyond the end is the start again.
    Mirrored(Mirror),
}

impl Memory {
    /// Plain memory, rounded up to pages.
    /// Errors: those of [`Region::new`].
    pub fn plain(bytes: usize) -> io::Result<Self> {
        let region = Region::new(bytes)?;
        Ok(Self { start: region.start().as_ptr(), bytes: region.bytes(), _owner: Owner::Plain(region) })
    }
    /// A mirror.
    /// Errors: those of [`Mirror::new`].
    pub fn mirrored(bytes: usize) -> io::Result<Self> {
        let mirror = Mirror::new(bytes)?;
        Ok(Self {
            start: mirror.start().as_ptr(),
            bytes: 2 * mirror.bytes(),
            _owner: Owner::Mirrored(mirror),
        })
    }
    fn has(&self, offset: usize, bytes: usize) -> bool {
        offset <= self.bytes && bytes <= self.bytes - offset
    }
    /// Where it begins at this offset; `bytes` from there on are checked in debug builds.
    #[inline]
    pub fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        debug_assert!(self.has(offset, bytes), "{bytes} B at {offset} of {}", self.bytes);
        self.start.wrapping_add(offset)
    }
    /// Copies bytes, which may overlap.
    pub fn copy(&self, offset: usize, to: &Self, to_offset: usize, bytes: usize) {
        assert!(self.has(offset, bytes) && to.has(to_offset, bytes), "{bytes} B at {offset} and {to_offset}");
        // SAFETY: both have that many bytes; they may overlap.
        unsafe { std::ptr::copy(self.at(offset, bytes), to.at(to_offset, bytes), bytes) };
    }
    /// Writes bytes.
    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        assert!(self.has(offset, bytes.len()), "{} B at {offset}", bytes.len());
        // SAFETY: it has that many bytes, and the source is no part of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset, bytes.len()), bytes.len()) };
    }
    /// Turns the first `bytes` to the left.
    pub fn rotate(&self, bytes: usize, by: usize) {
        assert!(self.has(0, bytes) && by <= bytes, "{bytes} B by {by}");
        // SAFETY: it has that many bytes, and nobody keeps references into it.
        unsafe { std::slice::from_raw_parts_mut(self.start, bytes) }.rotate_left(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_beyond_the_end_is_the_one_at_the_start() {
        let page = rustix::param::page_size();
        let ring = Mirror::new(3 * page).unwrap();
        // SAFETY: both mappings are readable and writable, and nobody else uses them.
        let all = unsafe { std::slice::from_raw_parts_mut(ring.start().as_ptr(), 2 * ring.bytes()) };
        all[3 * page - 1..3 * page + 2].copy_from_slice(&[1, 2, 3]);
        assert_eq!(all[..2], [2, 3]);
        assert_eq!(all[6 * page - 1], 1);
        for wrong in [0, 1, page + 1, usize::MAX] {
            assert!(Mirror::new(wrong).is_err(), "{wrong}");
        }
    }
}
