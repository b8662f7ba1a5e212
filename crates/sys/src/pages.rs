//! Memory to measure on: mapped with the page size asked for, aligned to the largest page, and handed out as extents that
//! kernels and atomics may share between threads and processes.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags};

use crate::fs_root::FsRoot;
use crate::oom::MemoryLeft;
use crate::region::{Mapping, READ_WRITE};

/// Size of a huge page on x86-64, and of the usual one on aarch64 with 4 KiB pages, bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Page size asked for. What was granted is another question: see [`Pages::huge_bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// The machine's base page: `MADV_NOHUGEPAGE`.
    Small,
    /// Transparent huge pages: `MADV_HUGEPAGE`.
    Huge,
    Unasked,
}

/// The `index`-th output of `SplitMix64` (Steele, Lea and Flood 2014) with this seed.
pub(crate) fn mix(seed: u64, index: u64) -> u64 {
    let z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A mapping of whole pages that starts at a multiple of [`HUGE_PAGE_BYTES`]. Untouched pages read as zero.
#[derive(Debug)]
pub struct Pages {
    _mapping: Mapping,
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

impl Extent<'static> {
    /// No bytes, for kernels that touch no memory.
    pub(crate) const NOTHING: Self = Self { start: NonNull::dangling(), bytes: 0, pages: PhantomData };
}

impl Pages {
    /// Maps `bytes` (at least 1, rounded up to pages) for this process. Errors: one line: more than is available.
    pub fn new(bytes: usize, backing: Backing) -> io::Result<Self> {
        Self::map(bytes, backing, MapFlags::PRIVATE)
    }

    /// Maps `bytes` to be shared with processes forked later, at the same address in all of them.
    pub fn shared(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, Backing::Unasked, MapFlags::SHARED)
    }

    fn map(bytes: usize, backing: Backing, flags: MapFlags) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let left = MemoryLeft::for_request(&FsRoot::host(), bytes);
        let available_bytes = left.map_or(u64::MAX, |left| left.available_bytes);
        let too_large = || {
            let said = format!("{bytes} bytes do not fit: {available_bytes} bytes of memory are available");
            io::Error::new(io::ErrorKind::OutOfMemory, said)
        };
        let bytes = bytes.max(1).checked_next_multiple_of(page_bytes).ok_or_else(too_large)?;
        let mapped_bytes = bytes.checked_add(HUGE_PAGE_BYTES).ok_or_else(too_large)?;
        if bytes as u64 > available_bytes {
            return Err(too_large());
        }
        let mapping = Mapping::anonymous(mapped_bytes, READ_WRITE, flags | MapFlags::NORESERVE)?;
        let mapped = mapping.start();
        let skip = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `skip` is less than the alignment, which the mapping is longer by.
        let start = unsafe { mapped.add(skip) };
        let pages = Self { _mapping: mapping, start, bytes, backing };
        if flags.contains(MapFlags::PRIVATE) {
            // After a fork each first write to a page would fault, long after the child has gone: 1 us, a store loop at 4 GB/s.
            // SAFETY: the range is mapped and ours; the advice changes what children see, and they use none of it.
            let _ =
                unsafe { rustix::mm::madvise(mapped.as_ptr().cast(), mapped_bytes, Advice::LinuxDontFork) };
        }
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
                let why = "this kernel has no transparent huge pages";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        }
        Ok(pages)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// How much of this mapping is in transparent huge pages now, bytes. Without a backing asked for, those of a
    /// neighbor that is kept together with it may count.
    pub fn huge_bytes(&self) -> io::Result<u64> {
        let start = self.start.as_ptr() as u64;
        let smaps = FsRoot::host().read("proc/self/smaps")?;
        Ok(huge_bytes(&smaps, start, start + self.bytes as u64).min(self.bytes as u64))
    }

    #[inline]
    pub fn extent(&self) -> Extent<'_> {
        Extent { start: self.start, bytes: self.bytes, pages: PhantomData }
    }
}

/// The huge pages of the mappings in a text of `/proc/PID/smaps` that overlap `start..end`, bytes.
fn huge_bytes(smaps: &str, start: u64, end: u64) -> u64 {
    let mut inside = false;
    let mut kib = 0;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(field) = first.strip_suffix(':') {
            if inside && matches!(field, "AnonHugePages" | "ShmemPmdMapped") {
                kib += words.next().and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
            }
        } else if let Some((from, to)) = first.split_once('-') {
            let address = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            inside = address(from) < end && address(to) > start;
        }
    }
    kib * 1_024
}

