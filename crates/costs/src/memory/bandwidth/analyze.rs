//! What the rows say: bandwidths, what depends on the contents, how it scales with CPUs.

use machmeter_data::metric::{Params as MetricParams, Population, params};
use machmeter_data::quantity::{digits, human};
use machmeter_data::{Interval, Metric, Unit};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Cost, Row, Rows};

use super::info::{
    BANDWIDTH, DATA_MATTERS, NO_HUGE, NOT_REACHED, NOT_TOGETHER, ONE_CPU, PEAK, SATURATION, SCALING,
    SMALL_BUFFER, WITH_ALLOCATE,
};
use super::plan::split;
use super::sizes::Level;
use super::{BUFFER_BYTES, CPUS, DATA, LAST_CACHE_BYTES, NAME, datasets, roofline};
use crate::memory::Params;
use crate::memory::ladder::{LAST_DRIFTS, detect::DetectedCaches};
use crate::show;

/// Zeros that are moved so much faster are worth a warning.
const DATA_RATIO: f64 = 1.2;
/// Share of the highest bandwidth at which more CPUs give no more.
const SATURATED: f64 = 0.95;
/// Kernels whose metric with write-allocate is reported; the table has it for all.
const ALLOCATING: [&str; 5] = ["write", "copy", "scale", "add", "triad"];
const SCALED: [&str; 2] = ["read", "copy"];

pub(super) struct Figure<'r> {
    pub(super) row: &'r Row,
    pub(super) cost: Cost,
    pub(super) family: &'r str,
    pub(super) level: String,
    pub(super) cpus: i64,
    pub(super) working_set_bytes: i64,
    /// Bytes with write-allocate for each byte requested.
    pub(super) allocated: f64,
}

impl<'r> Figure<'r> {
    fn new(rows: &Rows, row: &'r Row) -> Self {
        Self {
            row,
            cost: rows.cost(row),
            family: split(&row.operation).0,
            level: row.text("level"),
            cpus: row.int("cpus").unwrap_or(1),
            working_set_bytes: row.int("working_set_bytes").unwrap_or(0),
            allocated: row.extras.get("allocated_per_requested").copied().unwrap_or(1.0).max(1.0),
        }
    }

    pub(super) fn is_peak(&self) -> bool {
        self.level == "registers"
    }

    /// Requested bytes per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.cost.value_ns().map(|ns| 1e9 / ns)
    }

    /// Bytes per second with write-allocate.
    pub(super) fn rate_with_allocate(&self) -> Option<f64> {
        self.rate().map(|r| r * self.allocated)
    }

    /// The ordinary conditions: small pages, no other convention.
    pub(super) fn is_plain(&self) -> bool {
        self.row.text("pages") == "small" && self.row.text("convention").is_empty()
    }

    pub(super) fn is_level(&self, level: Level) -> bool {
        self.level == level.name()
    }

    pub(super) fn data(&self) -> String {
        self.row.text("data")
    }

    fn width(&self) -> f64 {
        self.row.extras.get("width_bits").copied().unwrap_or(0.0)
    }

    fn metric_params(&self) -> MetricParams {
        let mut p = self.row.params.clone();
        p.insert("kernel".to_owned(), self.row.operation.as_str().into());
        p
    }
}

pub(super) struct Figures<'r> {
    pub(super) all: Vec<Figure<'r>>,
    /// Contents of the rows that are not about contents.
    pub(super) data: String,
}

impl<'r> Figures<'r> {
    pub(super) fn new(rows: &'r Rows) -> Self {
        let all = rows.part(NAME).filter(|r| r.operation != "part").map(|r| Figure::new(rows, r)).collect();
        let data = rows.facts.get(&DATA).unwrap_or_else(|| "random".to_owned());
        Self { all, data }
    }

    /// The figure of a family under ordinary conditions, of its widest kernel.
    pub(super) fn plain(&self, family: &str, level: Level, cpus: i64) -> Option<&Figure<'r>> {
        self.all
            .iter()
            .filter(|f| f.family == family && f.is_level(level) && f.cpus == cpus)
            .filter(|f| f.is_plain() && f.data() == self.data && f.rate().is_some())
            .max_by(|a, b| a.width().total_cmp(&b.width()))
    }

    pub(super) fn of_kernel(&self, kernel: &str) -> impl Iterator<Item = &Figure<'r>> {
        self.all.iter().filter(move |f| f.row.operation == kernel)
    }

    pub(super) fn cpu_counts(&self) -> Vec<i64> {
        show::ascending(self.all.iter().map(|f| f.cpus))
    }

    pub(super) fn most_cpus(&self) -> i64 {
        self.cpu_counts().last().copied().unwrap_or(1)
    }
}

pub(super) fn analyze(asked: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let figures = Figures::new(rows);
    let mut out = Analysis::default();
    out.metrics.extend(bandwidths(&figures));
    for f in figures.all.iter().filter(|f| f.is_peak()) {
        let p = params([("kernel", f.row.operation.as_str().into())]);
        out.metrics.push(f.cost.metric_as(&PEAK, p, |ns| 1e9 / ns));
    }
    scaling(&figures, &mut out);
    data_dependence(&figures, &mut out);
    conditions(&figures, rows, &mut out);
    out.datasets.extend(datasets::all(&figures, !asked.kernels.is_empty()));
    out.datasets.extend(roofline::dataset(&figures));
    out
}

