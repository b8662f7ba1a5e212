//! What a load is written against, and the process that runs it.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use machmeter_data::quantity::Unit;
use machmeter_engine::load::{LoadError, LoadInfo, LoadRequest};
use machmeter_engine::role::{self, MessageReader, RoleError};
use machmeter_engine::worker::Worker;
use machmeter_sys::affinity;
use machmeter_sys::oom;
use machmeter_sys::process::Spawn;
use machmeter_sys::sched::Policy;
use machmeter_sys::shared::SharedCounters;
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::topology::CpuSet;
use serde::de::DeserializeOwned;

use crate::directory;
use crate::message::{LANES, Message, Order, Replies};

pub(crate) const WORKER: Worker = Worker { name: "load-work", run: do_the_work };

/// More threads than this are a slip of the finger.
const THREADS_MAX: u32 = 4096;

const STACK_BYTES: usize = 256 * 1024;

/// Caveats and side effects beyond this number are not told: the list is for people.
const REMARKS_MAX: usize = 32;

/// How long the order may take to arrive.
const ORDER_WITHIN_NS: u64 = 2_000_000_000;

pub type Run = fn(&Work) -> Result<(), LoadError>;

pub struct LoadEntry {
    pub info: LoadInfo,
    /// Refuses a wrong request in the starter. Threads, attributes and the directory have been checked.
    pub check: fn(&LoadRequest) -> Result<(), LoadError>,
    /// Works until [`Work::stopped`]; must call [`Work::ready`] within 3 s. `None` is a load without processes.
    pub run: Option<Run>,
}

impl LoadEntry {
    /// What most loads have: nothing to check, counted work, used when none are named, one of interbench's.
    pub(crate) const USUAL: Self = Self {
        info: LoadInfo {
            name: "",
            description: "",
            work: "",
            unit: Unit::Hertz,
            by_default: true,
            classic: true,
        },
        check: |_| Ok(()),
        run: None,
    };
}

/// Checks what every load has in common, then what this one wants.
pub(crate) fn check(entry: &LoadEntry, request: &LoadRequest) -> Result<(), LoadError> {
    if let Some(n) = request.threads.filter(|n| *n == 0 || *n > THREADS_MAX) {
        return Err(usage(request, format!("{n} threads: give 1 to {THREADS_MAX}")));
    }
    match request.attributes.policy().map_err(|e| usage(request, e))? {
        Policy::Fifo(99) | Policy::Rr(99) => {
            return Err(usage(request, "priority 99 is reserved for the thread that stops it: use 1 to 98"));
        }
        Policy::Deadline { .. } if !crate::ONLY_THREADS.contains(&entry.info.name) => {
            let why = "it starts processes, which the kernel forbids under the deadline policy";
            return Err(usage(request, why));
        }
        _ => {}
    }
    request.attributes.cpus().map_err(|e| usage(request, e))?;
    if !request.cpus.is_empty() {
        let parsed = request.cpus.parse::<CpuSet>();
        parsed.map_err(|e| usage(request, format!("CPUs '{}': {e}", request.cpus)))?;
    }
    (entry.check)(request)
}

pub(crate) fn usage(request: &LoadRequest, why: impl Display) -> LoadError {
    LoadError::Usage(format!("load '{}': {why}", request.name))
}

/// Whether each thread has to ask for its policy itself.
fn by_thread(request: &LoadRequest) -> bool {
    matches!(request.attributes.policy(), Ok(Policy::Deadline { .. }))
}

/// The running load as its code sees it.
pub struct Work {
    pub(crate) request: LoadRequest,
    stop: Arc<AtomicBool>,
    counters: Arc<SharedCounters>,
    said: Arc<Mutex<Said>>,
    placement: Mutex<Placement>,
    directory_path: PathBuf,
    directory_lock: Mutex<Option<File>>,
}

/// A deadline thread may not start others (`sched(7)`): each of [`Work::threads`] applies it, before the load is ready.
#[derive(Debug, Default)]
struct Placement {
    missing_threads: bool,
    ready: bool,
}

struct Said {
    to: Replies,
    remarks: Vec<Message>,
}

