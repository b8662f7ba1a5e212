//! What a person should read first.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_data::record::{Finding, Summary, SummaryLine};
use machmeter_data::summary::{Bounds, Evidence, Fit, Fitness, Purpose};
use machmeter_stats::quantile::{quantile, sorted};
use machmeter_stats::spread::{mean, stddev};

use super::audio::{periods, safe_buffer, xruns};
use super::datasets::met_share;
use super::figures::{lateness_series, of_desired_cpu};
use super::frames::frames;
use super::view::CellView;
use super::warnings::{MISSES, least_share, of_stream, unavoidable};
use super::{distinct, finding};
use crate::info;
use crate::samples::Samples;
use crate::tasks::{Kind, find};

/// Tasks up to which rows tell a run without other loads than burn.
const FEW_TASKS: usize = 3;

pub(super) fn write(samples: &Samples, views: &[CellView<'_>], metrics: &[Metric]) -> Summary {
    let seen: Vec<&CellView<'_>> = views.iter().filter(|v| !v.jobs.is_empty()).collect();
    if seen.is_empty() {
        return Summary::default();
    }
    let tasks = distinct(views.iter().map(|v| v.cell.task.as_str()));
    let plain = views.iter().all(|v| ["none", "burn"].contains(&v.cell.load.as_str()));
    let is_grid = !plain || tasks.len() > FEW_TASKS;
    let mut lines: Vec<String> = tasks.iter().filter(|_| is_grid).flat_map(|t| table(t, &seen)).collect();
    let predicted = samples.setup.predicted_from.iter();
    lines.extend(predicted.map(|p| format!("predicted by simulation over {p}, not measured")));
    let table = (!lines.is_empty()).then(|| SummaryLine { section: "INTERACTIVE".to_owned(), lines });
    Summary {
        lines: table.into_iter().collect(),
        fitness: fitness(&seen, metrics).into_iter().collect(),
        ..Summary::default()
    }
}

fn ns(v: f64) -> String {
    human(v, Unit::Nanoseconds)
}

fn table(task: &str, views: &[&CellView<'_>]) -> Vec<String> {
    let of: Vec<&&CellView<'_>> = views.iter().filter(|v| v.cell.task == task).collect();
    let Some(first) = of.first() else { return Vec::new() };
    let kind = first.kind();
    let extra = match kind {
        Kind::Audio => "xruns/min",
        Kind::Frames => "stutters/min",
        Kind::Plain => "",
    };
    let met = if first.back_to_back() { "" } else { "%met" };
    let row = |cells: [&str; 7]| {
        let [load, mean_sd, p99, max, cpu, met, extra] = cells;
        format!("{load:<11}{mean_sd:>19}{p99:>9}{max:>9}{cpu:>6}{met:>6}{extra:>13}")
    };
    let about = match find(task) {
        Some(t) if task != "custom" => t.description.to_owned(),
        _ => about_stream(first),
    };
    let mut out = vec![
        format!("{task}: {about}"),
        row(["load", "lateness mean +- sd", "p99", "max", "%CPU", met, extra]).trim_end().to_owned(),
    ];
    out.extend(of.iter().map(|v| {
        let s = sorted(&lateness_series(v).values).unwrap_or_default();
        let p99 = (s.len() >= 100).then(|| quantile(&s, 0.99)).flatten();
        let missed = met_share(v).map(|m| 1.0 - m);
        let text = row([
            &v.cell.load,
            &mean_and_sd(mean(&s).unwrap_or(0.0), stddev(&s).unwrap_or(0.0)),
            &p99.map_or("-".to_owned(), ns),
            &s.last().map_or("-".to_owned(), |m| ns(*m)),
            &of_desired_cpu(v).value.map_or("-".to_owned(), percent),
            &met_share(v).map_or(String::new(), percent),
            &per_minute(v).map_or(String::new(), digits),
        ]);
        let too_many = MISSES + unavoidable(v, views.iter().copied());
        let mark = if missed.is_some_and(|m| m > too_many) { "  <- misses" } else { "" };
        format!("{}{mark}", text.trim_end())
    }));
    out
}

/// The stream of a task that the user described.
fn about_stream(view: &CellView<'_>) -> String {
    let period = view.stream().period_ns().map(|p| format!("every {} ", ns(p as f64)));
    let cpu = view.stream().cpu_ns(0).map_or("work".to_owned(), |c| format!("{} of CPU", ns(c as f64)));
    format!("{}{cpu}", period.unwrap_or_default())
}

/// `3.90 +- 5.00 ms`: both in the unit that fits the larger one unless the mean would vanish in it.
fn mean_and_sd(mean_ns: f64, sd_ns: f64) -> String {
    let fits = |ns: f64| [(1e9, "s"), (1e6, "ms"), (1e3, "us")].into_iter().find(|(f, _)| ns >= f * 0.9995);
    let (factor, unit) = fits(mean_ns.max(sd_ns / 30.0)).unwrap_or((1.0, "ns"));
    format!("{} +- {} {unit}", digits(mean_ns / factor), digits(sd_ns / factor))
}

/// Percent without the sign, never 100 for less than all.
fn percent(share: f64) -> String {
    let p = share * 100.0;
    if share < 1.0 && p >= 99.95 { format!("{:.2}", (p * 100.0).floor() / 100.0) } else { digits(p) }
}

/// Xruns (of the task's own buffer) or stutters per minute.
fn per_minute(view: &CellView<'_>) -> Option<f64> {
    let minutes = view.length_ns() / 60e9;
    match view.kind() {
        Kind::Audio => {
            let own = view.stream().deadline_ns()? / view.stream().period_ns()?.max(1);
            let count = *xruns(view)?.get((own.max(1) - 1) as usize)?;
            (minutes > 0.0).then(|| count as f64 / minutes)
        }
        Kind::Frames => frames(view).map(|f| f.stutters as f64 / f.time_s * 60.0),
        Kind::Plain => None,
    }
}

/// Cells that miss over 1 % more than is unavoidable, the worst first, with the share missed.
fn worst<'v, 'a>(views: &[&'v CellView<'a>]) -> Vec<(&'v CellView<'a>, f64)> {
    let mut out: Vec<(&CellView<'_>, f64)> = views
        .iter()
        .filter_map(|v| Some((*v, 1.0 - met_share(v)?)))
        .filter(|(v, missed)| *missed > MISSES + unavoidable(v, views.iter().copied()))
        .collect();
    out.sort_by(|a, b| b.1.total_cmp(&a.1));
    out
}

/// Share of deadlines missed on the idle machine.
const IDLE: Bounds = Bounds::at(MISSES);
/// The same under a load.
const LOADED: Bounds = Bounds { fit: MISSES, unfit: 0.1 };

/// The verdict on audio and video over all loads measured. The worst cell decides.
fn fitness(views: &[&CellView<'_>], metrics: &[Metric]) -> Option<Fitness> {
    let mut cells: Vec<(Fitness, [f64; 2], &CellView<'_>)> = Vec::new();
    for view in views.iter().filter(|v| v.kind() != Kind::Plain) {
        let Some(missed) = met_share(view).map(|met| 1.0 - met) else { continue };
        let range = missed_range(view, missed, metrics);
        let fact = Evidence {
            purpose: Purpose::Audio,
            range,
            bounds: if view.cell.load == "none" { IDLE } else { LOADED },
            reason: missed_words(view, missed),
        };
        cells.push((fact.fitness(), range, view));
    }
    let worst = cells.iter().map(|c| c.0.fit).max()?;
    let of_worst = cells.iter().filter(|c| c.0.fit == worst);
    let (mut fitness, ..) =
        of_worst.max_by(|a, b| a.1[0].total_cmp(&b.1[0]).then(a.1[1].total_cmp(&b.1[1])))?.clone();
    if worst == Fit::Yes {
        let most = cells.iter().map(|c| c.1[1]).fold(0.0, f64::max);
        fitness.reason = format!("at most {} of deadlines missed under any load", human(most, Unit::One));
    }
    match buffer(views) {
        Some((true, words)) if worst == Fit::Yes => fitness.reason += &format!("; {words}"),
        Some((false, words)) if worst < Fit::Partly => {
            fitness.fit = Fit::Partly;
            fitness.reason = format!("{}; {words}", fitness.reason.split("; ").next().unwrap_or_default());
        }
        _ => {}
    }
    let only = [(Kind::Audio, "video"), (Kind::Frames, "audio")]
        .into_iter()
        .find(|(kind, _)| cells.iter().all(|(.., v)| v.kind() == *kind))
        .map(|(_, other)| format!("; {other} was not measured"));
    fitness.reason += &only.unwrap_or_default();
    Some(fitness)
}

/// `2 of 24 video deadlines missed under burn`.
fn missed_words(view: &CellView<'_>, missed: f64) -> String {
    let (task, load) = (&view.cell.task, under(view));
    let jobs = view.jobs.len();
    match (missed * jobs as f64).round() as usize {
        0 => format!("{task} missed none of {jobs} deadlines {load}"),
        late if late * 10 < jobs => format!("{task} missed {late} of {jobs} deadlines {load}"),
        _ => format!("{task} missed {} of its deadlines {load}", human(missed, Unit::One)),
    }
}

/// Both ends of the share of deadlines missed, without the misses that the stream asks for. Among many cells one 95 % interval in twenty would
/// blame the machine: so the lower end is at most that of an exact binomial bound of 99 %, which few jobs have as well. Without an interval, the
/// upper end is unknown.
fn missed_range(view: &CellView<'_>, missed: f64, metrics: &[Metric]) -> [f64; 2] {
    let (params, own) = (view.params(), of_stream(view));
    let met = metrics.iter().find(|m| m.id == info::MET.id && m.params == params);
    let [met_low, met_high] = met.map_or([f64::NAN; 2], Evidence::range);
    let low = least_share(missed, view.jobs.len()).min(1.0 - met_high) - own;
    let high = 1.0 - met_low - own;
    [low.max(0.0), if high.is_nan() { f64::NAN } else { high.max(0.0) }]
}

fn load<'v>(view: &'v CellView<'_>) -> &'v str {
    if view.cell.load == "none" { "no load" } else { &view.cell.load }
}

/// `under burn`, `on the idle machine`.
fn under(view: &CellView<'_>) -> String {
    if view.cell.load == "none" {
        "on the idle machine".to_owned()
    } else {
        format!("under {}", view.cell.load)
    }
}

/// Whether each audio task has a buffer that is safe under all loads, and what is to say of that with the shortest period.
fn buffer(views: &[&CellView<'_>]) -> Option<(bool, String)> {
    let audio: Vec<(&CellView<'_>, Vec<usize>)> =
        views.iter().filter_map(|v| Some((*v, xruns(v)?))).collect();
    let is_unsafe = |(_, counts): &&(&CellView<'_>, Vec<usize>)| safe_buffer(counts).is_none();
    if let Some((v, counts)) = audio.iter().filter(is_unsafe).min_by_key(|(v, _)| v.stream().period_ns()) {
        let task = &v.cell.task;
        let of_task = audio.iter().filter(is_unsafe).filter(|(v, _)| v.cell.task == *task);
        let loads: Vec<&str> = of_task.map(|(v, _)| load(v)).collect();
        let (most, loads) = (periods(counts.len()), loads.join(", "));
        return Some((false, format!("even {most} of buffer ran dry for {task} under {loads}")));
    }
    let (shortest, _) = audio.iter().min_by_key(|(v, _)| v.stream().period_ns())?;
    let (task, period_ns) = (&shortest.cell.task, shortest.stream().period_ns()?);
    let of_task = audio.iter().filter(|(v, _)| v.cell.task == *task);
    let k = of_task.filter_map(|(_, counts)| safe_buffer(counts)).max()?;
    let length = ns((period_ns * k as u64) as f64);
    let are = if k == 1 { "is" } else { "are" };
    Some((true, format!("{} of buffer ({length}) {are} safe for {task}", periods(k))))
}

pub(super) fn hurt(views: &[CellView<'_>]) -> Option<Finding> {
    let seen: Vec<&CellView<'_>> = views.iter().filter(|v| met_share(v).is_some()).collect();
    if seen.is_empty() {
        return None;
    }
    let bad = worst(&seen);
    let evidence = bad.iter().take(12).map(|(v, missed)| {
        let late = sorted(&lateness_series(v).values).unwrap_or_default();
        let run = super::figures::longest_miss_run(v).unwrap_or(0);
        format!(
            "{}: {} of {} deadlines missed, longest run {run}, lateness up to {}",
            v.name(),
            human(*missed, Unit::One),
            v.jobs.len(),
            late.last().map_or("-".to_owned(), |m| ns(*m))
        )
    });
    let (verdict, text) = match (bad.len(), seen.len()) {
        (0, n) => {
            ("none_seen", format!("No load made a task miss more than 1 % of its deadlines, in {n} cells."))
        }
        (bad, n) => ("present", format!("{bad} of {n} cells missed more than 1 % of their deadlines.")),
    };
    Some(finding("interactive.misses", verdict, text, evidence.collect()))
}
