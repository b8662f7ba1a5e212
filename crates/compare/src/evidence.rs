//! What two runs say about one metric, before the verdict: difference, its law under no change, and the rank test.

use machmeter_data::metric::Population;
use machmeter_data::quantity::human;
use machmeter_data::{Better, Metric, Quality, Unit};
use machmeter_stats::distribution::normal_quantile;
use machmeter_stats::rank;
use machmeter_stats::regimes::LEVEL_RATIO;

use crate::allowance::{Allowance, MIN_HISTORY};
use crate::drift::{self, DriftModels, Fit};
use crate::law::{Law, Part};
use crate::level::{Level, Scale, level};

/// Fewer blocks than this say nothing about the spread: the interval is used instead.
const MIN_BLOCKS: usize = 5;
/// Blocks that both runs need before their extremes are compared.
const MIN_BLOCKS_EXTREME: usize = 10;
/// Degrees of freedom granted to a recorded interval.
const INTERVAL_DOF: f64 = 10.0;
/// Steps finer than this part of a value are taken for equal.
const RESOLUTION: f64 = 1e-6;

/// One metric of both runs, with the same metric of earlier runs.
pub(crate) struct Pair<'a> {
    pub(crate) a: &'a Metric,
    pub(crate) b: &'a Metric,
    pub(crate) history: Vec<&'a Metric>,
    /// Run-to-run standard deviation that the caller declared.
    pub(crate) declared_sd: Option<f64>,
    /// Conditions are in doubt: the default allowance is widened.
    pub(crate) weakened: bool,
}

/// What is known about the difference of a pair.
pub(crate) struct Evidence {
    pub(crate) scale: Scale,
    pub(crate) locations: [f64; 2],
    /// True if the change is to be given as a fraction of the first location.
    pub(crate) relative: bool,
    /// Estimate of the law of the difference under no change.
    pub(crate) printed: Option<Law>,
    pub(crate) guard: Option<Law>,
    /// Two-sided Mann-Whitney probability on the blocks; `None` without enough blocks.
    pub(crate) p_rank: Option<f64>,
    pub(crate) reasons: Vec<String>,
}

impl Evidence {
    pub(crate) fn difference(&self) -> f64 {
        self.locations[1] - self.locations[0]
    }

    /// A distance on the scale of comparison as the change it stands for. Upward on a logarithmic scale.
    pub(crate) fn as_change(&self, distance: f64) -> f64 {
        match (self.scale, self.relative) {
            (Scale::Log, _) => distance.exp_m1(),
            (Scale::Linear, true) => distance / self.locations[0].abs(),
            (Scale::Linear, false) => distance,
        }
    }
}

/// One run's location and its variance.
struct Located {
    location: f64,
    block_sd: f64,
    fit: Fit,
    level: Option<Level>,
}

/// Why a pair has no evidence.
pub(crate) enum Refusal {
    /// The figures do not mean the same, or one is missing.
    Incomparable(String),
    /// The figures can be compared, but nothing tells how far they could be off.
    NoSpread(String),
}

/// The evidence of a pair, or why there is none.
pub(crate) fn weigh(pair: &Pair<'_>, models: &mut DriftModels) -> Result<Evidence, Refusal> {
    refuse(pair.a, pair.b).map_err(Refusal::Incomparable)?;
    let metrics = || [pair.a, pair.b].into_iter().chain(pair.history.iter().copied());
    let scale = Scale::of(metrics().flat_map(figures));
    let a = locate(pair.a, scale, models).ok_or_else(|| no_spread("the first run"))?;
    let b = locate(pair.b, scale, models).ok_or_else(|| no_spread("the second run"))?;
    let past: Vec<Located> = pair.history.iter().filter_map(|m| locate(m, scale, models)).collect();

    let mut reasons = Vec::new();
    let allowance = allowance(pair, scale, [&a, &b], &past, &mut reasons);
    let mut fits: Vec<&Fit> = vec![&a.fit, &b.fit];
    fits.extend(past.iter().map(|p| &p.fit));
    let (printed, guard) = drift::weights(&fits, &allowance.log_likelihood());
    let law = |weights: &[f64]| {
        Law::new(weights.iter().enumerate().map(|(k, weight)| {
            let (variance, dof) = allowance.difference(&a.fit, &b.fit, k);
            Part { weight: *weight, se: variance.sqrt(), dof }
        }))
    };
    for (name, run) in [("first", &a), ("second", &b)] {
        if let Some(clipped) = run.level.as_ref().map(|l| l.clipped).filter(|c| *c > 0) {
            reasons.push(format!("outlying blocks pulled in, {name} run: {clipped}"));
        }
    }
    let p_rank = (a.level.is_some() && b.level.is_some())
        .then(|| rank::mann_whitney(&pair.a.blocks, &pair.b.blocks))
        .flatten();
    let noise_of_a = a.fit.variance.iter().copied().fold(0.0, f64::max).sqrt();
    Ok(Evidence {
        scale,
        locations: [a.location, b.location],
        relative: scale == Scale::Log || a.location.abs() > 2.0 * noise_of_a,
        printed: law(&printed),
        guard: law(&guard),
        p_rank,
        reasons,
    })
}

