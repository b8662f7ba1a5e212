//! What rows there are: names, conditions and sizes. Rows are found again by them, so they are written and read here only.

use machmeter_engine::cost::{Estimator, Kind, Row};
use machmeter_model::loggps::{TRAIN, grid};

/// The part that all rows belong to.
pub(crate) const PART: &str = "links";

/// What a row measures, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation(&'static str);

impl Operation {
    /// A turn of PRTT(n, d, s).
    pub(crate) const TRAIN: Self = Self("train");
    /// A receive call of a message that is there.
    pub(crate) const RECEIVE: Self = Self("receive");
    /// Single round trips of the smallest message, each by itself.
    pub(crate) const TRIP: Self = Self("trip");
    /// A turn of the work between messages, while the far end waits.
    pub(crate) const WORK: Self = Self("work");
    /// The size from which a send waits for the receiver.
    pub(crate) const THRESHOLD: Self = Self("threshold");

    pub(crate) fn is_of(self, row: &Row, direction: &str) -> bool {
        row.operation == self.0 && row.text("direction") == direction
    }
}

/// Turns of the loop that one turn of the row of work has.
pub(crate) const WORK_TURNS: u64 = 1_000;
/// Bytes found by the search for the threshold, least and greatest, and how often it was repeated.
pub(crate) const THRESHOLD: [&str; 3] = ["least_bytes", "most_bytes", "searches"];

/// A link with the direction of its trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way<'w> {
    pub(crate) transport: &'w str,
    pub(crate) wait: &'w str,
    pub(crate) direction: &'w str,
}

impl Way<'_> {
    pub(crate) fn row(&self, operation: Operation) -> Row {
        let row = Row::new(PART, operation.0, Kind::Latency);
        let estimator =
            if operation == Operation::TRIP { Estimator::Trips } else { Estimator::MiddleBatches };
        Row { estimator, ..row }
            .with("transport", self.transport)
            .with("wait", self.wait)
            .with("direction", self.direction)
    }

    /// PRTT(messages, work, size).
    pub(crate) fn train(&self, size_bytes: u64, messages: u32, work: u64) -> Row {
        self.row(Operation::TRAIN)
            .with("size_bytes", size_bytes)
            .with("messages", messages)
            .with("work", work)
    }

    pub(crate) fn owns(&self, row: &Row, operation: Operation) -> bool {
        operation.is_of(row, self.direction)
            && row.text("transport") == self.transport
            && row.text("wait") == self.wait
    }
}

/// A train's size, messages and work; `None` of other rows.
pub(crate) fn train_of(row: &Row) -> Option<(u64, u32, u64)> {
    let int = |name: &str| row.int(name).and_then(|n| u64::try_from(n).ok());
    Some((int("size_bytes")?, u32::try_from(int("messages")?).ok()?, int("work")?))
}

/// Messages of trains kept back from the fit, to be predicted.
pub(crate) const KEPT_BACK: u32 = 4;
/// Sizes of the first round.
const SIZES: usize = 30;
/// Of so many sizes one has its overheads measured, and one is kept back.
const OVERHEADS_EVERY: usize = 5;
const KEPT_BACK_EVERY: usize = 6;

/// Sizes of a link, those at which overheads are measured, and those that are kept back, all bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) all: Vec<u64>,
    pub(crate) overheads: Vec<u64>,
    pub(crate) kept_back: Vec<u64>,
}

impl Sizes {
    /// From one size to another; above a segment of the transport whole segments only, or every packet would be a break.
    pub(crate) fn of((first, last): (u64, u64), segment_bytes: Option<u64>) -> Self {
        let whole = |s: u64| match segment_bytes {
            Some(segment) if s > segment => (s / segment * segment).max(segment),
            _ => s,
        };
        let mut all: Vec<u64> =
            grid(first, last, SIZES).into_iter().map(whole).filter(|s| *s >= first).collect();
        all.dedup();
        let overheads = all.iter().copied().step_by(OVERHEADS_EVERY).collect();
        // Between two sizes of the fit.
        let between = all.windows(2).step_by(KEPT_BACK_EVERY).map(|w| whole(w[0].midpoint(w[1])));
        let kept_back = between.filter(|s| !all.contains(s)).collect();
        Self { all, overheads, kept_back }
    }
}

/// Whether the row is a train of the fit: alone or of [`TRAIN`] messages, without work.
pub(crate) fn is_of_fit(messages: u32, work: u64) -> bool {
    work == 0 && (messages == 1 || messages == TRAIN)
}
