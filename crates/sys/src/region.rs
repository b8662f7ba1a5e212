//! Memory that goes back to the system when it is dropped, unlike what an allocator may keep.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// For memory that is read and written.
pub(crate) const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// A mapping at an address of the kernel's choice; dropping it unmaps it. Its owner says who may use what it holds.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and any thread may use or unmap it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Memory without a file, zero at first. Errors: no address space, or a limit (`RLIMIT_AS`, overcommit).
    pub(crate) fn anonymous(bytes: usize, access: ProtFlags, flags: MapFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        Self::of(unsafe { rustix::mm::mmap_anonymous(null_mut(), bytes, access, flags) }, bytes)
    }

    /// The first `bytes` of a file.
    pub(crate) fn of_file(
        file: impl AsFd,
        bytes: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        // SAFETY: as in `anonymous`.
        Self::of(unsafe { rustix::mm::mmap(null_mut(), bytes, access, flags, file, 0) }, bytes)
    }

    fn of(start: rustix::io::Result<*mut std::ffi::c_void>, bytes: usize) -> io::Result<Self> {
        Ok(Self { start: NonNull::new(start?.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `of`; owners let no reference to it outlive it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A file in memory, zero at first, that nobody can take away under another process, which would be killed by a SIGBUS.
pub(crate) fn sealed_file(name: &CStr, bytes: usize) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, bytes as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Whether it was made by [`sealed_file`] with so many bytes; `refused` says what is wrong about one of another size.
/// Errors: [`io::ErrorKind::InvalidInput`], else the system's error.
pub(crate) fn check_sealed(
    file: &OwnedFd,
    bytes: usize,
    refused: impl FnOnce(i64) -> String,
) -> io::Result<()> {
    let sealed = rustix::fs::fcntl_get_seals(file).is_ok_and(|s| s.contains(SealFlags::SHRINK));
    let size = rustix::fs::fstat(file)?.st_size;
    if sealed && usize::try_from(size) == Ok(bytes) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, refused(size)))
}

/// A private anonymous mapping. Its pages come into being when they are first touched; before they read as zero.
#[derive(Debug)]
pub struct Region(pub(crate) Mapping);

impl Region {
    /// Maps `bytes` (at least 1), rounded up to pages. Errors: no address space, or the limits on it.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let page_bytes = crate::mirror::page_bytes();
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(page_bytes)
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self(Mapping::anonymous(bytes, READ_WRITE, MapFlags::PRIVATE)?))
    }

    /// First byte.
    pub fn start(&self) -> NonNull<u8> {
        self.0.start
    }

    /// Whole pages, bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zero or written, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.bytes()) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the exclusive borrow of `self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.bytes()) }
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
