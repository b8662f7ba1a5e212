//! What the table of shared accesses measures: its rows, the sizes of its buffers, the models.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Fact, Kind, Row};
use machmeter_engine::team::{self, Team};
use serde::{Deserialize, Serialize};

use super::PART;
use crate::memory::Params;
use crate::memory::bandwidth::sizes::parse_bytes;
use crate::memory::reported::ReportedCaches;

machmeter_data::named! { pub(super) enum Access {
    Streamed = "streamed",
    Dependent = "dependent",
} }

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Cache,
    Local,
    Neighbor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// The empty loop: the control.
    Empty,
    Timer,
    Barrier,
    Touch {
        write: bool,
        place: Place,
        access: Access,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) operation: Operation,
    pub(super) all: bool,
}

const fn touch(write: bool, place: Place) -> Operation {
    Operation::Touch { write, place, access: Access::Streamed }
}

/// The fifteen rows in Howell's order.
pub(super) const LINES: [Line; 15] = [
    Line { name: "empty loop", operation: Operation::Empty, all: false },
    Line { name: "timer()", operation: Operation::Timer, all: false },
    Line { name: "barrier", operation: Operation::Barrier, all: true },
    Line { name: "read_localcache", operation: touch(false, Place::Cache), all: false },
    Line { name: "allread_localcache", operation: touch(false, Place::Cache), all: true },
    Line { name: "read_local", operation: touch(false, Place::Local), all: false },
    Line { name: "allread_local", operation: touch(false, Place::Local), all: true },
    Line { name: "read_neighbour", operation: touch(false, Place::Neighbor), all: false },
    Line { name: "allread_neighbour", operation: touch(false, Place::Neighbor), all: true },
    Line { name: "write_localcache", operation: touch(true, Place::Cache), all: false },
    Line { name: "allwrite_localcache", operation: touch(true, Place::Cache), all: true },
    Line { name: "write_local", operation: touch(true, Place::Local), all: false },
    Line { name: "allwrite_local", operation: touch(true, Place::Local), all: true },
    Line { name: "write_neighbour", operation: touch(true, Place::Neighbor), all: false },
    Line { name: "allwrite_neighbour", operation: touch(true, Place::Neighbor), all: true },
];

impl Line {
    /// The same line with dependent accesses; a dependent write writes the line whose pointer leads on.
    pub(super) fn dependent(self) -> Option<Self> {
        match self.operation {
            Operation::Touch { write, place, .. } => {
                Some(Self { operation: Operation::Touch { write, place, access: Access::Dependent }, ..self })
            }
            _ => None,
        }
    }

    pub(super) fn needs_two(self) -> bool {
        self.all || matches!(self.operation, Operation::Touch { place: Place::Neighbor, .. })
    }

    /// Whether a visit begins with a chain beyond the caches, which takes some hundred times as long to build as to follow.
    pub(super) fn is_expensive(self) -> bool {
        use {Access::Dependent, Place::Cache};
        matches!(self.operation, Operation::Touch { place, access: Dependent, .. } if place != Cache)
    }

    pub(super) fn is_beyond_caches(self) -> bool {
        matches!(self.operation, Operation::Touch { place: Place::Local | Place::Neighbor, .. })
    }

    pub(super) fn access(self) -> Access {
        match self.operation {
            Operation::Touch { access, .. } => access,
            _ => Access::Dependent,
        }
    }

    pub(super) fn row(self, model: &str, members: usize, rank: usize) -> Row {
        let kind = match self.access() {
            Access::Streamed => Kind::Throughput,
            Access::Dependent => Kind::Latency,
        };
        Row::new(PART.name, self.name, kind)
            .of_batches()
            .with("model", model)
            .with("cpus", members)
            .with("access", self.access().name())
            .with("rank", rank)
    }
}

#[allow(clippy::struct_field_names, reason = "units stand in names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sizes {
    /// Buffer that stays in the first cache.
    pub(super) cached_bytes: usize,
    /// Buffer of each member beyond the caches.
    pub(super) main_bytes: usize,
    pub(super) block_bytes: usize,
}

