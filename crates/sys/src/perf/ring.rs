//! The mapped ring buffer of a perf event.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::open::{Event, no_ring};
use super::record::PageClock;
use crate::Refused;
use crate::region::{Mapping, READ_WRITE};

// Offsets in `struct perf_event_mmap_page`, which are part of the kernel's interface.
const LOCK_BYTE: usize = 8;
const CAPABILITIES_BYTE: usize = 40;
const SHIFT_BYTE: usize = 50;
const MULT_BYTE: usize = 52;
const ZERO_BYTE: usize = 64;
const HEAD_BYTE: usize = 1024;
const TAIL_BYTE: usize = 1032;
const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_ZERO: u64 = 1 << 4;

/// The event's descriptor and its mapping: one control page, then the data pages.
#[derive(Debug)]
pub(super) struct Ring {
    mapping: Mapping,
    page_bytes: usize,
    data_bytes: usize,
    event: Event,
}

impl Ring {
    /// Maps `pages` data pages (a power of two) of `event`.
    pub(super) fn map(event: Event, pages: usize) -> Result<Self, Refused> {
        let page_bytes = rustix::param::page_size();
        let data_bytes = pages * page_bytes;
        let shared = rustix::mm::MapFlags::SHARED;
        let mapping = Mapping::of_file(&event.fd, page_bytes + data_bytes, READ_WRITE, shared)
            .map_err(|e| no_ring(pages, &e))?;
        Ok(Self { mapping, page_bytes, data_bytes, event })
    }

    pub(super) fn enable(&self, on: bool) -> io::Result<()> {
        const ENABLE: libc::c_ulong = 0x2400;
        const DISABLE: libc::c_ulong = 0x2401;
        // SAFETY: these requests take no argument and touch no memory of ours.
        let rc = unsafe { libc::ioctl(self.event.fd.as_raw_fd(), if on { ENABLE } else { DISABLE } as _, 0) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Number of records lost so far; `None` on kernels that tell it only in the ring.
    pub(super) fn lost(&self) -> Option<u64> {
        let mut value_and_lost = [0_u8; 16];
        let read = self.event.counts_lost.then(|| rustix::io::read(&self.event.fd, &mut value_and_lost))?;
        let (_, lost) = value_and_lost.split_last_chunk::<8>()?;
        (read == Ok(16)).then(|| u64::from_ne_bytes(*lost))
    }

    /// Whether so little room was left at the last [`Self::take`] that records may have been lost.
    pub(super) fn was_full(&self, taken_bytes: usize) -> bool {
        taken_bytes + super::record::LARGEST_BYTES > self.data_bytes
    }

    fn field<T: Copy>(&self, byte: usize) -> T {
        assert!(byte + size_of::<T>() <= self.page_bytes);
        // SAFETY: the offset lies inside the mapped control page, as asserted.
        let field = unsafe { self.mapping.start().add(byte) }.cast::<T>();
        // SAFETY: the interface aligns its fields; volatile because the kernel writes them. T is an integer here.
        unsafe { field.read_volatile() }
    }

    fn counter(&self, byte: usize) -> &AtomicU64 {
        // SAFETY: the head and tail counters lie inside the mapped control page.
        let counter = unsafe { self.mapping.start().add(byte) }.cast::<u64>();
        // SAFETY: aligned, mapped as long as `self`, and shared with the kernel by atomic accesses only.
        unsafe { AtomicU64::from_ptr(counter.as_ptr()) }
    }

    /// The clock on the control page; `None` when the kernel's event clock does not follow the counter.
    pub(super) fn clock(&self) -> Option<PageClock> {
        // The kernel makes `lock` odd while it writes; a bounded number of attempts keeps this from hanging.
        for _ in 0..1_000 {
            let before: u32 = self.field(LOCK_BYTE);
            std::sync::atomic::fence(Ordering::Acquire);
            let capabilities: u64 = self.field(CAPABILITIES_BYTE);
            let (shift, mult, zero_ns) =
                (self.field(SHIFT_BYTE), self.field(MULT_BYTE), self.field(ZERO_BYTE));
            std::sync::atomic::fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.field::<u32>(LOCK_BYTE) == before {
                let both = CAP_USER_TIME | CAP_USER_TIME_ZERO;
                let valid = capabilities & both == both && mult != 0 && shift < 64;
                return valid.then_some(PageClock { shift, mult, zero_ns });
            }
        }
        None
    }

    /// Copies what the kernel has written since the last call into `bytes` and gives the room back.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        let head = self.counter(HEAD_BYTE).load(Ordering::Acquire);
        let tail = self.counter(TAIL_BYTE).load(Ordering::Relaxed);
        let len = (head.wrapping_sub(tail) as usize).min(self.data_bytes);
        let at = tail as usize % self.data_bytes;
        let first = len.min(self.data_bytes - at);
        for (offset, part) in [(at, first), (0, len - first)] {
            // SAFETY: the data area begins after the control page, and offset + part stays inside it.
            let start = unsafe { self.mapping.start().add(self.page_bytes + offset) };
            // SAFETY: mapped, initialized by the kernel up to `head`, which was read with acquire order; the kernel does not
            // write there again before the tail is stored.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start.as_ptr(), part) });
        }
        self.counter(TAIL_BYTE).store(head, Ordering::Release);
    }
}
