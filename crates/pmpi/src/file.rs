//! The file of this rank: a header and blocks, mapped in pieces that the disk has granted before.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::format::{
    BLOCK_BYTES, DIRECTORY_VARIABLE, EXTENSION, LIMIT_VARIABLE, MAGIC, SLOTS, VERSION, header, peer_word,
};

use crate::clock;
use crate::library::Library;
use crate::system::{self, Limit};

/// Bytes that a file grows by: 8192 slots, some milliseconds of the shortest calls.
const PIECE_BYTES: usize = 256 << 10;

pub(crate) static RECORDING: AtomicBool = AtomicBool::new(false);

/// Rank, for messages.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);

static RECORDED: Mutex<Option<Recorded>> = Mutex::new(None);

/// Four words of the file.
pub(crate) type Slot = [AtomicU64; 4];

/// Slots, and the header taken as such, mapped for the rest of the process.
type Slots = &'static [Slot];

struct Recorded {
    file: File,
    header: &'static [AtomicU64],
    /// What of the last piece is not taken.
    free: Slots,
    bytes: u64,
    most_bytes: u64,
    blocks: u64,
    threads: u64,
}

/// Ticks and clock before `MPI_Init`.
pub(crate) struct Begin {
    is_processor: bool,
    ticks: u64,
    at_ns: u64,
}

impl Begin {
    pub(crate) fn now() -> Self {
        let is_processor = clock::choose();
        let (ticks, at_ns) = clock::pair();
        Self { is_processor, ticks, at_ns }
    }
}

fn recorded() -> MutexGuard<'static, Option<Recorded>> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one line to stderr, with the rank where it is known.
pub(crate) fn say(parts: &[&[u8]]) {
    let mut line = b"machmeter trace: ".to_vec();
    let rank = RANK.load(Ordering::Relaxed);
    if rank != u32::MAX {
        line.extend(format!("rank {rank}: ").bytes());
    }
    line.extend(parts.concat());
    line.push(b'\n');
    // A line that cannot be written is lost.
    let _ = std::io::stderr().write_all(&line);
}

/// Makes the file of a rank and begins to record.
pub(crate) fn begin(rank: i32, size: i32, library: &Library, begin: &Begin) {
    let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE).filter(|d| !d.is_empty()) else { return };
    RANK.store(rank as u32, Ordering::Relaxed);
    // Without a limit the disk is the limit.
    let limit = std::env::var_os(LIMIT_VARIABLE).and_then(|l| l.to_str()?.parse().ok());
    match Recorded::create(Path::new(&directory), limit.unwrap_or(u64::MAX), [rank, size], library, begin) {
        Ok(file) => {
            *recorded() = Some(file);
            RECORDING.store(true, Ordering::Release);
        }
        Err(why) => say(&[why, b" ", directory.as_bytes(), b": nothing is recorded"]),
    }
}

impl Recorded {
    /// A new file with its header. Errors: the beginning of a sentence that ends with the directory.
    fn create(
        directory: &Path,
        most_bytes: u64,
        [rank, size]: [i32; 2],
        library: &Library,
        begin: &Begin,
    ) -> Result<Self, &'static [u8]> {
        let path = directory.join(format!("rank-{rank}-{}.{EXTENSION}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(|_| b"cannot make a file in".as_slice())?;
        let Some(slots) = grown(&file, 0, BLOCK_BYTES).filter(|_| most_bytes > BLOCK_BYTES as u64) else {
            let _ = std::fs::remove_file(path);
            return Err(b"no space in");
        };
        let header = slots.as_flattened();
        write_header(header, [rank, size], library, begin);
        let bytes = BLOCK_BYTES as u64;
        Ok(Self { file, header, free: &[], bytes, most_bytes, blocks: 0, threads: 0 })
    }

    /// See [`take_block`]. Errors: why there is no more, after which the file is to be dropped.
    fn take_block(&mut self, thread: Option<u64>) -> Result<(Slots, u64), &'static [u8]> {
        if self.free.is_empty() {
            let is_limited = self.bytes + PIECE_BYTES as u64 > self.most_bytes;
            let more = if is_limited { None } else { grown(&self.file, self.bytes, PIECE_BYTES) };
            let Some(more) = more else {
                self.header[header::END].store(if is_limited { 3 } else { 2 }, Ordering::Release);
                return Err(if is_limited { b"its limit is reached" } else { b"no space is left" });
            };
            self.free = more;
            self.bytes += PIECE_BYTES as u64;
        }
        let (block, rest) = self.free.split_at(SLOTS);
        self.free = rest;
        self.blocks += 1;
        self.header[header::BLOCKS].store(self.blocks, Ordering::Release);
        let number = thread.unwrap_or(self.threads);
        self.threads += u64::from(thread.is_none());
        Ok((block, number))
    }

