//! The file of this rank: a header and blocks, mapped in pieces that the disk has granted before.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use machmeter_data::trace::{
    BLOCK_BYTES, DIRECTORY_VARIABLE, EXTENSION, LIMIT_VARIABLE, MAGIC, SLOTS, VERSION, header, peer_word,
};

use crate::clock;
use crate::library::Library;

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
    // SAFETY: readable bytes; a line that cannot be written is lost.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Makes the file of a rank and begins to record.
pub(crate) fn begin(rank: i32, size: i32, library: &Library, begin: &Begin) {
    let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE).filter(|d| !d.is_empty()) else { return };
    RANK.store(rank as u32, Ordering::Relaxed);
    let path = Path::new(&directory).join(format!("rank-{rank}-{}.{EXTENSION}", std::process::id()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let nothing = |why: &[u8]| say(&[why, directory.as_bytes(), b": nothing is recorded"]);
    let Ok(file) = options.open(&path) else { return nothing(b"cannot make a file in ") };
    // All that there is room for where nobody says.
    let limit = std::env::var_os(LIMIT_VARIABLE).and_then(|l| l.to_str()?.parse().ok());
    let most_bytes = limit.unwrap_or(u64::MAX);
    let Some(slots) = grown(&file, 0, BLOCK_BYTES).filter(|_| most_bytes > BLOCK_BYTES as u64) else {
        let _ = std::fs::remove_file(path);
        return nothing(b"no space in ");
    };
    let header = slots.as_flattened();
    let (start_ticks, _) = clock::pair();
    for (word, value) in [
        (header::MAGIC, MAGIC),
        (header::VERSION, u64::from(VERSION) | u64::from(begin.is_processor) << 32),
        (header::RANK, u64::from(rank as u32) | u64::from(size as u32) << 32),
        (header::SPECIAL, peer_word(library.any_source, library.proc_null)),
        (header::INIT_TICKS, begin.ticks),
        (header::INIT_NS, begin.at_ns),
        (header::START_TICKS, start_ticks),
        (header::START_REAL_NS, clock::now_ns(libc::CLOCK_REALTIME)),
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
    let bytes = BLOCK_BYTES as u64;
    *recorded() = Some(Recorded { file, header, free: &[], bytes, most_bytes, blocks: 0, threads: 0 });
    RECORDING.store(true, Ordering::Release);
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
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place for the answer lives through the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    // Beyond this limit the system would end the program (SIGXFSZ).
    if known && limit.rlim_cur != libc::RLIM_INFINITY && at + bytes as u64 > limit.rlim_cur {
        return None;
    }
    let descriptor = file.as_raw_fd();
    // SAFETY: an open file of our own.
    while let error @ 1.. = unsafe { libc::posix_fallocate(descriptor, at as i64, bytes as i64) } {
        if error != libc::EINTR {
            return None;
        }
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of allocated bytes of our own file, at a place that the kernel chooses.
    let mapped = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, descriptor, at as i64) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: mapped, aligned to pages and never unmapped; other writers there are none but through atomics.
    Some(unsafe { std::slice::from_raw_parts(mapped.cast::<Slot>(), bytes / size_of::<Slot>()) })
}

/// A block for a thread (numbered here where it is the thread's first): its slots and the number. `None` once nothing is recorded.
pub(crate) fn take_block(thread: Option<u64>) -> Option<(Slots, u64)> {
    let mut guard = recorded();
    let file = guard.as_mut()?;
    if file.free.is_empty() {
        let is_limited = file.bytes + PIECE_BYTES as u64 > file.most_bytes;
        let more = if is_limited { None } else { grown(&file.file, file.bytes, PIECE_BYTES) };
        let Some(more) = more else {
            RECORDING.store(false, Ordering::Release);
            file.header[header::END].store(if is_limited { 3 } else { 2 }, Ordering::Release);
            let why: &[u8] = if is_limited { b"its limit is reached" } else { b"no space is left" };
            say(&[why, b": recording ends here, the program goes on"]);
            *guard = None;
            return None;
        };
        file.free = more;
        file.bytes += PIECE_BYTES as u64;
    }
    let (block, rest) = file.free.split_at(SLOTS);
    file.free = rest;
    file.blocks += 1;
    file.header[header::BLOCKS].store(file.blocks, Ordering::Release);
    let number = thread.unwrap_or(file.threads);
    file.threads += u64::from(thread.is_none());
    Some((block, number))
}

/// Ends the recording at `MPI_Finalize`: what was allocated and not used is given back.
pub(crate) fn finish() {
    RECORDING.store(false, Ordering::Release);
    let Some(recorded) = recorded().take() else { return };
    recorded.header[header::END].store(1, Ordering::Release);
    // Nobody writes behind the blocks that were taken; mappings stay.
    let _ = recorded.file.set_len((recorded.blocks + 1) * BLOCK_BYTES as u64);
}
