//! Pairs the figures of two sides that measure the same thing, and chooses the scale of their comparison.

use machmeter_data::metric::Population;
use machmeter_data::quantity::human;
use machmeter_data::{Better, Metric, Quality, Unit};
use machmeter_stats::distribution::normal_quantile;
use machmeter_stats::quantile::median_of;
use machmeter_stats::regimes::LEVEL_RATIO;
use machmeter_stats::spread;

use crate::assumed;
use crate::comparison::Scale;
use crate::follows::Follows;

/// Metrics whose value identifies the measured thing, and the ratio from which it is a different one. Examples are a rhythm and its harmonics, the first and
/// the second mode of trips, and levels of memory. A pair of virtual CPUs changes when the host moves them.
const NAMES_A_THING: [(&str, f64); 5] = [
    ("noise.period", 1.1),
    ("memory.core_to_core", LEVEL_RATIO),
    ("memory.cache_size", LEVEL_RATIO),
    ("sync.mode", LEVEL_RATIO),
    ("ops.mode", LEVEL_RATIO),
];

/// Number of blocks that count as one independent value if a run has no interval: 20 blocks give five values.
const TOGETHER: usize = 4;

/// Comparable figures of one metric, from at least one run per side.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) a: Vec<&'a Metric>,
    pub(crate) b: Vec<&'a Metric>,
    /// Figures of earlier runs in the state of A.
    pub(crate) earlier: Vec<&'a Metric>,
    pub(crate) population: Option<Population>,
    pub(crate) scale: Scale,
    /// Omissions, in words.
    pub(crate) reasons: Vec<String>,
}

