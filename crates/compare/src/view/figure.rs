//! Figures of a row in words, the same in every view.

use machmeter_data::Unit;
use machmeter_data::quantity::{digits, human};

use crate::calibration::Calibration;
use crate::comparison::{Comparison, Row, Scale, Side, SpreadFrom, Verdict};

/// Largest relative change printed as a number: tenfold.
const MOST_TOLD: f64 = 9.0;

/// A side's value with its unit, `9.47 ns`, or `-`.
pub(super) fn value(side: &Side, row: &Row) -> String {
    side.value.map_or_else(|| "-".to_owned(), |v| human(v, row.unit))
}

/// Notation of relative changes in a line, common to the change and both ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Notation {
    Percent,
    /// `x2.5`, `/2.5`: for a factor of three or more, up or down.
    Factor,
}

impl Notation {
    fn of(row: &Row) -> Self {
        let is_large = row.change.is_some_and(|c| c >= 2.0 || c <= -2.0 / 3.0);
        if is_large && row.scale == Scale::Relative { Self::Factor } else { Self::Percent }
    }
}

/// A signed change: `+4.2 %`, `x3.1` from a factor of three on, `+0.31 points` of a share, or with its unit.
pub(super) fn change(row: &Row, change: f64) -> String {
    let (sign, size) = (if change < 0.0 { "-" } else { "+" }, change.abs());
    match (row.scale, Notation::of(row)) {
        (Scale::Relative, Notation::Factor) if change >= 0.0 => format!("x{}", digits(1.0 + change)),
        (Scale::Relative, Notation::Factor) => format!("/{}", digits(1.0 / (1.0 + change))),
        (Scale::Relative, Notation::Percent) => format!("{sign}{}", percent(size)),
        (Scale::Absolute, _) if row.unit == Unit::One => format!("{sign}{} points", digits(100.0 * size)),
        (Scale::Absolute, _) => format!("{sign}{}", human(size, row.unit)),
    }
}

/// Change with its interval: `+3.1 % (+1.2 to +4.5 %)`; empty without them.
pub(super) fn change_and_range(row: &Row) -> String {
    let told = row.change.map_or(String::new(), |c| change(row, c));
    let Some(ci) = &row.change_ci else { return told };
    let (low, high) = (limit(row, ci.low), limit(row, ci.high));
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{told} ({number} to {high})"),
        _ => format!("{told} ({low} to {high})"),
    }
}

/// An end of an interval. Beyond a factor of ten, no number is printed.
fn limit(row: &Row, end: f64) -> String {
    let is_factor = Notation::of(row) == Notation::Factor;
    // A change that lies beyond has ends with figures: its interval holds it.
    let least = 1.0 / (1.0 + MOST_TOLD) - 1.0;
    let is_beyond = row.change.is_some_and(|c| c > MOST_TOLD || c < least);
    match row.scale {
        Scale::Relative if is_beyond => change(row, end.max(1e-9 - 1.0)),
        Scale::Relative if end > MOST_TOLD => if is_factor { ">x10" } else { ">+900 %" }.to_owned(),
        Scale::Relative if end < least => if is_factor { "</10" } else { "<-90 %" }.to_owned(),
        // A share changes by at most 100 points.
        Scale::Absolute if row.unit == Unit::One => change(row, end.clamp(-1.0, 1.0)),
        _ => change(row, end),
    }
}

pub(super) fn percent(change: f64) -> String {
    format!("{} %", digits(change * 100.0))
}

/// The verdict in one word; a loss is in capitals.
pub(super) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "WORSE",
        Verdict::NotComparable { .. } => "not comparable",
        other => other.name(),
    }
}

/// A side in words: `A: 6 runs from 2026-11-25T06:00:00Z`.
pub(super) fn group(g: &crate::Group) -> String {
    let started = g.runs.first().map_or("", |r| r.started.as_str());
    match g.runs.len() {
        1 => format!("{}: run of {started}", g.label),
        n => format!("{}: {n} runs from {started}", g.label),
    }
}

/// The closing sentence: counts, and the bound on false changes.
pub(super) fn counts(c: &Comparison) -> String {
    let n = c.counts;
    let same = format!("same within {}", percent(c.at_least));
    let named = [
        (n.worse, "worse"),
        (n.better, "better"),
        (n.changed, "changed"),
        (n.same, same.as_str()),
        (n.unclear, "unclear"),
        (n.not_comparable, "not comparable"),
    ];
    let some = named.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = some.map(|(count, name)| format!("{count} {name}")).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    let bound = percent(c.error);
    let judged = c.rows.iter().filter(|r| r.spread.is_some()).count();
    // The bound is only as good as the spread behind it.
    let bound = match (c.assumed, judged) {
        (0, _) => format!("at most {bound}"),
        (n, all) if n == all => format!("{bound} assumed, since the spread between runs is assumed"),
        (n, _) => format!("at most {bound} where the spread between runs is measured; assumed in {n} rows"),
    };
    format!("{} metrics{colon}{}; false changes: {bound}.", n.rows, parts.join(", "))
}

/// Smallest detectable change, and the source of the spread behind it; empty if no row was judged.
pub(super) fn resolution(c: &Comparison) -> String {
    let relative = || c.rows.iter().filter(|r| r.scale == Scale::Relative && r.spread.is_some());
    let mut seen: Vec<f64> = relative().filter_map(|r| r.detectable).collect();
    seen.sort_by(f64::total_cmp);
    let at = |p| machmeter_stats::quantile::quantile(&seen, p);
    let (Some(best), Some(typical), Some(worst)) = (at(0.0), at(0.5), at(1.0)) else { return String::new() };
    let words = |size: f64| if size >= MOST_TOLD { "more than x10".to_owned() } else { percent(size) };
    let basis = [
        (SpreadFrom::Sides, "measured by the runs of both sides"),
        (SpreadFrom::Earlier, "measured by earlier runs"),
        (SpreadFrom::Assumed, "assumed, without earlier runs of this state"),
    ];
    let of = |(from, words): (SpreadFrom, &str)| {
        let n = relative().filter(|r| r.spread.as_ref().is_some_and(|s| s.from == from)).count();
        (n > 0).then(|| format!("{words} ({n} rows)"))
    };
    let basis: Vec<String> = basis.into_iter().filter_map(of).collect();
    let ([best, typical, worst], basis) = ([best, typical, worst].map(words), basis.join(", "));
    format!(
        "Smallest detectable change: {typical} for the typical row, {best} at best, {worst} at worst. Spread between runs: {basis}."
    )
}

/// The calibration in words, one line per number of runs per side.
pub fn calibration(c: &Calibration) -> Vec<String> {
    let line = |f: &crate::Found| {
        let whole = |share: f64| format!("{:.0}", 100.0 * share);
        let changes = f.found.iter().map(|p| whole(p.change)).collect::<Vec<_>>().join(", ");
        let shares = f.found.iter().map(|p| whole(p.found)).collect::<Vec<_>>().join(", ");
        let runs = if f.runs == 1 {
            "1 run a side finds".to_owned()
        } else {
            format!("{} runs a side find", f.runs)
        };
        format!(
            "On this machine {runs} {changes} % in {shares} % of {:.0} rows; {} of {} comparisons without a change have a \
             false one ({} stored runs).",
            f.rows, f.with_false_change, f.comparisons, c.runs
        )
    };
    c.sides.iter().map(line).collect()
}

/// The calibration of a comparison as one text; empty without one.
pub(super) fn own_calibration(c: &Comparison) -> String {
    c.calibration.as_ref().map(calibration).unwrap_or_default().join(" ")
}
