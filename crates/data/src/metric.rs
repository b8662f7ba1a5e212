//! A metric: one figure with everything needed to trust it, or the reason why there is none.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::follows_clock::FollowsClock;

use crate::finite::{cut_to, rounded_up};
use crate::quantity::{Better, Unit};
use crate::visits::Visits;

/// A registered metric that cannot be negative, as a constant.
#[macro_export]
macro_rules! metric {
    ($name:ident, $id:literal, [$($p:literal),*], $unit:ident, $better:ident, weakened by [$($h:ident),*], $text:literal) => {
        #[doc = $text]
        pub const $name: $crate::MetricInfo = $crate::MetricInfo {
            id: $id,
            params: &[$($p),*],
            unit: $crate::quantity::Unit::$unit,
            better: $crate::quantity::Better::$better,
            weakened_by: &[$($crate::Hazard::$h),*],
            description: $text,
            may_be_negative: false,
        };
    };
}

/// The same for several: `metrics! { ["level", "cpus"] Nanoseconds Lower weakened by [Clock] { NAME = "id" "What it is."; ... } ... }`, by
/// groups of the same parameters, unit and hazards.
#[macro_export]
macro_rules! metrics {
    (@group $params:tt $unit:ident $better:ident $hazards:tt $($name:ident $id:literal $text:literal)*) => {
        $($crate::metric!($name, $id, $params, $unit, $better, weakened by $hazards, $text);)*
    };
    ($($params:tt $unit:ident $better:ident weakened by $hazards:tt { $($name:ident = $id:literal $text:literal;)* })*) => {
        $($crate::metrics!(@group $params $unit $better $hazards $($name $id $text)*);)*
    };
}

/// A parameter value of a metric: `cpu=1`, `cpu=all`, `quantum=31`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamValue {
    /// A whole number.
    Int(i64),
    /// A name.
    Text(String),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(i) => write!(f, "{i}"),
            Self::Text(t) => f.write_str(t),
        }
    }
}

made_from!(ParamValue:
    i64: Self::Int,
    u32: |v: u32| Self::Int(v.into()),
    u64: |v| Self::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    usize: |v| Self::Int(v as i64),
    &str: |v: &str| Self::Text(v.to_owned()),
    String: Self::Text,
);

/// Parameters by name, in order. With the metric's id they are the key on which records are joined.
pub type Params = BTreeMap<String, ParamValue>;

/// An interval with its confidence level and how it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Confidence level, for example 0.95.
    pub level: f64,
    /// Lower end, in the metric's unit.
    pub low: f64,
    /// Upper end, in the metric's unit.
    pub high: f64,
    /// `block-bootstrap`, `rank`, `normal`, `bound`, ...
    pub method: String,
}

impl Interval {
    /// An interval if its ends are finite and ordered; each is rounded outward to seven significant digits.
    pub fn new(level: f64, low: f64, high: f64, method: &str) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low <= high && level > 0.0 && level < 1.0).then(|| Self {
            level,
            low: -rounded_up(-low),
            high: rounded_up(high),
            method: method.to_owned(),
        })
    }
}

/// Earlier runs whose differences an interval holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// How many.
    pub runs: u64,
    /// The interval that this run knew by itself.
    pub own_ci: Interval,
}

named! {
    /// Which samples a figure is of, where it was looked at whether another hardware thread shared the core.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Population {
        /// Of those during which nobody did.
        Undisturbed = "undisturbed",
        /// Too few were undisturbed; the interval reaches down to what these bound.
        CoreShared = "core shared",
    }
}

impl Population {
    /// Of a figure that is made of figures of both: a part that shared the core leaves none undisturbed.
    pub fn of_all(parts: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut known = parts.into_iter().flatten().peekable();
        known.peek()?;
        Some(if known.any(|p| p == Self::CoreShared) { Self::CoreShared } else { Self::Undisturbed })
    }
}

