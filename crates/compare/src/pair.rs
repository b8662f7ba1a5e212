//! Which figures of two sides are of the same thing, and on which scale they are compared.

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

/// Metrics whose value says which of several things they are of, and the ratio from which it is another one: a rhythm beside its
/// harmonics, a pair of CPUs at another place (a virtual machine's are moved), the first mode of trips or level of memory beside the
/// second.
const NAMES_A_THING: [(&str, f64); 5] = [
    ("noise.period", 1.1),
    ("memory.core_to_core", LEVEL_RATIO),
    ("memory.cache_size", LEVEL_RATIO),
    ("sync.mode", LEVEL_RATIO),
    ("ops.mode", LEVEL_RATIO),
];

/// Blocks that count as one where a run gives no interval: of 20, five independent values are left.
const TOGETHER: usize = 4;

/// Figures of one metric that can be compared: at least one run a side.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) a: Vec<&'a Metric>,
    pub(crate) b: Vec<&'a Metric>,
    /// Of earlier runs of A's state.
    pub(crate) earlier: Vec<&'a Metric>,
    pub(crate) population: Option<Population>,
    pub(crate) scale: Scale,
    /// What was left out, in words.
    pub(crate) reasons: Vec<String>,
}

impl<'a> Pair<'a> {
    /// The figures of both sides that are of the same thing, or why there are none. `earlier` is what may tell the spread.
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
                let words = population.map_or("nobody looked at the core", Population::name);
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

    /// What the clock of the core makes of a figure that follows it wholly, of each of `runs` on the scale of comparison: logarithms of the
    /// time of a cycle, or for rates of the clock. Zeros where the figure is neither, or nobody looked at the clock.
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

    /// How far the figure follows the clock, as its runs learned it, else as is listed.
    pub(crate) fn follows(&self) -> Follows {
        let mut recorded = self.a.iter().chain(&self.b).filter_map(|m| m.follows_clock).peekable();
        let listed = || assumed::listed(self.a[0], self.population).map_or(Follows::ANY, |k| k.follows);
        if recorded.peek().is_some() { Follows::recorded(recorded) } else { listed() }
    }

    /// Values of `runs` where costs that follow the clock to this `share` are taken at equal clocks.
    pub(crate) fn at_equal_clocks(&self, runs: &[&Metric], share: f64) -> Vec<f64> {
        let costs = self.values(runs).into_iter().zip(self.cycles(runs));
        costs.map(|(cost, cycle)| cost - share * cycle).collect()
    }

    /// Standard deviation that a run's own interval gives it on the side towards `above` (or below): the ends that face each other tell
    /// how far two figures are apart (Zou, Donner, Statistics in Medicine 27, 2008). Of a run that gives none, what its blocks give;
    /// `None` without either. `told`: other runs tell how far a figure goes from run to run.
    pub(crate) fn own_sd(&self, m: &Metric, above: bool, told: bool) -> Option<f64> {
        let Some(ci) = m.own_interval() else { return self.sd_of_blocks(m) };
        let sure = normal_quantile(f64::midpoint(1.0, ci.level))?;
        let value = self.scale.apply(m.value?);
        let to = |end: f64| (self.scale.apply(end) - value).abs() / sure;
        // Where the core was shared one end reaches to what nobody disturbs: a neighbor may do as much from run to run. Where other runs
        // tell what it does, the other end is the error.
        let sd = match self.population {
            Some(Population::CoreShared) if told => to(ci.low).min(to(ci.high)),
            _ => to(if above { ci.high } else { ci.low }),
        };
        sd.is_finite().then_some(sd)
    }

    /// Variances that runs give themselves, by the wider side of their intervals; `None` where one gives none.
    pub(crate) fn own_variances(&self, runs: &[&Metric]) -> Option<Vec<f64>> {
        let variance =
            |m: &&Metric| Some(self.own_sd(m, true, true)?.max(self.own_sd(m, false, true)?).powi(2));
        runs.iter().map(variance).collect()
    }

    /// What the figures of both sides are known to be off by, by their own intervals: a standard deviation, 0 where none tells.
    pub(crate) fn own_sd_of_all(&self) -> f64 {
        let variance =
            |m: &&Metric| Some(self.own_sd(m, true, true)?.max(self.own_sd(m, false, true)?).powi(2));
        let all: Vec<f64> = self.a.iter().chain(&self.b).filter_map(variance).collect();
        spread::mean(&all).unwrap_or_default().sqrt()
    }

    /// Standard deviation of a figure by its blocks, of which [`TOGETHER`] count as one: they hang together, or it had an interval.
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

    /// A difference on this scale as the change that it is.
    pub(crate) fn change(self, difference: f64) -> f64 {
        if self == Self::Relative { difference.exp_m1() } else { difference }
    }
}

/// Relative where all that is said is above zero and no share: shares are compared in points.
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

/// True if an earlier figure says something about the spread of this one.
pub(crate) fn usable(earlier: &Metric, m: &Metric) -> bool {
    earlier.quality != Quality::Rejected
        && earlier.value.is_some_and(f64::is_finite)
        && alike(earlier, m).is_ok()
        && earlier.population == m.population
        && places_differ(&[earlier], &[m]).is_none()
}

/// The population of which the side with fewer figures has most; of several the undisturbed one.
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
        (None, name) => format!("nobody looked in {} whether the core was shared", name.unwrap_or_default()),
    })
}

/// Why two sides are of CPUs at different places, which a virtual machine's move between; `None` where they are not, or nobody looked.
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
