//! Words for numbers, parameters and axes, shared by all views.

use machmeter_data::quantity::{digits, human};
use machmeter_data::shape::{Cell, CostTable, Matrix};
use machmeter_data::summary::Fit;
use machmeter_data::{CheckState, Metric, Params, Quality, Record, Unit};

/// A verdict in words.
pub(crate) fn fit(fit: Fit) -> &'static str {
    match fit {
        Fit::Yes => "fit",
        Fit::Unknown => "not known",
        Fit::Partly => "with reservation",
        Fit::No => "not fit",
    }
}

/// A tick or other round number: [`human`] without trailing zeros, `1 ms` instead of `1.00 ms`.
pub(crate) fn tick(value: f64, unit: Unit) -> String {
    let text = human(value, unit);
    let (number, rest) = text.split_once(' ').map_or((text.as_str(), ""), |(n, r)| (n, r));
    let number = match number.split_once('e') {
        Some((mantissa, exponent)) => format!("{}e{exponent}", trim_zeros(mantissa)),
        None => trim_zeros(number).to_owned(),
    };
    if rest.is_empty() { number } else { format!("{number} {rest}") }
}

fn trim_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// At most `room` characters; a cut text ends in two dots.
pub(crate) fn clipped(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(2)).chain("..".chars()).collect()
}

/// Failed checks and important notes.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let failed = record.checks.iter().filter(|c| c.state == CheckState::Fail);
    let failed = failed.map(|c| format!("{}  {}: {}", c.id, c.name, c.observed));
    let changing = record.warnings.iter().filter(|w| w.changes);
    failed.chain(changing.map(|w| format!("{}  {}", w.code, w.text))).collect()
}

/// `1 finding`, `2 findings`.
pub(crate) fn counted(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

/// `cpu=1, quantum=31`.
pub(crate) fn params(params: &Params) -> String {
    params.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(", ")
}

/// The value of a metric, or a dash if it was rejected.
pub(crate) fn value(metric: &Metric) -> String {
    match metric.value {
        // A share below 1 never reads `100 %`.
        Some(v) if metric.unit == Unit::One && (0.9995..1.0).contains(&v) => share(v),
        Some(v) => human(v, metric.unit),
        None => "-".to_owned(),
    }
}

/// Number of runs behind an interval, if more than one: ` 9 runs`.
pub(crate) fn runs(m: &Metric) -> String {
    m.earlier.as_ref().map_or_else(String::new, |e| format!(" {} runs", e.runs + 1))
}

pub(crate) fn quality(quality: Quality) -> &'static str {
    match quality {
        Quality::Ok => "ok",
        Quality::Suspect => "suspect",
        Quality::Rejected => "rejected",
    }
}

/// `50 %`, `99.9 %`, `max` for a probability.
pub(crate) fn percentile(p: f64) -> String {
    if p >= 1.0 { "max".to_owned() } else { format!("{} %", trim_zeros(&format!("{:.6}", p * 100.0))) }
}

/// A share in percent with at most three digits. A share below 1 never reads `100 %`: it keeps the nines that show the difference, at most four.
pub(crate) fn share(value: f64) -> String {
    let percent = value * 100.0;
    if value >= 1.0 || percent < 99.95 {
        return tick(value, Unit::One);
    }
    let text = format!("{:.2}", (percent * 100.0).floor() / 100.0);
    if percent > 99.99 { "> 99.99 %".to_owned() } else { format!("{} %", trim_zeros(&text)) }
}

/// Text of a matrix cell.
pub(crate) fn cell(value: f64, unit: Unit) -> String {
    if unit == Unit::One && (0.0..=1.0).contains(&value) { share(value) } else { tick(value, unit) }
}

/// A title with its quantity, unless the title is the quantity.
pub(crate) fn headed(title: &str, what: &str) -> String {
    if title.eq_ignore_ascii_case(what) { title.to_owned() } else { format!("{title}: {what}") }
}

/// Headings of the columns of a matrix.
pub(crate) fn columns(m: &Matrix) -> Vec<String> {
    if m.column_names.is_empty() {
        return m.columns.iter().map(|c| tick(*c, m.x.unit)).collect();
    }
    m.column_names.clone()
}

/// True if a column holds figures: numbers with a unit, or numbers as text (`0.4 +/- 2.3`, `3 of 9`). Sentences that begin with a number do not count.
pub(crate) fn is_numeric(t: &CostTable, column: usize) -> bool {
    let mut cells = t.rows.iter().filter_map(|r| r.cells.get(column)).map(|c| match c {
        Cell::Text(text) => is_figure(text),
        Cell::Number(_) | Cell::Empty(()) => true,
    });
    t.columns[column].unit.is_some() || cells.all(|figure| figure)
}

fn is_figure(text: &str) -> bool {
    let number =
        text.trim_start_matches(['-', '+', '/', '<', '>', ' ']).starts_with(|c: char| c.is_ascii_digit());
    let longest = text.split(|c: char| !c.is_alphabetic()).map(str::len).max().unwrap_or(0);
    number && longest < 6
}

/// The value of a cell with six digits and without a change of unit.
pub(crate) fn exact(value: f64, unit: Unit) -> String {
    let (value, word) = if unit == Unit::One { (value * 100.0, "%") } else { (value, unit.ucum()) };
    let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{short} {}", word.trim_matches(|c| c == '{' || c == '}' || c == '[' || c == ']'))
        .trim_end()
        .to_owned()
}

pub(crate) fn duration(ns: f64) -> String {
    let seconds = ns / 1e9;
    if seconds >= 5400.0 {
        format!("{} h", digits(seconds / 3600.0))
    } else if seconds >= 90.0 {
        format!("{} min", digits(seconds / 60.0))
    } else {
        human(ns, Unit::Nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick(1e6, Unit::Nanoseconds), "1 ms");
        assert_eq!(tick(0.029, Unit::One), "2.9 %");
        assert_eq!(tick(1e-12, Unit::PerHertz), "1e-12 /Hz");
        assert_eq!(tick(100.0, Unit::Count), "100");
        assert_eq!(tick(0.0, Unit::Nanoseconds), "0 ns");
    }

    #[test]
    fn a_share_that_is_not_all_never_reads_so() {
        assert_eq!([1.0, 0.0, 0.987, 0.5].map(share), ["100 %", "0 %", "98.7 %", "50 %"]);
        assert_eq!([0.9996, 0.999_9, 0.999_999].map(share), ["99.96 %", "99.99 %", "> 99.99 %"]);
        assert_eq!(exact(0.999_999, Unit::One), "99.9999 %");
        assert_eq!(exact(0.1 + 0.2, Unit::One), "30 %");
        assert_eq!(exact(61.234_567, Unit::Nanoseconds), "61.2346 ns");
    }

    #[test]
    fn figures_as_text_are_told_from_sentences() {
        for figure in ["0.4 +/- 2.3", "117 of 120", "< 190.594 ns", "3 (8.00 ms)", "-1", "12.5 Gflop/s"] {
            assert!(is_figure(figure), "{figure}");
        }
        for words in ["92 children that exited with 0", "threads", "none up to 8", ""] {
            assert!(!is_figure(words), "{words}");
        }
    }

    #[test]
    fn percentiles_read_as_people_say_them() {
        assert_eq!(percentile(0.999), "99.9 %");
        assert_eq!(percentile(0.5), "50 %");
        assert_eq!(percentile(1.0), "max");
    }
}