impl<'a> Extent<'a> {
    #[inline]
    pub fn bytes(self) -> usize {
        self.bytes
    }

    #[inline]
    pub fn address(self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// `bytes` from `offset` on; `None` if that does not lie inside.
    #[inline]
    pub fn part(self, offset: usize, bytes: usize) -> Option<Self> {
        if offset.checked_add(bytes)? > self.bytes {
            return None;
        }
        // SAFETY: `offset` lies inside the extent.
        let start = unsafe { self.start.add(offset) };
        Some(Self { start, bytes, pages: PhantomData })
    }

    /// The memory as 64-bit atomics: as many as fit from its first multiple of 8 on.
    #[inline]
    pub fn atomics(self) -> &'a [AtomicU64] {
        let skip = self.start.as_ptr().align_offset(align_of::<AtomicU64>());
        if skip >= self.bytes {
            return &[];
        }
        // SAFETY: `skip` is less than the size.
        let first = unsafe { self.start.add(skip) }.cast::<AtomicU64>();
        // SAFETY: mapped, aligned, live for 'a, initialized (zero or written), and reached only through atomics and assembly.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), (self.bytes - skip) / size_of::<AtomicU64>()) }
    }

    /// Writes words of a generator with this seed over all of it: incompressible. Machines move lines of zeros faster than others
    /// (up to three times on some), so the contents belong to a bandwidth as much as the size does.
    pub fn fill(self, seed: u64) {
        let words = self.atomics();
        let skip = self.start.as_ptr().align_offset(align_of::<AtomicU64>()).min(self.bytes);
        for (word, index) in words.iter().zip(0..) {
            word.store(mix(seed, index), Ordering::Relaxed);
        }
        let last = skip + size_of_val(words);
        for at in (0..skip).chain(last..self.bytes) {
            let byte = mix(seed, at as u64).to_le_bytes()[7];
            self.byte(at).store(byte, Ordering::Relaxed);
        }
    }

