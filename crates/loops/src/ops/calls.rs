//! The calls that are priced, each with what proves that it happened.

use std::cell::Cell;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use crate::subject::Kind;
use machmeter_sys::buffer::Buffer;
use machmeter_sys::call::{self, event, file, map, signal};
use machmeter_sys::thread::{Usage, monotonic_ns, tid};

use super::repeated::{Planned, Repeated, made, one_line, plan};
use super::touches::{FILE_STEP_BYTES, Touches};

/// Pairs of a visit. Memory for first touches is sized for this number.
pub const PAIRS_PER_VISIT: usize = 4;
/// Size of the file that is read, and mapped, bytes.
pub const FILE_BYTES: usize = Touches::FILE_STEPS * FILE_STEP_BYTES;

/// Operations that need files in the private directory.
pub const ON_FILES: [&str; 6] = ["stat", "open_close", "create_unlink", "lseek", "pread", "pwrite"];

pub const DATA: &str = "data";

pub struct Place {
    data: File,
    data_path: CString,
    new_path: CString,
}

impl Place {
    /// In the directory that has [`DATA`].
    pub fn at(directory: &Path) -> Result<Self, String> {
        let refused = |e: io::Error| format!("{}: {}", directory.display(), one_line(&e));
        let data = File::options().read(true).write(true).open(directory.join(DATA)).map_err(refused)?;
        let path = |name: &str| file::c_path(&directory.join(name)).map_err(refused);
        Ok(Self { data, data_path: path(DATA)?, new_path: path("new")? })
    }
}

/// Where the buffer lies that a call fills: the condition `buffer` of its row, and its distance from the start of a page.
const PLACES: [(&str, usize); 2] = [("page", 0), ("page+16", 16)];
/// Messages through a pipe and through a Unix socket, bytes.
const PIPED_BYTES: usize = 4 << 10;
const SENT_BYTES: usize = 16 << 10;
/// Visits from which on numbers of kept blocks come again.
const KEPT_BLOCKS: usize = 8;
/// What a read or write of a file transfers, and where in the file it begins, bytes.
const BLOCK_BYTES: usize = 4 << 10;
const BLOCK_AT: u64 = 8 << 10;

/// A buffer of a row, on the page of this visit.
fn buffer(behind_bytes: usize, bytes: usize, visit: usize) -> io::Result<Buffer> {
    let mut buffer = Buffer::behind(behind_bytes, bytes, 0x5a)?;
    buffer.move_to(visit);
    Ok(buffer)
}

fn happened(ok: bool, what: &str) -> io::Result<()> {
    if ok { Ok(()) } else { Err(failed(what)) }
}

#[cold]
fn failed(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

/// All rows, with buffers on the pages of this `visit`; rows on files are refused with the reason when there is no `place`.
pub fn all<'a>(
    place: &'a Result<Place, String>,
    handler: &'a io::Result<signal::Handler>,
    visit: usize,
) -> Vec<Planned<'a>> {
    let mut rows = plain(visit);
    rows.extend(signals(handler));
    rows.extend(descriptors(visit));
    rows.extend(memory(visit));
    match place {
        Ok(place) => {
            rows.extend(on_files(place, visit));
            rows.push(Touches::file(&place.data).first());
        }
        Err(why) => {
            let operations = ON_FILES.iter().chain(&["page_fault_file"]);
            rows.extend(operations.map(|o| Planned::refused(o, why)));
        }
    }
    rows
}

fn plain<'a>(visit: usize) -> Vec<Planned<'a>> {
    const PARENT: &str = "ids of the parent";
    const IN_ORDER: &str = "times in order";
    let (parent, thread) = (parent_id() as i32, tid());
    let later = |last: &Cell<u64>, now_ns: u64| {
        let ok = now_ns >= last.replace(now_ns);
        happened(ok, "the clock went backward")
    };
    let (vdso, kernel) = (Cell::new(0), Cell::new(0));
    let futex = AtomicU32::new(0);
    vec![
        plan("getppid", PARENT, move || happened(call::parent_by_call() == parent, "another parent"))
            .with("code", "libc")
            .first(),
        plan("getppid", PARENT, move || happened(call::parent_by_instruction() == parent, "another parent"))
            .with("code", "inline")
            .first(),
        plan("gettid", "ids of the thread", move || {
            happened(call::thread_by_call() == thread, "another thread")
        }),
        plan("clock_gettime", IN_ORDER, move || later(&vdso, monotonic_ns())).first(),
        plan("clock_gettime_syscall", IN_ORDER, move || later(&kernel, call::monotonic_by_call_ns()?)),
        plan("getrusage", "counts of faults above 0", || {
            happened(Usage::of_current_thread().minor_faults > 0, "no fault at all")
        }),
        made("getrandom", buffer(0, 16, visit), "calls that gave 16 bytes", |b| call::random_by_call(b))
            .with("bytes", 16_i64),
        plan("sched_yield", "calls that returned 0", call::yield_cpu).first(),
        plan("futex_wake", "calls that woke nobody", move || event::wake_nobody(&futex)),
    ]
}

/// Installing a handler, and catching a signal that the thread sends to itself; what the handler counts is the proof.
fn signals(handler: &io::Result<signal::Handler>) -> Vec<Planned<'_>> {
    let handler = match handler {
        Ok(handler) => handler,
        Err(e) => {
            let refused = |o| Planned::refused(o, &one_line(e));
            return ["signal_install", "signal_catch"].map(refused).into();
        }
    };
    let thread = tid();
    let caught = Repeated::returning("signals that the handler counted", move || handler.raise(thread));
    vec![
        plan("signal_install", "times our handler was found installed", || handler.reinstall()),
        Planned::new("signal_catch", Kind::Latency, caught.witnessed(signal::Handler::caught)).first(),
    ]
}