impl Work {
    /// Whether it is time to end; to be asked at least every 200 ms.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    pub fn ready(&self) {
        self.step(|placement| placement.ready = true);
    }

    /// Takes a step towards being ready, and says so if it was the last one.
    fn step(&self, step: impl FnOnce(&mut Placement)) {
        let mut placement = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
        step(&mut placement);
        if placement.ready && !placement.missing_threads {
            self.say(&Message::Ready);
        }
    }

    /// Says what weakens the load here, in one line.
    pub fn caveat(&self, text: impl Into<String>) {
        self.remark(Message::Caveat(text.into().replace('\n', " ")));
    }

    /// Says what it does to the machine and undoes, in one line.
    pub fn side_effect(&self, text: impl Into<String>) {
        self.remark(Message::SideEffect(text.into().replace('\n', " ")));
    }

    /// Has the (then empty) control group at `path` removed at the end, however that comes. Call it before making the group.
    pub fn remove_group(&self, path: &Path) {
        self.say(&Message::Group(path.to_owned()));
    }

    /// Where thread or child `lane` counts its work.
    pub fn count(&self, lane: usize) -> Count {
        Count { counters: Arc::clone(&self.counters), lane: lane % LANES }
    }

    pub fn cpus(&self) -> Result<Vec<usize>, LoadError> {
        affinity::mask().map(|m| m.to_vec()).map_err(|e| LoadError::Cannot(e.to_string()))
    }

    /// The number of threads asked for, or as many as there are CPUs.
    pub fn threads_or_one_per_cpu(&self) -> Result<usize, LoadError> {
        match self.request.threads {
            Some(n) => Ok(n as usize),
            None => Ok(self.cpus()?.len().max(1)),
        }
    }

    /// Runs `body` in `n` threads, each with its lane's number, until all have ended. One that fails stops the others.
    pub fn threads<F>(&self, name: &str, n: usize, body: F) -> Result<(), LoadError>
    where
        F: Fn(usize) -> Result<(), LoadError> + Sync,
    {
        let first_failure: Mutex<Option<LoadError>> = Mutex::new(None);
        let fail = |e: LoadError| {
            self.stop.store(true, Ordering::Relaxed);
            first_failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        };
        let placed = AtomicUsize::new(0);
        let placed_body = |lane| self.place_thread(&placed, n).and_then(|()| body(lane)).unwrap_or_else(fail);
        std::thread::scope(|scope| {
            for lane in 0..n {
                let placed_body = &placed_body;
                let thread = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
                let started = thread.spawn_scoped(scope, move || placed_body(lane));
                if let Err(e) = started {
                    fail(LoadError::Cannot(format!("thread {lane} of {n} could not be started: {e}")));
                    break;
                }
            }
        });
        first_failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Applies to a thread what it can't inherit; the `n`th of them is the last one.
    fn place_thread(&self, placed: &AtomicUsize, n: usize) -> Result<(), LoadError> {
        if !by_thread(&self.request) {
            return Ok(());
        }
        self.request.attributes.apply().map_err(|e| usage(&self.request, e))?;
        if placed.fetch_add(1, Ordering::AcqRel) + 1 == n {
            self.step(|placement| placement.missing_threads = false);
        }
        Ok(())
    }

    /// The load's own directory, made at the first call: only this user may enter it; it is removed at the end.
    /// Errors: one line naming the directory and why it can't be made.
    pub fn directory(&self) -> Result<&Path, LoadError> {
        let mut lock = self.directory_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_none() {
            *lock = Some(directory::create(&self.directory_path)?);
        }
        Ok(&self.directory_path)
    }

    /// This program in the role `role`, a child that dies with the calling thread, with [`Work::counters_fd`] passed on.
    pub fn spawn(&self, role: &str) -> Spawn<'_> {
        Spawn::worker(role).die_with_parent().pass_fd(self.counters.fd())
    }

    /// Number of the counters' descriptor, here and in children, see [`Count::of_child`].
    pub fn counters_fd(&self) -> i32 {
        self.counters.fd().as_raw_fd()
    }

    fn remark(&self, remark: Message) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.remarks.len() < REMARKS_MAX && !said.remarks.contains(&remark) {
            remark.send(&mut said.to);
            said.remarks.push(remark);
        }
    }

    fn say(&self, message: &Message) {
        message.send(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner).to);
    }
}

#[derive(Debug, Clone)]
pub struct Count {
    counters: Arc<SharedCounters>,
    lane: usize,
}

impl Count {
    pub fn add(&self, n: u64) {
        self.counters.add(self.lane, n);
    }

    /// The counter of a child of [`Work::spawn`]. Errors: `counters_fd` is no open descriptor of counters.
    pub fn of_child(counters_fd: i32, lane: usize) -> io::Result<Self> {
        Ok(Self { counters: Arc::new(SharedCounters::open_fd(counters_fd, LANES)?), lane: lane % LANES })
    }
}

fn do_the_work(_: &[OsString]) -> u8 {
    let Ok((requests, to)) = role::starter() else { return 1 };
    let said = Arc::new(Mutex::new(Said { to, remarks: Vec::new() }));
    // Should memory run out, a load is what can be spared. Where it is refused, the kernel's own choice stands.
    let _ = oom::volunteer();
    let ended = prepare(requests, Arc::clone(&said)).and_then(|(entry, work)| {
        if !by_thread(&work.request) {
            work.request.attributes.apply().map_err(|e| usage(&work.request, e))?;
        }
        entry.run.map_or(Ok(()), |run| run(&work))
    });
    let last = ended.as_ref().map_or_else(Message::failure, |()| Message::Ended);
    last.send(&mut said.lock().unwrap_or_else(PoisonError::into_inner).to);
    u8::from(ended.is_err())
}

/// The only order of a process of a load, and a flag that is set when nobody asks for more.
pub(crate) fn take_order<Order: DeserializeOwned + 'static>(
    mut requests: MessageReader<Order>,
) -> Result<(Order, Arc<AtomicBool>), RoleError> {
    let order = requests.next(Some(monotonic_ns() + ORDER_WITHIN_NS))?;
    let stop = Arc::new(AtomicBool::new(false));
    let at_end = Arc::clone(&stop);
    requests.listen(move |_| at_end.store(true, Ordering::Relaxed))?;
    Ok((order, stop))
}

fn prepare(
    requests: MessageReader<Order>,
    said: Arc<Mutex<Said>>,
) -> Result<(&'static LoadEntry, Work), LoadError> {
    let cannot = |e: io::Error| LoadError::Cannot(format!("the process of a load: {e}"));
    let (order, stop) =
        take_order(requests).map_err(|e| LoadError::Cannot(format!("the leader of a load {e}")))?;
    let counters = order.counters().map_err(cannot)?;
    let entry = crate::entry(&order.request.name)?;
    let placement = Placement { missing_threads: by_thread(&order.request), ready: false };
    let work = Work {
        request: order.request,
        stop,
        counters: Arc::new(counters),
        said,
        placement: Mutex::new(placement),
        directory_path: order.directory,
        directory_lock: Mutex::new(None),
    };
    Ok((entry, work))
}