/// Size of the buffer and whether it is at least four times the last cache; `None` where that is not known.
fn buffer(rows: &Rows) -> Option<(f64, f64, bool)> {
    let bytes = rows.facts.get(&BUFFER_BYTES)? as f64;
    let last_bytes = DetectedCaches::last_cache(&rows.facts, rows.facts.get(&LAST_CACHE_BYTES)? as f64);
    Some((bytes, last_bytes, bytes >= 4.0 * last_bytes))
}

/// A metric for each row that is not only a point of the curve.
fn bandwidths(figures: &Figures<'_>) -> Vec<Metric> {
    let mut out = Vec::new();
    for f in figures.all.iter().filter(|f| !f.is_peak() && !f.is_level(Level::Sweep)) {
        out.push(f.cost.metric_as(&BANDWIDTH, f.metric_params(), |ns| 1e9 / ns));
        let twice = f.allocated > 1.001 && f.is_level(Level::Memory) && f.is_plain();
        if twice && f.data() == figures.data && ALLOCATING.contains(&f.family) {
            let factor = f.allocated;
            out.push(f.cost.metric_as(&WITH_ALLOCATE, f.metric_params(), |ns| factor * 1e9 / ns));
        }
    }
    out
}

/// The ratio of two costs as a metric value with an interval: the ends of one over the opposite ends of the other.
fn ratio(of: &Cost, to: &Cost) -> Option<(f64, Interval, u64)> {
    let (a, b) = (of.known()?, to.known()?);
    // Costs are times per byte; the ratio of rates is their inverse.
    let ci = Interval::new(LEVEL, b.low_ns / a.high_ns, b.high_ns / a.low_ns, "rank, both")?;
    Some((b.value_ns / a.value_ns, ci, a.n.min(b.n) as u64))
}

fn scaling(figures: &Figures<'_>, out: &mut Analysis) {
    let counts = figures.cpu_counts();
    for family in SCALED {
        let Some(one) = figures.plain(family, Level::Memory, 1) else { continue };
        let mut rates = vec![(1, one.rate().unwrap_or(0.0))];
        for cpus in counts.iter().copied().filter(|c| *c > 1) {
            let Some(many) = figures.plain(family, Level::Memory, cpus) else { continue };
            let Some((value, ci, n)) = ratio(&many.cost, &one.cost) else { continue };
            let p = params([("kernel", many.row.operation.as_str().into()), ("cpus", cpus.into())]);
            let population = Population::of_all([many.cost.population(), one.cost.population()]);
            let m = Metric::new(&SCALING, p, value, "ratio of upper quartiles", n).with_ci(Some(ci));
            out.metrics.push(m.with_population(population));
            rates.push((cpus, many.rate().unwrap_or(0.0)));
        }
        if let Some(cpus) = saturation(&rates).filter(|_| rates.len() > 2) {
            let p = params([("kernel", one.row.operation.as_str().into())]);
            let (value, n) = (cpus as f64, rates.len() as u64);
            let ci = Interval::new(LEVEL, value, value, "steps measured");
            out.metrics.push(Metric::new(&SATURATION, p, value, "fewest at 95 %", n).with_ci(ci));
        }
        // Reads and copies say the same; one sentence is enough.
        let said = out.findings.iter().any(|f| f.id == "memory.scaling");
        if let Some((cpus, rate)) = rates.last().filter(|_| rates.len() > 1 && !said) {
            let shown = |rate: f64| human(rate, Unit::BytesPerSecond);
            let times = rate / rates[0].1;
            let verdict = if times >= 0.9 * *cpus as f64 { "scales" } else { "saturates" };
            let (times, many, one) = (digits(times), shown(*rate), shown(rates[0].1));
            let text = format!("{cpus} CPUs {family} {times} times as fast as one: {many} against {one}.");
            let evidence = rates.iter().map(|(c, r)| format!("{family} on {c}: {}", shown(*r))).collect();
            out.findings.push(show::finding("memory.scaling", verdict, text, evidence));
        }
    }
}

/// Fewest CPUs at 95 % of the highest rate. `rates` are (CPUs, rate).
pub(super) fn saturation(rates: &[(i64, f64)]) -> Option<i64> {
    let highest = rates.iter().map(|(_, r)| *r).fold(0.0, f64::max);
    rates.iter().filter(|(_, r)| highest > 0.0 && *r >= SATURATED * highest).map(|(c, _)| *c).min()
}

