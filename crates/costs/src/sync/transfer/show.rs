//! What to draw and what to say: matrices per level, the series with its levels, the lines of the page.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{Axis, Cell, Matrix, Scatter, ScatterGroup, TableRow};
use machmeter_data::{Dataset, Shape};
use machmeter_engine::cost::Rows;
use machmeter_engine::disturbance::Distance;
use machmeter_loops::sync::transfer::Kind;
use machmeter_stats::quantile::median_of;

use super::analyze::{COUPLES_MAX, Placement, View, percent};
use crate::show;

pub(super) const MATRIX_CPUS: usize = 32;
const POINTS: usize = 240;
const TABLE_COUPLES: usize = 16;

pub(super) fn datasets(views: &[View<'_>], rows: &Rows) -> Vec<Dataset> {
    let mut out = Vec::from_iter(table(views, rows));
    // Two CPUs have two cells, and the table has them all: one kind shows what a placement does.
    let kinds = if views.len() == 1 { &[Kind::Cas][..] } else { Kind::ALL };
    let names = show::distinct(views.iter().flat_map(View::placements).map(|p| p.name));
    for name in &names {
        out.extend(kinds.iter().filter_map(|kind| matrix(views, rows, *kind, name)));
    }
    out.extend(watched(views).map(series));
    out
}

/// Couples whose time line is drawn: of each class of neighborhood the one that moved between most levels.
fn watched<'v, 'r>(views: &'v [View<'r>]) -> impl Iterator<Item = &'v View<'r>> {
    Distance::ALL.iter().filter_map(|distance| {
        let of = views.iter().filter(|v| v.class == distance.name());
        // The first of several, which was visited first.
        of.rev().max_by_key(|v| v.placements().len())
    })
}

/// One kind at the placement of this name of each couple; `None` where no couple has a figure.
fn matrix(views: &[View<'_>], rows: &Rows, kind: Kind, placement: &str) -> Option<Dataset> {
    let mut cpus = show::ascending(views.iter().flat_map(|v| [v.low, v.high]));
    let all = cpus.len();
    cpus.truncate(MATRIX_CPUS);
    let cell = |from: usize, to: usize| {
        let v = views.iter().find(|v| (v.low, v.high) == (from.min(to), from.max(to)))?;
        let level = v.placements().into_iter().find(|p| p.name == placement)?.level;
        v.cost(rows, from, kind, level)?.value_ns().map(|x| show::rounded(x, 2))
    };
    let name = |cpu: &usize| format!("CPU {cpu}");
    let values: Vec<Vec<Option<f64>>> =
        cpus.iter().map(|from| cpus.iter().map(|to| cell(*from, *to)).collect()).collect();
    if values.iter().flatten().all(Option::is_none) {
        return None;
    }
    let mut caption =
        "Row: the CPU that asks and near whose memory the line lies. Column: the CPU that answers. Empty: not measured."
            .to_owned();
    if views.len() > 1 {
        caption.push_str(" Each pair has its own placements; near is the cheapest that was seen, far the dearest of several.");
    }
    if all > cpus.len() {
        caption.push_str(&format!(" The first {} of {all} CPUs are drawn.", cpus.len()));
    }
    Some(
        Dataset::new(
            "sync.core_to_core",
            format!("Core to core: {}, {}", describe(kind), time(views, placement)),
            caption,
            Shape::Matrix(Matrix::named(
                "to",
                cpus.iter().map(name).collect(),
                cpus.iter().map(name).collect(),
                Axis::log("one way", Unit::Nanoseconds),
                values,
            )),
        )
        .with_params(params([("kind", kind.name().into()), ("placement", placement.into())])),
    )
}

/// Share of the time at a placement: `72 % of the time`, of several couples the median.
fn time(views: &[View<'_>], placement: &str) -> String {
    let of = |v: &View<'_>| v.placements().into_iter().find(|p| p.name == placement).map(|p| p.regime.share);
    let shares: Vec<f64> = views.iter().filter_map(of).collect();
    let share = percent(median_of(&shares).unwrap_or(0.0));
    match views {
        [_] => format!("{share} of the time"),
        _ => format!("{share} of the time (median of {} of {} pairs)", shares.len(), views.len()),
    }
}

fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Cas => "compare-and-swap of one line",
        Kind::OneLine => "store and load of one line",
        Kind::TwoLines => "store and load of two lines",
        Kind::ReadDirty => "read of a line just written",
        Kind::ReadClean => "read of a line just read",
    }
}

fn table(views: &[View<'_>], rows: &Rows) -> Option<Dataset> {
    let mut out = Vec::new();
    for v in views.iter().take(TABLE_COUPLES) {
        for placement in v.placements() {
            for from in [v.low, v.high] {
                let value = |k: &Kind| v.cost(rows, from, *k, placement.level).and_then(|c| c.value_ns());
                let figure = |k: &Kind| show::number(value(k).map(|x| show::rounded(x, 2)));
                out.push(TableRow {
                    name: format!("CPU {from} to {}, {}", v.other(from), placement.name),
                    cells: std::iter::once(Cell::Number(show::rounded(placement.regime.share, 2)))
                        .chain(Kind::ALL.iter().map(figure))
                        .collect(),
                });
            }
        }
    }
    let mut caption = "cas: both compare-and-swap one word. store_load_1: both store and load one word. store_load_2: each has a \
                       line of its own. These are half a round trip. read_dirty and read_clean: one dependent read of a line that \
                       the other CPU has just written or read. Placements are levels of latency over time: near is the cheapest, far the dearest of several."
        .to_owned();
    if views.len() > TABLE_COUPLES {
        caption.push_str(&format!(
            " The first {TABLE_COUPLES} of {} pairs, of each neighborhood some.",
            views.len()
        ));
    }
    if views.len() > COUPLES_MAX {
        caption.push_str(&format!(" The first {COUPLES_MAX} pairs have metrics of their own."));
    }
    let columns = Kind::ALL.iter().map(|k| (k.name(), show::NS));
    let columns = std::iter::once(("share of time", Some(Unit::One))).chain(columns);
    show::table(["sync.transfer", "A cache line from one CPU to another", &caption], columns, out)
}

fn series(v: &View<'_>) -> Dataset {
    let step = v.values_ns.len().div_ceil(POINTS).max(1);
    // A rare level must not fall between the points: of a level with few samples every one is kept.
    let group = |Placement { level, regime: r, .. }: Placement<'_>| {
        let on = v.levels.tags.iter().enumerate().filter(|(_, t)| **t == level).map(|(at, _)| at);
        let step = if r.share < 0.1 { 1 } else { step };
        let points = on
            .step_by(step)
            .take(POINTS)
            .map(|at| ((v.times_ns[at] / 1e6).round() * 1e6, show::rounded(v.values_ns[at], 2)));
        ScatterGroup {
            name: format!(
                "{}, {} of the time",
                human(r.center, Unit::Nanoseconds),
                human(r.share, Unit::One)
            ),
            points: points.collect(),
        }
    };
    Dataset::new("sync.regimes", format!("CPU {} and {} over time", v.low, v.high), "One way of a compare-and-swapped line, one point per lap of about a millisecond. Levels at least a factor of 1.5 \
                  apart are placements: where the host has put the two CPUs.", Shape::Scatter(Scatter {
            x: Axis::linear("time", Unit::Nanoseconds),
            y: Axis::log("one way", Unit::Nanoseconds),
            groups: v.placements().into_iter().map(group).collect(),
        })).with_params(params([("from", v.low.into()), ("to", v.high.into())]))
}
