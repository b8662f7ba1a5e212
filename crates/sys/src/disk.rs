//! Files whose blocks go to the device and not only to the page cache: direct I/O where the file system takes it, else
//! buffered I/O that is written back and dropped from the cache; free space; what the kernel counted.
//!
//! The files have no name (`O_TMPFILE`, open(2)), so that the kernel removes them whatever becomes of the process.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};

use crate::facts::field;
use crate::thread::{monotonic_ns, tid};

/// Alignment of memory and offset that every device takes; more only where statx(2) says so.
const USUAL_ALIGN_BYTES: usize = 4_096;

/// Buffered writes are written back after this much, so that what is unwritten stays bounded.
const WRITE_BACK_BYTES: u64 = 4 << 20;

/// Bytes that begin at an aligned address, as direct I/O wants them.
#[derive(Debug)]
pub struct AlignedBytes {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes at a multiple of `align_bytes` (not 0).
    pub fn new(len: usize, align_bytes: usize) -> Self {
        let bytes = vec![0_u8; len + align_bytes];
        // A Vec that is never grown keeps its memory where it is, also when the value moves.
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(align_bytes) - address;
        Self { bytes, start, len }
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// An open file without a name that is read and written in whole blocks.
#[derive(Debug)]
pub struct BlockFile {
    file: File,
    align_bytes: usize,
    why_buffered: Option<String>,
    /// A direct write has succeeded, so that a refusal is no longer a matter of direct I/O.
    proven: bool,
    unwritten_bytes: u64,
}

impl BlockFile {
    /// A new empty file in `directory`, for direct I/O if that can be had.
    /// Errors: the system's error: no such directory, not writable, read-only, out of space or inodes.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let (file, refused) = match unnamed(directory, OFlags::DIRECT) {
            Err(e) if is_refusal(&e) => (unnamed(directory, OFlags::empty())?, true),
            opened => (opened?, false),
        };
        let align_bytes = USUAL_ALIGN_BYTES;
        let mut new = Self { file, align_bytes, why_buffered: None, proven: false, unwritten_bytes: 0 };
        match direct_align_bytes(&new.file) {
            _ if refused => new.fall_back("the file system refuses O_DIRECT")?,
            Some(0) => new.fall_back("the file system has no direct I/O")?,
            Some(bytes) => new.align_bytes = bytes.max(USUAL_ALIGN_BYTES),
            None => {}
        }
        Ok(new)
    }

    /// What the address, the length and the offset of every transfer must be multiples of.
    pub fn align_bytes(&self) -> usize {
        self.align_bytes
    }

    /// Why the file is not used by direct I/O; `None` when it is.
    pub fn why_buffered(&self) -> Option<&str> {
        self.why_buffered.as_deref()
    }

    /// Writes all of `block` at `offset_bytes`. Buffered, it is on the device after 4 MiB more at the latest.
    /// Errors: the system's error, with [`io::ErrorKind::StorageFull`] for a full disk.
    pub fn write_at(&mut self, block: &[u8], offset_bytes: u64) -> io::Result<()> {
        let mut done = 0;
        while done < block.len() {
            match self.file.write_at(&block[done..], offset_bytes + done as u64) {
                // A disk that fills up takes a part; the rest must begin at a whole block again.
                Ok(n) if self.why_buffered.is_none() => {
                    let whole = n / self.align_bytes * self.align_bytes;
                    if whole == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    self.proven = true;
                    done += whole;
                }
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if self.why_buffered.is_none() && !self.proven && is_refusal(&e) => {
                    self.fall_back("the file system refuses direct writes")?;
                }
                Err(e) => return Err(e),
            }
        }
        if self.why_buffered.is_some() {
            self.unwritten_bytes += block.len() as u64;
            if self.unwritten_bytes >= WRITE_BACK_BYTES {
                self.write_back()?;
            }
        }
        Ok(())
    }

    /// Reads all of `block`. Errors: the system's; [`io::ErrorKind::UnexpectedEof`] past the end of the file.
    pub fn read_at(&mut self, block: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        loop {
            match self.file.read_exact_at(block, offset_bytes) {
                Err(e) if self.why_buffered.is_none() && is_refusal(&e) => {
                    self.fall_back("the file system refuses direct reads")?;
                }
                read => return read,
            }
        }
    }

