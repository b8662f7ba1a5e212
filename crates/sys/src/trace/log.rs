//! What a trace consists of once decoded.

use std::collections::HashMap;
use std::fmt;

/// Index of a name in a [`Names`] table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Names that many events share, each stored once.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<String>,
    ids: HashMap<Vec<u8>, NameId>,
}

impl Names {
    /// The id of `bytes`, which need not be valid UTF-8.
    pub fn intern(&mut self, bytes: &[u8]) -> NameId {
        if let Some(id) = self.ids.get(bytes) {
            return *id;
        }
        let id = NameId(self.texts.len() as u32);
        self.texts.push(String::from_utf8_lossy(bytes).into_owned());
        self.ids.insert(bytes.to_vec(), id);
        id
    }

    /// The name of `id`; empty for an id of another table.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }
}

/// State of a task when it was switched out (`sched_switch` field `prev_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskState(pub u16);

impl TaskState {
    /// True if it ends: `EXIT_DEAD` or `EXIT_ZOMBIE` (`include/linux/sched.h`).
    pub fn has_ended(self) -> bool {
        self.0 & 0x30 != 0
    }

    /// True if it lost the CPU although it could run. A preempted task has a bit above the byte of states (`include/trace/events/sched.h`).
    pub fn is_runnable(self) -> bool {
        self.0.to_le_bytes()[0] == 0
    }
}

/// What happened. Names are ids in [`TraceLog::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The CPU changed from one task to another (0 is the idle one). Some kernels leave out the switch away from certain tasks, so a reader should
    /// take `prev` of the next switch as the task that ran before it, whatever `next` of the one before said.
    SwitchTo { prev_pid: i32, prev_comm: NameId, prev_state: TaskState, next_pid: i32, next_comm: NameId },
    /// A sleeping or new thread became runnable and waits for this CPU.
    Woken { pid: i32, cpu: u16 },
    /// A thread that does not run was moved to this CPU.
    Moved { pid: i32, cpu: u16 },
    /// A thread started another one, in its own process or in a new one.
    Forked { parent: i32, child: i32 },
    /// A device interrupt's handler begins.
    IrqEntry { irq: i32, name: NameId },
    /// A device interrupt's handler ends.
    IrqExit { irq: i32 },
    /// Number: see [`softirq_name`].
    SoftirqEntry { vec: u8 },
    /// Number: see [`softirq_name`].
    SoftirqExit { vec: u8 },
    /// An interrupt of the CPU itself begins: timer (`local_timer`), reschedule, function call and the like.
    VectorEntry { name: NameId },
    /// An interrupt of the CPU itself ends.
    VectorExit { name: NameId },
    /// In user mode, or in the kernel.
    PageFault { user: bool, address: u64 },
    /// A high-resolution timer expired, and the kernel calls this function of its own: see [`functions`](super::functions).
    TimerExpired { function: u64 },
    /// The scheduler brought the account of the current thread up to date: its run time since the last event of this kind, or since it got the CPU. Time
    /// that a hypervisor stole is not in it.
    Ran { pid: i32, runtime_ns: u64 },
    /// A handler of a non-maskable interrupt has ended.
    Nmi { delta_ns: u64 },
    /// Any other event that was asked for.
    Other { name: NameId },
}

/// Name of a soft interrupt (include/linux/interrupt.h); `UNKNOWN` for numbers the kernel does not have.
pub fn softirq_name(vec: u8) -> &'static str {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::from(vec)).copied().unwrap_or("UNKNOWN")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time in the unit of [`TraceLog::clock`].
    pub ticks: u64,
    pub cpu: u16,
    pub kind: EventKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceClock {
    /// The time-stamp counter: the same ticks `rdtsc` reads.
    X86Tsc,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds.
    MonoRaw,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Mono,
    /// A clock of the kernel, in nanoseconds, that programs can't read; only good for order and durations.
    Global,
}

impl TraceClock {
    /// The best first.
    pub const ALL: [Self; 4] = [Self::X86Tsc, Self::MonoRaw, Self::Mono, Self::Global];

    /// Those that count nanoseconds; the best first.
    pub const NANOSECONDS: [Self; 3] = [Self::MonoRaw, Self::Mono, Self::Global];

    pub fn name(self) -> &'static str {
        match self {
            Self::X86Tsc => "x86-tsc",
            Self::MonoRaw => "mono_raw",
            Self::Mono => "mono",
            Self::Global => "global",
        }
    }
}

impl fmt::Display for TraceClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Events the kernel could not record on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    pub cpu: usize,
    pub events: u64,
}

/// An event that was asked for and is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedEvent {
    /// `group/name`.
    pub event: String,
    pub why: String,
}

#[derive(Debug, Clone, Default)]
pub struct TraceLog {
    /// All events, ordered by time, then CPU.
    pub events: Vec<TraceEvent>,
    pub names: Names,
    /// One entry per traced CPU, also when nothing was lost.
    pub dropped: Vec<Dropped>,
    /// The clock of `ticks`; `None` only in an empty log.
    pub clock: Option<TraceClock>,
    /// Events that are missing on this kernel or could not be switched on.
    pub skipped_events: Vec<SkippedEvent>,
    /// Records that could not be decoded; 0 unless this program does not understand the kernel's format.
    pub malformed_records: u64,
}

impl TraceLog {
    pub fn name(&self, id: NameId) -> &str {
        self.names.text(id)
    }

    /// Events on `cpu`, in order.
    pub fn on_cpu(&self, cpu: usize) -> impl Iterator<Item = &TraceEvent> {
        self.events.iter().filter(move |e| usize::from(e.cpu) == cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stored_once() {
        let mut names = Names::default();
        let a = names.intern(b"kworker/0:1");
        assert_eq!(names.intern(b"swapper/0"), NameId(1));
        assert_eq!(names.intern(b"kworker/0:1"), a);
        assert_eq!((names.text(a), names.text(NameId(9))), ("kworker/0:1", ""));
    }
}
