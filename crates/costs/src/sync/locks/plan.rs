//! Which rows are measured, the most important first. Pure.

use machmeter_engine::cost::{self, Row};

use super::kinds::{self, Kind};
use super::{NAME, barriers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    Contend(Kind),
    HandOff(Kind),
    Barrier(barriers::Kind),
}

/// A row with what is to be done for it.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) row: Row,
    pub(super) what: Together,
    pub(super) cpus: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Size {
    Short,
    Full,
}

/// CPUs in the matrix of hand-offs, at most; of more, as many are taken with equal steps between them.
const MATRIX_CPUS: [usize; 2] = [6, 16];
/// Locks of the matrix: one whose waiters spin in order, one whose waiters sleep.
const MATRIX_LOCKS: [Kind; 2] = [Kind::Ticket, Kind::PosixMutex];
/// What a short plan asks of locks.
const SHORT_CONTENDED: [Kind; 7] = [
    Kind::TestTestAndSet,
    Kind::PosixMutex,
    Kind::StdMutex,
    Kind::Ticket,
    Kind::Queue,
    Kind::Futex,
    Kind::TestAndSet,
];
const SHORT_WIDE: [Kind; 3] = [Kind::TestTestAndSet, Kind::PosixMutex, Kind::Queue];
const SHORT_HANDED: [Kind; 5] =
    [Kind::Ticket, Kind::PosixMutex, Kind::TestTestAndSet, Kind::Queue, Kind::StdMutex];
const BARRIERS: [barriers::Kind; 3] = [barriers::Kind::Spin, barriers::Kind::Std, barriers::Kind::Posix];

/// The fact that says that the plan was short, for the analysis.
pub(super) const SHORT_FACT: &str = "locks.short_plan";

/// What a short plan leaves out, in a line that says how to have it.
pub(super) fn left_out() -> String {
    let kinds = kinds::ALL.iter().filter(|k| !SHORT_CONTENDED.contains(k)).map(|k| k.name());
    format!(
        "locks, short of time: {} only alone, nothing between processes (all: machmeter sync --parts locks)",
        kinds.collect::<Vec<_>>().join(", ")
    )
}

/// Numbers of members: 2, all, and with time the powers of two between.
pub(super) fn widths(cpus: usize, size: Size) -> Vec<usize> {
    let between = (1..usize::BITS).map(|b| 1_usize << b).take_while(|w| *w < cpus);
    let mut out: Vec<usize> = if size == Size::Full { between.collect() } else { vec![2] };
    out.push(cpus.max(2));
    out.dedup();
    out
}

/// All jobs for these CPUs in one model. With less than two CPUs, rows that say why they are empty.
pub(super) fn jobs(cpus: &[usize], model: &str, size: Size) -> Vec<Job> {
    let threads = model == "threads";
    let usable = |k: &Kind| threads || k.between_processes();
    let widths = widths(cpus.len(), size);
    let mut out = Vec::new();
    for (i, members) in widths.iter().enumerate() {
        let locks: &[Kind] = match size {
            Size::Full => &kinds::ALL,
            Size::Short if i == 0 => &SHORT_CONTENDED,
            Size::Short => &SHORT_WIDE,
        };
        out.extend(locks.iter().filter(|k| usable(k)).map(|k| Job {
            row: lock_row(*k, cost::Kind::Throughput, "contended", model).with("cpus", *members),
            what: Together::Contend(*k),
            cpus: cpus.iter().copied().take(*members).collect(),
        }));
        if i == 0 {
            let handed: &[Kind] = if size == Size::Full { &kinds::ALL } else { &SHORT_HANDED };
            let exclusive = handed.iter().filter(|k| usable(k) && !k.is_shared());
            let first: Vec<usize> = cpus.iter().copied().take(2).collect();
            out.extend(exclusive.map(|k| hand_off(*k, &first, model)));
        }
        out.extend(BARRIERS.iter().filter(|k| threads || **k != barriers::Kind::Std).map(|k| Job {
            row: barriers::row(NAME, *k, *members, model),
            what: Together::Barrier(*k),
            cpus: cpus.iter().copied().take(*members).collect(),
        }));
    }
    if threads {
        let chosen = spread(cpus, MATRIX_CPUS[usize::from(size == Size::Full)]);
        for lock in MATRIX_LOCKS {
            for (i, a) in chosen.iter().enumerate() {
                let others = chosen[i + 1..].iter().filter(|b| cpus.get(..2) != Some(&[*a, **b]));
                out.extend(others.map(|b| hand_off(lock, &[*a, *b], model)));
            }
        }
    }
    for job in out.iter_mut().filter(|j| j.cpus.len() < 2) {
        job.row.refused = Some(format!("needs two CPUs, has {}", cpus.len()));
    }
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

fn lock_row(kind: Kind, cost: cost::Kind, state: &str, model: &str) -> Row {
    Row::new(NAME, kind.name(), cost).with("state", state).with("model", model)
}

fn hand_off(kind: Kind, cpus: &[usize], model: &str) -> Job {
    let at = |i: usize| cpus.get(i).map_or_else(|| "none".to_owned(), ToString::to_string);
    let row = lock_row(kind, cost::Kind::Latency, "handoff", model).with("from", at(0)).with("to", at(1));
    // A step of one member is two hand-offs: to it, and back.
    Job { row: row.per_turn(2.0), what: Together::HandOff(kind), cpus: cpus.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_two_all_and_powers_between() {
        assert_eq!(widths(1, Size::Short), [2]);
        assert_eq!(widths(2, Size::Full), [2]);
        assert_eq!(widths(6, Size::Short), [2, 6]);
        assert_eq!(widths(12, Size::Full), [2, 4, 8, 12]);
        assert_eq!(widths(8, Size::Full), [2, 4, 8]);
    }

    #[test]
    fn rows_are_unique_and_short_plans_are_short() {
        for (n, size) in [(2, Size::Short), (2, Size::Full), (64, Size::Short), (64, Size::Full)] {
            let cpus: Vec<usize> = (0..n).map(|i| i * 3).collect();
            let jobs = jobs(&cpus, "threads", size);
            let mut keys: Vec<String> =
                jobs.iter().map(|j| format!("{} {:?}", j.row.operation, j.row.params)).collect();
            let all = keys.len();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), all, "{n} {size:?}");
            assert!(size == Size::Full || all < 70, "{all}");
            assert!(jobs.iter().all(|j| j.row.refused.is_none() && j.cpus.len() >= 2));
        }
    }

    #[test]
    fn what_a_short_plan_leaves_out_is_named() {
        let contended = |size| -> Vec<Kind> {
            let kind = |j: Job| match j.what {
                Together::Contend(kind) => Some(kind),
                _ => None,
            };
            jobs(&[0, 1], "threads", size).into_iter().filter_map(kind).collect()
        };
        let (short, said) = (contended(Size::Short), left_out());
        for kind in contended(Size::Full) {
            let word = |w: &str| w.trim_end_matches(',') == kind.name();
            assert_eq!(said.split(' ').any(word), !short.contains(&kind), "{kind:?}: {said}");
        }
    }

    #[test]
    fn one_cpu_gets_refused_rows_and_processes_get_no_locks_for_threads() {
        let alone = jobs(&[5], "threads", Size::Short);
        assert!(!alone.is_empty());
        assert!(alone.iter().all(|j| j.row.refused.as_deref() == Some("needs two CPUs, has 1")));
        let processes = jobs(&[0, 1], "processes", Size::Full);
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
