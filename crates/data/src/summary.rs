//! What a person reads first: rows of figures, and what the machine is fit for. Rows name metrics; views look them up and word them,
//! so that one figure reads the same on the page, the report, the card and in Markdown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Params};
use crate::quantity::{Better, Unit, human};

mod declared;
pub use declared::{Pick, RowInfo, rows, selects};

/// What a person should read first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Rows of the page, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// What the machine is fit for, a purpose each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitness: Vec<Fitness>,
    /// What is no figure or has a layout of its own: tables of other tools, statements of self-tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SummaryLine>,
}

/// A row of the page: a name and up to a few figures of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// `NOISE`, `WAKE-UP`, `MEMORY`, ...
    pub section: String,
    /// What it is: `latency`.
    pub name: String,
    /// Its figures, each under a condition.
    pub figures: Vec<RowFigure>,
    /// Left out on the page of several probes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

/// A figure of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowFigure {
    /// Condition in words (`2 MiB pages`); empty where the name says all.
    pub condition: String,
    /// Id of the metric.
    pub id: String,
    /// Its parameters.
    pub params: Params,
    /// What of it is shown.
    #[serde(default)]
    pub shows: Shows,
    /// The same of earlier runs of this machine, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<f64>,
    /// Where it lies on machines of this kind, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<Usual>,
}

/// Where a figure usually lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usual {
    /// 10th percentile of the machines, in the unit of the metric.
    pub low: f64,
    /// 90th percentile of the machines, in the unit of the metric.
    pub high: f64,
    /// `guest`, `server`, `desktop`, `laptop` or `board`.
    pub kind: String,
    /// Machines.
    pub n: u32,
    /// Who measured them.
    pub source: String,
}

/// A figure beside where it usually lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The range; both ends are above 0.
    pub usual: Usual,
    /// The figure, above 0.
    pub value: f64,
    /// Unit of the three.
    pub unit: Unit,
    /// Which end is the good one.
    pub better: Better,
}

/// What a figure means beside where it usually lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Within the range, or on its good side.
    Usual,
    /// On the bad side, by less than a decade.
    Worse,
    /// A decade or more on the bad side.
    FarWorse,
}

impl Compared {
    /// Places of the low end, the figure and the high end on a logarithmic axis, 0 to 1, that begins a decade below the range and
    /// ends a decade above it.
    pub fn places(&self) -> [f64; 3] {
        let (from, to) = ((self.usual.low / 10.0).ln(), (self.usual.high * 10.0).ln());
        [self.usual.low, self.value, self.usual.high].map(|v| ((v.ln() - from) / (to - from)).clamp(0.0, 1.0))
    }

    /// What the figure means.
    pub fn place(&self) -> Place {
        let beyond = match self.better {
            Better::Lower => self.value / self.usual.high,
            Better::Higher => self.usual.low / self.value,
            Better::Neither => 0.0,
        };
        match beyond {
            b if b <= 1.0 => Place::Usual,
            b if b < 10.0 => Place::Worse,
            _ => Place::FarWorse,
        }
    }

    /// `usual in 37 servers: 16.1 to 105 ns`.
    pub fn words(&self) -> String {
        let Usual { low, high, kind, n, .. } = &self.usual;
        format!("usual in {n} {kind}s: {}", span(*low, *high, self.unit))
    }
}

/// `16.1 to 105 ns`: a unit that is the same stands once.
pub fn span(low: f64, high: f64, unit: Unit) -> String {
    let (low, high) = (human(low, unit), human(high, unit));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// What a figure shows of its metric.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    /// Its value, with its interval.
    #[default]
    Value,
    /// Its largest sample.
    Max,
    /// A quantile, by probability written as text.
    Quantile(String),
}

impl Shows {
    /// The figure, where the metric has it.
    pub fn of(&self, metric: &Metric) -> Option<f64> {
        match self {
            Self::Value => metric.value,
            Self::Max => metric.max,
            Self::Quantile(p) => metric.quantiles.get(p).copied(),
        }
    }
}

/// Text of a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    /// `INTERACTIVE`, `SELFTEST`, ...
    pub section: String,
    /// Lines; the first stands beside the heading.
    pub lines: Vec<String>,
}

/// How well a machine serves a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Nothing speaks against it.
    Yes,
    /// Too little was seen to say.
    Unknown,
    /// With a reservation.
    Partly,
    /// Not.
    No,
}

/// Whether the machine is fit for a purpose, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitness {
    /// `latency under 1 ms`, ...
    pub purpose: String,
    /// The judgment.
    pub fit: Fit,
    /// Its reason, with figures.
    pub reason: String,
}

/// Purposes in the order in which they are told.
pub const PURPOSES: [&str; 4] = ["latency under 1 ms", "audio, video", "throughput", "message passing"];

impl Summary {
    /// Adds what another probe says. Of two judgments of one purpose the worse stands.
    pub fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        for new in other.fitness {
            match self.fitness.iter_mut().find(|f| f.purpose == new.purpose) {
                Some(old) if new.fit > old.fit => *old = new,
                Some(_) => {}
                None => self.fitness.push(new),
            }
        }
        let place = |f: &Fitness| PURPOSES.iter().position(|p| *p == f.purpose);
        self.fitness.sort_by_key(|f| place(f).unwrap_or(PURPOSES.len()));
        for new in other.lines {
            match self.lines.iter_mut().find(|l| l.section == new.section) {
                Some(old) => old.lines.extend(new.lines),
                None => self.lines.push(new),
            }
        }
    }
}

