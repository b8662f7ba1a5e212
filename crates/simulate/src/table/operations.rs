//! Operations of the mpi probe that messages alone make up, each with the algorithm that stands for it.

use crate::patterns::{BACK, BOTH, Pair, Pattern, Shape, THERE, Way, of_operation};

/// An operation, under the name that the mpi probe has for it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub name: &'static str,
    /// In words: which messages.
    pub(super) what: &'static str,
    /// Its only size, bytes.
    pub(super) only_bytes: Option<u64>,
    /// Whether a rank may begin the next one before others have begun this one.
    pub(super) runs_ahead: bool,
    /// Of a pair of ranks; others have a pattern.
    steps: &'static [Way],
}

impl Operation {
    pub(super) fn is_of_pair(&self) -> bool {
        !self.steps.is_empty()
    }

    pub(super) fn pattern(&self, ranks: u32, bytes: u64) -> Box<dyn Pattern> {
        match of_operation(self.name).filter(|_| !self.is_of_pair()) {
            // A chain passes the whole at once.
            Some(info) => (info.make)(Shape { ranks, bytes, segment_bytes: bytes, seed: 1 }),
            None => Box::new(Pair { steps: self.steps, bytes }),
        }
    }
}

const fn pair(name: &'static str, steps: &'static [Way], what: &'static str) -> Operation {
    Operation { name, what, only_bytes: None, runs_ahead: steps.len() == 1, steps }
}

/// All ranks wait for all others.
const fn all(name: &'static str, what: &'static str) -> Operation {
    Operation { name, what, only_bytes: None, runs_ahead: false, steps: &[] }
}

/// Some ranks send only, or receive only.
const fn rooted(name: &'static str, what: &'static str) -> Operation {
    Operation { runs_ahead: true, ..all(name, what) }
}

/// In the order of the table of `machmeter mpi`. Not there: calls that differ in what the library does by itself (`ssend`, `rsend`, `irecv`), what work
/// hides (`ibcast`), one-sided ones, and `reduce_scatter`, of which there is no pattern.
pub const OPERATIONS: &[Operation] = &[
    pair("send", &[THERE], "messages one way"),
    pair("recv", &[BACK], "messages one way"),
    pair("sendrecv", &[BOTH], "a message each way at once"),
    pair("pingpong", &[THERE, BACK], "a message there and one back"),
    all("alltoall", "all messages at once"),
    rooted("gather", "rank 0 receives one after the other"),
    all("allgather", "a ring"),
    rooted("reduce", "a binomial tree, without the arithmetic"),
    all("allreduce", "recursive doubling, without the arithmetic"),
    rooted("bcast", "a binomial tree"),
    Operation { only_bytes: Some(0), ..all("barrier", "dissemination") },
    rooted("scatter", "rank 0 sends one after the other"),
    rooted("scan", "a chain of ranks, without the arithmetic"),
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