    /// Marks the end and gives back what was allocated and not used.
    fn finish(&self) {
        self.header[header::END].store(1, Ordering::Release);
        // No thread writes behind the blocks that were taken; mappings stay.
        let _ = self.file.set_len((self.blocks + 1) * BLOCK_BYTES as u64);
    }
}

fn write_header(header: &[AtomicU64], [rank, size]: [i32; 2], library: &Library, begin: &Begin) {
    let (start_ticks, _) = clock::pair();
    for (word, value) in [
        (header::MAGIC, MAGIC),
        (header::VERSION, u64::from(VERSION) | u64::from(begin.is_processor) << 32),
        (header::RANK, u64::from(rank as u32) | u64::from(size as u32) << 32),
        (header::SPECIAL, peer_word(library.any_source, library.proc_null)),
        (header::INIT_TICKS, begin.ticks),
        (header::INIT_NS, begin.at_ns),
        (header::START_TICKS, start_ticks),
        (header::START_REAL_NS, clock::now_ns(system::CLOCK_REALTIME)),
    ] {
        header[word].store(value, Ordering::Relaxed);
    }
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    write_text(&header[header::BOOT..header::HOST], boot.trim_ascii());
    write_text(&header[header::HOST..header::LIBRARY], host.trim_ascii());
    write_text(&header[header::LIBRARY..header::PROGRAM], &library.version);
    write_text(&header[header::PROGRAM..header::WORDS], &command);
}

