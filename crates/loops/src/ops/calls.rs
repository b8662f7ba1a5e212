//! The calls that are priced, each with what proves that it happened.

use std::cell::Cell;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use crate::subject::Kind;
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

fn happened(ok: bool, what: &str) -> io::Result<()> {
    if ok { Ok(()) } else { Err(failed(what)) }
}

#[cold]
fn failed(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

/// All rows; those on files are refused with the reason when there is no `place`.
pub fn all<'a>(
    place: &'a Result<Place, String>,
    handler: &'a io::Result<signal::Handler>,
) -> Vec<Planned<'a>> {
    let mut rows = plain();
    rows.extend(signals(handler));
    rows.extend(descriptors());
    rows.extend(memory());
    match place {
        Ok(place) => {
            rows.extend(on_files(place));
            rows.push(Touches::file(&place.data).first());
        }
        Err(why) => {
            let operations = ON_FILES.iter().chain(&["page_fault_file"]);
            rows.extend(operations.map(|o| Planned::refused(o, why)));
        }
    }
    rows
}

fn plain<'a>() -> Vec<Planned<'a>> {
    const PARENT: &str = "ids of the parent";
    const IN_ORDER: &str = "times in order";
    let (parent, thread) = (parent_id() as i32, tid());
    let mut random = [0_u8; 16];
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
        plan("getrandom", "calls that gave 16 bytes", move || call::random_by_call(&mut random))
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

fn descriptors<'a>() -> Vec<Planned<'a>> {
    const READY: &str = "ready descriptors";
    let open = |path: &str| File::options().read(true).write(true).open(path);
    let read = |zero: &mut File| {
        let mut byte = [1_u8];
        event::read_all_at_once(zero, &mut byte)?;
        happened(byte[0] == 0, "another byte than 0")
    };
    let mut byte = 0_u8;
    let through = move |pipe: &mut event::Pipe| {
        byte = byte.wrapping_add(1);
        pipe.put_and_take(byte)
    };
    let select = |count: usize| {
        made("select", event::Waiting::new(count), READY, |w| w.select()).with("descriptors", count)
    };
    vec![
        made("read_zero", open("/dev/zero"), "bytes of 0", read).with("bytes", 1_i64).first(),
        made("write_null", open("/dev/null"), "bytes taken", |null| event::write_all_at_once(null, &[1]))
            .with("bytes", 1_i64),
        made("pipe", event::Pipe::new(), "bytes that came back", through).with("bytes", 1_i64),
        made("eventfd", event::Event::new(), "counts that came back", |e| e.add_and_take(3)),
        made("timerfd_settime", event::Timer::new(), "earlier settings that came back", |t| t.set()),
        made("epoll_wait", event::Waiting::new(8), READY, |w| w.epoll()).with("descriptors", 8_i64),
        made("poll", event::Waiting::new(8), READY, event::Waiting::poll).with("descriptors", 8_i64),
        select(8),
        select(64),
    ]
}

fn memory<'a>() -> Vec<Planned<'a>> {
    let mut rows = Vec::new();
    for bytes in [map::page_bytes(), 1 << 20] {
        let mapped = plan("mmap_munmap", "mappings made and removed", move || map::map_and_unmap(bytes));
        rows.push(mapped.with("bytes", bytes));
    }
    let protect = |page: &mut map::Guarded| page.protect_and_release();
    let protected = made("mprotect", map::Guarded::new(), "pairs of calls that returned 0", protect);
    rows.push(protected.per_turn(2.0));
    for bytes in [64_usize, 4 << 10, 1 << 20] {
        let allocated = plan("malloc_free", "blocks of the size asked for", move || {
            let block: Vec<u8> = Vec::with_capacity(black_box(bytes));
            happened(black_box(&block).capacity() >= bytes, "a smaller block")
        });
        rows.push(allocated.with("bytes", bytes));
    }
    rows.extend([Touches::small().first(), Touches::huge()]);
    rows
}

fn on_files(place: &Place) -> Vec<Planned<'_>> {
    let Place { data, data_path, new_path, .. } = place;
    let mut page = vec![0_u8; 4 << 10];
    let contents = vec![0x5a_u8; 4 << 10];
    let mut offset_bytes = 0;
    vec![
        plan("stat", "sizes as they are", || file::stat(data_path, FILE_BYTES as u64)),
        plan("open_close", "files opened", || file::open_and_close(data_path)).first(),
        plan("create_unlink", "files made and removed", || file::create_and_unlink(new_path)),
        plan("lseek", "offsets reached", move || {
            offset_bytes ^= 4_096;
            file::seek(data, offset_bytes)
        }),
        plan("pread", "reads of 4 KiB", move || file::read_at(data, &mut page, 8_192))
            .with("bytes", 4_096_i64)
            .first(),
        plan("pwrite", "writes of 4 KiB", move || file::write_at(data, &contents, 8_192))
            .with("bytes", 4_096_i64),
    ]
}
