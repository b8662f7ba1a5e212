//! Memory to measure on: mapped with the page size asked for, aligned to the largest page, and handed out as extents that
//! kernels and atomics may share between threads and processes.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::oom::MemoryLeft;
use crate::tree::Tree;

/// Size of a huge page on x86-64, and of the usual one on aarch64 with 4 KiB pages, bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Page size asked for. What was granted is another question: see [`Pages::huge_bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// The machine's base page: `MADV_NOHUGEPAGE`.
    Small,
    /// Transparent huge pages: `MADV_HUGEPAGE`.
    Huge,
    /// As the system does by itself.
    Unasked,
}

/// A mapping of whole pages that starts at a multiple of [`HUGE_PAGE_BYTES`]. Untouched pages read as zero.
#[derive(Debug)]
pub struct Pages {
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
    backing: Backing,
}

// SAFETY: the mapping belongs to this value and is reached only through `Extent`, whose uses are atomics and assembly.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

/// A part of some [`Pages`]. Copies of it are given to several threads; nobody may form references to its bytes other than
/// to atomics.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    start: NonNull<u8>,
    bytes: usize,
    pages: PhantomData<&'a Pages>,
}

// SAFETY: only atomics and assembly reach the memory through it.
unsafe impl Send for Extent<'_> {}
// SAFETY: as above.
unsafe impl Sync for Extent<'_> {}

impl Pages {
    /// Maps `bytes` (at least 1, rounded up to base pages) for this process alone.
    ///
    /// # Errors
    /// One line: more than the machine has available, or the system's refusal.
    pub fn new(bytes: usize, backing: Backing) -> io::Result<Self> {
        Self::map(bytes, backing, MapFlags::PRIVATE)
    }

    /// Maps `bytes` to be shared with processes forked later, at the same address in all of them.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn shared(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, Backing::Unasked, MapFlags::SHARED)
    }

    fn map(bytes: usize, backing: Backing, flags: MapFlags) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let available_bytes =
            MemoryLeft::of_machine(&Tree::host()).map_or(u64::MAX, |left| left.available_bytes);
        let too_large = || {
            let said = format!("{bytes} bytes do not fit: {available_bytes} bytes of memory are available");
            io::Error::new(io::ErrorKind::OutOfMemory, said)
        };
        let bytes = bytes.max(1).checked_next_multiple_of(page_bytes).ok_or_else(too_large)?;
        let mapped_bytes = bytes.checked_add(HUGE_PAGE_BYTES).ok_or_else(too_large)?;
        if bytes as u64 > available_bytes {
            return Err(too_large());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let none = std::ptr::null_mut();
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
        let mapped =
            unsafe { rustix::mm::mmap_anonymous(none, mapped_bytes, access, flags | MapFlags::NORESERVE) }?;
        let mapped = NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `skip` is less than the alignment, which the mapping is longer by.
        let start = unsafe { mapped.add(skip) };
        let pages = Self { mapped, mapped_bytes, start, bytes, backing };
        let advice = match backing {
            Backing::Small => Some(Advice::LinuxNoHugepage),
            Backing::Huge => Some(Advice::LinuxHugepage),
            Backing::Unasked => None,
        };
        if let Some(advice) = advice {
            // SAFETY: the range is mapped and ours; the advice changes no contents.
            let advised = unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, advice) };
            // A kernel without transparent huge pages knows neither advice: small pages are all there is then.
            if advised.is_err() && backing == Backing::Huge {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this kernel has no transparent huge pages",
                ));
            }
        }
        Ok(pages)
    }

    /// Size, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Page size asked for.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// All of it.
    pub fn extent(&self) -> Extent<'_> {
        Extent { start: self.start, bytes: self.bytes, pages: PhantomData }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; extents borrow `self`.
        let _ = unsafe { rustix::mm::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

impl<'a> Extent<'a> {
    /// Size, bytes.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Address, for kernels.
    pub fn address(self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// `bytes` from `offset` on; `None` if that does not lie inside.
    pub fn part(self, offset: usize, bytes: usize) -> Option<Self> {
        if offset.checked_add(bytes)? > self.bytes {
            return None;
        }
        // SAFETY: `offset` lies inside the extent.
        let start = unsafe { self.start.add(offset) };
        Some(Self { start, bytes, pages: PhantomData })
    }

    /// The memory as 64-bit atomics: as many as fit from its first multiple of 8 on.
    pub fn atomics(self) -> &'a [AtomicU64] {
        let skip = self.start.as_ptr().align_offset(align_of::<AtomicU64>()).min(self.bytes);
        // SAFETY: `skip` is at most the size.
        let first = unsafe { self.start.add(skip) }.cast::<AtomicU64>();
        // SAFETY: mapped, aligned, live for 'a, initialized (zero or written), and reached only through atomics and assembly.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), (self.bytes - skip) / size_of::<AtomicU64>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn extents_are_aligned_zero_and_shared() {
        let pages = Pages::new(10_000, Backing::Small).unwrap();
        assert_eq!(pages.bytes() % 4_096, 0);
        assert_eq!(pages.extent().address() as usize % HUGE_PAGE_BYTES, 0);
        let words = pages.extent().atomics();
        assert!(words.len() >= 1_250 && words.iter().all(|w| w.load(Ordering::Relaxed) == 0));
        words[7].store(3, Ordering::Relaxed);
        assert_eq!(pages.extent().part(56, 8).unwrap().atomics()[0].load(Ordering::Relaxed), 3);
        assert!(pages.extent().part(pages.bytes() - 4, 8).is_none());
    }

    #[test]
    fn more_than_the_machine_has_is_one_clear_line() {
        for bytes in [1 << 60, usize::MAX] {
            let said = Pages::new(bytes, Backing::Small).unwrap_err().to_string();
            assert!(said.contains("do not fit") && !said.contains('\n'), "{said}");
        }
    }
}