impl<'a> Pair<'a> {
    /// The figures of both sides that measure the same thing, or the reason why there are none. `earlier` are candidates for the estimate of the spread.
    pub(crate) fn new(a: &[&'a Metric], b: &[&'a Metric], earlier: &[&'a Metric]) -> Result<Self, String> {
        let [of_a, of_b] = [with_value(a, "A")?, with_value(b, "B")?];
        let first = of_a[0];
        for m in of_a.iter().chain(&of_b) {
            alike(first, m)?;
        }
        let population = common_population(&of_a, &of_b)?;
        let kept = |all: &[&'a Metric]| -> Vec<&'a Metric> {
            all.iter().copied().filter(|m| m.population == population).collect()
        };
        let mut reasons = Vec::new();
        for (name, all) in [("A", &of_a), ("B", &of_b)] {
            let (left, of) = (all.len() - kept(all).len(), all.len());
            if left > 0 {
                let words = population.map_or("unobserved", Population::name);
                reasons.push(format!("{left} of {of} runs of {name} left out: not {words}"));
            }
        }
        let (a, b) = (kept(&of_a), kept(&of_b));
        let of_one = is_extreme(first) && a.len().min(b.len()) == 1;
        let extreme = of_one.then(|| {
            "a maximum of one run does not repeat; compare quantiles, or several runs a side".to_owned()
        });
        places_differ(&a, &b).or_else(|| things_differ(&a, &b)).or(extreme).map_or(Ok(()), Err)?;
        let is_alike = |m: &Metric| m.population == population && places_differ(&a, &[m]).is_none();
        let earlier: Vec<&Metric> =
            earlier.iter().copied().filter(|m| usable(m, first) && is_alike(m)).collect();
        let scale = scale(a.iter().chain(&b).chain(&earlier));
        Ok(Self { a, b, earlier, population, scale, reasons })
    }

    /// Values of `runs` on the scale of comparison: logarithms, or as recorded.
    pub(crate) fn values(&self, runs: &[&Metric]) -> Vec<f64> {
        runs.iter().filter_map(|m| m.value).map(|v| self.scale.apply(v)).collect()
    }

    /// Effect of the core's clock on a figure that follows it completely, for each of `runs` on the scale of comparison. It is the logarithm of the cycle time,
    /// or for rates of the clock; zero for other figures, or if the clock was not measured.
    pub(crate) fn cycles(&self, runs: &[&Metric]) -> Vec<f64> {
        let sign = match self.a[0].unit {
            Unit::Nanoseconds => Some(-1.0),
            Unit::BytesPerSecond | Unit::FlopsPerSecond => Some(1.0),
            _ => None,
        };
        let sign = sign.filter(|_| self.scale == Scale::Relative);
        let of = |m: &&Metric| Some(sign? * m.core_hz?.ln());
        let known: Option<Vec<f64>> = [&self.a, &self.b].into_iter().flatten().map(of).collect();
        let all: Option<Vec<f64>> = known.and_then(|_| runs.iter().map(of).collect());
        all.unwrap_or_else(|| vec![0.0; runs.len()])
    }

    /// Dependence of the figure on the clock, from its runs, else from the table.
    pub(crate) fn follows(&self) -> Follows {
        let mut recorded = self.a.iter().chain(&self.b).filter_map(|m| m.follows_clock).peekable();
        let listed = || assumed::listed(self.a[0], self.population).map_or(Follows::ANY, |k| k.follows);
        if recorded.peek().is_some() { Follows::recorded(recorded) } else { listed() }
    }

    /// Values of `runs` converted to equal clocks, of which the part `share` follows the clock.
    pub(crate) fn at_equal_clocks(&self, runs: &[&Metric], share: f64) -> Vec<f64> {
        let costs = self.values(runs).into_iter().zip(self.cycles(runs));
        costs.map(|(cost, cycle)| cost - share * cycle).collect()
    }

    /// Standard deviation from a run's own interval, on the side towards `above` (or below). The ends that face each other determine the distance of two figures
    /// (Zou, Donner, Statistics in Medicine 27, 2008). Without an interval, the run's blocks give it; `None` without either. `told`: other runs measure the
    /// variation between runs.
    pub(crate) fn own_sd(&self, m: &Metric, above: bool, told: bool) -> Option<f64> {
        let Some(ci) = m.own_interval() else { return self.sd_of_blocks(m) };
        let sure = normal_quantile(f64::midpoint(1.0, ci.level))?;
        let value = self.scale.apply(m.value?);
        let to = |end: f64| (self.scale.apply(end) - value).abs() / sure;
        // If the core was shared, one end extends to the cost without a neighbor, because neighbors can vary that much between runs. If other runs measure this
        // variation, the other end is the error.
        let sd = match self.population {
            Some(Population::CoreShared) if told => to(ci.low).min(to(ci.high)),
            _ => to(if above { ci.high } else { ci.low }),
        };
        sd.is_finite().then_some(sd)
    }

    /// Variances from the runs' own intervals, by the wider side; `None` if one has none.
    pub(crate) fn own_variances(&self, runs: &[&Metric]) -> Option<Vec<f64>> {
        let variance =
            |m: &&Metric| Some(self.own_sd(m, true, true)?.max(self.own_sd(m, false, true)?).powi(2));
        runs.iter().map(variance).collect()
    }

    /// Known error of the figures of both sides from their own intervals: a standard deviation, 0 without any interval.
    pub(crate) fn own_sd_of_all(&self) -> f64 {
        let variance =
            |m: &&Metric| Some(self.own_sd(m, true, true)?.max(self.own_sd(m, false, true)?).powi(2));
        let all: Vec<f64> = self.a.iter().chain(&self.b).filter_map(variance).collect();
        spread::mean(&all).unwrap_or_default().sqrt()
    }

    /// Standard deviation of a figure from its blocks. [`TOGETHER`] blocks count as one, because adjacent blocks are correlated.
    fn sd_of_blocks(&self, m: &Metric) -> Option<f64> {
        let blocks: Vec<f64> = m.blocks.iter().map(|b| self.scale.apply(*b)).collect();
        let independent = (blocks.len() / TOGETHER).checked_sub(1).filter(|n| *n > 0)? as f64;
        let sd = spread::stddev(&blocks)? / independent.sqrt();
        sd.is_finite().then_some(sd)
    }
}

impl Scale {
    pub(crate) fn apply(self, value: f64) -> f64 {
        if self == Self::Relative { value.ln() } else { value }
    }

    /// Converts a difference on this scale to a change.
    pub(crate) fn change(self, difference: f64) -> f64 {
        if self == Self::Relative { difference.exp_m1() } else { difference }
    }
}

/// Relative if all values and intervals are above zero and none is a share; shares are compared in points.
fn scale<'a>(mut all: impl Iterator<Item = &'a &'a Metric>) -> Scale {
    let above_zero =
        |m: &Metric| m.value.is_some_and(|v| v > 0.0) && m.own_interval().is_none_or(|ci| ci.low > 0.0);
    if all.all(|m| m.unit != Unit::One && above_zero(m)) { Scale::Relative } else { Scale::Absolute }
}

fn with_value<'a>(side: &[&'a Metric], name: &str) -> Result<Vec<&'a Metric>, String> {
    let sound = |m: &&&Metric| m.quality != Quality::Rejected && m.value.is_some_and(f64::is_finite);
    let found: Vec<&Metric> = side.iter().filter(sound).copied().collect();
    if found.is_empty() {
        let why = side.iter().find_map(|m| m.why.as_deref()).unwrap_or("no value was recorded");
        return Err(format!("rejected in {name}: {why}"));
    }
    Ok(found)
}

