//! The calls that are priced, each with what proves that it happened.

use std::cell::Cell;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use crate::subject::{GROUP_TURNS, Kind, Proof, Subject};
use machmeter_sys::buffer::Buffer;
use machmeter_sys::call::event::Waiting;
use machmeter_sys::call::{self, event, file, map, signal};
use machmeter_sys::file_system::{self, TMPFS};
use machmeter_sys::thread::{Usage, monotonic_ns, tid};

use super::repeated::{Planned, Repeated, made, one_line, plan};
use super::touches::{FILE_STEP_BYTES, Touches};

/// Pairs of a visit, few for many visits: visits differ by more than pairs do. Memory for first touches is sized for this number.
pub const PAIRS_PER_VISIT: usize = 2;
/// The same of turns that are timed one by one. Eight visits make 128, six of them beyond the 95 % quantile.
pub const SINGLE_TURNS_PER_VISIT: usize = 16;
/// Turns of such a visit that are not timed: at its beginning, and before each group.
pub const WARMING_TURNS: usize = 1 + SINGLE_TURNS_PER_VISIT / GROUP_TURNS;
/// Size of the file that is read, and mapped, bytes.
pub const FILE_BYTES: usize = Touches::FILE_STEPS * FILE_STEP_BYTES;

/// Operations on files, in the order of their rows.
const ON_FILES: [&str; 8] =
    ["stat", "open_close", "create_unlink", "page_fault_file", "lseek", "pwrite", "pread", "pread"];
/// Those whose price depends most on the file system: they have rows in memory (tmpfs), too.
const IN_MEMORY: usize = 4;

/// Whether an operation needs files.
pub fn is_on_files(operation: &str) -> bool {
    ON_FILES.contains(&operation)
}

/// A directory with the file that calls work on.
pub struct Place {
    data: File,
    data_path: CString,
    new_path: CString,
    /// Kind of the file system.
    kind: String,
}

impl Place {
    /// In an empty directory.
    ///
    /// # Errors
    /// No file can be made there, in one line.
    pub fn make(directory: &Path) -> Result<Self, String> {
        let refused = |e: io::Error| format!("no files in {}: {}", directory.display(), one_line(&e));
        let data = file::new_file(directory, "data", FILE_BYTES as u64).map_err(refused)?;
        let path = |name: &str| file::c_path(&directory.join(name)).map_err(refused);
        let kind = file_system::kind_of(directory).unwrap_or_else(|| "unknown".to_owned());
        Ok(Self { data, data_path: path("data")?, new_path: path("new")?, kind })
    }
}

/// Where the buffer lies that a call fills: the condition `buffer` of its row, and its distance from the start of a page.
const PLACES: [(&str, usize); 2] = [("page", 0), ("page+16", 16)];
/// Condition of rows on files.
const FILE_SYSTEM: &str = "file_system";
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

/// Where calls on files work.
pub struct Places {
    /// In the directory for files, or why there are no files.
    pub own: Result<Place, String>,
    /// In memory (tmpfs), where there is such a directory and the other one lies elsewhere.
    pub in_memory: Option<Result<Place, String>>,
}

/// All rows, with buffers on the pages of this `visit`; rows on files that cannot be made are refused with the reason.
pub fn all<'a>(
    places: &'a Places,
    handler: &'a io::Result<signal::Handler>,
    visit: usize,
) -> Vec<Planned<'a>> {
    let mut rows = plain(visit);
    rows.extend(signals(handler));
    rows.extend(descriptors(visit));
    rows.extend(memory(visit));
    rows.extend(on_files(&places.own, visit));
    if let Some(place) = &places.in_memory {
        let in_memory = on_files(place, visit).into_iter().take(IN_MEMORY);
        rows.extend(in_memory.map(|row| Planned { first: false, ..row.with(FILE_SYSTEM, TMPFS) }));
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
        })
        .with("scope", "thread"),
        plan("getrusage", "counts of faults above 0", || {
            happened(Usage::of_process().minor_faults > 0, "no fault at all")
        })
        .with("scope", "process"),
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
    let waits = |operation, once: fn(&mut Waiting) -> io::Result<()>, count: usize, ready: usize| {
        let row = made(operation, Waiting::new(count, ready), READY, once);
        row.with("descriptors", count).with("ready", ready)
    };
    let (epoll, select) = (|w: &mut Waiting| w.epoll(), |w: &mut Waiting| w.select());
    vec![
        made("read_zero", open("/dev/zero"), "bytes of 0", read).with("bytes", 1_i64).first(),
        made("write_null", open("/dev/null"), "bytes taken", write).with("bytes", 1_i64),
        pipe(1, 0),
        aligned,
        behind,
        sent.with("buffer", PLACES[0].0),
        made("eventfd", event::Event::new(), "counts that came back", |e| e.add_and_take(3)),
        made("timerfd_settime", event::Timer::new(), "earlier settings that came back", |t| t.set()),
        waits("epoll_wait", epoll, 8, 1),
        waits("epoll_wait", epoll, 8, 8),
        waits("poll", Waiting::poll, 8, 1),
        waits("select", select, 8, 1),
        waits("select", select, 64, 1),
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
        for (neighbors, merge) in [("none", false), ("merged", true)] {
            let row = Planned::new("mmap_munmap", Kind::Latency, Mapped::new(bytes, merge));
            rows.push(row.with("bytes", bytes).with("neighbors", neighbors).with("code", "libc"));
        }
    }
    let protect = |page: &mut map::Guarded| page.protect_and_release();
    let protected = made("mprotect", map::Guarded::new(), "pairs of calls that returned 0", protect);
    rows.push(protected.per_turn(2.0).with("code", "libc").one_by_one());
    rows.extend([64, 4 << 10, 1 << 20].map(|bytes| block(bytes, visit)));
    rows.extend([Touches::small().first(), Touches::huge()]);
    rows
}

