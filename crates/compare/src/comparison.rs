//! The result of a comparison.

use machmeter_data::metric::Population;
use machmeter_data::{Better, Interval, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::calibration::Calibration;

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The first side.
    pub a: Group,
    /// The second side; changes are from `a` to `b`.
    pub b: Group,
    /// One row per metric that both sides have, in the order of `a`.
    pub rows: Vec<Row>,
    /// Rows that are judged together.
    pub families: Vec<Family>,
    /// Keys of metrics that only `a` has.
    pub only_a: Vec<String>,
    /// Keys of metrics that only `b` has.
    pub only_b: Vec<String>,
    /// Facts and checks that differ: `kernel.release: 6.17.9 -> 6.18.44`.
    pub environment: Vec<String>,
    /// Rows by verdict.
    pub counts: Counts,
    /// Smallest change that matters, as a fraction.
    pub at_least: f64,
    /// Bound on the expected share of false changes.
    pub error: f64,
    /// Rows whose spread between runs is assumed: for them the bound is assumed, too.
    pub assumed: usize,
    /// The next step where rows are unclear, with the estimate it rests on; absent where all is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// False changes and power for this number of runs a side, from the stored runs of this machine; absent where fewer than eight are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Remarks on the comparison as a whole.
    pub notes: Vec<String>,
}

/// The runs of one side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// Heading of its columns: the tag `name` if the first run has one, else `A` or `B`.
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
}

/// Rows that share one bound on false changes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Family {
    /// `page` for the rows of the page, else the probe, or the pattern asked for.
    pub name: String,
    /// Rows that were judged.
    pub rows: usize,
    /// Bound on the expected share of false changes among its changes.
    pub error: f64,
}

/// One metric of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// `id{name=value,...}`: with the population the join key.
    pub key: String,
    /// Metric id.
    pub id: String,
    /// Parameters as text, `cpu=1 quantum=31`; empty if the metric has none.
    pub params: String,
    /// The family it is judged in.
    pub family: String,
    /// Unit of both sides.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// Which samples both sides are of; absent where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// The first side.
    pub a: Side,
    /// The second side.
    pub b: Side,
    /// Whether changes are fractions of the first side or differences in the metric's unit.
    pub scale: Scale,
    /// Change from `a` to `b`, -0.266 for 26.6 % less: of one run a side the difference, of several that of Hodges and Lehmann.
    pub change: Option<f64>,
    /// 95 % interval of the change.
    pub change_ci: Option<Interval>,
    /// What of the change the clock of the core explains; absent where nobody looked, or it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_clock: Option<f64>,
    /// Two-sided probability of a difference this large between sides that are the same.
    pub p: Option<f64>,
    /// `p` adjusted over the family (Benjamini, Hochberg).
    pub p_adjusted: Option<f64>,
    /// Two-sided probability by the ranks of the runs alone (Mann, Whitney). It does not decide.
    pub p_rank: Option<f64>,
    /// Smallest change that would have been found, in 9 of 10 such comparisons, if no other row of the family changed.
    pub detectable: Option<f64>,
    /// What the spread between runs is taken from.
    pub spread: Option<Spread>,
    /// What it comes to.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What weakens it, in words.
    pub reasons: Vec<String>,
}

/// What two runs of an unchanged machine differ by.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Standard deviation of a run: of the logarithm, or in the metric's unit.
    pub sd: f64,
    /// Degrees of freedom behind it.
    pub dof: f64,
    /// Where it is from.
    pub from: SpreadFrom,
}

/// Where the spread between runs is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpreadFrom {
    /// From the runs of both sides.
    Sides,
    /// From earlier runs of the state of the first side, and from the sides.
    Earlier,
    /// Assumed.
    Assumed,
}

/// One side's figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// The recorded figure; of several runs their median.
    pub value: Option<f64>,
    /// The recorded interval of a single run, of what it knew by itself.
    pub ci: Option<Interval>,
    /// Runs that count.
    pub runs: usize,
}

/// How a change is expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// As a fraction of the first side: costs, rates, sizes.
    Relative,
    /// In the metric's unit: shares, and what includes zero.
    Absolute,
}

/// What a comparison says about one metric. Every verdict is about these runs: what made them differ may be the machine, its load or
/// its neighbors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The change is smaller than what matters.
    Same,
    /// Changed in the good direction.
    Better,
    /// Changed in the bad direction.
    Worse,
    /// Changed, and neither direction is good.
    Changed,
    /// No change was found, and one that matters is not excluded.
    Unclear {
        /// Why.
        why: String,
    },
    /// The two figures are not of the same thing.
    NotComparable {
        /// Why.
        why: String,
    },
}

impl Verdict {
    /// As JSON names it.
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

    /// Why nothing is said.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Unclear { why } | Self::NotComparable { why } => Some(why),
            _ => None,
        }
    }
}

/// Rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// All rows.
    pub rows: usize,
    /// The same within what matters.
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

/// Which findings make a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Any `Worse`.
    Worse,
    /// Any change.
    Any,
    /// Nothing.
    None,
}

/// Exit code of a comparison: 1 if something named by `fail_on` was found, 3 if nothing was and no row is conclusive (which includes
/// having no row at all), else 0. With [`FailOn::None`] always 0.
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
