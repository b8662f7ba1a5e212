//! Parameters of the simulated machine: `LogGPS` by size of message.

/// Fixed point of costs per byte: units of 1/1024 ps.
pub const PER_PS: u64 = 1024;

/// A cost over bytes: of the first, and of each one after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    /// At one byte, ps.
    pub first_ps: u64,
    /// Per further byte, 1/1024 ps.
    pub per_byte: u64,
}

impl Line {
    /// Cost of so many further bytes, ps: rounded down once per message.
    #[inline]
    pub fn further_ps(&self, bytes: u64) -> u64 {
        match bytes.checked_mul(self.per_byte) {
            Some(all) => all / PER_PS,
            None => (u128::from(bytes) * u128::from(self.per_byte) / u128::from(PER_PS))
                .min(u128::from(u64::MAX)) as u64,
        }
    }
}

/// How messages of a segment reach the receiver: at once, and the sender goes on; or after a handshake with the matching receive, whose
/// request and answer take `handshake_ps` each, and the sender goes on when its bytes are out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Eager,
    Rendezvous { handshake_ps: u64 },
}

/// Costs of messages up to a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Largest size, bytes.
    pub last_bytes: u64,
    /// o and O of the sender's CPU.
    pub send: Line,
    /// o and O of the receiver's CPU.
    pub receive: Line,
    /// g and G of both interfaces.
    pub gap: Line,
    /// L, ps: of the bytes alone in a rendezvous.
    pub latency_ps: u64,
    /// Per further byte from the first one's arrival to the last one's, 1/1024 ps: G where interfaces are all that delays bytes.
    pub way_per_byte: u64,
    pub protocol: Protocol,
}

/// Rules that differ between simulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Bytes pass on the link and take the CPU O each; a rendezvous has a handshake; what gets ready does so when its
    /// predecessors end.
    Machmeter,
    /// Rules of `LogGOPSim` (Hoefler et al. 2010) with a stable order of operations: the receiver's CPU is busy while bytes
    /// arrive, a rendezvous ends with the match, operations begin at the time of their own CPU, the cost of the bytes after
    /// the first of an empty message is that of -1 bytes.
    LogGopSim,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    segments: Vec<Segment>,
    pub dialect: Dialect,
}

impl Segment {
    /// Bytes on their way, from the first one's arrival on.
    pub(crate) fn way(&self) -> Line {
        Line { first_ps: 0, per_byte: self.way_per_byte }
    }

    /// How many bytes at G cost as much as so many by this line.
    #[inline]
    pub(crate) fn at_gap(&self, bytes: u64, line: &Line) -> u64 {
        if line.per_byte == self.gap.per_byte || self.gap.per_byte == 0 {
            return bytes;
        }
        (u128::from(bytes) * u128::from(line.per_byte) / u128::from(self.gap.per_byte)) as u64
    }
}

impl Params {
    /// Parameters of segments in the order of their sizes. The last one holds for all larger messages; `None` without one.
    pub fn new(segments: Vec<Segment>, dialect: Dialect) -> Option<Self> {
        (!segments.is_empty()).then_some(Self { segments, dialect })
    }

    /// One set of costs for all sizes: a rendezvous above `eager_bytes`, whose handshake takes L each way.
    pub fn simple(send: Line, gap: Line, latency_ps: u64, eager_bytes: u64, dialect: Dialect) -> Self {
        let way_per_byte = gap.per_byte;
        let segment = |last_bytes, protocol| Segment {
            last_bytes,
            send,
            receive: send,
            gap,
            latency_ps,
            way_per_byte,
            protocol,
        };
        let rendezvous = Protocol::Rendezvous { handshake_ps: latency_ps };
        let mut segments = vec![segment(eager_bytes, Protocol::Eager)];
        if eager_bytes < u64::MAX {
            segments.push(segment(u64::MAX, rendezvous));
        }
        Self { segments, dialect }
    }

    /// Costs of a size.
    #[inline]
    pub fn segment(&self, bytes: u64) -> &Segment {
        let first = &self.segments[0];
        if bytes <= first.last_bytes {
            return first;
        }
        let found = self.segments.iter().find(|s| bytes <= s.last_bytes);
        found.unwrap_or(&self.segments[self.segments.len() - 1])
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Parameters with one change for all segments, as for a sensitivity.
    #[must_use]
    pub fn map(&self, change: impl FnMut(&mut Segment)) -> Self {
        let mut changed = self.clone();
        changed.segments.iter_mut().for_each(change);
        changed
    }
}