fn descriptors<'a>(visit: usize) -> Vec<Planned<'a>> {
    const READY: &str = "ready descriptors";
    let open = |path: &str| {
        let file = File::options().read(true).write(true).open(path)?;
        Ok((file, buffer(0, 1, visit)?))
    };
    let read = |(zero, byte): &mut (File, Buffer)| {
        byte[0] = 1;
        event::read_all_at_once(zero, byte)?;
        happened(byte[0] == 0, "another byte than 0")
    };
    let write = |(null, byte): &mut (File, Buffer)| event::write_all_at_once(null, byte);
    let pipe = |bytes, behind_bytes| through("pipe", event::Pipe::new(), bytes, behind_bytes, visit);
    let [aligned, behind] = PLACES.map(|(name, at)| pipe(PIPED_BYTES, at).with("buffer", name));
    let sent = through("unix_socket", event::Pipe::of_sockets(), SENT_BYTES, 0, visit);
    let select = |count: usize| {
        made("select", event::Waiting::new(count), READY, |w| w.select()).with("descriptors", count)
    };
    vec![
        made("read_zero", open("/dev/zero"), "bytes of 0", read).with("bytes", 1_i64).first(),
        made("write_null", open("/dev/null"), "bytes taken", write).with("bytes", 1_i64),
        pipe(1, 0),
        aligned,
        behind,
        sent.with("buffer", PLACES[0].0),
        made("eventfd", event::Event::new(), "counts that came back", |e| e.add_and_take(3)),
        made("timerfd_settime", event::Timer::new(), "earlier settings that came back", |t| t.set()),
        made("epoll_wait", event::Waiting::new(8), READY, |w| w.epoll()).with("descriptors", 8_i64),
        made("poll", event::Waiting::new(8), READY, event::Waiting::poll).with("descriptors", 8_i64),
        select(8),
        select(64),
    ]
}

/// Messages that are written and read by one thread: the first byte is another in each, so that it is the proof.
fn through<'a>(
    operation: &str,
    pipe: io::Result<event::Pipe>,
    bytes: usize,
    behind_bytes: usize,
    visit: usize,
) -> Planned<'a> {
    let ends = || Ok((pipe?, buffer(0, bytes, visit)?, buffer(behind_bytes, bytes, visit)?));
    let pass = |(pipe, message, into): &mut (event::Pipe, Buffer, Buffer)| {
        message[0] = message[0].wrapping_add(1);
        pipe.pass(message, into)?;
        happened(into[0] == message[0], "another message came back")
    };
    made(operation, ends(), "messages that came back", pass).with("bytes", bytes)
}

fn memory<'a>(visit: usize) -> Vec<Planned<'a>> {
    let mut rows = Vec::new();
    for bytes in [map::page_bytes(), 1 << 20] {
        let mapped = plan("mmap_munmap", "mappings made and removed", move || map::map_and_unmap(bytes));
        rows.push(mapped.with("bytes", bytes));
    }
    let protect = |page: &mut map::Guarded| page.protect_and_release();
    let protected = made("mprotect", map::Guarded::new(), "pairs of calls that returned 0", protect);
    rows.push(protected.per_turn(2.0));
    rows.extend([64, 4 << 10, 1 << 20].map(|bytes| block(bytes, visit)));
    rows.extend([Touches::small().first(), Touches::huge()]);
    rows
}

/// `malloc` and `free` of the C library. Blocks that are kept meanwhile, another number in each visit, move the block to other addresses.
fn block<'a>(bytes: usize, visit: usize) -> Planned<'a> {
    let kept = (0..visit % KEPT_BLOCKS).map(|_| Box::<[u64]>::new_uninit_slice(bytes / size_of::<u64>()));
    let kept: Vec<_> = kept.collect();
    let once = move || {
        let _ = &kept;
        map::allocate_and_free(bytes)
    };
    plan("malloc_free", "blocks that were given", once).with("bytes", bytes).with("allocator", "libc")
}

fn on_files(place: &Place, visit: usize) -> Vec<Planned<'_>> {
    let Place { data, data_path, new_path, .. } = place;
    let mut offset_bytes = 0;
    let block = |behind_bytes| buffer(behind_bytes, BLOCK_BYTES, visit);
    let read = move |into: &mut Buffer| file::read_at(data, into, BLOCK_AT);
    let reads = PLACES.map(|(name, behind_bytes)| {
        made("pread", block(behind_bytes), "reads of 4 KiB", read)
            .with("bytes", BLOCK_BYTES)
            .with("buffer", name)
    });
    let write = move |from: &mut Buffer| file::write_at(data, from, BLOCK_AT);
    let written = made("pwrite", block(0), "writes of 4 KiB", write).with("bytes", BLOCK_BYTES);
    let mut rows = vec![
        plan("stat", "sizes as they are", || file::stat(data_path, FILE_BYTES as u64)),
        plan("open_close", "files opened", || file::open_and_close(data_path)).first(),
        plan("create_unlink", "files made and removed", || file::create_and_unlink(new_path)),
        plan("lseek", "offsets reached", move || {
            offset_bytes ^= 4_096;
            file::seek(data, offset_bytes)
        }),
        written.with("buffer", PLACES[0].0),
    ];
    rows.extend(reads.map(Planned::first));
    rows
}
