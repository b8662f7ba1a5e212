//! The table as text in the layout of 1998.

use machmeter_data::Unit;
use machmeter_data::shape::DecadeRow;

/// Heading of the table.
const HEADING: &str = "     Operation       : Order of magnitude (log10(time in secs))";

/// In the layout of 1998, with its whole numbers: the logarithm cut off towards zero, as its two tables show (328, 184, 69 and
/// 11 ns stand there as -6, -6, -7, -7).
pub(super) fn truncated(rows: &[DecadeRow]) -> Vec<String> {
    let mut lines = vec![HEADING.to_owned(), "-".repeat(41)];
    lines.extend(rows.iter().filter_map(|r| Some(format!("{:>20} : {}", r.name, cut(r)?))));
    lines
}

/// The logarithm of the seconds without its decimals.
fn cut(row: &DecadeRow) -> Option<i32> {
    Some(row.log10(Unit::Nanoseconds)?.trunc() as i32)
}