fn data_dependence(figures: &Figures<'_>, out: &mut Analysis) {
    let beside_random = |z: &&Figure<'_>| {
        let mut same = z.row.params.clone();
        same.insert("data".to_owned(), "random".into());
        let r = figures.of_kernel(&z.row.operation).find(|f| f.row.params == same)?;
        ratio(&z.cost, &r.cost)
    };
    let zeros = figures.all.iter().filter(|f| f.data() == "zeros" && figures.data == "random");
    let zeros = zeros.filter(|f| f.is_level(Level::Memory));
    let ratios: Vec<_> = zeros.filter_map(|z| Some((z, beside_random(&z)?))).collect();
    if ratios.is_empty() {
        return;
    }
    let quicker = ratios.iter().filter(|(_, (times, ci, _))| *times > DATA_RATIO && ci.low > 1.0);
    let (verdict, text) = if let Some((z, (times, ..))) = quicker.max_by(|a, b| a.1.0.total_cmp(&b.1.0)) {
        let rate = human(z.rate().unwrap_or(0.0), Unit::BytesPerSecond);
        let (kernel, times) = (&z.row.operation, digits(*times));
        let text = format!("{kernel} of zeros reaches {rate}, {times} times the bandwidth of random data.");
        out.warnings.push(DATA_MATTERS.warning(text.clone()));
        ("present", text)
    } else if ratios.iter().any(|(_, (_, ci, _))| ci.high > DATA_RATIO) {
        let text = "Zeros may be moved more than 1.2 times as fast: the intervals are too wide to decide.";
        ("unknown", text.to_owned())
    } else {
        ("none_seen", "Zeros are moved no more than 1.2 times as fast as random data.".to_owned())
    };
    let told = |(z, (times, ci, _)): &(&Figure<'_>, (f64, Interval, u64))| {
        let [times, low, high] = [*times, ci.low, ci.high].map(digits);
        format!("{}: zeros {times} times [{low}, {high}] the bandwidth of random data", z.row.operation)
    };
    let evidence = ratios.iter().map(told).collect();
    out.findings.push(show::finding("memory.data_dependence", verdict, text, evidence));
}

fn of_level(out: &mut Analysis, level: Level) -> impl Iterator<Item = &mut Metric> {
    let of = move |m: &&mut Metric| m.params.get("level").is_some_and(|l| *l == level.name().into());
    out.metrics.iter_mut().filter(of)
}

fn conditions(figures: &Figures<'_>, rows: &Rows, out: &mut Analysis) {
    if let Some((bytes, last_bytes, false)) = buffer(rows) {
        let [taken, least] = [bytes, 4.0 * last_bytes].map(|b| human(b, Unit::Bytes));
        let text = format!(
            "the bandwidth of memory may include the last cache: the buffer is {taken}, four times the last cache is {least}"
        );
        out.warnings.push(SMALL_BUFFER.warning(text));
        for m in of_level(out, Level::Memory) {
            m.flag(SMALL_BUFFER.id);
            if bytes <= last_bytes {
                m.reject(&format!(
                    "the buffer of {taken} fits the last cache of {}",
                    human(last_bytes, Unit::Bytes)
                ));
            }
        }
    }
    beyond_the_last_cache(figures, rows, out);
    let mut huge = figures.all.iter().filter(|f| f.row.text("pages") == "huge");
    out.warnings.extend(huge.find_map(|f| f.row.refused.clone()).map(|why| NO_HUGE.warning(why)));
    if rows.facts.get(&CPUS).is_some_and(|c| c < 2) {
        out.warnings.push(ONE_CPU.warning("bandwidth of several CPUs needs two CPUs, has 1"));
    }
    let tried = || figures.all.iter().filter(|f| f.cpus > 1 && f.row.refused.is_none());
    let kept: u64 = tried().map(|f| f.row.pairs.len() as u64).sum();
    let lost: u64 = tried().map(|f| f.row.rejected.total()).sum();
    if lost > kept {
        let text = format!("only {kept} of {} samples with several CPUs were undisturbed", kept + lost);
        out.warnings.push(NOT_TOGETHER.warning(text));
    }
    let is_unreached = |f: &&Figure<'_>| {
        let needs = f.row.refused.as_ref().is_some_and(|w| w.starts_with("needs"));
        f.cost.known().is_none() && f.row.rejected.total() < 3 && f.row.text("pages") != "huge" && !needs
    };
    let unreached = figures.all.iter().filter(is_unreached).count();
    if unreached > 0 {
        let text =
            format!("{unreached} of {} bandwidth rows have no figure: too few samples", figures.all.len());
        out.warnings.push(NOT_REACHED.warning(text));
    }
}

/// Where the ladder found less of the last cache than is claimed, its rows are partly of memory.
fn beyond_the_last_cache(figures: &Figures<'_>, rows: &Rows, out: &mut Analysis) {
    let Some((least, _)) = DetectedCaches::from_facts(&rows.facts).last_bytes else { return };
    let beyond = |f: &&Figure<'_>| f.is_level(Level::Last) && f.working_set_bytes > least as i64;
    let Some(f) = figures.all.iter().filter(beyond).find(|f| f.rate().is_some()) else { return };
    let [taken, there] = [f.working_set_bytes as f64, least as f64].map(|b| human(b, Unit::Bytes));
    let text = format!(
        "the bandwidth of the last cache may include memory: the buffer is {taken}, but at times this run had only {there} of the cache"
    );
    out.warnings.push(LAST_DRIFTS.warning(text));
    of_level(out, Level::Last).for_each(|m| m.flag(LAST_DRIFTS.id));
}