fn alike(a: &Metric, b: &Metric) -> Result<(), String> {
    if a.unit != b.unit {
        return Err(format!("units differ: {} and {}", a.unit.ucum(), b.unit.ucum()));
    }
    if a.better != b.better {
        let [a, b] = [a.better, b.better].map(direction);
        return Err(format!("directions differ: {a} and {b}"));
    }
    if a.estimator != b.estimator {
        return Err(format!("computed differently: {} and {}", a.estimator, b.estimator));
    }
    Ok(())
}

/// True if an earlier figure contributes to the spread of this one.
pub(crate) fn usable(earlier: &Metric, m: &Metric) -> bool {
    earlier.quality != Quality::Rejected
        && earlier.value.is_some_and(f64::is_finite)
        && alike(earlier, m).is_ok()
        && earlier.population == m.population
        && places_differ(&[earlier], &[m]).is_none()
}

/// The population with the most figures on the side that has fewer of it; among equals the undisturbed one.
fn common_population(a: &[&Metric], b: &[&Metric]) -> Result<Option<Population>, String> {
    let shared = Some(Population::CoreShared);
    let all = [Some(Population::Undisturbed), shared, None];
    let count = |side: &[&Metric], p| side.iter().filter(|m| m.population == p).count();
    let fewest = |p: &Option<Population>| count(a, *p).min(count(b, *p));
    let best = all.iter().rev().max_by_key(|p| fewest(p)).copied().flatten();
    if fewest(&best) > 0 {
        return Ok(best);
    }
    let side = |p| if count(a, p) > 0 { Some("A") } else { (count(b, p) > 0).then_some("B") };
    Err(match (side(shared), side(None)) {
        (Some(name), _) => format!("core shared in {name}"),
        (None, name) => format!("{} has no observation of the core", name.unwrap_or_default()),
    })
}

/// Reason why two sides are from CPUs at different places, as in a virtual machine whose CPUs are moved. `None` if they are not, or the distance was not
/// measured.
fn places_differ(a: &[&Metric], b: &[&Metric]) -> Option<String> {
    let apart = |side: &[&Metric]| median_of(&side.iter().filter_map(|m| m.apart_ns).collect::<Vec<_>>());
    let (a_ns, b_ns) = (apart(a)?, apart(b)?);
    let ns = |ns: f64| human(ns, Unit::Nanoseconds);
    (ratio(a_ns, b_ns) >= LEVEL_RATIO)
        .then(|| format!("the CPUs were {} apart in A, {} in B", ns(a_ns), ns(b_ns)))
}

fn things_differ(a: &[&Metric], b: &[&Metric]) -> Option<String> {
    let (_, most) = NAMES_A_THING.iter().find(|(id, _)| *id == a[0].id)?;
    let value = |side: &[&Metric]| median_of(&side.iter().filter_map(|m| m.value).collect::<Vec<_>>());
    let (x, y) = (value(a)?, value(b)?);
    let unit = a[0].unit;
    (ratio(x, y) >= *most).then(|| format!("another one: {} in A, {} in B", human(x, unit), human(y, unit)))
}

fn ratio(x: f64, y: f64) -> f64 {
    (x / y).max(y / x)
}

/// True if the figure is the largest of its samples.
fn is_extreme(m: &Metric) -> bool {
    let names = [m.estimator.as_str(), m.id.rsplit('.').next().unwrap_or_default()];
    let mut words = names.iter().flat_map(|n| n.split(['_', '-', ' ']));
    words.any(|w| matches!(w, "max" | "maximum" | "longest" | "extreme"))
}

fn direction(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
        Better::Neither => "neither direction is better",
    }
}
