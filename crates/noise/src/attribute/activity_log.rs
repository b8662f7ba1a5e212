//! What a witness saw while the loops ran: spans of time in which something else had the CPU, and who it was.

use machmeter_data::text::printable;
use serde::{Deserialize, Serialize};

use super::stolen::Stolen;
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    Thread,
    /// A device interrupt, or an interrupt between processors.
    Irq,
    Softirq,
    Tick,
    /// A page fault of the meter itself.
    Fault,
    /// Nothing in this kernel: the hypervisor, firmware (SMI), or the processor.
    Outside,
    Unknown,
}

impl SourceKind {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::Thread, "thread"),
        (Self::Irq, "irq"),
        (Self::Softirq, "softirq"),
        (Self::Tick, "tick"),
        (Self::Fault, "fault"),
        (Self::Outside, "outside"),
        (Self::Unknown, "unknown"),
    ];

    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    /// The kind called `name`; [`SourceKind::Unknown`] for any other.
    pub fn named(name: &str) -> Self {
        Self::NAMES.into_iter().find(|k| k.1 == name).map_or(Self::Unknown, |k| k.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// Name of a process, an interrupt, a softirq, or a description.
    pub name: String,
    pub kind: SourceKind,
    /// Which of the process's threads, as `name:id`; empty for what is no thread.
    pub thread: String,
}

impl Source {
    /// A source that is no thread, or a thread that nobody can tell from others.
    pub fn new(name: &str, kind: SourceKind) -> Self {
        Self { name: printable(name), kind, thread: String::new() }
    }

    pub fn thread(process: &str, thread: &str, id: i32) -> Self {
        let thread = format!("{}:{id}", printable(thread));
        Self { name: printable(process), kind: SourceKind::Thread, thread }
    }

    /// Name of the process, and of the thread where that differs.
    pub fn full_name(&self) -> String {
        match self.thread.rsplit_once(':') {
            Some((thread, _)) if thread != self.name => format!("{}/{thread}", self.name),
            _ => self.name.clone(),
        }
    }
}

/// A stretch of time in which a source had the CPU. Spans nest: an interrupt inside a thread's turn is deeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start, ticks of the loop's clock.
    pub start_ticks: u64,
    /// End, ticks; equal to the start for an event whose duration is not known.
    pub end_ticks: u64,
    /// Index into [`ActivityLog::sources`].
    pub source: u32,
    /// 0 outermost; the deepest span owns the time.
    pub depth: u8,
}

/// Name of the source when the kernel kept the meter off its CPU on purpose, and nobody else ran.
pub const HELD_BACK: &str = machmeter_data::gaps::HELD_BACK;

/// What a witness cannot see, which decides what an unexplained gap may be called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight {
    /// Every entry into the kernel: an unexplained gap happened outside of it.
    Everything,
    /// Only when other threads ran: an unexplained gap is an interrupt or outside the kernel.
    Switches,
    #[default]
    Nothing,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityLog {
    pub witness: String,
    pub sight: Sight,
    #[serde(skip)]
    pub sources: Vec<Source>,
    /// Per measured CPU (same order as the samples): spans ordered by start; none once the gaps are attributed.
    #[serde(skip)]
    pub spans: Vec<Vec<Span>>,
    /// Per measured CPU: what the hypervisor stole, in order of time, as far as the kernel's accounts show it.
    #[serde(skip)]
    pub stolen: Vec<Vec<Stolen>>,
    /// Per measured CPU: events that the witness lost; with any, silence proves nothing.
    pub lost: Vec<u64>,
    /// Per-source totals from counters (`/proc/interrupts`, `/proc/stat`): CPU, name, count.
    pub counters: Vec<(usize, String, u64)>,
    /// Time stolen by the hypervisor as the kernel accounts it, per measured CPU, ns.
    pub steal_ns: Vec<Option<u64>>,
    /// Remarks: why no better witness was there, events that the kernel lacks.
    pub notes: Vec<String>,
}

impl ActivityLog {
    pub fn none() -> Self {
        Self { witness: "none".to_owned(), ..Self::default() }
    }

    pub fn source(&self, index: u32) -> Option<&Source> {
        self.sources.get(index as usize)
    }

    pub fn is_thread(&self, index: u32) -> bool {
        self.source(index).is_some_and(|s| s.kind == SourceKind::Thread)
    }

    /// Index of `source`, added if new.
    pub fn intern(&mut self, source: Source) -> u32 {
        let found = self.sources.iter().position(|s| *s == source).unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        });
        found as u32
    }
}