machmeter_data::named! {
/// Who says how large a cache or a line is.
#[derive(Serialize, Deserialize)]
pub(super) enum Source {
    Asked = "asked",
    Claimed = "claimed",
    /// Nobody: a first cache of the smallest machines of today, a last one of the largest but few.
    Assumed = "assumed",
} }

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) bytes: u64,
    pub(super) source: Source,
}

impl Said {
    /// What was asked for, else what is claimed, or assumed where nothing is.
    fn of(asked: Option<u64>, claimed: Option<usize>, assumed: u64) -> Self {
        match (asked, claimed) {
            (Some(bytes), _) => Self { bytes, source: Source::Asked },
            (None, Some(bytes)) => Self { bytes: bytes as u64, source: Source::Claimed },
            (None, None) => Self { bytes: assumed, source: Source::Assumed },
        }
    }
}

/// Taken where nothing is claimed, bytes: the smallest first cache in use, for a buffer that fits it.
const FIRST_BYTES: u64 = 32 << 10;
/// The same for a buffer that fits no last cache: twice this is more than all but a few have per domain.
const LAST_BYTES: u64 = 64 << 20;
const LINE_BYTES: u64 = 64;
/// Smallest buffer beyond the caches, bytes.
const FEWEST_BYTES: u64 = 1 << 20;
/// Largest buffer per member that is taken without being asked for, bytes: building its chains takes some tenths of a second.
pub(super) const MOST_BYTES: u64 = 256 << 20;

pub(super) const CHOICE: Fact<Choice> = Fact::named("table.choice");

/// The sizes, and what they follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choice {
    pub(super) sizes: Sizes,
    pub(super) first: Said,
    pub(super) last: Said,
    /// Distance of two accesses.
    pub(super) block: Said,
}

impl Choice {
    /// Half the first cache and twice the last, asked or claimed; `most_bytes` bounds what was not asked for.
    pub(super) fn of(
        params: &Params,
        reported: &ReportedCaches,
        most_bytes: u64,
    ) -> Result<Self, ProbeError> {
        let asked = |name: &str, text: &Option<String>| {
            let parse =
                |t: &String| parse_bytes(t).map_err(|e| ProbeError::Usage(format!("--{name} {t}: {e}")));
            text.as_ref().map(parse).transpose()
        };
        let claimed_line = reported.0.iter().map(|c| c.line_bytes).find(|bytes| *bytes > 0);
        let block = Said::of(asked("block-size", &params.block_size)?, claimed_line, LINE_BYTES);
        if !(8..=4_096).contains(&block.bytes) || !block.bytes.is_multiple_of(8) {
            return Err(ProbeError::Usage(format!(
                "--block-size {}: not a multiple of 8 from 8 to 4096",
                block.bytes
            )));
        }
        let first = Said::of(None, reported.0.first().map(|c| c.bytes), FIRST_BYTES);
        let asked = asked("cache-size", &params.cache_size)?;
        let last = Said::of(asked, reported.last_bytes(), LAST_BYTES);
        let turn = 8 * block.bytes;
        let whole = |bytes: u64| (bytes / turn * turn).max(turn);
        let (wanted, most) = match asked {
            Some(cache) => (cache.saturating_mul(2), u64::MAX),
            None => (last.bytes.saturating_mul(2), most_bytes),
        };
        let wanted = wanted.checked_next_multiple_of(turn).unwrap_or(u64::MAX);
        let main = whole(wanted.min(most).max(FEWEST_BYTES));
        let cached = whole(asked.unwrap_or(u64::MAX).min(first.bytes / 2));
        let sizes = Sizes {
            cached_bytes: cached as usize,
            main_bytes: main as usize,
            block_bytes: block.bytes as usize,
        };
        Ok(Self { sizes, first, last, block })
    }
}

/// The models asked for, or threads alone.
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
