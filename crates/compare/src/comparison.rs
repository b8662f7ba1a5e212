//! The result of a comparison.

use machmeter_data::metric::Population;
use machmeter_data::{Better, Interval, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::calibration::Calibration;

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The first side.
    pub a: Group,
    /// The second side; changes are from `a` to `b`.
    pub b: Group,
    /// One row per metric that both sides have, in the order of `a`.
    pub rows: Vec<Row>,
    /// Groups of rows that are judged together.
    pub families: Vec<Family>,
    /// Keys of metrics that only `a` has.
    pub only_a: Vec<String>,
    /// Keys of metrics that only `b` has.
    pub only_b: Vec<String>,
    /// Facts and checks that differ: `kernel.release: 6.17.9 -> 6.18.44`.
    pub environment: Vec<String>,
    /// Numbers of rows by verdict.
    pub counts: Counts,
    /// Smallest change that matters, as a fraction.
    pub at_least: f64,
    /// Bound on the expected share of false changes.
    pub error: f64,
    /// Number of rows whose spread between runs is assumed; for them the bound is assumed, too.
    pub assumed: usize,
    /// Next step for unclear rows, with the estimate behind it; absent if all rows are decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// False changes and power for this number of runs per side, from the stored runs of this machine; absent with fewer than eight stored runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Remarks on the comparison as a whole.
    pub notes: Vec<String>,
}

/// The runs of one side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// Heading of its columns: the tag `name` of the first run, else `A` or `B`.
    pub label: String,
    /// The runs, in the order given.
    pub runs: Vec<RunName>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunName {
    /// The record's id.
    pub id: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// CPU model; empty if it is not recorded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu: String,
    /// Command line.
    pub command: String,
}

/// Rows that share one bound on false changes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Family {
    /// `page` for the rows of the page, else the probe, or the given pattern.
    pub name: String,
    /// Number of judged rows.
    pub rows: usize,
    /// Bound on the expected share of false changes among the changes of the family.
    pub error: f64,
}

/// One metric of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// `id{name=value,...}`: together with the population, the join key.
    pub key: String,
    /// Metric id.
    pub id: String,
    /// Parameters as text, `cpu=1 quantum=31`; empty if the metric has none.
    pub params: String,
    /// The family in which it is judged.
    pub family: String,
    /// Unit of both sides.
    pub unit: Unit,
    /// Direction of improvement.
    pub better: Better,
    /// The samples that both sides use; absent if sharing of the core was not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// The first side.
    pub a: Side,
    /// The second side.
    pub b: Side,
    /// `relative` for changes as fractions of the first side, `absolute` for differences in the metric's unit.
    pub scale: Scale,
    /// Change from `a` to `b`, -0.266 for 26.6 % less: with one run per side the difference, with several the estimate of Hodges and Lehmann.
    pub change: Option<f64>,
    /// 95 % interval of the change.
    pub change_ci: Option<Interval>,
    /// Part of the change that the clock of the core explains; absent if the clock is unknown or equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_clock: Option<f64>,
    /// Two-sided probability of a difference this large without a change.
    pub p: Option<f64>,
    /// `p` adjusted over the family (Benjamini, Hochberg).
    pub p_adjusted: Option<f64>,
    /// Two-sided probability from the ranks of the runs alone (Mann, Whitney). It does not affect the verdict.
    pub p_rank: Option<f64>,
    /// Smallest change that 9 of 10 such comparisons would find, if no other row of the family changed.
    pub detectable: Option<f64>,
    /// Spread between runs, and its source.
    pub spread: Option<Spread>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Weaknesses of the row, in words.
    pub reasons: Vec<String>,
}

/// Spread between runs of an unchanged machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Standard deviation of a run: of the logarithm, or in the metric's unit.
    pub sd: f64,
    /// Degrees of freedom of the estimate.
    pub dof: f64,
    /// Source of the estimate.
    pub from: SpreadFrom,
}

/// Source of the spread between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpreadFrom {
    /// From the runs of both sides.
    Sides,
    /// From earlier runs in the state of the first side, and from the sides.
    Earlier,
    /// From the table of assumed spreads.
    Assumed,
}

/// One side's figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// The recorded figure; with several runs, their median.
    pub value: Option<f64>,
    /// The recorded interval of a single run, from this run alone.
    pub ci: Option<Interval>,
    /// Number of runs in use.
    pub runs: usize,
}

/// Scale of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// As a fraction of the first side: costs, rates, sizes.
    Relative,
    /// In the metric's unit: shares, and figures whose interval includes zero.
    Absolute,
}

/// Verdict on one metric. It applies to these runs: the machine, its load or its neighbors may have caused a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The change is smaller than the one that matters.
    Same,
    /// Changed in the good direction.
    Better,
    /// Changed in the bad direction.
    Worse,
    /// Changed, and neither direction is good.
    Changed,
    /// No change was found, but one that matters is not excluded.
    Unclear {
        /// Reason.
        why: String,
    },
    /// The two figures do not measure the same thing.
    NotComparable {
        /// Reason.
        why: String,
    },
}

impl Verdict {
    /// Name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
            Self::Unclear { .. } => "unclear",
            Self::NotComparable { .. } => "not_comparable",
        }
    }

    /// The verdict on a change in the direction of `difference`.
    pub(crate) fn of(better: Better, difference: f64) -> Self {
        match better {
            Better::Neither => Self::Changed,
            Better::Lower if difference < 0.0 => Self::Better,
            Better::Higher if difference > 0.0 => Self::Better,
            _ => Self::Worse,
        }
    }

    pub fn is_change(&self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Changed)
    }

    /// Reason for the lack of a verdict.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Unclear { why } | Self::NotComparable { why } => Some(why),
            _ => None,
        }
    }
}

/// Numbers of rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// All rows.
    pub rows: usize,
    /// The same, within the change that matters.
    pub same: usize,
    /// Better.
    pub better: usize,
    /// Worse.
    pub worse: usize,
    /// Changed, without a good direction.
    pub changed: usize,
    /// Unclear.
    pub unclear: usize,
    /// Not comparable.
    pub not_comparable: usize,
}

impl Counts {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let mut c = Self { rows: rows.len(), ..Self::default() };
        for row in rows {
            *match row.verdict {
                Verdict::Same => &mut c.same,
                Verdict::Better => &mut c.better,
                Verdict::Worse => &mut c.worse,
                Verdict::Changed => &mut c.changed,
                Verdict::Unclear { .. } => &mut c.unclear,
                Verdict::NotComparable { .. } => &mut c.not_comparable,
            } += 1;
        }
        c
    }
}

/// Findings that make a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Any `Worse`.
    Worse,
    /// Any change.
    Any,
    /// Nothing.
    None,
}

/// Exit code of a comparison: 1 for a finding selected by `fail_on`, 3 if there is none and no row is conclusive (or there is no row), else 0. With
/// [`FailOn::None`] always 0.
pub fn exit_code(comparison: &Comparison, fail_on: FailOn) -> u8 {
    let c = &comparison.counts;
    let found = match fail_on {
        FailOn::None => return 0,
        FailOn::Worse => c.worse > 0,
        FailOn::Any => c.worse + c.better + c.changed > 0,
    };
    if found {
        1
    } else if c.unclear + c.not_comparable == c.rows {
        3
    } else {
        0
    }
}
