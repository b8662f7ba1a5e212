//! Figures of a row in words, the same in every view.

use machmeter_data::quantity::{digits, human};

use crate::comparison::{ChangeScale, Comparison, Row, Side, Verdict};

/// Adjusted probabilities below which one, two and three stars are given.
const STARS: [f64; 3] = [0.05, 0.01, 0.001];

/// A side's value with its unit, `9.47 ns`, or `-`.
pub(super) fn value(side: &Side, row: &Row) -> String {
    side.value.map_or_else(|| "-".to_owned(), |v| human(v, row.unit))
}

/// Half the width of a side's interval relative to its value, `4%`; empty if it has none or the value is zero.
pub(super) fn half_interval(side: &Side) -> String {
    match (side.value, &side.ci) {
        (Some(v), Some(ci)) if v != 0.0 => {
            let relative = 100.0 * (ci.high - ci.low) / 2.0 / v.abs();
            if relative < 0.5 { "<1%".to_owned() } else { format!("{relative:.0}%") }
        }
        _ => String::new(),
    }
}

/// A signed change, `+4.2%`, `x11` beyond a tripling, or with unit where it is absolute.
pub(super) fn change(row: &Row) -> String {
    match (row.change, row.scale) {
        (None, _) => "?".to_owned(),
        (Some(c), ChangeScale::Relative) if c >= 2.0 => format!("x{}", digits(1.0 + c)),
        (Some(c), ChangeScale::Relative) => format!("{:+.1}%", 100.0 * c),
        (Some(c), ChangeScale::Absolute) => {
            let sign = if c < 0.0 { '-' } else { '+' };
            format!("{sign}{}", human(c.abs(), row.unit))
        }
    }
}

/// An unsigned size on the scale of the row's change: `3.1%`, `x12`, `4.00 ns`.
pub(super) fn size(row: &Row, size: f64) -> String {
    match row.scale {
        ChangeScale::Relative if size >= 2.0 => format!("x{}", digits(1.0 + size)),
        ChangeScale::Relative if size >= 0.1 => format!("{:.0}%", 100.0 * size),
        ChangeScale::Relative => format!("{:.1}%", 100.0 * size),
        ChangeScale::Absolute => human(size, row.unit),
    }
}

/// Stars of a finding; none where nothing was found.
pub(super) fn stars(row: &Row) -> &'static str {
    let p = row.p_adjusted.filter(|_| row.verdict.is_change()).unwrap_or(1.0);
    match STARS.iter().filter(|limit| p <= **limit).count() {
        0 => "",
        1 => "*",
        2 => "**",
        _ => "***",
    }
}

/// The verdict in one word; a loss is louder than a gain.
pub(super) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "WORSE",
        Verdict::Inconclusive { .. } => "unclear",
        other => other.name(),
    }
}

/// The closing sentence: counts, error bound, mean.
pub(super) fn counts(c: &Comparison) -> String {
    let n = c.counts;
    let named = [
        (n.worse, "worse"),
        (n.better, "better"),
        (n.changed, "changed"),
        (n.same, "same"),
        (n.inconclusive, "unclear"),
    ];
    let some = named.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = some.map(|(count, name)| format!("{count} {name}")).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    let error = digits(100.0 * c.family_error);
    let mut out =
        format!("{} metrics{colon}{}. Family-wise error {error} % (Holm).", n.rows, parts.join(", "));
    if let Some(g) = c.geomean {
        out += &format!(" Geomean cost of {} matched rows: {:+.1} %.", c.geomean_rows, 100.0 * g);
    }
    out
}
