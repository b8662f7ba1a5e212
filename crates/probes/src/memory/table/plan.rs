//! What table A measures: its rows, the sizes of its buffers, the models.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::team::{self, Team};

use super::PART;
use crate::memory::Params;
use crate::memory::bandwidth::sizes::parse_bytes;

/// Whether accesses overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// One block apart, eight a turn.
    Streamed,
    /// Along a random chain.
    Dependent,
}

impl Access {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Streamed => "streamed",
            Self::Dependent => "dependent",
        }
    }
}

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Cache,
    Local,
    Neighbour,
}

/// What a member does in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// The empty loop: the control.
    Empty,
    /// One reading of the clock.
    Timer,
    /// All members meet.
    Barrier,
    /// Accesses.
    Touch { write: bool, place: Place, access: Access },
}

/// A row of the table before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// As the seed names it.
    pub(super) name: &'static str,
    pub(super) operation: Operation,
    /// Every member at once.
    pub(super) all: bool,
}

const fn touch(write: bool, place: Place) -> Operation {
    Operation::Touch { write, place, access: Access::Streamed }
}

/// The fifteen rows in the seed's order.
pub(super) const LINES: [Line; 15] = [
    Line { name: "empty loop", operation: Operation::Empty, all: false },
    Line { name: "timer()", operation: Operation::Timer, all: false },
    Line { name: "barrier", operation: Operation::Barrier, all: true },
    Line { name: "read_localcache", operation: touch(false, Place::Cache), all: false },
    Line { name: "allread_localcache", operation: touch(false, Place::Cache), all: true },
    Line { name: "read_local", operation: touch(false, Place::Local), all: false },
    Line { name: "allread_local", operation: touch(false, Place::Local), all: true },
    Line { name: "read_neighbour", operation: touch(false, Place::Neighbour), all: false },
    Line { name: "allread_neighbour", operation: touch(false, Place::Neighbour), all: true },
    Line { name: "write_localcache", operation: touch(true, Place::Cache), all: false },
    Line { name: "allwrite_localcache", operation: touch(true, Place::Cache), all: true },
    Line { name: "write_local", operation: touch(true, Place::Local), all: false },
    Line { name: "allwrite_local", operation: touch(true, Place::Local), all: true },
    Line { name: "write_neighbour", operation: touch(true, Place::Neighbour), all: false },
    Line { name: "allwrite_neighbour", operation: touch(true, Place::Neighbour), all: true },
];

impl Line {
    /// The same line with dependent accesses; only reads can wait for each other.
    pub(super) fn dependent(self) -> Option<Self> {
        match self.operation {
            Operation::Touch { write: false, place, .. } => Some(Self {
                operation: Operation::Touch { write: false, place, access: Access::Dependent },
                ..self
            }),
            _ => None,
        }
    }

    /// Whether it makes no sense for one member.
    pub(super) fn needs_two(self) -> bool {
        self.all || matches!(self.operation, Operation::Touch { place: Place::Neighbour, .. })
    }

    /// Whether a visit begins with a chain beyond the caches, which takes some hundred times as long to build as to follow.
    pub(super) fn is_dear(self) -> bool {
        use {Access::Dependent, Place::Cache};
        matches!(self.operation, Operation::Touch { place, access: Dependent, .. } if place != Cache)
    }

    pub(super) fn access(self) -> Access {
        match self.operation {
            Operation::Touch { access, .. } => access,
            _ => Access::Dependent,
        }
    }

    /// The row of one member.
    pub(super) fn row(self, model: &str, members: usize, rank: usize) -> Row {
        let kind = match self.access() {
            Access::Streamed => Kind::Throughput,
            Access::Dependent => Kind::Latency,
        };
        Row::new(PART.name, self.name, kind)
            .with("model", model)
            .with("cpus", members)
            .with("access", self.access().name())
            .with("rank", rank)
    }
}

/// Sizes of the buffers.
#[allow(clippy::struct_field_names, reason = "units stand in names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Buffer that stays in the first cache.
    pub(super) cached_bytes: usize,
    /// Buffer of each member beyond the caches.
    pub(super) main_bytes: usize,
    /// From one access to the next.
    pub(super) block_bytes: usize,
}

/// Largest buffer per member that is taken without being asked for.
const MOST_BYTES: u64 = 64 << 20;

impl Sizes {
    /// From what the user says, else from what the system claims: half the first cache, and twice the last one but no more
    /// than 64 MiB (beyond what a share of it holds in a virtual machine; the figures tell).
    pub(super) fn of(
        params: &Params,
        first_bytes: u64,
        last_bytes: u64,
        line_bytes: u64,
    ) -> Result<Self, ProbeError> {
        let asked = |name: &str, text: &Option<String>| {
            let parse =
                |t: &String| parse_bytes(t).map_err(|e| ProbeError::Usage(format!("--{name} {t}: {e}")));
            text.as_ref().map(parse).transpose()
        };
        let block = asked("block-size", &params.block_size)?.unwrap_or(line_bytes.max(8));
        if !(8..=4_096).contains(&block) || !block.is_multiple_of(8) {
            return Err(ProbeError::Usage(format!(
                "--block-size {block}: not a multiple of 8 from 8 to 4096"
            )));
        }
        let cache = asked("cache-size", &params.cache_size)?;
        let most = cache.map_or(MOST_BYTES, |c| c.saturating_mul(2));
        let main = cache.unwrap_or(last_bytes).saturating_mul(2).clamp(1 << 20, most.max(1 << 20));
        let turn = 8 * block;
        let cached = cache.map_or(first_bytes / 2, |c| c.min(first_bytes / 2)).max(turn);
        let whole = |bytes: u64| (bytes / turn * turn).max(turn) as usize;
        Ok(Self { cached_bytes: whole(cached), main_bytes: whole(main), block_bytes: block as usize })
    }
}

/// The models asked for, or threads alone.
///
/// # Errors
/// An unknown one: one line with those there are.
pub(super) fn models(names: &[String]) -> Result<Vec<&'static dyn Team>, ProbeError> {
    if names.is_empty() {
        return Ok(team::named("threads").into_iter().collect());
    }
    let find = |n: &String| {
        team::named(n).ok_or_else(|| {
            let known: Vec<&str> = team::models().iter().map(|m| m.model()).collect();
            ProbeError::Usage(format!("model '{n}' is not one of {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}