    /// Brings every page in by a write that keeps its contents: the caller's CPU decides where memory comes from.
    pub fn touch(self) {
        let page_bytes = rustix::param::page_size();
        let first = self.start.as_ptr().align_offset(page_bytes);
        if self.bytes > 0 {
            // An exchange of zero for zero keeps what is there, also under writes of others, and faults as a write does.
            let _ = self.byte(0).compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        for at in (first..self.bytes).step_by(page_bytes) {
            let _ = self.byte(at).compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Byte `at`, which must lie inside.
    fn byte(self, at: usize) -> &'a AtomicU8 {
        debug_assert!(at < self.bytes);
        // SAFETY: inside, as the callers' ranges say.
        let byte = unsafe { self.start.add(at) };
        // SAFETY: mapped, live for 'a, initialized, and reached only through atomics and assembly.
        unsafe { AtomicU8::from_ptr(byte.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;
    use crate::facts::memory::amount;
    use crate::process::fork::{Ended, fork_run};
    use crate::testing::faults;

    #[test]
    fn a_buffer_leaves_the_heap_its_part_of_limited_address_space() {
        const MIB: usize = 1 << 20;
        let status = FsRoot::host().read("proc/self/status").unwrap();
        let limit = amount(&status, "VmSize").map(|taken| taken + 256 * MIB as u64);
        let mut child = fork_run(&|| {
            setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
            let largest = (1..=256).rev().find_map(|mib| Pages::new(mib * MIB, Backing::Small).ok()).unwrap();
            assert!(largest.bytes() >= 64 * MIB);
            u8::from(Vec::<u8>::new().try_reserve_exact(64 * MIB).is_err())
        });
        assert_eq!(child.as_mut().unwrap().wait().unwrap(), Ended::Exited(0));
    }

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
    fn contents_cover_every_byte_and_nothing_outside() {
        let pages = Pages::new(8_192, Backing::Small).unwrap();
        let bytes = || -> Vec<u8> {
            let words = pages.extent().atomics().iter();
            words.flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect()
        };
        for (from, size) in [(64, 64), (3, 61), (5, 2), (9, 4_000), (0, 8_192)] {
            let before = bytes();
            let mut changed = vec![false; before.len()];
            // One fill may leave a byte as it was, several hardly.
            for seed in 0..8 {
                pages.extent().part(from, size).unwrap().fill(seed);
                changed.iter_mut().zip(bytes()).zip(&before).for_each(|((c, now), was)| *c |= now != *was);
            }
            for (at, changed) in changed.into_iter().enumerate() {
                assert_eq!(
                    changed,
                    (from..from + size).contains(&at),
                    "byte {at} of {size} bytes from {from}"
                );
            }
        }
        pages.extent().fill(7);
        let words: Vec<u64> = pages.extent().atomics().iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let ones: u32 = words.iter().map(|w| w.count_ones()).sum();
        assert!((31_000..34_600).contains(&ones), "{ones} of 65536 bits, sd 128");
        assert!(words.iter().all(|w| *w != 0) && words.windows(2).all(|w| w[0] != w[1]));
    }

    #[test]
    fn a_touch_brings_pages_in_and_keeps_contents() {
        let pages = Pages::new(1 << 20, Backing::Small).unwrap();
        pages.extent().atomics()[3].store(9, Ordering::Relaxed);
        assert!(faults(|| pages.extent().touch()) >= 255, "a fault per page that was not there");
        let again = faults(|| pages.extent().fill(1));
        assert!(again < 128, "they were there as pages to write to, not as the zero page");
        let pages = Pages::new(4_096, Backing::Small).unwrap();
        pages.extent().atomics()[0].store(9, Ordering::Relaxed);
        pages.extent().touch();
        pages.extent().part(1, 7).unwrap().touch();
        pages.extent().part(1, 0).unwrap().touch();
        assert_eq!(pages.extent().atomics()[0].load(Ordering::Relaxed), 9);
    }

    #[test]
    fn huge_pages_are_counted_for_the_mapping_alone() {
        let smaps = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
Size:               4096 kB
AnonHugePages:      4096 kB
ShmemPmdMapped:        0 kB
7f0000400000-7f0000800000 rw-p 00000000 00:00 0 
AnonHugePages:      2048 kB
7f0000800000-7f0000a00000 rw-s 00000000 00:01 5  /dev/zero (deleted)
AnonHugePages:         0 kB
ShmemPmdMapped:     2048 kB
VmFlags: rd wr mr mw me ac sd
";
        assert_eq!(huge_bytes(smaps, 0x7f00_0040_0000, 0x7f00_0080_0000), 2 << 20);
        assert_eq!(huge_bytes(smaps, 0x7f00_003f_f000, 0x7f00_0080_0000), 6 << 20);
        assert_eq!(huge_bytes(smaps, 0x7f00_0080_0000, 0x7f00_00a0_0000), 2 << 20);
        assert_eq!(huge_bytes(smaps, 0x1000, 0x2000), 0);

        let small = Pages::new(8 << 20, Backing::Small).unwrap();
        small.extent().touch();
        assert_eq!(small.huge_bytes().unwrap(), 0, "small pages were asked for");
        if let Ok(huge) = Pages::new(8 << 20, Backing::Huge) {
            assert_eq!(huge.huge_bytes().unwrap(), 0, "never written");
            huge.extent().touch();
            let granted = huge.huge_bytes().unwrap();
            assert!(granted <= 8 << 20 && granted.is_multiple_of(HUGE_PAGE_BYTES as u64), "{granted}");
        }
    }

    #[test]
    fn more_than_the_machine_has_is_one_clear_line() {
        for bytes in [1 << 60, usize::MAX] {
            let said = Pages::new(bytes, Backing::Small).unwrap_err().to_string();
            assert!(said.contains("do not fit") && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn writing_after_a_fork_takes_no_fault() {
        if crate::testing::is_emulated() {
            return;
        }
        let pages = Pages::new(1 << 20, Backing::Small).unwrap();
        pages.extent().touch();
        crate::process::fork::fork_run(&|| 0).unwrap().wait().unwrap();
        let faults = faults(|| pages.extent().atomics().iter().for_each(|w| w.store(7, Ordering::Relaxed)));
        assert!(faults < 16, "{faults} faults in 256 pages");
    }
}
