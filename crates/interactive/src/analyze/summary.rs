//! What a person should read first.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_data::record::{Finding, Summary, SummaryLine};
use machmeter_data::summary::{Fit, Fitness, PURPOSES};
use machmeter_stats::quantile::{quantile, sorted};
use machmeter_stats::spread::{mean, stddev};

use super::audio::{periods, safe_buffer, xruns};
use super::datasets::met_share;
use super::figures::{lateness_series, of_desired_cpu};
use super::frames::frames;
use super::view::CellView;
use super::warnings::{MISSES, unavoidable};
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

/// Whether audio and video come in time under all loads measured.
fn fitness(views: &[&CellView<'_>], metrics: &[Metric]) -> Option<Fitness> {
    let judged: Vec<(&CellView<'_>, f64)> = views
        .iter()
        .filter(|v| v.kind() != Kind::Plain)
        .filter_map(|v| Some((*v, 1.0 - met_share(v)?)))
        .collect();
    let (latest, missed) = judged.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let bad: Vec<_> = worst(views).into_iter().filter(|(v, _)| v.kind() != Kind::Plain).collect();
    let (has_buffer, buffer) = buffer(views).unwrap_or((true, String::new()));
    let late = if *missed > 0.0 {
        format!("at most {} late ({} under {})", human(*missed, Unit::One), latest.cell.task, load(latest))
    } else {
        "none late".to_owned()
    };
    let with_buffer = || format!("{late}; {buffer}").trim_end_matches([';', ' ']).to_owned();
    let (fit, reason) = match bad.first() {
        Some((v, missed)) => {
            let missed = human(*missed, Unit::One);
            let reason = format!("{} misses {missed} of its deadlines under {}", v.cell.task, load(v));
            (if bad.len() == judged.len() { Fit::No } else { Fit::Partly }, reason)
        }
        None if !has_buffer => (Fit::Partly, with_buffer()),
        None if judged.iter().any(|(v, _)| !surely_met(v, metrics)) => {
            (Fit::Unknown, format!("{late}, but too few were seen to be sure: measure longer"))
        }
        None => (Fit::Yes, with_buffer()),
    };
    let only = [(Kind::Audio, "video"), (Kind::Frames, "audio")]
        .into_iter()
        .find(|(kind, _)| judged.iter().all(|(v, _)| v.kind() == *kind))
        .map(|(_, other)| format!("; {other} was not measured"));
    let reason = reason + &only.unwrap_or_default();
    Some(Fitness { purpose: PURPOSES[1].to_owned(), fit, reason })
}

fn load<'v>(view: &'v CellView<'_>) -> &'v str {
    if view.cell.load == "none" { "no load" } else { &view.cell.load }
}

/// Whether the interval of the share of deadlines met excludes that [`MISSES`] are missed.
fn surely_met(view: &CellView<'_>, metrics: &[Metric]) -> bool {
    let params = view.params();
    let met = metrics.iter().find(|m| m.id == info::MET.id && m.params == params);
    met.and_then(|m| m.ci.as_ref()).is_some_and(|ci| ci.low >= 1.0 - MISSES)
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