    /// Waits until what was written is on the device, and drops it from the page cache if it is there.
    /// Errors: the system's error: a device that fails, a disk that is full only now.
    pub fn write_back(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.unwritten_bytes = 0;
        self.drop_cached();
        Ok(())
    }

    /// Drops the file's written pages from the page cache (a request; the kernel keeps what is in use).
    pub fn drop_cached(&self) {
        if self.why_buffered.is_some() {
            let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        }
    }

    fn fall_back(&mut self, why: &str) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&self.file)?;
        rustix::fs::fcntl_setfl(&self.file, flags.difference(OFlags::DIRECT))?;
        self.why_buffered = Some(why.to_owned());
        Ok(())
    }
}

/// What file systems answer to direct I/O that they don't have.
fn is_refusal(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

fn unnamed(directory: &Path, more: OFlags) -> io::Result<File> {
    let options = |flags: OFlags| {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600).custom_flags((flags | more).bits() as i32);
        options
    };
    match options(OFlags::TMPFILE).open(directory) {
        // Without O_TMPFILE the kernel takes this for opening a directory to write, or the file system refuses.
        Err(e) if e.kind() == io::ErrorKind::IsADirectory || e.kind() == io::ErrorKind::Unsupported => {
            let path = directory.join(format!(".{}-{}", tid(), monotonic_ns()));
            let file = options(OFlags::NOFOLLOW).create_new(true).open(&path);
            // A refused O_DIRECT leaves the name behind all the same.
            let removed = fs::remove_file(&path);
            let file = file?;
            removed?;
            Ok(file)
        }
        opened => opened,
    }
}

/// What statx(2) says about direct I/O on this file: bytes, 0 for none; `None` before Linux 6.1.
fn direct_align_bytes(file: &File) -> Option<usize> {
    let stat = rustix::fs::statx(file.as_fd(), c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let said = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let align_bytes = stat.stx_dio_mem_align.max(stat.stx_dio_offset_align) as usize;
    said.then_some(if stat.stx_dio_offset_align == 0 { 0 } else { align_bytes })
}

/// Bytes that an ordinary user may still write below `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(path)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Bytes that the calling thread moved to and from devices, as the kernel counts them (`/proc/thread-self/io`): what a
/// page cache or a file system in memory served is not among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceTraffic {
    pub read_bytes: u64,
    /// Bytes written, or dirtied in the page cache of a file that lies on a device.
    pub written_bytes: u64,
}

impl DeviceTraffic {
    /// So far; `None` where the kernel does not count or does not say.
    pub fn of_current_thread() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/io").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |name: &str| field(text, name)?.parse().ok();
        Some(Self { read_bytes: number("read_bytes")?, written_bytes: number("write_bytes")? })
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 1 << 16;

    fn pattern(file: &BlockFile, salt: u8) -> AlignedBytes {
        let mut block = AlignedBytes::new(BLOCK_BYTES, file.align_bytes());
        for (i, b) in block.as_mut_slice().iter_mut().enumerate() {
            *b = (i as u8).wrapping_mul(31).wrapping_add(salt);
        }
        block
    }

    #[test]
    fn aligned_bytes_are_aligned_also_after_a_move() {
        for align_bytes in [1, 512, 4_096, 65_536] {
            let moved = Box::new(AlignedBytes::new(10_000, align_bytes));
            assert_eq!(moved.as_slice().as_ptr().addr() % align_bytes, 0);
            assert_eq!(moved.as_slice().len(), 10_000);
        }
    }