/// A figure of a row, found among metrics.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'m> {
    /// Whose it is.
    pub metric: &'m Metric,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl RowFigure {
    /// The figure among the metrics of its record.
    pub fn find<'m>(&self, metrics: &'m [Metric]) -> Option<Shown<'m>> {
        let metric = metrics.iter().find(|m| m.id == self.id && m.params == self.params)?;
        Some(Shown { metric, value: self.shows.of(metric)?, unit: metric.unit })
    }
}

/// A row in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What it is and under which conditions: `mutex, free | wanted`.
    pub name: String,
    /// The figures in the same order: `5.14 | 31.8 ns`.
    pub figures: String,
    /// Half width of the interval of a single figure, as a share of it.
    pub half_width: Option<f64>,
    /// The same in words: `± 4.13 %`, the ends of one that reaches far, `0.535 to 11.6 %`, or the one of a bound.
    pub interval: Option<String>,
    /// Whether one of them is of a core that was shared.
    pub is_shared: bool,
    /// The first figure beside where it usually lies.
    pub compared: Option<Compared>,
}

impl Row {
    /// The figures of the row that are known, each with its condition. Two that read the same are one.
    pub fn shown<'m>(&self, metrics: &'m [Metric]) -> Vec<(&str, Shown<'m>)> {
        let mut found: Vec<(&str, Shown<'m>)> =
            self.figures.iter().filter_map(|f| Some((f.condition.as_str(), f.find(metrics)?))).collect();
        let text = |s: &Shown<'_>| human(s.value, s.unit);
        if found.len() > 1 && found.iter().all(|(_, s)| text(s) == text(&found[0].1)) {
            found.truncate(1);
            found[0].0 = "";
        }
        found
    }

    /// The first figure that is shown beside where it usually lies; `None` of what has no place on a logarithmic axis.
    pub fn compared(&self, metrics: &[Metric]) -> Option<Compared> {
        let of = |f: &RowFigure| Some((f.usual.clone(), f.find(metrics)?));
        let (usual, shown) = self.figures.iter().find_map(of)?;
        let (value, unit, better) = (shown.value, shown.unit, shown.metric.better);
        let drawable = |u: &Usual| 0.0 < u.low && u.low <= u.high && u.high.is_finite() && value > 0.0;
        usual.filter(drawable).map(|usual| Compared { usual, value, unit, better })
    }

    /// The row in words, where a figure is known.
    pub fn told(&self, metrics: &[Metric]) -> Option<Told> {
        let shown = self.shown(metrics);
        let texts: Vec<String> = shown.iter().map(|(_, s)| human(s.value, s.unit)).collect();
        let conditions: Vec<&str> = shown.iter().map(|(c, _)| *c).filter(|c| !c.is_empty()).collect();
        let name = [&self.name[..], &conditions.join(" | ")];
        let name: Vec<&str> = name.into_iter().filter(|t| !t.is_empty()).collect();
        let (half_width, interval) = interval(&shown).unzip();
        Some(Told {
            name: name.join(", "),
            figures: joined(&texts)?,
            half_width,
            interval,
            is_shared: shown.iter().any(|(_, s)| s.metric.is_shared()),
            compared: self.compared(metrics),
        })
    }
}

/// `5.14 | 31.8 ns`: a unit that is the same stands once.
fn joined(texts: &[String]) -> Option<String> {
    let (last, before) = texts.split_last()?;
    let unit = last.split_once(' ').map_or("", |(_, unit)| unit);
    let mut parts: Vec<&str> =
        before.iter().map(|t| t.strip_suffix(unit).map_or(t.as_str(), str::trim_end)).collect();
    parts.push(last);
    Some(parts.join(" | "))
}

/// Half width of the interval of a single figure as a share of it, and the interval in words. None of what was found exactly, as a limit
/// of bytes, nor of what another hardware thread slowed down: its lower end is what it may cost alone, no error.
fn interval(shown: &[(&str, Shown<'_>)]) -> Option<(f64, String)> {
    let [(_, only)] = shown else { return None };
    // A bracket holds the next possible sizes, not an error.
    let is_error = only.metric.value == Some(only.value) && only.value > 0.0 && !only.metric.is_shared();
    let ci = only.metric.ci.as_ref().filter(|ci| is_error && ci.method != "bracket")?;
    let half = (only.value - ci.low).max(ci.high - only.value) / only.value;
    let text = |value: f64| human(value, only.unit);
    let words = match half {
        _ if ci.high <= only.value => format!("at least {}", text(ci.low)),
        _ if ci.low >= only.value => format!("at most {}", text(ci.high)),
        _ if half < FAR => format!("± {}", human(half, Unit::One)),
        _ => span(ci.low, ci.high, only.unit),
    };
    (half > 0.0).then_some((half, words))
}

/// From this share of a figure on an interval is lopsided, since it cannot reach below zero: both ends are told.
const FAR: f64 = 0.5;

#[cfg(test)]
mod tests;
