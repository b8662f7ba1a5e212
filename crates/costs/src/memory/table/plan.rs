//! What table A measures: its rows, the sizes of its buffers, the models.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::team::{self, Team};

use super::PART;
use crate::memory::Params;
use crate::memory::bandwidth::sizes::parse_bytes;
use crate::memory::ladder::detect::DetectedCaches;

/// Whether accesses overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Streamed,
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
    Timer,
    Barrier,
    Touch {
        write: bool,
        place: Place,
        access: Access,
    },
}

/// A row of the table before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) operation: Operation,
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
    /// The same line with dependent accesses. A write that waits for the one before is one along a chain: it writes the line
    /// whose pointer leads on.
    pub(super) fn dependent(self) -> Option<Self> {
        match self.operation {
            Operation::Touch { write, place, .. } => {
                Some(Self { operation: Operation::Touch { write, place, access: Access::Dependent }, ..self })
            }
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

    /// Whether its memory is meant to lie beyond the caches.
    pub(super) fn is_beyond_caches(self) -> bool {
        matches!(self.operation, Operation::Touch { place: Place::Local | Place::Neighbour, .. })
    }

    /// What is visited later in a round: the dearer, and of the dear ones writes, which the seed's figures need least.
    pub(super) fn turn(self) -> (bool, bool) {
        let writes = matches!(self.operation, Operation::Touch { write: true, .. });
        (self.is_dear(), self.is_dear() && writes)
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
            .with("model", model)
            .with("cpus", members)
            .with("access", self.access().name())
            .with("rank", rank)
    }
}

#[allow(clippy::struct_field_names, reason = "units stand in names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Buffer that stays in the first cache.
    pub(super) cached_bytes: usize,
    /// Buffer of each member beyond the caches.
    pub(super) main_bytes: usize,
    pub(super) block_bytes: usize,
}

/// Who says how large a cache or a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Asked,
    Detected,
    Claimed,
    /// Nobody: what the smallest machines of today have.
    Assumed,
}

impl Source {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Detected => "detected",
            Self::Claimed => "claimed",
            Self::Assumed => "assumed",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) bytes: u64,
    pub(super) source: Source,
}

impl Said {
    const fn new(bytes: u64, source: Source) -> Self {
        Self { bytes, source }
    }
}

/// What is known of the caches without asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Known {
    /// By the ladder of the same run.
    pub(super) seen: DetectedCaches,
    /// First cache as the system claims it, bytes.
    pub(super) first_bytes: Option<u64>,
    /// Last cache as the system claims it, bytes.
    pub(super) last_bytes: Option<u64>,
    /// Line as the system claims it, bytes.
    pub(super) line_bytes: Option<u64>,
}

/// Taken where nothing is known, bytes.
const FIRST_BYTES: u64 = 32 << 10;
/// See [`FIRST_BYTES`].
const LAST_BYTES: u64 = 8 << 20;
/// See [`FIRST_BYTES`].
const LINE_BYTES: u64 = 64;
/// Smallest buffer beyond the caches, bytes.
const FEWEST_BYTES: u64 = 1 << 20;
/// Largest buffer per member that is taken without being asked for, bytes: building its chains takes some tenths of a second.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// The sizes, and what they follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) sizes: Sizes,
    /// The first cache; the smaller one where it is both detected and claimed, so that the buffer fits.
    pub(super) first: Said,
    pub(super) last: Said,
    /// Distance of two accesses; the larger one where it is both detected and claimed, so that no two share a line.
    pub(super) block: Said,
}

impl Choice {
    /// Half the first cache, and twice the last one: what the user says, else what the ladder of this run found or what the
    /// system claims, whichever is larger, since what others leave of a shared cache may grow again. `most_bytes` bounds a
    /// buffer beyond the caches that was not asked for.
    ///
    /// # Errors
    /// A size that is none, a block that no kernel takes: one line.
    pub(super) fn of(params: &Params, known: &Known, most_bytes: u64) -> Result<Self, ProbeError> {
        let asked = |name: &str, text: &Option<String>| {
            let parse =
                |t: &String| parse_bytes(t).map_err(|e| ProbeError::Usage(format!("--{name} {t}: {e}")));
            text.as_ref().map(parse).transpose()
        };
        let block = match asked("block-size", &params.block_size)? {
            Some(bytes) => Said::new(bytes, Source::Asked),
            None => either(known.seen.line_bytes, known.line_bytes, LINE_BYTES, u64::max),
        };
        if !(8..=4_096).contains(&block.bytes) || !block.bytes.is_multiple_of(8) {
            return Err(ProbeError::Usage(format!(
                "--block-size {}: not a multiple of 8 from 8 to 4096",
                block.bytes
            )));
        }
        let first = either(known.seen.first_bytes, known.first_bytes, FIRST_BYTES, u64::min);
        let asked = asked("cache-size", &params.cache_size)?;
        let effective = known.seen.last_bytes.map(|(_, most)| most);
        let last = match (asked, effective) {
            (Some(bytes), _) => Said::new(bytes, Source::Asked),
            (None, Some(bytes)) => Said::new(bytes, Source::Detected),
            (None, None) => either(None, known.last_bytes, LAST_BYTES, u64::max),
        };
        let turn = 8 * block.bytes;
        let whole = |bytes: u64| (bytes / turn * turn).max(turn);
        let (wanted, most) = match asked {
            Some(cache) => (cache.saturating_mul(2), u64::MAX),
            None => (last.bytes.max(known.last_bytes.unwrap_or(0)).saturating_mul(2), most_bytes),
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

/// Of what is detected and what is claimed the one that `choose` takes; both agreeing counts as detected.
fn either(detected: Option<u64>, claimed: Option<u64>, assumed: u64, choose: fn(u64, u64) -> u64) -> Said {
    match (detected, claimed) {
        (Some(d), Some(c)) if choose(d, c) != d => Said::new(c, Source::Claimed),
        (Some(d), _) => Said::new(d, Source::Detected),
        (None, Some(c)) => Said::new(c, Source::Claimed),
        (None, None) => Said::new(assumed, Source::Assumed),
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