    #[test]
    fn blocks_come_back_as_they_were_written_direct_and_buffered() {
        let directory = tempfile::tempdir().unwrap();
        for buffered in [false, true] {
            let mut file = BlockFile::create(directory.path()).unwrap();
            if buffered {
                file.fall_back("the test wants it so").unwrap();
            }
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
            let blocks: Vec<AlignedBytes> = (0..80).map(|salt| pattern(&file, salt)).collect();
            for (i, block) in blocks.iter().enumerate() {
                file.write_at(block.as_slice(), (i * BLOCK_BYTES) as u64).unwrap();
            }
            assert!(file.unwritten_bytes < WRITE_BACK_BYTES);
            file.write_back().unwrap();
            let mut read = AlignedBytes::new(BLOCK_BYTES, file.align_bytes());
            for (i, block) in blocks.iter().enumerate().rev() {
                file.read_at(read.as_mut_slice(), (i * BLOCK_BYTES) as u64).unwrap();
                assert!(read.as_slice() == block.as_slice(), "block {i}, buffered {buffered}");
            }
            let e = file.read_at(read.as_mut_slice(), (blocks.len() * BLOCK_BYTES) as u64).unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn the_kernel_counts_what_was_moved() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = BlockFile::create(directory.path()).unwrap();
        let block = pattern(&file, 3);
        let Some(begin) = DeviceTraffic::of_current_thread() else {
            return println!("skipped: this kernel counts no input and output");
        };
        let moved_bytes = 32 * BLOCK_BYTES as u64;
        for i in 0..32 {
            file.write_at(block.as_slice(), i * BLOCK_BYTES as u64).unwrap();
        }
        file.write_back().unwrap();
        let written = DeviceTraffic::of_current_thread().unwrap().since(&begin).written_bytes;
        if written == 0 {
            return println!("skipped: {} is no real disk", directory.path().display());
        }
        let mut read = AlignedBytes::new(BLOCK_BYTES, file.align_bytes());
        for i in 0..32 {
            file.read_at(read.as_mut_slice(), i * BLOCK_BYTES as u64).unwrap();
        }
        let traffic = DeviceTraffic::of_current_thread().unwrap().since(&begin);
        // Read-ahead of a buffered file and metadata come on top.
        assert!(
            traffic.written_bytes >= moved_bytes && traffic.written_bytes < 2 * moved_bytes,
            "{traffic:?}"
        );
        assert!(traffic.read_bytes >= moved_bytes && traffic.read_bytes < 2 * moved_bytes, "{traffic:?}");
    }

    #[test]
    fn what_the_kernel_says_is_read_by_name() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        let traffic = DeviceTraffic::parse(text).unwrap();
        assert_eq!(traffic, DeviceTraffic { read_bytes: 4_096, written_bytes: 8_192 });
        assert_eq!(DeviceTraffic::parse("rchar: 1\n"), None);
        assert_eq!(DeviceTraffic::parse("read_bytes: -1\nwrite_bytes: 2\n"), None);
    }

    #[test]
    fn directories_that_are_not_there_say_so() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        assert_eq!(BlockFile::create(&absent).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(free_bytes(&absent).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(free_bytes(directory.path()).unwrap() > 0);
        // /proc takes no files at all.
        assert!(BlockFile::create(Path::new("/proc")).is_err());
    }

    /// A small file system of its own in memory, seen by the calling thread alone.
    fn small_file_system(at: &Path, options: &std::ffi::CStr) -> io::Result<()> {
        use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
        // SAFETY: only this thread's view of mounts becomes its own.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }?;
        mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        Ok(mount("tmpfs", at, "tmpfs", MountFlags::empty(), options)?)
    }

    #[test]
    fn a_full_disk_is_called_full_and_takes_no_more() {
        let directory = tempfile::tempdir().unwrap();
        crate::testing::in_thread(|| {
            if let Err(e) = small_file_system(directory.path(), c"size=1m") {
                return println!("skipped: no file system of our own ({e})");
            }
            assert_eq!(free_bytes(directory.path()).unwrap(), 1 << 20);
            let mut file = BlockFile::create(directory.path()).unwrap();
            let block = pattern(&file, 1);
            let mut blocks = 0;
            let e = loop {
                match file.write_at(block.as_slice(), blocks * BLOCK_BYTES as u64) {
                    Ok(()) => blocks += 1,
                    Err(e) => break e,
                }
            };
            assert_eq!((e.kind(), blocks), (io::ErrorKind::StorageFull, 16));
            drop(file);
            assert_eq!(free_bytes(directory.path()).unwrap(), 1 << 20, "nothing is left");
        });
    }
}