/// How far a figure can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Nothing speaks against it.
    Ok,
    /// A condition named in `flags` weakens it.
    Suspect,
    /// It was impossible (negative, not finite) or not enough was seen; the value is `null` and `why` says so.
    Rejected,
}

/// One measured figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Registered id, `probe.metric`.
    pub id: String,
    /// What distinguishes this figure from others of the same id.
    pub params: Params,
    /// Unit of value, interval, quantiles and blocks.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// The figure; `null` when rejected.
    pub value: Option<f64>,
    /// Reason when there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How the value was computed from the samples: `median`, `time-share`, `minimum`, ...
    pub estimator: String,
    /// Interval of the value.
    pub ci: Option<Interval>,
    /// Where `ci` also holds what earlier runs differed by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// Which samples it is of; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// What two CPUs that took part paid each other one way (compare and swap), ns: how far apart they were. Absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ns: Option<f64>,
    /// Clock of the core at which the figure is told (dependent additions, one a cycle), Hz: the quickest at which it ran regularly. Absent where
    /// nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
    /// How far the figure follows that clock, where its samples told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_clock: Option<FollowsClock>,
    /// Samples behind the value.
    pub n: u64,
    /// Samples worth, after autocorrelation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_eff: Option<f64>,
    /// Quantiles by probability written as text (`0.5`, `0.99`, `0.999`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantiles: BTreeMap<String, f64>,
    /// Largest sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Trust.
    pub quality: Quality,
    /// Codes of checks and warnings that weaken it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// About 20 values of the same estimator over consecutive equal spans of the run; comparison and drift checks use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<f64>,
    /// Samples behind the value, by visit; absent where they are no batches of visits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Visits>,
    /// Time that one block covers, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_ns: Option<f64>,
}

impl Metric {
    /// A metric with a value. A value that is not finite, or negative where `info` says it cannot be, is rejected with
    /// the reason instead.
    pub fn new(info: &MetricInfo, params: Params, value: f64, estimator: &str, n: u64) -> Self {
        let mut m = Self {
            id: info.id.to_owned(),
            params,
            unit: info.unit,
            better: info.better,
            value: None,
            why: None,
            estimator: estimator.to_owned(),
            ci: None,
            earlier: None,
            population: None,
            apart_ns: None,
            core_hz: None,
            follows_clock: None,
            n,
            n_eff: None,
            quantiles: BTreeMap::new(),
            max: None,
            quality: Quality::Ok,
            flags: Vec::new(),
            blocks: Vec::new(),
            visits: None,
            block_ns: None,
        };
        if !value.is_finite() {
            m.reject("the estimate is not a finite number");
        } else if value < 0.0 && !info.may_be_negative {
            m.reject("the estimate came out negative, which this quantity cannot be");
        } else {
            m.value = Some(value);
        }
        m
    }

    /// A metric that has no value, with the reason.
    pub fn rejected(info: &MetricInfo, params: Params, estimator: &str, why: &str) -> Self {
        let mut m = Self::new(info, params, 0.0, estimator, 0);
        m.reject(why);
        m
    }

    /// Takes the figure away, for this reason.
    pub fn reject(&mut self, why: &str) {
        self.value = None;
        self.ci = None;
        self.earlier = None;
        self.population = None;
        self.apart_ns = None;
        self.core_hz = None;
        self.follows_clock = None;
        self.quality = Quality::Rejected;
        self.why = Some(why.to_owned());
    }

    /// Adds the interval, if there is one.
    #[must_use]
    pub fn with_ci(mut self, ci: Option<Interval>) -> Self {
        if self.value.is_some() {
            self.ci = ci;
        }
        self
    }

    /// Says which samples it is of.
    #[must_use]
    pub fn with_population(mut self, population: Option<Population>) -> Self {
        self.population = population.filter(|_| self.value.is_some());
        self
    }

