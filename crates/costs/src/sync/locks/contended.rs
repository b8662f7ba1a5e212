//! Rows of a lock for which all members contend, with the fairness of their shares.

use machmeter_engine::cost::Row;
use machmeter_loops::sync::locks::contended::{Board, open_lock, operation};
use machmeter_loops::sync::locks::{Kind, LockMemory, PROOF};
use machmeter_stats::quantile::{median, quantile_interval, sorted};

use super::measure::LockVisit;

/// Indices that a row keeps at most.
const INDICES_MAX: usize = 32;

/// Names of the extras of a row.
pub(super) const LONGEST_STREAK: &str = "longest_streak";
pub(super) const JAIN: &str = "jain_";

/// One visit of a row in which all members contend for a lock of this kind.
pub(super) fn visit(
    kind: Kind,
    memory: &LockMemory,
    visit: &LockVisit<'_>,
    row: &mut Row,
) -> Result<(), String> {
    let board = Board::new(visit.members())?;
    visit.take(row, &*operation(kind, memory, &board)?)?;
    record(&board, kind.is_shared(), row);
    Ok(())
}

/// The same with a lock that does not exclude.
pub(super) fn visit_open_lock(visit: &LockVisit<'_>, row: &mut Row) -> Result<(), String> {
    let board = Board::new(visit.members())?;
    visit.take(row, &*open_lock(&board))?;
    record(&board, false, row);
    Ok(())
}

/// Adds the proof of a visit to the row, and the fairness if the lock excludes.
fn record(board: &Board, is_shared: bool, row: &mut Row) {
    row.prove(PROOF, board.counted(), board.added());
    if is_shared {
        return;
    }
    let longest = row.extras.entry(LONGEST_STREAK.to_owned()).or_default();
    *longest = longest.max(board.longest_streak() as f64);
    let known = row.extras.keys().filter(|k| k.starts_with(JAIN)).count();
    for (i, index) in (known..INDICES_MAX).zip(board.indices()) {
        row.extras.insert(format!("{JAIN}{i:02}"), index);
    }
}

/// Median of the indices of batches, with its 95 % interval and their number. `None` for fewer than 6.
pub(super) fn center(indices: &[f64]) -> Option<(f64, f64, f64, usize)> {
    let s = sorted(indices).ok()?;
    let ci = quantile_interval(&s, 0.5, 0.95).filter(|_| s.len() >= 6)?;
    Some((median(&s)?, ci.low, ci.high, s.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_batches_have_no_interval() {
        assert_eq!(center(&[0.9; 5]), None);
        let (value, low, high, n) = center(&[0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.75]).unwrap();
        assert_eq!((value, n), (0.75, 7));
        assert!(low < value && value < high && low >= 0.5 && high <= 1.0);
        assert_eq!(center(&[f64::NAN; 9]), None);
    }
}