fn refuse(a: &Metric, b: &Metric) -> Result<(), String> {
    for (name, m) in [("first", a), ("second", b)] {
        if m.quality == Quality::Rejected || m.value.is_none() {
            let why = m.why.as_deref().unwrap_or("no value was recorded");
            return Err(format!("rejected in the {name} run: {why}"));
        }
        if m.value.is_some_and(|v| !v.is_finite()) || m.blocks.iter().any(|v| !v.is_finite()) {
            return Err(format!("the {name} run holds a number that is not finite"));
        }
    }
    if a.unit != b.unit {
        return Err(format!("units differ: {} and {}", a.unit.ucum(), b.unit.ucum()));
    }
    if a.better != b.better {
        return Err(format!("directions differ: {} and {}", direction(a.better), direction(b.better)));
    }
    if let Some(why) = populations_differ(a, b).or_else(|| places_differ(a, b)) {
        return Err(why);
    }
    if a.estimator != b.estimator {
        return Err(format!("computed differently: {} and {}", a.estimator, b.estimator));
    }
    if is_extreme(a) && a.blocks.len().min(b.blocks.len()) < MIN_BLOCKS_EXTREME {
        return Err(
            "a maximum of one run does not repeat; compare quantiles, or runs with extremes per block"
                .to_owned(),
        );
    }
    Ok(())
}

/// Which samples a figure is of. Records of before say it in the method of the interval.
pub(crate) fn population(m: &Metric) -> Option<Population> {
    let alone = || m.own_interval().is_some_and(|ci| ci.method.starts_with("rank, alone on the core"));
    m.population.or_else(|| alone().then_some(Population::Undisturbed))
}

fn populations_differ(a: &Metric, b: &Metric) -> Option<String> {
    let sides = [("A", population(a)), ("B", population(b))];
    let side = |is: Option<Population>| sides.iter().find(|(_, p)| *p == is).map(|(name, _)| *name);
    if sides[0].1 == sides[1].1 {
        return None;
    }
    Some(match (side(Some(Population::CoreShared)), side(None)) {
        (Some(name), _) => format!("core shared in {name}"),
        (None, name) => {
            format!("nobody looked in {} whether the core was shared", name.unwrap_or_default())
        }
    })
}

/// Why two figures are of CPUs at different places, which a virtual machine's move between; `None` where they are not, or nobody looked.
pub(crate) fn places_differ(a: &Metric, b: &Metric) -> Option<String> {
    let (a_ns, b_ns) = (a.apart_ns?, b.apart_ns?);
    let ratio = (a_ns / b_ns).max(b_ns / a_ns);
    let ns = |ns: f64| human(ns, Unit::Nanoseconds);
    (ratio >= LEVEL_RATIO).then(|| format!("the CPUs were {} apart in A, {} in B", ns(a_ns), ns(b_ns)))
}

/// True if the figure is the largest of its samples.
fn is_extreme(m: &Metric) -> bool {
    let names = [m.estimator.as_str(), m.id.rsplit('.').next().unwrap_or_default()];
    names
        .iter()
        .any(|n| n.split(['_', '-', ' ']).any(|w| matches!(w, "max" | "maximum" | "longest" | "extreme")))
}

pub(crate) fn direction(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
        Better::Neither => "neither direction is better",
    }
}

fn no_spread(which: &str) -> Refusal {
    Refusal::NoSpread(format!(
        "{which} has one figure without interval or blocks, so nothing tells how far it could be off"
    ))
}

/// All numbers of a metric that enter the comparison.
fn figures(m: &Metric) -> impl Iterator<Item = &f64> {
    let fallback = m.blocks.len() < MIN_BLOCKS;
    let interval = m.own_interval().into_iter().filter(move |_| fallback).map(|c| &c.low);
    m.blocks.iter().chain(m.value.iter().filter(move |_| fallback)).chain(interval)
}

/// Location of a run by its blocks, or by value and interval where there are too few; `None` if it has neither.
fn locate(m: &Metric, scale: Scale, models: &mut DriftModels) -> Option<Located> {
    if m.blocks.len() >= MIN_BLOCKS {
        let level = level(&m.blocks, scale)?;
        let unit = if scale == Scale::Log { 1.0 } else { level.location.abs() };
        let fit = models.fit(&level.series, RESOLUTION * unit);
        return Some(Located { location: level.location, block_sd: level.block_sd, fit, level: Some(level) });
    }
    let (value, ci) = (m.value?, m.own_interval()?);
    let half = f64::midpoint(scale.apply(ci.high), -scale.apply(ci.low));
    let se = half / normal_quantile(f64::midpoint(1.0, ci.level))?;
    let location = scale.apply(value);
    (se.is_finite() && location.is_finite() && se >= 0.0).then(|| Located {
        location,
        block_sd: 0.0,
        fit: Fit::flat(se * se, INTERVAL_DOF),
        level: None,
    })
}

/// The run-to-run component that applies, with a word on where it comes from.
fn allowance(
    pair: &Pair<'_>,
    scale: Scale,
    runs: [&Located; 2],
    past: &[Located],
    reasons: &mut Vec<String>,
) -> Allowance {
    let size = match scale {
        Scale::Log => 1.0,
        Scale::Linear => f64::midpoint(runs[0].location.abs(), runs[1].location.abs()),
    };
    if let Some(sd) = pair.declared_sd {
        reasons.push(format!("run-to-run spread declared as {} %", sd * 100.0));
        return Allowance::declared(sd, size);
    }
    if past.len() >= MIN_HISTORY {
        let locations: Vec<f64> = past.iter().map(|p| p.location).collect();
        let fits: Vec<Fit> = past.iter().map(|p| p.fit.clone()).collect();
        if let Some(measured) = Allowance::from_history(&locations, &fits) {
            reasons.push(format!("run-to-run spread measured over {} earlier runs", past.len()));
            return measured;
        }
    }
    let without_blocks = runs.iter().any(|r| r.level.is_none());
    if without_blocks {
        reasons.push("judged by recorded intervals: too few blocks".to_owned());
    }
    let default =
        Allowance::default_for([runs[0].block_sd, runs[1].block_sd], size, pair.weakened || without_blocks);
    reasons
        .push(format!("default run-to-run allowance ({} of {MIN_HISTORY} earlier runs known)", past.len()));
    default
}
