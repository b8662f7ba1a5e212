//! What to draw: the matrix of deadlines, the tables, the distributions.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{
    Axis, Cell, CostTable, Distribution, DistributionRow, Mark, Matrix, TableColumn, TableRow, four_digits,
};
use machmeter_data::{Dataset, Shape};
use machmeter_stats::quantile::{quantile, sorted};
use machmeter_stats::spread::{mean, stddev};

use super::account::rate_hz;
use super::audio::{periods, safe_buffer, xruns};
use super::figures::{lateness_series, met_flags, of_desired_cpu};
use super::frames::frames;
use super::view::CellView;
use crate::samples::LoadNote;
use crate::tasks::{Kind, MOST_BUFFERS};

/// Points of a percentile curve per factor of ten of 1 / (1 - p).
const PER_DECADE: u32 = 5;

pub(super) fn all(views: &[CellView<'_>], loads: &[LoadNote]) -> Vec<Dataset> {
    let mut out: Vec<Dataset> = met(views).into_iter().collect();
    let recorded = || views.iter().filter(|v| !v.jobs.is_empty());
    let tasks: Vec<(&str, Vec<&CellView<'_>>)> = distinct(views.iter().map(|v| v.cell.task.as_str()))
        .into_iter()
        .map(|task| (task, recorded().filter(|v| v.cell.task == task).collect()))
        .filter(|(_, of): &(&str, Vec<_>)| !of.is_empty())
        .collect();
    // Alike ones follow each other, so that a view can set them side by side.
    out.extend(tasks.iter().filter_map(|(task, of)| latency_table(task, of)));
    out.extend(tasks.iter().map(|(task, of)| lateness(task, of)));
    out.extend(load_work(views, loads));
    out.extend(audio(views));
    out.extend(frame_table(views));
    out
}

/// Each once, in the order in which they first come.
pub(crate) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for one in all {
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out
}

fn number(x: Option<f64>) -> Cell {
    x.filter(|x| x.is_finite()).map_or(Cell::Empty(()), |x| Cell::Number(four_digits(x)))
}

/// Share of deadlines met, exact: 1 only where none was missed.
pub(super) fn met_share(view: &CellView<'_>) -> Option<f64> {
    let flags = met_flags(view).filter(|f| !f.is_empty())?;
    Some(flags.iter().filter(|f| **f).count() as f64 / flags.len() as f64)
}

fn met(views: &[CellView<'_>]) -> Option<Dataset> {
    let loads = distinct(views.iter().map(|v| v.cell.load.clone()));
    let with_deadlines: Vec<_> = views.iter().filter(|v| v.stream().deadline_ns().is_some()).collect();
    let rows = distinct(with_deadlines.iter().map(|v| v.cell.task.clone()));
    let value = |task: &String, load: &String| {
        let v = with_deadlines.iter().find(|v| v.cell.task == *task && v.cell.load == *load)?;
        met_share(v).map(|m| (m * 1e5).round() / 1e5)
    };
    let values: Vec<_> = rows.iter().map(|t| loads.iter().map(|l| value(t, l)).collect()).collect();
    (!rows.is_empty()).then(|| {
        Dataset::new(
            "interactive.met",
            "Deadlines met",
            "Share of all scheduled releases that were done in time, per task (row) and load (column). A dropped release counts as missed.",
            Shape::Matrix(Matrix::named("load", loads, rows, Axis::linear("deadlines met", Unit::One), values)),
        )
    })
}

fn table(
    id: &str,
    title: &str,
    caption: &str,
    columns: Vec<TableColumn>,
    rows: Vec<TableRow>,
) -> Option<Dataset> {
    let shape = |rows| Shape::CostTable(CostTable { columns, rows });
    (!rows.is_empty()).then(|| Dataset::new(id, title, caption, shape(rows)))
}

fn latency_table(task: &str, views: &[&CellView<'_>]) -> Option<Dataset> {
    let columns = vec![
        TableColumn::new("Latency", Unit::Nanoseconds),
        TableColumn::new("SD", Unit::Nanoseconds),
        TableColumn::new("Max Latency", Unit::Nanoseconds),
        TableColumn::new("Desired CPU", Unit::One),
        TableColumn::new("Deadlines Met", Unit::One),
    ];
    let rows = views.iter().map(|v| {
        let xs = lateness_series(v).values;
        let cells = vec![
            number(mean(&xs)),
            number(stddev(&xs)),
            number(xs.iter().copied().reduce(f64::max)),
            number(of_desired_cpu(v).value),
            number(met_share(v)),
        ];
        TableRow { name: v.cell.load.clone(), cells }
    });
    let table = table(
        "interactive.latency_table",
        "Latency under each load",
        "Laid out as interbench does. Latency runs from the scheduled release to the begin of the job; SD is its true standard deviation.",
        columns,
        rows.collect(),
    )?;
    Some(table.with_params(params([("task", task.into())])))
}

fn lateness(task: &str, views: &[&CellView<'_>]) -> Dataset {
    let rows = views.iter().filter_map(|v| {
        let s = sorted(&lateness_series(v).values).ok().filter(|s| !s.is_empty())?;
        let at = |p| quantile(&s, p).unwrap_or(0.0);
        Some(DistributionRow::of(v.cell.load.clone(), s.len() as u64, PER_DECADE, at, s[s.len() - 1]))
    });
    Dataset::new(
        "interactive.lateness",
        "Percentiles of lateness",
        "Percentiles of the wait from the scheduled release of a job until it began, per load; each step to the right is ten times rarer. \
         The right end of a curve is a single release: see interactive.lateness_quantile for intervals.",
        Shape::Distribution(Distribution {
            value: Axis::log("lateness", Unit::Nanoseconds),
            rows: rows.collect(),
            limits: views.first().map(|v| limits(v)).unwrap_or_default(),
        }),
    )
    .with_params(params([("task", task.into())]))
}

/// Audio that is later than the time its buffers hold is heard, a frame that is later than its deadline seen.
fn limits(view: &CellView<'_>) -> Vec<Mark> {
    let at = |ns: u64, label: &str| Mark {
        y: Some(ns as f64),
        label: format!("{label}: {}", human(ns as f64, Unit::Nanoseconds)),
        ..Mark::default()
    };
    match (view.kind(), view.stream().period_ns(), view.stream().deadline_ns()) {
        (Kind::Audio, Some(period_ns), _) => vec![at(period_ns, "1 buffer"), at(2 * period_ns, "2 buffers")],
        (Kind::Frames, _, Some(deadline_ns)) => vec![at(deadline_ns, "deadline")],
        _ => Vec::new(),
    }
}

fn load_work(views: &[CellView<'_>], loads: &[LoadNote]) -> Option<Dataset> {
    let worked: Vec<&CellView<'_>> = views.iter().filter(|v| rate_hz(v).is_some()).collect();
    let tasks = distinct(views.iter().map(|v| v.cell.task.as_str()));
    let row = |load: &str| {
        let note = loads.iter().find(|l| l.name == load);
        let own_unit = note.and_then(|l| Unit::ALL.iter().find(|u| u.ucum() == l.unit));
        let beside = |task: &&str| worked.iter().find(|w| w.cell.task == *task && w.cell.load == load);
        let rate = |task| match (beside(task).and_then(|w| rate_hz(w)), own_unit) {
            // The column is of events; bytes are none.
            (Some(rate), Some(unit)) if *unit != Unit::Hertz => Cell::Text(human(rate, *unit)),
            (rate, _) => number(rate),
        };
        let work = note.map_or("", |l| l.work.as_str());
        let cells = std::iter::once(Cell::Text(work.to_owned())).chain(tasks.iter().map(rate)).collect();
        TableRow { name: load.to_owned(), cells }
    };
    let rows = distinct(worked.iter().map(|v| v.cell.load.as_str())).into_iter().map(row).collect();
    let mut columns = vec![TableColumn::new("unit of work", None)];
    columns.extend(tasks.iter().map(|t| TableColumn::new(format!("beside {t}"), Unit::Hertz)));
    table(
        "interactive.load_work",
        "Work of the loads",
        "Units of work per second that each load (row) got done beside each task: what the task's latency costs.",
        columns,
        rows,
    )
}

fn audio(views: &[CellView<'_>]) -> Option<Dataset> {
    let row = |v: &CellView<'_>| {
        let counts = xruns(v)?;
        let safe = match (safe_buffer(&counts), v.stream().period_ns()) {
            (Some(k), Some(period_ns)) => {
                format!("{k} ({})", human((k as u64 * period_ns) as f64, Unit::Nanoseconds))
            }
            _ => format!("none up to {}", counts.len()),
        };
        let mut cells: Vec<Cell> = counts.iter().map(|c| Cell::Number(*c as f64)).collect();
        cells.resize(MOST_BUFFERS as usize, Cell::Empty(()));
        cells.push(Cell::Text(safe));
        Some(TableRow { name: format!("{} under {}", v.cell.task, v.cell.load), cells })
    };
    let rows = views.iter().filter_map(row).collect();
    let mut columns: Vec<TableColumn> =
        (1..=MOST_BUFFERS).map(|k| TableColumn::new(periods(k as usize), Unit::Count)).collect();
    columns.push(TableColumn::new("safe buffer", None));
    table(
        "interactive.audio",
        "Audio buffers",
        "How often a buffer of each size ran dry in the recording, and the smallest size that never did. Consecutive late periods are one \
         xrun. A run of late periods that a small buffer counts once can be several in a larger one. A task that drops its backlog shows \
         nothing beyond the length of that backlog.",
        columns,
        rows,
    )
}

fn frame_table(views: &[CellView<'_>]) -> Option<Dataset> {
    let row = |v: &CellView<'_>| {
        let f = frames(v)?;
        let per_minute = f.stutters as f64 / f.time_s * 60.0;
        let figures = [f.median_ns, f.p99_ns, f.low_percentile_hz, f.low_tail_mean_hz, per_minute];
        let cells = figures.map(|x| number(Some(x))).to_vec();
        Some(TableRow { name: format!("{} under {}", v.cell.task, v.cell.load), cells })
    };
    let rows = views.iter().filter_map(row).collect();
    let columns = vec![
        TableColumn::new("median frame time", Unit::Nanoseconds),
        TableColumn::new("p99 frame time", Unit::Nanoseconds),
        TableColumn::new("1 % low (percentile)", Unit::Hertz),
        TableColumn::new("1 % low (mean of slowest)", Unit::Hertz),
        TableColumn::new("stutters per minute", Unit::Count),
    ];
    table(
        "interactive.frames",
        "Frames",
        "Time between the ends of consecutive frames. Both 1 % lows that are in use: the rate at the 99th percentile of frame times, and \
         the rate of the mean of the slowest hundredth. A stutter is a frame that comes later than half of the task's own frame time.",
        columns,
        rows,
    )
}
