//! What weakens a recording, said with figures.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_data::record::Warning;
use machmeter_engine::stream::{Demand, Job};
use machmeter_stats::distribution::binomial_cdf;
use machmeter_stats::quantile::median_of;

use super::account::Accounts;
use super::datasets::{distinct, met_share};
use super::view::{CellView, whole};
use crate::info::CODES;
use crate::samples::{Samples, Segment};

/// Share of misses that is worth a mark.
pub(super) const MISSES: f64 = 0.01;
/// Relative error of the CPU dose of the median job.
const DOSE: f64 = 0.01;
/// Share of the CPUs that may be stolen.
const STEAL: f64 = 0.005;
const NAMED: usize = 6;

pub(super) struct Found {
    pub(super) warning: Warning,
    cells: Vec<usize>,
    /// Ids of the metrics it weakens; none for what concerns no figure's trust.
    hurts: &'static [&'static str],
}

fn found(code: &str, text: String, cells: Vec<usize>, hurts: &'static [&'static str]) -> Found {
    let warning = CODES.iter().find(|c| c.id == code).map(|c| c.warning(text)).unwrap_or_default();
    Found { warning, cells, hurts }
}

/// Names and figures of at most [`NAMED`] cells.
fn list(named: &[String]) -> String {
    let more = named.len().saturating_sub(NAMED);
    let shown = named[..named.len().min(NAMED)].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// All warnings of a recording. `accounts` has the waits of each cell by both accounts.
pub(super) fn all(samples: &Samples, views: &[CellView<'_>], accounts: &[Option<Accounts>]) -> Vec<Found> {
    let mut out = misses(views);
    out.extend(views.iter().enumerate().filter_map(|(i, v)| not_whole(i, v)));
    // What a prediction rests on has a code of its own.
    for l in samples.loads.iter().filter(|_| samples.setup.predicted_from.is_none()) {
        // Most failures name their load themselves.
        let named =
            |f: &String| if f.starts_with("load ") { f.clone() } else { format!("load {}: {f}", l.name) };
        out.extend(l.failure.iter().map(|f| found("W312", named(f), Vec::new(), &[])));
        out.extend(l.caveats.iter().map(|c| found("W313", format!("load {}: {c}", l.name), Vec::new(), &[])));
    }
    out.extend(disagree(views, accounts));
    out.extend(dose(views));
    out.extend(steal(samples, views));
    out.extend(held_back(samples, views));
    out
}

/// Misses that the stream asks for: those of a ramp's last step, which needs the whole CPU.
pub(super) fn of_stream(view: &CellView<'_>) -> f64 {
    match view.stream().demand {
        Demand::Ramp { steps, .. } | Demand::RampTurns { steps, .. } => 2.0 / f64::from(steps.max(2)),
        _ => 0.0,
    }
}

/// Misses that the load does not cause: those on the idle machine and those of the stream.
pub(super) fn unavoidable<'a>(view: &CellView<'_>, views: impl Iterator<Item = &'a CellView<'a>>) -> f64 {
    let alone = views.filter(|v| v.cell.load == "none" && v.cell.task == view.cell.task);
    let same = alone.filter(|_| view.cell.load != "none");
    let without_load = same.filter_map(|v| Some(1.0 - met_share(v)?)).fold(0.0, f64::max);
    f64::max(of_stream(view), without_load)
}

/// Whether a share of misses in so many jobs is above `limit`, and not by chance: one time in a hundred at most.
fn beyond_chance(missed: f64, jobs: usize, limit: f64) -> bool {
    let misses = (missed * jobs as f64).round() as u64;
    let fewer = misses.checked_sub(1).and_then(|k| binomial_cdf(k, jobs as u64, limit.min(1.0)));
    missed > limit && fewer.is_some_and(|p| 1.0 - p < 0.01)
}

/// The greatest share of misses that this sample excludes, at 99 %: the lower bound of Clopper and Pearson.
pub(super) fn least_share(missed: f64, jobs: usize) -> f64 {
    let (mut low, mut high) = (0.0, missed);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if beyond_chance(missed, jobs, middle) { low = middle } else { high = middle }
    }
    low
}

/// Cells with what is said of them, where there is something to say.
type Bad = Vec<(usize, String)>;

fn where_said(views: &[CellView<'_>], of: impl Fn(&CellView<'_>) -> Option<String>) -> Bad {
    views.iter().enumerate().filter_map(|(i, v)| Some((i, of(v)?))).collect()
}

