//! Memory that goes back to the system when it is dropped, unlike what an allocator may keep.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

/// A private anonymous mapping. Its pages come into being when they are first touched; before they read as zero.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and any thread may use or unmap it.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes` (at least 1), rounded up to pages.
    /// Errors: the system's error: no address space, or the limits on it (`RLIMIT_AS`, overcommit).
    pub fn new(bytes: usize) -> io::Result<Self> {
        let page_bytes = crate::mirror::page_bytes();
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(page_bytes)
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    /// First byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whole pages, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zero or written, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the exclusive borrow of `self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no reference to it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of this process that are in memory, in bytes.
    fn resident_bytes() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size() as u64
    }

    #[test]
    fn it_is_zero_keeps_what_is_written_and_gives_its_pages_back() {
        const BYTES: usize = 128 << 20;
        let mut region = Region::new(BYTES - 1).unwrap();
        assert_eq!(region.as_slice().len(), BYTES);
        assert!(region.as_slice().iter().step_by(4_096).all(|b| *b == 0));
        region.as_mut_slice().fill(7);
        assert_eq!(region.as_slice()[BYTES - 1], 7);
        let full = resident_bytes();
        drop(region);
        // Other tests run beside this one, but none takes that much.
        assert!(resident_bytes() + (BYTES as u64) / 2 < full);
        assert!(Region::new(usize::MAX).is_err());
    }
}
