//! Values of an expression as figures, data and statements of a record.

use std::collections::BTreeSet;

use machmeter_data::metric::params;
use machmeter_data::quantity::human;
use machmeter_data::record::{Record, SummaryLine};
use machmeter_data::shape::{Axis, Curve};
use machmeter_data::{Better, Dataset, Interval, Metric, MetricInfo, Unit};
use machmeter_model::laws::LEVEL;

use super::{Answer, Bound};
use crate::record::{self, range};

const fn info(id: &'static str, unit: Unit, description: &'static str) -> MetricInfo {
    let better = Better::Neither;
    let params = &["expression", "variable", "at"];
    MetricInfo { id, params, unit, better, weakened_by: &[], description, may_be_negative: true }
}

/// By the power of time.
const TIME: MetricInfo =
    info("predict.time", Unit::Nanoseconds, "Time by an expression over costs and laws of records.");
const NUMBER: MetricInfo =
    info("predict.number", Unit::Count, "Number by an expression over costs and laws of records.");
const RATE: MetricInfo =
    info("predict.rate", Unit::Hertz, "Rate by an expression over costs and laws of records.");

/// Names of figures without interval that a page lists at most.
const LISTED: usize = 4;

impl Bound<'_> {
    /// The figure that values become, and the factor to its unit; `None` where no figure has such a unit.
    fn figure_of_values(&self) -> Option<(&'static MetricInfo, f64)> {
        match self.dimension {
            0 => Some((&NUMBER, 1.0)),
            1 => Some((&TIME, 1.0)),
            -1 => Some((&RATE, 1e9)),
            _ => None,
        }
    }

    /// Whether values are numbers, times or rates, which records can hold.
    pub fn has_unit(&self) -> bool {
        self.figure_of_values().is_some()
    }
}

/// Puts values into a record: `answers` has the free variable and what the expression is there, in its order. `title` is the first line.
pub fn fill(
    record: &mut Record,
    title: &str,
    text: &str,
    bound: &Bound<'_>,
    variable: Option<&str>,
    answers: &[(f64, Answer)],
) {
    let Some((info, scale)) = bound.figure_of_values() else { return };
    let scaled = |a: &Answer| {
        let interval = a.interval.map(|(low, high)| (scale * low, scale * high));
        Answer { value: scale * a.value, interval, ..a.clone() }
    };
    let answers: Vec<(f64, Answer)> = answers.iter().map(|(at, a)| (*at, scaled(a))).collect();
    let mut lines = vec![title.to_owned()];
    if let Some(variable) = variable {
        lines.push(format!("{variable:>12}  value"));
    }
    for (at, answer) in &answers {
        let (value, interval) = (answer.value, answer.interval);
        let range =
            interval.map_or(String::new(), |(low, high)| format!("   {}", range(low, high, info.unit)));
        let place = variable.map_or(String::new(), |_| format!("{at:>12}  "));
        lines.push(format!("{place}{}{range}", human(value, info.unit)));
        let mut keys = params([("expression", text.into())]);
        if let Some(variable) = variable {
            keys.extend(params([("variable", variable.into()), ("at", (*at as i64).into())]));
        }
        let figures = || answer.figures.iter().map(|place| &bound.sheet.metrics[*place]);
        let n = figures().map(|m| m.n).min().unwrap_or(0);
        let method = "ends of all figures, one by one, added";
        let ci = interval.and_then(|(low, high)| Interval::new(LEVEL, low, high, method));
        let mut metric = Metric::new(info, keys, value, "expression", n).with_ci(ci);
        let flags: BTreeSet<&String> = figures().flat_map(|m| &m.flags).collect();
        for code in flags {
            metric.flag(code);
        }
        record.metrics.push(metric);
    }
    lines.extend(without_interval(bound, &answers));
    record.summary.lines.push(SummaryLine { section: "PREDICT".to_owned(), lines });
    if let Some(variable) = variable.filter(|_| answers.len() > 1) {
        record.datasets.push(curve(text, info.unit, variable, &answers));
    }
}

/// Which figures the interval leaves out.
fn without_interval(bound: &Bound<'_>, answers: &[(f64, Answer)]) -> Option<String> {
    let all: BTreeSet<usize> = answers.iter().flat_map(|(_, a)| a.figures.iter().copied()).collect();
    let bare: Vec<String> =
        all.iter().map(|f| &bound.sheet.metrics[*f]).filter(|m| m.ci.is_none()).map(Metric::key).collect();
    let more = bare.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let listed = bare.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    (!bare.is_empty()).then(|| format!("The intervals ignore figures without an interval: {listed}{more}."))
}

fn curve(text: &str, unit: Unit, variable: &str, answers: &[(f64, Answer)]) -> Dataset {
    let ends =
        |of: fn((f64, f64)) -> f64| answers.iter().filter_map(move |(at, a)| Some((*at, of(a.interval?))));
    let mut rows = vec![
        record::curve("value", answers.iter().map(|(at, a)| (*at, a.value))),
        record::curve("interval, low", ends(|i| i.0)),
        record::curve("interval, high", ends(|i| i.1)),
    ];
    rows.retain(|r| !r.x.is_empty());
    let label = if unit == Unit::Nanoseconds { "time" } else { "value" };
    let has_logarithm = rows.iter().flat_map(|r| &r.y).all(|y| *y > 0.0);
    let y = if has_logarithm { Axis::log(label, unit) } else { Axis::linear(label, unit) };
    let shape = Curve::shape(Axis::log(variable, Unit::Count), y, rows);
    let caption = format!("{text} over {variable}, with the interval from the intervals of its figures.");
    Dataset::new("predict.expression", "Expression", caption, shape)
}