/// The warning that names the `bad` cells after its text; none without any.
fn about(code: &str, text: &str, bad: Bad, hurts: &'static [&'static str]) -> Option<Found> {
    let (cells, named): (Vec<usize>, Vec<String>) = bad.into_iter().unzip();
    (!cells.is_empty()).then(|| found(code, format!("{text} {}", list(&named)), cells, hurts))
}

fn misses(views: &[CellView<'_>]) -> Vec<Found> {
    let of_task = |task: &str| {
        let mut bad: Vec<(usize, f64)> = Vec::new();
        for (i, v) in views.iter().enumerate().filter(|(_, v)| v.cell.task == task) {
            let Some(missed) = met_share(v).map(|m| 1.0 - m) else { continue };
            if beyond_chance(missed, v.jobs.len(), MISSES + unavoidable(v, views.iter())) {
                bad.push((i, missed));
            }
        }
        bad.sort_by(|a, b| b.1.total_cmp(&a.1));
        let say = |(i, m): (usize, f64)| {
            (i, format!("{} {} of {}", views[i].cell.load, human(m, Unit::One), views[i].jobs.len()))
        };
        let text = format!("{task} misses more than 1 % of its deadlines under");
        about("W310", &text, bad.into_iter().map(say).collect(), &[])
    };
    distinct(views.iter().map(|v| v.cell.task.as_str())).into_iter().filter_map(of_task).collect()
}

fn not_whole(index: usize, view: &CellView<'_>) -> Option<Found> {
    let bad: Vec<_> = view.cell.segments.iter().filter(|s| s.trouble.is_some() || !whole(s)).collect();
    let first = bad.first()?;
    let why = first.trouble.clone().unwrap_or_else(|| {
        format!("only {} of {} releases were recorded", first.jobs.len(), first.scheduled)
    });
    let left_out = bad.iter().filter(|s| !whole(s)).count();
    let text = format!(
        "{}: {} of {} segments are incomplete, {left_out} left out of the figures: {why}",
        view.name(),
        bad.len(),
        view.cell.segments.len()
    );
    Some(found("W311", text, vec![index], &["*"]))
}

/// W314: figures that came out without an interval, because too little carries them.
pub(super) fn few(metrics: &[Metric]) -> Option<Warning> {
    let named: Vec<String> = metrics
        .iter()
        .filter(|m| m.value.is_some() && m.ci.is_none() && m.flags.iter().any(|f| f == "W314"))
        .map(|m| {
            let of = |k: &str| m.params.get(k).map(ToString::to_string).unwrap_or_default();
            let figure = match m.id.strip_prefix("interactive.").unwrap_or(&m.id) {
                "lateness_quantile" => format!("p{}", of("p")),
                other => other.replace('_', " "),
            };
            format!("{figure} of {}/{} ({} samples)", of("task"), of("load"), m.n)
        })
        .collect();
    let text = format!(
        "{} no interval, because the run is too short: {}",
        if named.len() == 1 { "1 figure has".to_owned() } else { format!("{} figures have", named.len()) },
        list(&named)
    );
    (!named.is_empty()).then(|| found("W314", text, Vec::new(), &[]).warning)
}

fn disagree(views: &[CellView<'_>], accounts: &[Option<Accounts>]) -> Option<Found> {
    let ns = |v: f64| human(v, Unit::Nanoseconds);
    let say = |(i, a): (usize, &Option<Accounts>)| {
        let a = a.as_ref()?;
        let off = (a.least_ns - a.kernel_ns).max(a.kernel_ns - a.most_ns);
        let (name, kernel) = (views[i].name(), ns(a.kernel_ns));
        let (least, most) = (ns(a.least_ns.max(0.0)), ns(a.most_ns));
        let text = format!("{name}: {least} to {most} recorded, {kernel} by the kernel");
        (off > 0.1 * a.kernel_ns && off > a.length_ns / 1000.0).then_some((i, text))
    };
    let bad = accounts.iter().enumerate().filter_map(say).collect();
    let text = "recorded waits for a CPU contradict the kernel's run delay:";
    about("W315", text, bad, &["interactive.wake", "interactive.preempt", "interactive.kernel_wait_ratio"])
}

fn dose(views: &[CellView<'_>]) -> Option<Found> {
    let bad = where_said(views, |v| {
        let ratio = |j: &Job| {
            let asked = v.asked_ns(j).filter(|a| *a > 0.0 && j.ran())?;
            Some(j.cpu_ns as f64 / asked)
        };
        let off = median_of(&v.jobs.iter().filter_map(ratio).collect::<Vec<_>>())? - 1.0;
        (off.abs() > DOSE).then(|| format!("{} {:+.1} %", v.name(), off * 100.0))
    });
    let text = "the CPU time of the median job differs from the request:";
    about("W316", text, bad, &["interactive.cpu", "interactive.desired_cpu"])
}

fn steal(samples: &Samples, views: &[CellView<'_>]) -> Option<Found> {
    let cpus = samples.setup.cpus.max(1) as f64;
    let share = |v: &CellView<'_>| {
        let of = |s: &&Segment| Some(s.steal_ns? as f64 / s.load_ns.max(s.length_ns) as f64 / cpus);
        v.segments.iter().filter_map(of).fold(0.0, f64::max)
    };
    let mut bad: Vec<(usize, f64)> =
        views.iter().enumerate().map(|(i, v)| (i, share(v))).filter(|s| s.1 > STEAL).collect();
    bad.sort_by(|a, b| b.1.total_cmp(&a.1));
    let say = |(i, s): (usize, f64)| (i, format!("{} {}", views[i].name(), human(s, Unit::One)));
    let hurts = &["interactive.lateness", "interactive.lateness_quantile", "interactive.deadlines_met"];
    let text = "the hypervisor took CPU time (steal) in segments of";
    about("W317", text, bad.into_iter().map(say).collect(), hurts)
}

/// Waits about as long as what the kernel takes from real-time threads on purpose.
fn held_back(samples: &Samples, views: &[CellView<'_>]) -> Option<Found> {
    let taking: Vec<&str> =
        samples.setup.conditions.iter().map(String::as_str).filter(|c| !milliseconds(c).is_empty()).collect();
    let lengths_ms: Vec<f64> = taking.iter().flat_map(|c| milliseconds(c)).collect();
    let bad = where_said(views, |v| {
        let of = |j: &Job| j.wake_ns.max(j.preempt_ns().max(0) as u64);
        let longest_ms = v.jobs.iter().map(of).max().unwrap_or(0) as f64 / 1e6;
        let is_like = |l: &f64| (0.8 * l..=1.2 * l).contains(&longest_ms);
        lengths_ms.iter().any(is_like).then(|| format!("{} {} ms", v.name(), digits(longest_ms)))
    });
    let text = format!(
        "the longest waits equal the time that the kernel takes from real-time threads ({}):",
        taking.join("; ")
    );
    about("W318", &text, bad, &["interactive.lateness", "interactive.wake", "interactive.preempt"])
}

/// Lengths in a text that are given in ms, a per-second figure (`50 ms per second`, `50 ms/s`) included.
fn milliseconds(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_ms = |w: &str| w.trim_end_matches(|c: char| !c.is_alphabetic()).split('/').next() == Some("ms");
    words
        .windows(2)
        .filter(|w| is_ms(w[1]))
        .filter_map(|w| w[0].parse().ok())
        .filter(|ms| *ms > 0.0)
        .collect()
}
pub(super) fn flag(metrics: &mut [Metric], views: &[CellView<'_>], found: &Found) {
    for i in &found.cells {
        let params = views[*i].params();
        let of_cell = |m: &&mut Metric| params.iter().all(|(k, v)| m.params.get(k) == Some(v));
        for m in metrics.iter_mut().filter(of_cell) {
            if found.hurts.contains(&m.id.as_str()) || found.hurts.contains(&"*") {
                m.flag(&found.warning.code);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_jobs_are_no_proof() {
        assert!(beyond_chance(1.0, 8, 0.01) && beyond_chance(0.0575, 400, 0.01));
        assert!(!beyond_chance(0.25, 4, 0.01));
        assert!(!beyond_chance(0.012, 10_000, 0.0119) && !beyond_chance(0.0, 0, 0.01));
    }

    #[test]
    fn lengths_are_read_from_conditions() {
        assert_eq!(milliseconds("the fair server takes 50 ms per second, 1.5 ms/s"), [50.0, 1.5]);
        assert!(milliseconds("none of 1000 us").is_empty());
    }
}