/// Writes a text, cut off where the place ends.
fn write_text(to: &[AtomicU64], text: &[u8]) {
    for (word, part) in to.iter().zip(text.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
}

/// Allocates bytes of the file on its disk and maps them, so that a full disk is seen here and not when they are written.
fn grown(file: &File, at: u64, bytes: usize) -> Option<Slots> {
    let mut limit = Limit { current: 0, most: 0 };
    // SAFETY: the place for the answer lives through the call.
    let known = unsafe { system::getrlimit(system::RLIMIT_FSIZE, &raw mut limit) } == 0;
    // Beyond this limit the system would end the program (SIGXFSZ).
    if known && limit.current != system::RLIM_INFINITY && at + bytes as u64 > limit.current {
        return None;
    }
    let descriptor = file.as_raw_fd();
    // SAFETY: an open file of our own.
    while let error @ 1.. = unsafe { system::posix_fallocate(descriptor, at as i64, bytes as i64) } {
        if error != system::EINTR {
            return None;
        }
    }
    let access = system::PROT_READ | system::PROT_WRITE;
    // SAFETY: a new mapping of allocated bytes of our own file, at a place that the kernel chooses.
    let mapped =
        unsafe { system::mmap(null_mut(), bytes, access, system::MAP_SHARED, descriptor, at as i64) };
    if mapped == system::MAP_FAILED {
        return None;
    }
    // SAFETY: mapped, aligned to pages and never unmapped; other writers there are none but through atomics.
    Some(unsafe { std::slice::from_raw_parts(mapped.cast::<Slot>(), bytes / size_of::<Slot>()) })
}

/// A block for a thread (numbered here where it is the thread's first): its slots and the number. `None` once nothing is recorded.
pub(crate) fn take_block(thread: Option<u64>) -> Option<(Slots, u64)> {
    let mut guard = recorded();
    let taken = guard.as_mut()?.take_block(thread);
    if let Err(why) = taken {
        RECORDING.store(false, Ordering::Release);
        say(&[why, b": recording ends here, the program goes on"]);
        *guard = None;
    }
    taken.ok()
}

/// Ends the recording at `MPI_Finalize`.
pub(crate) fn finish() {
    RECORDING.store(false, Ordering::Release);
    if let Some(recorded) = recorded().take() {
        recorded.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{MARK, NO_COMMUNICATOR, OPEN, kind_word, size_word};
    use crate::library::tests::fake;
    use crate::thread::write;
    use machmeter_data::trace::{End, Trace};

    /// A file of rank 2 of 4 in a directory of its own.
    fn created(most_bytes: u64) -> (tempfile::TempDir, Result<Recorded, &'static [u8]>) {
        let directory = tempfile::tempdir().unwrap();
        let file = Recorded::create(directory.path(), most_bytes, [2, 4], &fake(), &Begin::now());
        (directory, file)
    }

    fn bytes_in(directory: &Path) -> Vec<u8> {
        let mut files = std::fs::read_dir(directory).unwrap();
        let bytes = std::fs::read(files.next().unwrap().unwrap().path()).unwrap();
        assert!(files.next().is_none());
        bytes
    }

    #[test]
    fn the_reader_finds_what_was_written() {
        let (directory, file) = created(u64::MAX);
        let mut file = file.unwrap();
        for thread in 0..2 {
            let (block, number) = file.take_block(None).unwrap();
            assert_eq!((block.len(), number), (SLOTS, thread));
            let (ticks, at_ns) = clock::pair();
            write(&block[0], [ticks, kind_word(MARK, number), at_ns, 1000]);
            for (i, took) in [(1, 5), (2, OPEN)] {
                write(
                    &block[i],
                    [ticks + i as u64, kind_word(1, took), peer_word(3, 7), size_word(800, NO_COMMUNICATOR)],
                );
            }
        }
        assert_eq!(file.take_block(Some(1)).unwrap().1, 1, "a further block of a thread has its number");
        let whole = bytes_in(directory.path());
        assert_eq!(whole.len(), BLOCK_BYTES + PIECE_BYTES, "allocated in pieces");
        assert_eq!(Trace::read(&whole).unwrap().end, End::Unfinished);
        let (ticks, at_ns) = clock::pair();
        let last = file.take_block(Some(1)).unwrap().0;
        write(&last[0], [ticks, kind_word(MARK, 1), at_ns, 2000]);
        file.finish();
        let bytes = bytes_in(directory.path());
        assert_eq!(bytes.len(), 5 * BLOCK_BYTES, "what was not used is given back");
        let trace = Trace::read(&bytes).unwrap();
        assert_eq!((trace.rank, trace.size, trace.end, trace.threads.len()), (2, 4, End::Finalized, 2));
        assert_eq!(trace.library, "fake");
        let calls: Vec<_> =
            trace.calls().map(|c| (c.peer, c.tag, c.bytes, c.duration_ns.is_some())).collect();
        assert_eq!(calls, [(3, 7, 800, true), (3, 7, 800, false)].repeat(2));
    }

    #[test]
    fn a_limit_ends_the_file_and_keeps_what_it_has() {
        let (directory, file) = created((BLOCK_BYTES + PIECE_BYTES) as u64);
        let mut file = file.unwrap();
        for block in 0..PIECE_BYTES / BLOCK_BYTES {
            assert!(file.take_block(Some(0)).is_ok(), "block {block}");
        }
        assert_eq!(file.take_block(Some(0)).unwrap_err(), b"its limit is reached");
        let end = bytes_in(directory.path())[header::END * 8];
        assert_eq!(end, 3);
    }

    #[test]
    fn a_place_without_room_or_that_is_taken_is_refused_and_left_clean() {
        let (directory, file) = created(BLOCK_BYTES as u64);
        assert_eq!(file.err(), Some(b"no space in".as_slice()));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let create = || Recorded::create(directory.path(), u64::MAX, [0, 1], &fake(), &Begin::now()).err();
        assert_eq!([create(), create()], [None, Some(b"cannot make a file in".as_slice())]);
    }
}
