//! Calls on the address space: mapping, protection, and first touches of pages.

use std::fs::File;
use std::hint::black_box;
use std::io;

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

pub use crate::mirror::page_bytes;
use crate::pages::{Backing, HUGE_PAGE_BYTES, Pages};
use crate::region::{Mapping, READ_WRITE};
use crate::thread::Usage;

/// `mmap` of `bytes` of private memory that nobody touches, and `munmap`.
#[inline]
pub fn map_and_unmap(bytes: usize) -> io::Result<()> {
    let none = std::ptr::null_mut();
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    let at = unsafe { rustix::mm::mmap_anonymous(none, bytes, READ_WRITE, MapFlags::PRIVATE) }?;
    // SAFETY: exactly the mapping just made, which nobody has seen.
    Ok(unsafe { rustix::mm::munmap(at, bytes) }?)
}

/// `malloc` of `bytes` and `free`; fails if there is no such block.
#[inline]
pub fn allocate_and_free(bytes: usize) -> io::Result<()> {
    // SAFETY: takes no memory; the compiler does not see that the block is unused.
    let block = black_box(unsafe { libc::malloc(black_box(bytes)) });
    if block.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just given, and known to nothing else.
    unsafe { libc::free(block) };
    Ok(())
}

#[derive(Debug)]
pub struct Guarded(Pages);

impl Guarded {
    /// A page that has been touched.
    pub fn new() -> io::Result<Self> {
        let pages = Pages::new(page_bytes(), Backing::Small)?;
        // SAFETY: the mapping is live and ours, and readable and writable between calls of `protect_and_release`.
        unsafe { pages.extent().address().write_volatile(1) };
        Ok(Self(pages))
    }

