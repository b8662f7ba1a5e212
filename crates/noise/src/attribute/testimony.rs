//! What a witness saw while the loops ran: spans of time in which something else had the CPU, and who it was.

/// What kind of thing took the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// Another thread ran.
    Thread,
    /// A device interrupt, or an interrupt between processors.
    Irq,
    /// A softirq handler.
    Softirq,
    /// The timer interrupt.
    Tick,
    /// A page fault of the meter itself.
    Fault,
    /// Nothing in this kernel: the hypervisor, firmware (SMI), or the processor.
    Outside,
    /// Not known.
    Unknown,
}

impl SourceKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Thread, Self::Irq, Self::Softirq, Self::Tick, Self::Fault, Self::Outside, Self::Unknown];

    /// Name as in metric parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Irq => "irq",
            Self::Softirq => "softirq",
            Self::Tick => "tick",
            Self::Fault => "fault",
            Self::Outside => "outside",
            Self::Unknown => "unknown",
        }
    }

    /// The kind called `name`; [`SourceKind::Unknown`] for any other.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|k| k.name() == name).unwrap_or(Self::Unknown)
    }
}

/// Who took the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// Thread name, interrupt name, softirq name, or a description.
    pub name: String,
    /// Kind.
    pub kind: SourceKind,
}

impl Source {
    /// A source.
    pub fn new(name: impl Into<String>, kind: SourceKind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// A stretch of time in which a source had the CPU. Spans nest: an interrupt inside a thread's turn is deeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start, ticks of the loop's clock.
    pub start_ticks: u64,
    /// End, ticks; equal to the start for an event whose duration is not known.
    pub end_ticks: u64,
    /// Index into [`Testimony::sources`].
    pub source: u32,
    /// 0 outermost; the deepest span owns the time.
    pub depth: u8,
}

/// What a witness cannot see, which decides what an unexplained gap may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Every entry into the kernel: an unexplained gap happened outside of it.
    Everything,
    /// Only when other threads ran: an unexplained gap is an interrupt or outside the kernel.
    Switches,
    /// Nothing.
    Nothing,
}

/// All that was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Testimony {
    /// Name of the witness.
    pub witness: String,
    /// What it can see.
    pub sight: Sight,
    /// Who was seen.
    pub sources: Vec<Source>,
    /// Per measured CPU (same order as the samples): spans ordered by start.
    pub spans: Vec<Vec<Span>>,
    /// Per measured CPU: events that the witness lost; with any, silence proves nothing.
    pub lost: Vec<u64>,
    /// Per-source totals from counters (`/proc/interrupts`, `/proc/stat`): CPU, name, count.
    pub counters: Vec<(usize, String, u64)>,
    /// Time stolen by the hypervisor as the kernel accounts it, per measured CPU, ns.
    pub steal_ns: Vec<Option<u64>>,
    /// Remarks: why no better witness was there, events that the kernel lacks.
    pub notes: Vec<String>,
}

impl Testimony {
    /// No witness at all.
    pub fn none() -> Self {
        Self {
            witness: "none".to_owned(),
            sight: Sight::Nothing,
            sources: Vec::new(),
            spans: Vec::new(),
            lost: Vec::new(),
            counters: Vec::new(),
            steal_ns: Vec::new(),
            notes: Vec::new(),
        }
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
