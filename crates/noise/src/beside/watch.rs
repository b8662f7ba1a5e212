//! Watches a program while it runs: the kernel's trace with the right to it, the scheduler's counters without.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;

use machmeter_sys::cgroup::Throttled;
use machmeter_sys::counters::cpu_times;
use machmeter_sys::counters::schedstat::{Schedstat, SchedstatReader};
use machmeter_sys::thread::schedstat;
use machmeter_sys::topology::CpuSet;
use machmeter_sys::trace::{
    ACCOUNTS, EventKind, TraceClock, TraceConfig, TraceEvent, TraceSession, WAITING_EVENTS, softirq_name,
};

use super::account::Accounts;
use super::caught::Keeper;
use crate::job::room_bytes;

/// Trace buffer per CPU, bytes: 80,000 events between two looks.
const BUFFER_BYTES: usize = 4 << 20;

/// Groups of the default events that are recorded: switches and handlers. Page faults and work items are not needed.
const GROUPS: [&str; 4] = ["sched/", "irq/", "irq_vectors/", "ipi/"];
/// The PID namespace of the kernel itself (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// A thread that is not followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stranger {
    /// Name of its process, or its own if the process ended too early.
    pub name: String,
    /// True for a thread of the kernel.
    pub is_kernel: bool,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// The accounts; without a trace they have run and wait times only.
    pub accounts: Accounts,
    /// Threads that had a CPU, by id.
    pub strangers: HashMap<i32, Stranger>,
    /// Names of the followed threads.
    pub names: BTreeMap<i32, String>,
    /// What the quotas of the program's groups held back; `None` without a quota.
    pub throttled: Option<Throttled>,
    /// True if the kernel traces interrupt handlers.
    pub knows_handlers: bool,
    /// True if the kernel shows what the hypervisor stole.
    pub knows_stolen: bool,
    /// Events that were lost.
    pub lost: u64,
    /// CPU time of this watch, ns.
    pub own_ns: u64,
    /// Why there is no trace.
    pub without_trace: Option<String>,
}

/// A thread whose counters are read.
struct Counted {
    reader: SchedstatReader,
    first: Schedstat,
    last: Schedstat,
}

/// A watch over a program. Dropping it removes the trace.
pub struct Watch {
    session: Option<TraceSession>,
    seen: Seen,
    /// Events of the last look. Another CPU may still have older ones.
    pending: Vec<TraceEvent>,
    counted: HashMap<i32, Counted>,
    roots: Vec<i32>,
    is_new: bool,
    quota: Option<(i32, Throttled)>,
    own_before_ns: u64,
}

fn own_ns() -> u64 {
    schedstat().map_or(0, |s| s.run_ns)
}

impl Watch {
    /// Starts to watch all of `cpus`, before the program starts. The first wait longer than `stop_at_ns` ends the watch.
    pub fn start(cpus: &CpuSet, stop_at_ns: Option<u64>) -> Self {
        let knows_stolen = cpu_times().is_ok_and(|t| t.steal_ns() > 0);
        let mut config = TraceConfig::on(cpus.clone());
        config.buffer_bytes_per_cpu = BUFFER_BYTES.min(room_bytes() as usize / cpus.len().max(1));
        config.clocks = &TraceClock::NANOSECONDS;
        config.events.retain(|e| GROUPS.iter().any(|group| e.starts_with(group)));
        config.events.extend(WAITING_EVENTS.iter().chain([&ACCOUNTS]).map(|e| (*e).to_owned()));
        let started = match fs::read_link("/proc/self/ns/pid") {
            Ok(space) if space.as_os_str() != FIRST_PID_NAMESPACE => {
                Err("the process ids of this container are not those of the kernel's trace".to_owned())
            }
            _ => TraceSession::start(&config).map_err(|e| e.to_string()),
        };
        let without_trace = started.as_ref().err().cloned();
        let own_before_ns = own_ns();
        Self {
            session: started.ok(),
            seen: Seen {
                accounts: Accounts::keeping(stop_at_ns.map(Keeper::of)),
                knows_stolen,
                without_trace,
                ..Seen::default()
            },
            pending: Vec::new(),
            counted: HashMap::new(),
            roots: Vec::new(),
            is_new: false,
            quota: None,
            own_before_ns,
        }
    }

    /// Follows a process with all its threads, and everything that it starts. `is_new` is true if the process was started for the watch.
    pub fn follow(&mut self, pid: i32, is_new: bool) {
        self.roots.push(pid);
        self.is_new = is_new;
        // A group whose quota was never in force has no counts yet.
        self.quota = Some((pid, Throttled::of(pid).unwrap_or_default()));
        for tid in threads_below(&[pid]) {
            self.seen.accounts.follow(tid);
            self.seen.names.insert(tid, comm_of(tid));
        }
        self.seen.accounts.follow(pid);
        self.look();
    }

    /// Reads what happened since the last look. Call it about fifty times a second.
    pub fn look(&mut self) {
        if self.has_caught() {
            return;
        }
        if let Some((pid, before)) = self.quota
            && let Some(now) = Throttled::of(pid)
        {
            self.seen.throttled = Some(now.since(&before));
        }
        let Some(session) = &mut self.session else { return self.count() };
        let _ = session.drain();
        let new = session.take();
        self.process(new, false);
        self.seen.accounts.look_for_overdue();
        if self.has_caught() {
            self.stop();
        }
    }