    /// `mprotect` twice: read-only, and writable again.
    #[inline]
    pub fn protect_and_release(&self) -> io::Result<()> {
        let (at, bytes) = (self.0.extent().address().cast(), self.0.bytes());
        // SAFETY: whole pages of ours that nobody reads or writes meanwhile.
        unsafe { rustix::mm::mprotect(at, bytes, MprotectFlags::READ) }?;
        // SAFETY: as above.
        Ok(unsafe { rustix::mm::mprotect(at, bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?)
    }
}

/// Memory that has been touched, in small pages, of which children inherit as much as they are to.
#[derive(Debug)]
pub struct Inherited(Pages);

impl Inherited {
    pub fn touched(bytes: usize) -> io::Result<Self> {
        let pages = Pages::new(bytes, Backing::Small)?;
        pages.extent().touch();
        Ok(Self(pages))
    }

    /// Children forked from now on inherit the first `bytes` (whole pages).
    pub fn leave_to_children(&self, bytes: usize) -> io::Result<()> {
        let rest_bytes = self.0.bytes().checked_sub(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let rest = self.0.extent().address().wrapping_add(bytes);
        // SAFETY: whole pages of ours; the advice changes what children see, and they use none of it.
        unsafe { rustix::mm::madvise(self.0.extent().address().cast(), bytes, Advice::LinuxDoFork) }?;
        // SAFETY: as above.
        Ok(unsafe { rustix::mm::madvise(rest.cast(), rest_bytes, Advice::LinuxDontFork) }?)
    }
}

#[derive(Debug)]
enum Source {
    Memory(Pages),
    /// A mapped file whose pages are cached: touched by reading.
    File(Mapping),
}

/// Memory that is touched for the first time, one step after the other, again after each [`Untouched::renew`].
#[derive(Debug)]
pub struct Untouched {
    source: Source,
    step_bytes: usize,
    next: usize,
}

impl Untouched {
    /// `steps` small pages of anonymous memory.
    pub fn small(steps: usize) -> io::Result<Self> {
        let step_bytes = page_bytes();
        let pages = Pages::new(steps.saturating_mul(step_bytes), Backing::Small)?;
        Ok(Self { source: Source::Memory(pages), step_bytes, next: 0 })
    }

    /// `steps` huge pages of anonymous memory; whether they are granted is seen by [`Self::second_touch_faults`].
    pub fn huge(steps: usize) -> io::Result<Self> {
        let pages = Pages::new(steps.saturating_mul(HUGE_PAGE_BYTES), Backing::Huge)?;
        Ok(Self { source: Source::Memory(pages), step_bytes: HUGE_PAGE_BYTES, next: 0 })
    }

    /// The first `bytes` of a file, read once every `step_bytes`. A fault maps the pages around it too, by default
    /// 64 KiB. Errors: the system's; a shorter file; steps that are no multiple of the page size.
    pub fn file(file: &File, bytes: usize, step_bytes: usize) -> io::Result<Self> {
        let wrong = step_bytes == 0 || !step_bytes.is_multiple_of(page_bytes());
        // Reading beyond the end would end the program by SIGBUS.
        if wrong || bytes < step_bytes || file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mapped = Mapping::of_file(file, bytes, ProtFlags::READ, MapFlags::SHARED)?;
        Ok(Self { source: Source::File(mapped), step_bytes, next: 0 })
    }

    fn range(&self) -> (*mut u8, usize) {
        match &self.source {
            Source::Memory(pages) => (pages.extent().address(), pages.bytes()),
            Source::File(mapped) => (mapped.start().as_ptr(), mapped.bytes()),
        }
    }

    pub fn left(&self) -> usize {
        self.range().1 / self.step_bytes - self.next
    }

    /// Gives everything back, so that all of it is untouched again.
    pub fn renew(&mut self) -> io::Result<()> {
        let (at, bytes) = self.range();
        self.next = 0;
        // SAFETY: whole pages of ours to which no reference exists; anonymous ones read as zero afterwards.
        Ok(unsafe { rustix::mm::madvise(at.cast(), bytes, Advice::LinuxDontNeed) }?)
    }

    /// Touches the next `steps` steps; false, and nothing is touched, when fewer are left.
    #[inline]
    pub fn touch(&mut self, steps: u64) -> bool {
        if steps > self.left() as u64 {
            return false;
        }
        let (at, _) = self.range();
        for i in self.next..self.next + steps as usize {
            // SAFETY: inside the mapping, as was just seen.
            let byte = unsafe { at.add(i * self.step_bytes) };
            match self.source {
                // SAFETY: mapped writable, and only this value reaches it.
                Source::Memory(_) => unsafe { byte.write_volatile(1) },
                // SAFETY: mapped readable, and inside the file.
                Source::File(_) => drop(unsafe { byte.read_volatile() }),
            }
        }
        self.next += steps as usize;
        true
    }

    /// Touches the second page of every step touched so far; how many took a fault: none in a large page.
    pub fn second_touch_faults(&mut self) -> u64 {
        let (at, _) = self.range();
        let before = Usage::of_current_thread();
        if let Source::Memory(_) = self.source {
            for i in 0..self.next {
                // SAFETY: inside the mapping: every step has more than one page, or the first page of the next is written.
                let byte = unsafe { at.add((i * self.step_bytes + page_bytes()).min(self.range().1 - 1)) };
                // SAFETY: mapped writable, and only this value reaches it.
                unsafe { byte.write_volatile(1) };
            }
        }
        Usage::of_current_thread().since(&before).minor_faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::faults;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_first_touch_takes_a_fault_and_no_second_one() {
        let mut memory = Untouched::small(200).unwrap();
        for _ in 0..3 {
            memory.renew().unwrap();
            let taken = faults(|| assert!(memory.touch(150)));
            assert!((150..160).contains(&taken), "{taken}");
            assert_eq!(memory.left(), 50);
            assert!(!memory.touch(51));
            assert!(faults(|| assert!(memory.touch(50))) >= 50);
        }
    }

    #[test]
    fn a_cached_file_takes_a_fault_for_each_group_of_pages() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
        let mut mapped = Untouched::file(&file, 1 << 20, 64 << 10).unwrap();
        for _ in 0..2 {
            mapped.renew().unwrap();
            let taken = faults(|| assert!(mapped.touch(16)));
            assert!(taken <= 20, "{taken}");
        }
        for (bytes, step) in [(2 << 20, 4_096), (1 << 20, 100), (1 << 20, 0), (0, 4_096)] {
            assert!(Untouched::file(&file, bytes, step).is_err(), "{bytes} {step}");
        }
    }

    #[test]
    fn mapping_and_protecting_leave_nothing_behind() {
        for bytes in [1, 4_096, 1 << 20] {
            map_and_unmap(bytes).unwrap();
        }
        assert!(map_and_unmap(0).is_err());
        let guarded = Guarded::new().unwrap();
        (0..100).for_each(|_| guarded.protect_and_release().unwrap());
    }
}
