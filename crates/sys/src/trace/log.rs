//! What a trace consists of once decoded.

use std::collections::{BTreeMap, HashMap};
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
    /// The bits that mean waiting, in order: `S D T t X Z P I`.
    const LETTERS: &'static str = "SDTtXZPI";

    /// The letter `ps` and the trace text use: `R` runnable, else the first of `S D T t X Z P I` that is set.
    pub fn letter(self) -> char {
        Self::LETTERS.chars().nth(self.0.trailing_zeros() as usize).unwrap_or('R')
    }
}

/// What happened. Names are ids in [`TraceLog::names`], functions are addresses in [`TraceLog::symbols`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The CPU changed from one task to another. Some kernels leave out the switch away from certain tasks, so a reader should
    /// take `prev` of the next switch as the task that ran before it, whatever `next` of the one before said.
    SwitchTo {
        prev_pid: i32,
        prev_comm: NameId,
        prev_state: TaskState,
        /// Task switched in; 0 is the idle task.
        next_pid: i32,
        next_comm: NameId,
    },
    /// A device interrupt's handler begins.
    IrqEntry {
        irq: i32,
        /// Handler name as in `/proc/interrupts`.
        name: NameId,
    },
    /// A device interrupt's handler ends.
    IrqExit { irq: i32 },
    SoftirqEntry {
        /// Number; see [`softirq_name`].
        vec: u8,
    },
    SoftirqExit {
        /// Number; see [`softirq_name`].
        vec: u8,
    },
    /// An interrupt of the CPU itself begins: timer, reschedule, function call and the like.
    VectorEntry {
        /// Name of the vector, such as `local_timer`.
        name: NameId,
    },
    /// An interrupt of the CPU itself ends.
    VectorExit { name: NameId },
    PageFault {
        /// In user mode, else in the kernel.
        user: bool,
        address: u64,
    },
    /// A handler of a non-maskable interrupt has ended.
    Nmi { delta_ns: u64 },
    /// A work queue item begins in a kernel worker thread.
    WorkStart { function: u64 },
    WorkEnd {
        /// Its function; 0 on kernels that don't tell.
        function: u64,
    },
    /// The callback of a high-resolution timer begins.
    TimerEntry { function: u64 },
    /// The callback of a high-resolution timer ends.
    TimerExit,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceClock {
    /// The time-stamp counter: the same ticks `rdtsc` reads.
    X86Tsc,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds.
    MonoRaw,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Mono,
    /// Another kernel clock, in nanoseconds, that programs can't read; only good for order and durations.
    Kernel(String),
}

impl TraceClock {
    /// The name in `trace_clock`.
    pub fn name(&self) -> &str {
        match self {
            Self::X86Tsc => "x86-tsc",
            Self::MonoRaw => "mono_raw",
            Self::Mono => "mono",
            Self::Kernel(name) => name,
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

/// A span in which events were lost: the log says nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    pub cpu: usize,
    /// Time of the last event before the loss.
    pub after_ticks: u64,
    /// Time of the first event after it; `u64::MAX` when none followed.
    pub before_ticks: u64,
    /// Number of lost events; `None` when the kernel did not store it.
    pub events: Option<u64>,
}

/// An event that was asked for and is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedEvent {
    /// `group/name`.
    pub event: String,
    /// Why.
    pub why: String,
}

#[derive(Debug, Clone, Default)]
pub struct TraceLog {
    /// All events, ordered by time, then CPU.
    pub events: Vec<TraceEvent>,
    pub names: Names,
    /// Function names by address, for the functions the events refer to; empty without the right to read them.
    pub symbols: BTreeMap<u64, String>,
    /// One entry per traced CPU, also when nothing was lost.
    pub dropped: Vec<Dropped>,
    /// When events were lost.
    pub losses: Vec<Loss>,
    /// The clock of `ticks`; `None` only in an empty log.
    pub clock: Option<TraceClock>,
    /// Events that are missing on this kernel or could not be switched on.
    pub skipped_events: Vec<SkippedEvent>,
    /// Records that could not be decoded; 0 unless this program does not understand the kernel's format.
    pub malformed_records: u64,
}

impl TraceLog {
    /// The name of `id`.
    pub fn name(&self, id: NameId) -> &str {
        self.names.text(id)
    }

    /// The function at `address`, or the address in hexadecimal.
    pub fn function(&self, address: u64) -> String {
        self.symbols.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }

    /// Events on `cpu`, in order.
    pub fn on_cpu(&self, cpu: usize) -> impl Iterator<Item = &TraceEvent> {
        self.events.iter().filter(move |e| usize::from(e.cpu) == cpu)
    }

    /// Number of lost events on all CPUs.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|d| d.events).sum()
    }

    /// Whether the log is complete on `cpu` between two times: a gap without an event there then really lies outside the
    /// kernel.
    pub fn is_complete(&self, cpu: usize, from_ticks: u64, to_ticks: u64) -> bool {
        !self.losses.iter().any(|l| l.cpu == cpu && l.after_ticks < to_ticks && l.before_ticks > from_ticks)
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

    #[test]
    fn task_states_have_the_letters_of_ps() {
        let letters: String = [0, 1, 2, 0x40, 0x80, 0x100].map(|s| TaskState(s).letter()).iter().collect();
        assert_eq!(letters, "RSDPIR");
    }

    #[test]
    fn a_span_that_touches_a_loss_is_not_complete() {
        let loss = Loss { cpu: 1, after_ticks: 100, before_ticks: 200, events: Some(3) };
        let log = TraceLog { losses: vec![loss], ..TraceLog::default() };
        assert!(
            !log.is_complete(1, 150, 160) && !log.is_complete(1, 50, 101) && !log.is_complete(1, 199, 300)
        );
        assert!(log.is_complete(1, 50, 100) && log.is_complete(1, 200, 300) && log.is_complete(0, 150, 160));
    }
}
