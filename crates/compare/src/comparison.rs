//! The result of a comparison.

use machmeter_data::metric::Population;
use machmeter_data::{Better, Interval, Quality, Unit};
use schemars::JsonSchema;
use serde::Serialize;

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The first run.
    pub a: RunName,
    /// The second run; changes are from `a` to `b`.
    pub b: RunName,
    /// One row per metric that both records have, in the order of `a`.
    pub rows: Vec<Row>,
    /// Keys of metrics that only `a` has.
    pub only_a: Vec<String>,
    /// Keys of metrics that only `b` has.
    pub only_b: Vec<String>,
    /// Facts and checks that differ: `kernel.release: 6.17.9 -> 6.18.44`.
    pub environment: Vec<String>,
    /// Geometric mean of the cost ratio b/a over the rows that have a ratio and a direction, minus 1: higher-is-better
    /// metrics enter inverted, so that a positive value always means costlier. `null` without such rows.
    pub geomean: Option<f64>,
    /// Rows behind `geomean`.
    pub geomean_rows: usize,
    /// Rows by verdict.
    pub counts: Counts,
    /// Smallest relative change worth a verdict.
    pub min_effect: f64,
    /// Bound on the probability of any false verdict.
    pub family_error: f64,
    /// Remarks on the comparison as a whole.
    pub notes: Vec<String>,
}

/// How one of the two runs is called.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunName {
    /// Heading of its columns: the tag `name` if the run has one, else `A` or `B`. Callers may replace it by a file name.
    pub label: String,
    /// The record's id.
    pub id: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
}

/// One metric of both runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Join key, `id{name=value,...}`.
    pub key: String,
    /// Metric id.
    pub id: String,
    /// Parameters as text, `cpu=1 quantum=31`; empty if the metric has none.
    pub params: String,
    /// Unit of both sides.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// The first run's figure.
    pub a: Side,
    /// The second run's figure.
    pub b: Side,
    /// Whether `change`, `change_ci`, `half_width` and `detectable` are relative or in the metric's unit.
    pub scale: ChangeScale,
    /// Change of the location of the blocks (of the value, without blocks) from `a` to `b`: -0.266 for 26.6 % less.
    pub change: Option<f64>,
    /// 95 % interval of the change of the machine, run-to-run allowance included.
    pub change_ci: Option<Interval>,
    /// 95 % half-width of the difference between two runs of an unchanged machine: "can tell apart".
    pub half_width: Option<f64>,
    /// Bound on the probability of a difference this large between two runs of an unchanged machine: twice the model's
    /// figure, because the model is an estimate.
    pub p: Option<f64>,
    /// `p` after Holm's adjustment over the rows of this comparison.
    pub p_adjusted: Option<f64>,
    /// Two-sided Mann-Whitney probability on the blocks, which must agree before a verdict is given. It knows nothing of
    /// drift and is no evidence by itself.
    pub p_rank: Option<f64>,
    /// Smallest change that this pair would have shown with probability 90 % at the comparison's error bound.
    pub detectable: Option<f64>,
    /// What it comes to.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What the verdict rests on and what weakens it, in words.
    pub reasons: Vec<String>,
    /// Codes of checks and warnings that weaken either side.
    pub flags: Vec<String>,
}

impl Row {
    /// What the verdict rests on, or why there is none.
    pub(crate) fn why(&self) -> String {
        match &self.verdict {
            Verdict::Inconclusive { why } => why.clone(),
            _ => self.reasons.join("; "),
        }
    }
}

/// One run's figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// The recorded figure.
    pub value: Option<f64>,
    /// Its recorded interval.
    pub ci: Option<Interval>,
    /// Which samples it is of; absent where nobody looked. Figures of different populations are not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// Samples behind it.
    pub n: u64,
    /// Location of its blocks, in the metric's unit: what is compared.
    pub location: Option<f64>,
    /// Blocks.
    pub blocks: usize,
    /// Trust.
    pub quality: Quality,
}

/// How a change is expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeScale {
    /// As a fraction of the first run's level.
    Relative,
    /// In the metric's unit, because the first run's level cannot be told from zero.
    Absolute,
}

/// What a comparison says about one metric. Every verdict is about these two runs: what made them differ may be the machine,
/// its load or its neighbors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing found; `detectable` says what would have been.
    Same,
    /// Changed in the good direction between these two runs.
    Better,
    /// Changed in the bad direction between these two runs.
    Worse,
    /// Changed between these two runs, and neither direction is good.
    Changed,
    /// Nothing can be said.
    Inconclusive {
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
            Self::Inconclusive { .. } => "inconclusive",
        }
    }

    pub fn is_change(&self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Changed)
    }
}

/// Rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// All rows.
    pub rows: usize,
    /// Nothing found.
    pub same: usize,
    /// Better.
    pub better: usize,
    /// Worse.
    pub worse: usize,
    /// Changed, without a good direction.
    pub changed: usize,
    /// Inconclusive.
    pub inconclusive: usize,
}

/// Which findings make a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Any `Worse`.
    Worse,
    /// Any verdict other than `Same` and `Inconclusive`.
    Any,
    /// Nothing.
    None,
}

/// Exit code of a comparison: 1 if something named by `fail_on` was found, 3 if nothing was and no row is conclusive
/// (which includes having no row at all), else 0. With [`FailOn::None`] always 0.
pub fn exit_code(comparison: &Comparison, fail_on: FailOn) -> u8 {
    let c = &comparison.counts;
    let found = match fail_on {
        FailOn::None => return 0,
        FailOn::Worse => c.worse > 0,
        FailOn::Any => c.worse + c.better + c.changed > 0,
    };
    if found {
        1
    } else if c.inconclusive == c.rows {
        3
    } else {
        0
    }
}
