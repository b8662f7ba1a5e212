//! Which rows are measured, the most important first. Pure.

use machmeter_engine::cost::{self, Row};
use machmeter_loops::sync::locks::{Kind, barriers};

use super::NAME;
use crate::sync::jobs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    Contend(Kind),
    HandOff(Kind),
    Barrier(barriers::Kind),
}

impl Together {
    /// Whether members that wait may sleep.
    pub(super) fn sleeps(self) -> bool {
        match self {
            Self::Contend(kind) | Self::HandOff(kind) => kind.sleeps(),
            Self::Barrier(kind) => kind.sleeps(),
        }
    }
}

pub(super) type Job = jobs::Job<Together>;

/// CPUs in the matrix of hand-offs, at most; of more, as many are taken with equal steps between them.
const MATRIX_CPUS: [usize; 2] = [6, 16];
/// Locks of the matrix: one whose waiters spin, one whose waiters sleep.
const MATRIX_LOCKS: [Kind; 2] = [Kind::Spin, Kind::PosixMutex];
/// Acquisitions that batches of a lock whose waiters may sleep are told for: a microsecond's and more, against steps of the clock.
const SINGLE_TURNS: u64 = 64;

/// Numbers of members: 2, all, and with time the powers of two between.
pub(in crate::sync) fn widths(cpus: usize, full: bool) -> Vec<usize> {
    let between = (1..usize::BITS).map(|b| 1_usize << b).take_while(|w| *w < cpus);
    let mut out: Vec<usize> = if full { between.collect() } else { vec![2] };
    out.push(cpus.max(2));
    out.dedup();
    out
}

/// All jobs for these CPUs in one model. With less than two CPUs, rows that say why they are empty.
pub(super) fn jobs(cpus: &[usize], model: &str, full: bool) -> Vec<Job> {
    let threads = model == "threads";
    let first = |n: usize| -> Vec<usize> { cpus.iter().copied().take(n).collect() };
    let mut out = Vec::new();
    for (i, members) in widths(cpus.len(), full).iter().enumerate() {
        let usable = Kind::ALL.iter().copied().filter(|k| threads || k.between_processes());
        out.extend(usable.clone().map(|k| {
            let mut row = row(k.name(), cost::Kind::Throughput, "contended", model).with("cpus", *members);
            row.long_turns = if k.sleeps() { SINGLE_TURNS } else { 0 };
            Job { row, what: Together::Contend(k), cpus: first(*members) }
        }));
        if i == 0 {
            out.extend(usable.filter(|k| !k.is_shared()).map(|k| hand_off(k, &first(2), model)));
        }
        let usable = barriers::Kind::ALL.iter().filter(|k| threads || **k != barriers::Kind::Std);
        out.extend(usable.map(|k| {
            let row = row(k.name(), cost::Kind::Latency, "barrier", model).with("cpus", *members);
            let per_turn = if k.sleeps() { 2.0 } else { 1.0 };
            Job { row: row.per_turn(per_turn), what: Together::Barrier(*k), cpus: first(*members) }
        }));
    }
    if threads {
        let chosen = spread(cpus, MATRIX_CPUS[usize::from(full)]);
        for lock in MATRIX_LOCKS {
            for (i, a) in chosen.iter().enumerate() {
                let others = chosen[i + 1..].iter().filter(|b| cpus.get(..2) != Some(&[*a, **b]));
                out.extend(others.map(|b| hand_off(lock, &[*a, *b], model)));
            }
        }
    }
    jobs::refuse_alone(&mut out);
    out
}

/// At most `n` of them, with equal steps, the first two always.
fn spread(cpus: &[usize], n: usize) -> Vec<usize> {
    if cpus.len() <= n {
        return cpus.to_vec();
    }
    let mut out: Vec<usize> = (0..n).map(|i| cpus[i * (cpus.len() - 1) / (n - 1)]).collect();
    out[1] = cpus[1];
    out
}

pub(super) fn row(operation: &str, kind: cost::Kind, state: &str, model: &str) -> Row {
    Row::new(NAME, operation, kind).of_batches().with("state", state).with("model", model)
}

fn hand_off(kind: Kind, cpus: &[usize], model: &str) -> Job {
    let at = |i: usize| cpus.get(i).map_or_else(|| "none".to_owned(), ToString::to_string);
    let row = row(kind.name(), cost::Kind::Latency, "handoff", model).with("from", at(0)).with("to", at(1));
    // A step of one member is two hand-offs: to it, and back.
    Job { row: row.per_turn(2.0), what: Together::HandOff(kind), cpus: cpus.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::tests::assert_unique;

    #[test]
    fn widths_are_two_all_and_powers_between() {
        assert_eq!(widths(1, false), [2]);
        assert_eq!(widths(2, true), [2]);
        assert_eq!(widths(6, false), [2, 6]);
        assert_eq!(widths(12, true), [2, 4, 8, 12]);
        assert_eq!(widths(8, true), [2, 4, 8]);
    }

    #[test]
    fn rows_are_unique_and_short_plans_are_short() {
        for (n, full) in [(2, false), (2, true), (64, false), (64, true)] {
            let cpus: Vec<usize> = (0..n).map(|i| i * 3).collect();
            let jobs = jobs(&cpus, "threads", full);
            assert_unique(&jobs);
            assert!(full || jobs.len() < 70, "{}", jobs.len());
            for job in &jobs {
                crate::testing::assert_keeps(&job.row, cost::Estimator::Batches);
            }
            assert!(jobs.iter().all(|j| j.row.refused.is_none() && j.cpus.len() >= 2));
        }
    }

    #[test]
    fn one_cpu_gets_refused_rows_and_processes_get_no_locks_for_threads() {
        let alone = jobs(&[5], "threads", false);
        assert!(!alone.is_empty());
        assert!(alone.iter().all(|j| j.row.refused.as_deref() == Some("needs two CPUs, has 1")));
        let processes = jobs(&[0, 1], "processes", true);
        assert!(!processes.is_empty());
        assert!(processes.iter().all(|j| !j.row.operation.contains("std")));
    }

    #[test]
    fn the_matrix_of_many_cpus_takes_some_from_end_to_end() {
        let cpus: Vec<usize> = (0..128).collect();
        let s = spread(&cpus, 6);
        assert_eq!((s.len(), s[0], s[1], s[5]), (6, 0, 1, 127));
    }
}
