//! Prints rows as text.
//!
//! A row consists of parts that a view places but never shortens: a name, figures with a unit each, an interval, marks. A view without room for a part
//! moves it to another line or leaves it out.

use super::{Compared, Row, Shown};
use crate::metric::{Interval, Metric, Quality};
use crate::quantity::{Unit, human, points};
use crate::shape::DecadeRow;

/// Relative half-width from which both ends of an interval are printed. Such intervals are lopsided, since costs cannot be below zero.
const WIDE: f64 = 0.5;

/// The text of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowText {
    /// The quantity and the conditions of its figures: `mutex, free | wanted`.
    pub name: String,
    /// The figures, in the order of the conditions: `5.14 ns`, `31.8 ns`.
    pub figures: Vec<String>,
    /// The 95 % interval of a single figure: `± 4.13 %`; of a share in points, `± 0.41`. A wide one has its ends, `0.535 % to 11.6 %`; a bound has the other end.
    pub interval: Option<String>,
    /// Reasons to doubt a figure of the row.
    pub marks: Vec<Mark>,
    /// The first figure with its usual range.
    pub compared: Option<Compared>,
}

named! {
    /// A reason to doubt a figure.
    #[derive(PartialOrd, Ord)]
    pub enum Mark {
        /// Too few samples were taken while no other hardware thread used the core.
        CoreShared = "core shared",
        /// A failed check or a warning weakens the figure.
        Suspect = "suspect",
    }
}

impl Mark {
    /// The marks of a metric.
    pub fn of(metric: &Metric) -> Vec<Self> {
        let shared = metric.is_shared().then_some(Self::CoreShared);
        let suspect = (metric.quality == Quality::Suspect).then_some(Self::Suspect);
        shared.into_iter().chain(suspect).collect()
    }

    /// One character for views without room for the words.
    pub const fn sign(self) -> char {
        match self {
            Self::CoreShared => '*',
            Self::Suspect => '!',
        }
    }

    /// The meaning, for a legend.
    pub const fn legend(self) -> &'static str {
        match self {
            Self::CoreShared => {
                "core shared: too few samples were taken while no other hardware thread used the core"
            }
            Self::Suspect => "suspect: a failed check or a warning weakens the figure",
        }
    }
}

impl DecadeRow {
    /// The marks of the metric behind the row; none if the record has no such metric.
    pub fn marks(&self, metrics: &[Metric]) -> Vec<Mark> {
        let is_own = |m: &&Metric| self.metric.as_ref().is_some_and(|key| m.key() == *key);
        metrics.iter().find(is_own).map(Mark::of).unwrap_or_default()
    }
}

impl RowText {
    /// All figures on one line: `5.14 ns | 31.8 ns`.
    pub fn line(&self) -> String {
        self.figures.join(" | ")
    }

    /// All figures within a sentence: `5.14 ns, 31.8 ns`.
    pub fn list(&self) -> String {
        self.figures.join(", ")
    }
}

impl Row {
    /// The row as text; `None` without a known figure.
    pub fn text(&self, metrics: &[Metric]) -> Option<RowText> {
        let shown = self.shown(metrics);
        let conditions: Vec<&str> = shown.iter().map(|(c, _)| *c).filter(|c| !c.is_empty()).collect();
        let name = [&self.name[..], &conditions.join(" | ")];
        let name: Vec<&str> = name.into_iter().filter(|t| !t.is_empty()).collect();
        let mut marks: Vec<Mark> = shown.iter().flat_map(|(_, s)| Mark::of(s.metric)).collect();
        marks.sort_unstable();
        marks.dedup();
        (!shown.is_empty()).then(|| RowText {
            name: name.join(", "),
            figures: shown.iter().map(|(_, s)| human(s.value, s.unit)).collect(),
            interval: interval(&shown),
            marks,
            compared: self.compared(metrics),
        })
    }
}

impl Row {
    /// Name and reason of a row without any known figure: `no figure: the buffer fits the last cache (W406)`. `None` if a figure is known, or if no metric
    /// gives a reason.
    pub fn missing(&self, metrics: &[Metric]) -> Option<(&str, String)> {
        let own = |m: &&Metric| self.figures.iter().any(|f| m.id == f.id && m.params == f.params);
        let metric = metrics.iter().filter(own).find(|m| m.why.is_some())?;
        let codes =
            if metric.flags.is_empty() { String::new() } else { format!(" ({})", metric.flags.join(", ")) };
        let why = metric.why.as_deref().unwrap_or_default();
        self.shown(metrics).is_empty().then(|| (self.name.as_str(), format!("no figure: {why}{codes}")))
    }
}

/// Both ends of a range: `16.1 ns to 105 ns`.
pub fn ends(low: f64, high: f64, unit: Unit) -> String {
    format!("{} to {}", human(low, unit), human(high, unit))
}

/// The interval of a single figure. Exact figures, such as a limit in bytes, have none. Figures of a shared core have none either: their lower end is the
/// cost on an idle core, not an error.
fn interval(shown: &[(&str, Shown<'_>)]) -> Option<String> {
    let [(_, only)] = shown else { return None };
    // A bracket gives the adjacent possible sizes, not an error.
    let is_error = only.metric.value == Some(only.value) && only.value > 0.0 && !only.metric.is_shared();
    let ci = only.metric.ci.as_ref().filter(|ci| is_error && ci.method != "bracket")?;
    interval_text(only.value, ci, only.unit)
}

/// Text of an interval: the half-width of its longer side (a share in points), both ends of a wide one, or the other end of a bound. `None` if it has no
/// width.
pub fn interval_text(value: f64, ci: &Interval, unit: Unit) -> Option<String> {
    let half = (value - ci.low).max(ci.high - value);
    let text = |end: f64| human(end, unit);
    (half > 0.0).then(|| match half / value.abs() {
        _ if ci.high <= value => format!("at least {}", text(ci.low)),
        _ if ci.low >= value => format!("at most {}", text(ci.high)),
        relative if relative >= WIDE => ends(ci.low, ci.high, unit),
        _ if unit == Unit::One => format!("± {}", points(half)),
        relative => format!("± {}", human(relative, Unit::One)),
    })
}