    /// Says how far apart the CPUs were that took part.
    #[must_use]
    pub fn with_apart(mut self, apart_ns: Option<f64>) -> Self {
        self.apart_ns = apart_ns.filter(|ns| self.value.is_some() && *ns > 0.0 && ns.is_finite());
        self
    }

    /// Says how quick the core was.
    #[must_use]
    pub fn with_core_hz(mut self, core_hz: Option<f64>) -> Self {
        self.core_hz = core_hz.filter(|hz| self.value.is_some() && *hz > 0.0 && hz.is_finite());
        self
    }

    /// Adds the samples behind the value.
    #[must_use]
    pub fn with_visits(mut self, visits: Option<Visits>) -> Self {
        self.visits = visits.filter(|_| self.value.is_some());
        self
    }

    /// True if it is to be marked wherever it is shown: somebody shared the core.
    pub fn is_shared(&self) -> bool {
        self.population == Some(Population::CoreShared)
    }

    /// Adds time-ordered block values, kept to five digits, beyond what any is known to; non-finite ones are left out.
    #[must_use]
    pub fn with_blocks(mut self, blocks: Vec<f64>, block_ns: f64) -> Self {
        self.blocks = blocks.into_iter().filter(|b| b.is_finite()).map(|b| cut_to(b, 5)).collect();
        self.block_ns = (block_ns.is_finite() && block_ns > 0.0).then_some(block_ns);
        self
    }

    /// Adds quantiles given as (probability, value), kept to nine digits: a nanosecond of a second.
    #[must_use]
    pub fn with_quantiles(mut self, quantiles: &[(f64, f64)]) -> Self {
        for (p, v) in quantiles.iter().filter(|(_, v)| v.is_finite()) {
            self.quantiles.insert(format!("{p}"), cut_to(*v, 9));
        }
        self
    }

    /// Adds the largest sample.
    #[must_use]
    pub fn with_max(mut self, max: f64) -> Self {
        self.max = max.is_finite().then_some(max);
        self
    }

    /// The interval that the run knew by itself.
    pub fn own_interval(&self) -> Option<&Interval> {
        self.earlier.as_ref().map(|e| &e.own_ci).or(self.ci.as_ref())
    }

    /// Marks the metric suspect by `code`.
    pub fn flag(&mut self, code: &str) {
        if !self.flags.iter().any(|c| c == code) {
            self.flags.push(code.to_owned());
        }
        if self.quality == Quality::Ok {
            self.quality = Quality::Suspect;
        }
    }

    /// `id{name=value,...}`: the join key as text.
    pub fn key(&self) -> String {
        key_of(&self.id, &self.params)
    }
}

/// The join key of an id and its parameters as text.
pub fn key_of(id: &str, params: &Params) -> String {
    if params.is_empty() {
        return id.to_owned();
    }
    let list: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!("{id}{{{}}}", list.join(","))
}

/// A registered metric id: part of the tool's interface, never reused for another meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// `probe.metric`.
    pub id: &'static str,
    /// Names of its parameters.
    pub params: &'static [&'static str],
    /// Unit.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// A check that warns or fails and names one of these flags it.
    pub weakened_by: &'static [crate::Hazard],
    /// One sentence.
    pub description: &'static str,
    /// True for differences and offsets.
    pub may_be_negative: bool,
}

impl MetricInfo {
    /// A figure without parameters and words of which less is better, such as those of files of others.
    pub const fn of(id: &'static str, unit: Unit) -> Self {
        let better = Better::Lower;
        Self { id, params: &[], unit, better, weakened_by: &[], description: "", may_be_negative: false }
    }
}

/// Builds [`Params`] from pairs.
pub fn params<const N: usize>(pairs: [(&str, ParamValue); N]) -> Params {
    // Collecting would compile a sort for each number of pairs.
    let mut all = Params::new();
    for (name, value) in pairs {
        all.insert(name.to_owned(), value);
    }
    all
}

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
