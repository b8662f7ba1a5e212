//! Memory that takes no page fault while measuring: mapped, touched and, where the limits allow, locked.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fs_root::FsRoot;
use crate::guard;
use crate::oom::MemoryLeft;
use crate::region::Region;

/// Keeps all threads on one heap where address space is limited: glibc reserves 64 MiB of it for each thread otherwise.
pub fn share_heap_under_limit() {
    #[cfg(target_env = "gnu")]
    if rustix::process::getrlimit(rustix::process::Resource::As).current.is_some() {
        // SAFETY: the call sets a number in the allocator.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// More than the machine or a control group has free; touching it would end in the out-of-memory killer.
    #[error(
        "a buffer of {bytes} bytes does not fit: {available_bytes} bytes of memory are available; use a shorter run or fewer CPUs"
    )]
    TooLarge { bytes: usize, available_bytes: u64 },
    /// A signal asked to stop meanwhile: gigabytes take seconds on a loaded machine.
    #[error("a signal asks to stop")]
    Stopped,
    #[error("a buffer of {bytes} bytes cannot be mapped: {source}")]
    Map { bytes: usize, source: io::Error },
}

/// Elements between two looks at the stop flag: some megabytes, a few ms.
const STEP: usize = 1 << 18;

/// A fixed-length buffer in its own mapping, every page touched and, if possible, locked in memory.
///
/// All elements start as `T::default()`. Dropping it unmaps (and so unlocks) the memory.
#[derive(Debug)]
pub struct LockedBuf<T: Copy + Default> {
    region: Region,
    len: usize,
    of: PhantomData<T>,
}

// SAFETY: the buffer owns its mapping exclusively, like a Vec; sending it sends the elements.
unsafe impl<T: Copy + Default + Send> Send for LockedBuf<T> {}
// SAFETY: shared access gives only shared references to elements, like a Vec.
unsafe impl<T: Copy + Default + Sync> Sync for LockedBuf<T> {}

impl<T: Copy + Default> LockedBuf<T> {
    /// Maps, fills and locks `len` elements. A refused lock is no error.
    pub fn new(len: usize) -> Result<Self, MemoryError> {
        Self::unless(len, guard::stop_flag())
    }

    fn unless(len: usize, stop: &AtomicBool) -> Result<Self, MemoryError> {
        const { assert!(align_of::<T>() <= 4096, "a mapping is aligned to pages only") };
        let too_large =
            |bytes| MemoryError::TooLarge { bytes, available_bytes: available_bytes(bytes).unwrap_or(0) };
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| too_large(usize::MAX))?;
        if available_bytes(bytes).is_some_and(|available| bytes as u64 > available) {
            return Err(too_large(bytes));
        }
        let region = Region::new(bytes).map_err(|source| MemoryError::Map { bytes, source })?;
        let start = region.start().cast::<T>();
        for i in 0..len {
            if i % STEP == 0 && stop.load(Ordering::Relaxed) {
                return Err(MemoryError::Stopped);
            }
            // SAFETY: element `i` lies inside the mapping, which is page-aligned and ours alone.
            let element = unsafe { start.add(i) };
            // SAFETY: valid for writes as stated above; the write is also what brings the page in.
            unsafe { element.write(T::default()) };
        }
        let _ = lock(region.start(), region.as_slice().len());
        Ok(Self { region, len, of: PhantomData })
    }

    fn start(&self) -> *mut T {
        self.region.start().as_ptr().cast()
    }

    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `len` elements were initialized in `new`, and the mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; the exclusive borrow of `self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

fn lock(start: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: the range is mapped and ours; locking changes no contents.
    Ok(unsafe { rustix::mm::mlock(start.as_ptr().cast(), bytes) }?)
}

fn available_bytes(bytes: usize) -> Option<u64> {
    MemoryLeft::for_request(&FsRoot::host(), bytes).ok().map(|left| left.available_bytes)
}

/// Touches and locks `bytes` of the calling thread's stack below this call. The stack is touched even when locking fails.
pub fn prepare_stack(bytes: usize) -> io::Result<()> {
    let low = touch_stack(bytes);
    let page_bytes = rustix::param::page_size();
    let start =
        NonNull::new((low & !(page_bytes - 1)) as *mut u8).ok_or_else(|| io::Error::other("no stack"))?;
    lock(start, bytes.next_multiple_of(page_bytes))
}

/// Locks every page of this process that is there now, code and libraries too, so that none of them is paged out. Later
/// allocations are not locked.
pub fn lock_present() -> io::Result<()> {
    Ok(rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT)?)
}

/// Writes to every page of `bytes` of stack, by recursion in steps, and returns the lowest address written.
#[inline(never)]
fn touch_stack(bytes: usize) -> usize {
    const STEP_BYTES: usize = 2_048;
    let mut frame = [0_u8; STEP_BYTES];
    std::hint::black_box(&mut frame);
    let here = (&raw const frame).addr();
    let low = if bytes <= STEP_BYTES { here } else { touch_stack(bytes - STEP_BYTES) };
    // The frame is used after the call, so that the recursion can't become a loop over one frame.
    std::hint::black_box(&mut frame);
    low.min(here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::faults;

    #[test]
    fn a_buffer_is_zeroed_writable_and_takes_no_faults_afterwards() {
        let len = 1 << 20;
        let mut buf = LockedBuf::<[u64; 2]>::new(len).unwrap();
        assert!(buf.as_slice().iter().all(|x| *x == [0, 0]));
        let faults = faults(|| {
            for (i, x) in buf.as_mut_slice().iter_mut().enumerate() {
                *x = [i as u64, 1];
            }
        });
        assert!(faults < (len * 16 / 4096 / 16) as u64, "{faults} faults in {} bytes", len * 16);
        assert_eq!(buf.as_slice()[len - 1], [len as u64 - 1, 1]);
    }

    #[test]
    fn a_signal_ends_the_filling() {
        let stopped = LockedBuf::<u64>::unless(1 << 20, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(MemoryError::Stopped)), "{stopped:?}");
    }

    #[test]
    fn an_empty_buffer_and_an_impossible_one_are_handled() {
        assert!(LockedBuf::<u64>::new(0).unwrap().as_slice().is_empty());
        for len in [usize::MAX, usize::MAX / 8, 1 << 50] {
            let e = LockedBuf::<u64>::new(len).unwrap_err().to_string();
            assert!(e.contains("does not fit"), "{e}");
        }
    }

    #[test]
    fn the_default_of_the_type_fills_the_buffer() {
        #[derive(Clone, Copy, PartialEq, Debug)]
        struct Seven(u32);
        impl Default for Seven {
            fn default() -> Self {
                Self(7)
            }
        }
        assert!(LockedBuf::<Seven>::new(5_000).unwrap().as_slice().iter().all(|s| *s == Seven(7)));
    }

    #[test]
    fn a_prepared_stack_takes_no_faults() {
        crate::testing::in_thread(|| {
            let locked = prepare_stack(256 * 1024);
            let faults = faults(|| {
                touch_stack(200 * 1024);
            });
            assert!(faults < 8, "{faults} faults, {locked:?}");
        });
    }
}
