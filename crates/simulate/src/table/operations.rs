//! Operations of the mpi probe that messages alone make up, each with the algorithm that stands for it.

use crate::patterns::{Pair, Pattern, Shape, Way, find};

/// An operation, under the name that the mpi probe has for it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Name.
    pub name: &'static str,
    /// In words: which messages.
    pub what: &'static str,
    /// Of two ranks alone.
    pub is_of_pair: bool,
    /// Its only size, bytes.
    pub only_bytes: Option<u64>,
    /// Whether a rank may begin the next one before others have begun this one.
    pub(super) runs_ahead: bool,
    made_of: Made,
}

#[derive(Debug, Clone, Copy)]
enum Made {
    Steps(&'static [Way]),
    Pattern(&'static str),
}

impl Operation {
    pub(super) fn pattern(&self, ranks: u32, bytes: u64) -> Box<dyn Pattern> {
        let info = match self.made_of {
            Made::Steps(steps) => return Box::new(Pair { steps, bytes }),
            Made::Pattern(name) => find(name),
        };
        // A chain passes the whole at once.
        let shape = Shape { ranks, bytes, segment_bytes: bytes, seed: 1 };
        info.map_or_else(
            || Box::new(Pair { steps: &[], bytes }) as Box<dyn Pattern>,
            |info| (info.make)(shape),
        )
    }
}

const fn pair(name: &'static str, steps: &'static [Way], what: &'static str) -> Operation {
    let runs_ahead = steps.len() == 1;
    Operation { name, what, is_of_pair: true, only_bytes: None, runs_ahead, made_of: Made::Steps(steps) }
}

/// All ranks wait for all others.
const fn all(name: &'static str, pattern: &'static str, what: &'static str) -> Operation {
    let made_of = Made::Pattern(pattern);
    Operation { name, what, is_of_pair: false, only_bytes: None, runs_ahead: false, made_of }
}

/// Some ranks send only, or receive only.
const fn rooted(name: &'static str, pattern: &'static str, what: &'static str) -> Operation {
    Operation { runs_ahead: true, ..all(name, pattern, what) }
}

/// In the order of the table of `machmeter mpi`. Not there: calls that differ in what the library does by itself (`ssend`, `rsend`, `irecv`), what work
/// hides (`ibcast`), one-sided ones, and `reduce_scatter`, of which there is no pattern.
pub const OPERATIONS: &[Operation] = &[
    pair("send", &[Way::There], "messages one way"),
    pair("recv", &[Way::Back], "messages one way"),
    pair("sendrecv", &[Way::Both], "a message each way at once"),
    pair("pingpong", &[Way::There, Way::Back], "a message there and one back"),
    all("alltoall", "linear", "all messages at once"),
    rooted("gather", "gather", "rank 0 receives one after the other"),
    all("allgather", "ring", "a ring"),
    rooted("reduce", "reduce", "a binomial tree, without the arithmetic"),
    all("allreduce", "recursive-doubling", "recursive doubling, without the arithmetic"),
    rooted("bcast", "binomial", "a binomial tree"),
    Operation { only_bytes: Some(0), ..all("barrier", "dissemination", "dissemination") },
    rooted("scatter", "scatter", "rank 0 sends one after the other"),
    rooted("scan", "pipelined", "a chain of ranks, without the arithmetic"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_messages() {
        for o in OPERATIONS {
            assert!(o.pattern(8, 64).messages() > 0, "{}", o.name);
        }
    }
}
