//! A metric: one figure with the data needed to judge it, or the reason why there is none.

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

/// The same for several: `metrics! { ["level", "cpus"] Nanoseconds Lower weakened by [Clock] { NAME = "id" "What it is."; ... } ... }`, in groups with
/// the same parameters, unit and hazards.
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

/// Parameters by name, in order. Together with the metric's id they are the key that joins records.
pub type Params = BTreeMap<String, ParamValue>;

/// An interval with its confidence level and its method.
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

/// Earlier runs whose differences an interval includes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// Number of earlier runs.
    pub runs: u64,
    /// The interval from this run alone.
    pub own_ci: Interval,
}

named! {
    /// The samples that a figure uses, if the run observed whether another hardware thread shared the core.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Population {
        /// Samples while no other hardware thread used the core.
        Undisturbed = "undisturbed",
        /// Too few samples were undisturbed; the lower end of the interval is the bound that these give.
        CoreShared = "core shared",
    }
}

impl Population {
    /// Population of a figure derived from several: core shared if one of them is.
    pub fn of_all(parts: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut known = parts.into_iter().flatten().peekable();
        known.peek()?;
        Some(if known.any(|p| p == Self::CoreShared) { Self::CoreShared } else { Self::Undisturbed })
    }
}

/// Trust in a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// No evidence against it.
    Ok,
    /// A condition named in `flags` weakens it.
    Suspect,
    /// Impossible (negative, not finite), or too few samples; the value is `null` and `why` holds the reason.
    Rejected,
}

/// One measured figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Registered id, `probe.metric`.
    pub id: String,
    /// Parameters that distinguish this figure from the rest with the same id.
    pub params: Params,
    /// Unit of value, interval, quantiles and blocks.
    pub unit: Unit,
    /// Direction of improvement.
    pub better: Better,
    /// The figure; `null` if it was rejected.
    pub value: Option<f64>,
    /// Reason if there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Estimator that gives the value from the samples: `median`, `time-share`, `minimum`, ...
    pub estimator: String,
    /// Interval of the value.
    pub ci: Option<Interval>,
    /// Set if `ci` also includes the differences between earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// The samples that it uses; absent if sharing of the core was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// One-way latency of a cache line (compare and swap) between the two CPUs that took part, ns. Absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ns: Option<f64>,
    /// Clock of the core for which the figure holds, Hz: the highest clock at which it ran regularly, one dependent addition per cycle. Absent if not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
    /// Dependence of the figure on that clock, if its samples show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_clock: Option<FollowsClock>,
    /// Number of samples behind the value.
    pub n: u64,
    /// Effective number of independent samples, after autocorrelation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_eff: Option<f64>,
    /// Quantiles by probability written as text (`0.5`, `0.99`, `0.999`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantiles: BTreeMap<String, f64>,
    /// Largest sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Trust in the figure.
    pub quality: Quality,
    /// Codes of the checks and warnings that weaken it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// About 20 values of the same estimator over consecutive equal spans of the run, for comparison and drift checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<f64>,
    /// Samples behind the value, by visit; absent if they are not batches of visits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Visits>,
    /// Time that one block covers, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_ns: Option<f64>,
}

impl Metric {
    /// A metric with a value. A value that is not finite, or negative although `info` excludes it, is rejected with the reason instead.
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
            m.reject("the estimate is negative, which is impossible for this quantity");
        } else {
            m.value = Some(value);
        }
        m
    }

    /// A metric without a value, with the reason.
    pub fn rejected(info: &MetricInfo, params: Params, estimator: &str, why: &str) -> Self {
        let mut m = Self::new(info, params, 0.0, estimator, 0);
        m.reject(why);
        m
    }

    /// Removes the figure, for this reason.
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

    /// Sets the population of samples.
    #[must_use]
    pub fn with_population(mut self, population: Option<Population>) -> Self {
        self.population = population.filter(|_| self.value.is_some());
        self
    }

    /// Sets the one-way latency between the CPUs that took part, ns.
    #[must_use]
    pub fn with_apart(mut self, apart_ns: Option<f64>) -> Self {
        self.apart_ns = apart_ns.filter(|ns| self.value.is_some() && *ns > 0.0 && ns.is_finite());
        self
    }

    /// Sets the clock of the core, Hz.
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

    /// True if another hardware thread shared the core; views mark such a figure everywhere.
    pub fn is_shared(&self) -> bool {
        self.population == Some(Population::CoreShared)
    }

    /// Adds block values in time order, with five digits, which is finer than any error. Values that are not finite are left out.
    #[must_use]
    pub fn with_blocks(mut self, blocks: Vec<f64>, block_ns: f64) -> Self {
        self.blocks = blocks.into_iter().filter(|b| b.is_finite()).map(|b| cut_to(b, 5)).collect();
        self.block_ns = (block_ns.is_finite() && block_ns > 0.0).then_some(block_ns);
        self
    }

    /// Adds quantiles as (probability, value) with nine digits: 1 ns in 1 s.
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

    /// The interval from this run alone.
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

    /// The join key as text: `id{name=value,...}`.
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

/// A registered metric id. It is part of the tool's interface and never reused for another meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// `probe.metric`.
    pub id: &'static str,
    /// Names of its parameters.
    pub params: &'static [&'static str],
    /// Unit.
    pub unit: Unit,
    /// Direction of improvement.
    pub better: Better,
    /// Hazards. A check that warns or fails with one of them flags this metric.
    pub weakened_by: &'static [crate::Hazard],
    /// Description in one sentence.
    pub description: &'static str,
    /// True for differences and offsets.
    pub may_be_negative: bool,
}

impl MetricInfo {
    /// A figure without parameters and description, better when lower, for example from a foreign file.
    pub const fn of(id: &'static str, unit: Unit) -> Self {
        let better = Better::Lower;
        Self { id, params: &[], unit, better, weakened_by: &[], description: "", may_be_negative: false }
    }
}

/// Builds [`Params`] from pairs.
pub fn params<const N: usize>(pairs: [(&str, ParamValue); N]) -> Params {
    // `collect` would compile a sort for each number of pairs.
    let mut all = Params::new();
    for (name, value) in pairs {
        all.insert(name.to_owned(), value);
    }
    all
}

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
