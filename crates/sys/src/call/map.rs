//! Calls on the address space: mapping, protection, and first touches of pages.

use std::fs::File;
use std::hint::black_box;
use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::zero;

pub use crate::mirror::page_bytes;
use crate::pages::{Backing, HUGE_PAGE_BYTES, Pages};
use crate::region::{Mapping, READ_WRITE};
use crate::thread::Usage;

/// `mmap` of `bytes` of private memory that nothing touches, and `munmap`.
#[inline]
pub fn map_and_unmap(bytes: usize) -> io::Result<()> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: exactly the mapping just made, which is known to nothing else.
    zero(unsafe { libc::munmap(at, bytes) })
}

/// Mappings right above the place where the kernel puts the next one.
#[derive(Debug)]
pub struct Neighbors {
    _kept: Vec<Mapping>,
}

impl Neighbors {
    /// Mappings that are kept at most until the next one lies right below the last: as many holes are filled first.
    const MOST: usize = 256;

    /// Neighbors of a mapping of `bytes`. The kernel merges it with them if they allow the same (`merge`), and else keeps it apart.
    /// Errors: the system's; the kernel puts mappings elsewhere.
    pub fn of_next(bytes: usize, merge: bool) -> io::Result<Self> {
        let access = if merge { READ_WRITE } else { ProtFlags::empty() };
        let mut kept = Vec::new();
        while kept.len() < Self::MOST {
            let above = Mapping::anonymous(bytes, access, MapFlags::PRIVATE)?;
            let next = Mapping::anonymous(bytes, READ_WRITE, MapFlags::PRIVATE)?;
            let is_adjacent = next.start().as_ptr().wrapping_add(bytes) == above.start().as_ptr();
            kept.push(above);
            if is_adjacent {
                return Ok(Self { _kept: kept });
            }
        }
        Err(io::Error::other("the kernel puts no mapping beside the one before"))
    }
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
        // SAFETY: whole pages of ours that nothing reads or writes meanwhile.
        zero(unsafe { libc::mprotect(at, bytes, libc::PROT_READ) })?;
        // SAFETY: as above.
        zero(unsafe { libc::mprotect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) })
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
    use crate::process::fork::{Ended, fork_run};
    use crate::testing::faults;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_mapping_merges_with_its_neighbors_or_stays_apart() {
        // In a process of one thread, so that nothing else is mapped meanwhile.
        let mut child = fork_run(&|| {
            for bytes in [page_bytes(), 1 << 20] {
                for merge in [false, true] {
                    let _neighbors = Neighbors::of_next(bytes, merge).unwrap();
                    let mapped = Mapping::anonymous(bytes, READ_WRITE, MapFlags::PRIVATE).unwrap();
                    let begin = mapped.start().as_ptr().addr();
                    let own = format!("{begin:x}-{:x} ", begin + bytes);
                    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
                    assert_eq!(maps.lines().any(|l| l.starts_with(&own)), !merge, "{own} in {maps}");
                }
            }
            0
        });
        assert_eq!(child.as_mut().unwrap().wait().unwrap(), Ended::Exited(0));
    }

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