    /// True once a wait ended the watch.
    pub fn has_caught(&self) -> bool {
        self.seen.accounts.keeper.as_ref().is_some_and(Keeper::has_caught)
    }

    /// Ends the trace and the accounts.
    fn stop(&mut self) {
        if let Some(session) = &mut self.session {
            let _ = session.drain();
            let rest = session.take();
            self.process(rest, true);
        }
        self.seen.accounts.end();
        if let Some(session) = self.session.take() {
            match session.stop() {
                Ok(log) => {
                    let lost: u64 = log.dropped.iter().map(|d| d.events).sum();
                    self.seen.lost = lost + log.malformed_records;
                    let is_skipped =
                        |event: &str| log.skipped_events.iter().any(|s| s.event.starts_with(event));
                    self.seen.knows_stolen &= !is_skipped(ACCOUNTS);
                    self.seen.knows_handlers = !is_skipped("irq");
                }
                // What was lost is unknown.
                Err(_) => self.seen.lost += 1,
            }
        }
        self.seen.own_ns = own_ns().saturating_sub(self.own_before_ns);
    }

    /// Processes the events of the last look, and older ones among `new`; with `is_last`, all.
    fn process(&mut self, new: Vec<TraceEvent>, is_last: bool) {
        let horizon = if is_last { Some(u64::MAX) } else { self.pending.last().map(|e| e.ticks) };
        self.pending.extend(new);
        self.pending.sort_by_key(|e| (e.ticks, e.cpu));
        let ready = self.pending.partition_point(|e| horizon.is_some_and(|h| e.ticks <= h));
        let Some(session) = &self.session else { return };
        for e in self.pending.drain(..ready) {
            if let EventKind::SwitchTo { next_pid, next_comm, .. } = e.kind
                && next_pid != 0
            {
                let comm = session.name(next_comm);
                if self.seen.accounts.threads.contains_key(&next_pid) {
                    // A program gets its name when it is executed, after it was started.
                    let name = self.seen.names.entry(next_pid).or_default();
                    if name != comm {
                        comm.clone_into(name);
                    }
                } else {
                    self.seen.strangers.entry(next_pid).or_insert_with(|| stranger(next_pid, comm));
                }
            }
            self.seen.accounts.event(&e, |kind| match kind {
                EventKind::IrqEntry { name, .. } | EventKind::VectorEntry { name } => {
                    session.name(*name).replace('_', " ")
                }
                EventKind::SoftirqEntry { vec } => format!("softirq {}", softirq_name(*vec)),
                _ => String::new(),
            });
        }
    }

    /// Reads the counters of all threads of the program, and finds new ones.
    fn count(&mut self) {
        for tid in threads_below(&self.roots) {
            if let Entry::Vacant(new) = self.counted.entry(tid)
                && let Ok(reader) = SchedstatReader::open_thread(tid)
                && let Ok(now) = reader.read()
            {
                // A thread that the program started began with zero.
                let ran_before = !self.is_new && self.seen.accounts.threads.contains_key(&tid);
                let first = if ran_before { now } else { Schedstat::default() };
                self.seen.names.insert(tid, comm_of(tid));
                new.insert(Counted { reader, first, last: now });
            }
        }
        // A thread that ended keeps no file open.
        let accounts = &mut self.seen.accounts;
        self.counted.retain(|tid, counted| {
            let now = counted.reader.read();
            counted.last = *now.as_ref().unwrap_or(&counted.last);
            if now.is_err() {
                let of = counted.last.since(&counted.first);
                accounts.counted(*tid, of.run_ns, of.wait_ns);
            }
            now.is_ok()
        });
    }

    /// Ends the watch. Call it while the ended program can still be waited for, so that its counters are complete.
    pub fn finish(mut self) -> Seen {
        self.look();
        if !self.has_caught() {
            self.stop();
        }
        for (tid, counted) in &self.counted {
            let of = counted.last.since(&counted.first);
            self.seen.accounts.counted(*tid, of.run_ns, of.wait_ns);
        }
        self.seen
    }
}

fn comm_of(tid: i32) -> String {
    fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn threads_of(pid: i32) -> Vec<i32> {
    let listed = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    listed.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// The threads of these processes and of all that they started, if they are still alive.
fn threads_below(roots: &[i32]) -> Vec<i32> {
    let (mut processes, mut threads, mut at) = (roots.to_vec(), Vec::new(), 0);
    while let Some(pid) = processes.get(at).copied() {
        at += 1;
        for tid in threads_of(pid) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|c| c.parse::<i32>().ok());
            let new: Vec<i32> = children.filter(|c| !processes.contains(c)).collect();
            processes.extend(new);
            threads.push(tid);
        }
    }
    threads
}

/// The process of a thread, while it lives. Threads of the kernel have no memory of their own.
fn stranger(tid: i32, comm: &str) -> Stranger {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let field = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
    let is_kernel = field("Kthread:").map_or_else(
        || {
            field("Name:").is_some()
                && field("VmSize:").is_none()
                && field("PPid:").is_some_and(|p| ["0", "2"].contains(&p))
        },
        |k| k == "1",
    );
    let process = field("Tgid:").filter(|_| !is_kernel);
    let name = process.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    let name = name.map_or_else(|| comm.to_owned(), |n| n.trim_end().to_owned());
    Stranger { name, is_kernel }
}
