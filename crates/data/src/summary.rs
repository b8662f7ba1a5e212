//! The summary of a record: rows of figures, and verdicts per purpose.
//!
//! Rows name metrics. Views look the metrics up and print them with common words, so a figure reads the same in all of them: page, report, card, Markdown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Params};
use crate::quantity::{Better, Unit, human};

mod declared;
mod fitness;
mod words;
pub use declared::{Pick, RowInfo, rows, selects};
pub use fitness::{Bounds, Evidence, Fit, Fitness, Purpose, SHARE_TAKEN, of_cpus};
pub use words::{Mark, RowText, ends, interval_text};

/// The most important results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Rows of the page, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// Verdicts, one per purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitness: Vec<Fitness>,
    /// Text that is not a figure or has its own layout: tables of other tools, statements of self-tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SummaryLine>,
}

/// A row of the page: a name and up to a few figures of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The probe: `NOISE`, `INTERACTIVE`, `MEMORY`, ...; or a picture: `LADDER`, `TAKEN`.
    pub section: String,
    /// The quantity: `latency`.
    pub name: String,
    /// Its figures, each under a condition.
    pub figures: Vec<RowFigure>,
    /// True if the page of several probes omits the row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

/// A figure of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowFigure {
    /// Condition in words (`2 MiB pages`); empty if the name is sufficient.
    pub condition: String,
    /// Id of the metric.
    pub id: String,
    /// Its parameters.
    pub params: Params,
    /// The part of the metric that is shown.
    #[serde(default)]
    pub shows: Shows,
    /// The same figure in earlier runs on this machine, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<f64>,
    /// Its usual range on machines of this kind, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<Usual>,
}

/// The usual range of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usual {
    /// 10th percentile of the machines, in the unit of the metric.
    pub low: f64,
    /// 90th percentile of the machines, in the unit of the metric.
    pub high: f64,
    /// `guest`, `server`, `desktop`, `laptop` or `board`.
    pub kind: String,
    /// Number of machines.
    pub n: u32,
    /// Source of the measurements.
    pub source: String,
}

/// A figure with its usual range.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The range; both ends are above 0.
    pub usual: Usual,
    /// The figure, above 0.
    pub value: f64,
    /// Unit of the three.
    pub unit: Unit,
    /// Direction of improvement.
    pub better: Better,
}

/// Position of a figure relative to its usual range.
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
    /// Positions of the low end, the figure and the high end on a logarithmic axis, 0 to 1. The axis extends a decade below and above the range.
    pub fn places(&self) -> [f64; 3] {
        let (from, to) = ((self.usual.low / 10.0).ln(), (self.usual.high * 10.0).ln());
        [self.usual.low, self.value, self.usual.high].map(|v| ((v.ln() - from) / (to - from)).clamp(0.0, 1.0))
    }

    /// The position of the figure.
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
        format!("usual in {n} {kind}s: {}", ends(*low, *high, self.unit))
    }
}

/// The part of a metric that a figure shows.
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
    /// The figure; `None` if the metric does not have it.
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
    /// Lines; the first is beside the heading.
    pub lines: Vec<String>,
}

impl Summary {
    /// Adds the summary of another probe. Of two verdicts on one purpose, the worse stays.
    pub fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        for new in other.fitness {
            match self.fitness.iter_mut().find(|f| f.purpose == new.purpose) {
                Some(old) if new.fit > old.fit => *old = new,
                Some(_) => {}
                None => self.fitness.push(new),
            }
        }
        let place = |f: &Fitness| Purpose::ALL.iter().position(|p| p.name() == f.purpose);
        self.fitness.sort_by_key(|f| place(f).unwrap_or(Purpose::ALL.len()));
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
    /// Its metric.
    pub metric: &'m Metric,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl RowFigure {
    /// Finds the figure among the metrics of its record.
    pub fn find<'m>(&self, metrics: &'m [Metric]) -> Option<Shown<'m>> {
        let metric = metrics.iter().find(|m| m.id == self.id && m.params == self.params)?;
        Some(Shown { metric, value: self.shows.of(metric)?, unit: metric.unit })
    }
}

impl Row {
    /// The known figures of the row, each with its condition. Figures with the same text are printed once.
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

    /// The first figure with its usual range; `None` without a range, or if a value has no place on a logarithmic axis.
    pub fn compared(&self, metrics: &[Metric]) -> Option<Compared> {
        let of = |f: &RowFigure| Some((f.usual.clone(), f.find(metrics)?));
        let (usual, shown) = self.figures.iter().find_map(of)?;
        let (value, unit, better) = (shown.value, shown.unit, shown.metric.better);
        let drawable = |u: &Usual| 0.0 < u.low && u.low <= u.high && u.high.is_finite() && value > 0.0;
        usual.filter(drawable).map(|usual| Compared { usual, value, unit, better })
    }
}

#[cfg(test)]
mod tests;