/// Mappings that the kernel makes beside others: it merges them, or keeps them apart.
struct Mapped {
    bytes: usize,
    merge: bool,
    neighbors: Option<map::Neighbors>,
    calls: Repeated<'static>,
}

impl Mapped {
    fn new(bytes: usize, merge: bool) -> Self {
        let calls = Repeated::returning("mappings made and removed", move || map::map_and_unmap(bytes));
        Self { bytes, merge, neighbors: None, calls }
    }
}

impl Subject for Mapped {
    fn prepare(&mut self) -> Result<(), String> {
        let neighbors = map::Neighbors::of_next(self.bytes, self.merge);
        self.neighbors = Some(neighbors.map_err(|e| one_line(&e))?);
        self.calls.prepare()
    }

    fn run(&mut self, turns: u64) -> bool {
        self.calls.run(turns)
    }

    fn leave(&mut self) {
        self.neighbors = None;
    }

    fn proof(&mut self) -> Option<Proof> {
        self.calls.proof()
    }
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

/// In the order of [`ON_FILES`].
fn on_files<'a>(place: &'a Result<Place, String>, visit: usize) -> Vec<Planned<'a>> {
    let Place { data, data_path, new_path, kind } = match place {
        Ok(place) => place,
        Err(why) => return ON_FILES.map(|operation| Planned::refused(operation, why)).into(),
    };
    let mut offset_bytes = 0;
    let block = |behind_bytes| buffer(behind_bytes, BLOCK_BYTES, visit);
    let write = move |from: &mut Buffer| file::write_at(data, from, BLOCK_AT);
    let written = made("pwrite", block(0), "writes of 4 KiB", write).with("bytes", BLOCK_BYTES);
    let read = move |into: &mut Buffer| file::read_at(data, into, BLOCK_AT);
    let reads = PLACES.map(|(name, behind_bytes)| {
        let row = made("pread", block(behind_bytes), "reads of 4 KiB", read);
        row.with("bytes", BLOCK_BYTES).with("buffer", name).first()
    });
    let through_libc = |row: Planned<'a>| row.with("code", "libc");
    let mut rows = vec![
        through_libc(plan("stat", "sizes as they are", || file::stat(data_path, FILE_BYTES as u64)))
            .one_by_one(),
        through_libc(plan("open_close", "files opened", || file::open_and_close(data_path))).first(),
        through_libc(plan("create_unlink", "files made and removed", || file::create_and_unlink(new_path)))
            .one_by_one(),
        Touches::file(data).first(),
        through_libc(plan("lseek", "offsets reached", move || {
            offset_bytes ^= 4_096;
            file::seek(data, offset_bytes)
        })),
        written.with("buffer", PLACES[0].0),
    ];
    rows.extend(reads);
    rows.into_iter().map(|row| row.with(FILE_SYSTEM, kind.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_order_with_files_and_without() {
        let [own, memory] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let refused = || Err("no space".to_owned());
        let made = || Place::make(own.path());
        let handler = signal::Handler::install();
        let operations = |own, in_memory| {
            let places = Places { own, in_memory: Some(in_memory) };
            let rows = all(&places, &handler, 3);
            let on_files = rows.iter().filter(|r| is_on_files(&r.operation));
            assert!(on_files.clone().all(|r| r.refused.is_some() || r.params.contains_key(FILE_SYSTEM)));
            let mut keys: Vec<_> = rows.iter().map(|r| (&r.operation, &r.params)).collect();
            keys.sort();
            keys.dedup();
            assert!(places.own.is_err() || keys.len() == rows.len(), "rows without a key of their own");
            rows.iter().map(|r| r.operation.clone()).collect::<Vec<_>>()
        };
        let all = operations(made(), Place::make(memory.path()));
        assert_eq!(all, operations(refused(), refused()));
        assert_eq!(all.iter().filter(|o| is_on_files(o)).count(), ON_FILES.len() + IN_MEMORY);
    }
}
