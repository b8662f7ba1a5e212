//! What to draw: the staircase, the pages, the line, the misses under way, the surface over strides.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{Axis, Curve, CurveRow, Mark, Matrix};
use machmeter_data::{Dataset, Params, Shape};
use machmeter_stats::quantile::median_of;

use super::chase::{GLOBAL, HUGE, ONE_PER_PAGE, PAGE_BYTES, PAGE_LOCAL, SMALL, STRIDED};
use super::closer::STRIDES;
use super::found::Found;
use super::hierarchy::Point;
use super::reading::Reading;

/// All datasets of the part that have something to show.
pub(super) fn all(reading: &Reading<'_>, found: &Found<'_>) -> Vec<Dataset> {
    [staircase(reading, found), pages(reading, found), line(reading), parallel(reading), surface(reading)]
        .into_iter()
        .flatten()
        .collect()
}

fn dataset(id: &str, title: &str, caption: &str, shape: Shape) -> Dataset {
    Dataset {
        id: id.to_owned(),
        params: Params::new(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        shape,
    }
}

/// Three significant digits more than a drawing shows, and no more.
fn brief(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

/// A row of medians, `None` when there are fewer than two points.
fn row(name: &str, points: &[Point], per_x: f64) -> Option<CurveRow> {
    let median =
        |p: &Point| Some((p.size / per_x, median_of(&p.costs_ns.iter().map(|c| c.1).collect::<Vec<_>>())?));
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().filter_map(median).map(|(x, y)| (x, brief(y))).unzip();
    (x.len() > 1).then(|| CurveRow { name: name.to_owned(), x, y })
}

fn staircase(reading: &Reading<'_>, found: &Found<'_>) -> Option<Dataset> {
    let mut rows = Vec::new();
    for (pages, of_pages) in [(SMALL, "4 KiB pages"), (HUGE, "2 MiB pages")] {
        for (order, in_order) in [
            (GLOBAL, "random"),
            (PAGE_LOCAL, "random inside pages"),
            (ONE_PER_PAGE, "one line per page"),
            (STRIDED, "line after line"),
        ] {
            rows.extend(row(&format!("{in_order}, {of_pages}"), &reading.points(order, pages), 1.0));
        }
    }
    let marks = found.caches.iter().flat_map(|c| {
        let detected = Mark {
            x: brief(c.boundary.size),
            y: None,
            label: c.name.clone(),
            detail: format!("{} found at {}", c.name, human(c.boundary.size, Unit::Bytes)),
        };
        let claimed = c.claim.map(|claim| Mark {
            x: claim.bytes as f64,
            y: None,
            label: format!("{} as claimed", c.name),
            detail: format!("the system says {}", human(claim.bytes as f64, Unit::Bytes)),
        });
        [Some(detected), claimed].into_iter().flatten()
    });
    let marks = marks.collect();
    (!rows.is_empty()).then(|| {
        dataset(
            "memory.staircase",
            "Latency over working set",
            "What a load costs whose address comes from the load before. Each tread is a cache; the last one is memory. Random \
             order pays for caches and address translation; random inside pages pays for hardly any translation, and \
             prefetchers may help it; one line per page is mostly translation; line after line is what prefetchers are made \
             for. Marks: where levels end, found and as the system claims.",
            Shape::Curve(Curve {
                x: Axis::log("working set", Unit::Bytes),
                y: Axis::log("latency", Unit::Nanoseconds),
                rows,
                marks,
            }),
        )
    })
}

/// The reach of the first translation buffer, drawn only where there is more than the short plan's look.
fn pages(reading: &Reading<'_>, found: &Found<'_>) -> Option<Dataset> {
    let reach = found.first_reach.as_ref()?;
    let per_page = PAGE_BYTES as f64;
    let mut points = reading.points(ONE_PER_PAGE, found.first_pages);
    points.retain(|p| p.size <= 4.0 * reach.last);
    let rows: Vec<CurveRow> = row("one line per page", &points, per_page).into_iter().collect();
    (points.len() >= 30).then(|| {
        dataset(
            "memory.translations",
            "Latency over pages",
            "One line in each of so many 4 KiB pages: the step is where the first buffer of address translations is full.",
            Shape::Curve(Curve {
                x: Axis::linear("pages", Unit::Count),
                y: Axis::linear("latency", Unit::Nanoseconds),
                rows,
                marks: vec![Mark {
                    x: reach.last / per_page,
                    y: None,
                    label: format!("{:.0} pages", reach.last / per_page),
                    detail: String::new(),
                }],
            }),
        )
    })
}

fn line(reading: &Reading<'_>) -> Option<Dataset> {
    let points = reading.curve("offset_bytes", |r| r.operation == "second");
    let mut sizes: Vec<f64> = points.iter().map(|p| p.size).collect();
    sizes.dedup();
    let together: Vec<Point> = sizes
        .into_iter()
        .map(|size| Point {
            size,
            costs_ns: points.iter().filter(|p| p.size == size).flat_map(|p| p.costs_ns.clone()).collect(),
        })
        .collect();
    let rows: Vec<CurveRow> = row("second access", &together, 1.0).into_iter().collect();
    (together.len() >= 8).then(|| {
        dataset(
            "memory.line",
            "Second access in a block",
            "Mean latency of two accesses so many bytes apart, in blocks that live in the second cache. Inside the line that \
             the first one fetched the second is nearly free; the step is the line size.",
            Shape::Curve(Curve {
                x: Axis::log("distance", Unit::Bytes),
                y: Axis::linear("latency", Unit::Nanoseconds),
                rows,
                marks: Vec::new(),
            }),
        )
    })
}

fn parallel(reading: &Reading<'_>) -> Option<Dataset> {
    let points = reading.curve("chains", |r| r.operation == "parallel");
    let rows: Vec<CurveRow> = row("per load", &points, 1.0).into_iter().collect();
    (points.len() > 2).then(|| {
        dataset(
            "memory.parallel_loads",
            "Loads under way",
            "Time per load from memory with so many independent chains: it falls until the processor keeps no more misses \
             under way.",
            Shape::Curve(Curve {
                x: Axis::log("chains", Unit::Count),
                y: Axis::log("time per load", Unit::Nanoseconds),
                rows,
                marks: Vec::new(),
            }),
        )
    })
}

fn surface(reading: &Reading<'_>) -> Option<Dataset> {
    let curve = |stride: &usize| {
        reading.curve("working_set_bytes", |r| {
            r.operation == "chase"
                && r.text("order") == GLOBAL
                && r.text("pages") == reading.first_pages()
                && r.int("stride_bytes") == Some(*stride as i64)
        })
    };
    let curves: Vec<Vec<Point>> = STRIDES.iter().map(curve).collect();
    if curves.iter().skip(1).all(Vec::is_empty) {
        return None;
    }
    let mut columns: Vec<f64> = curves[1..].iter().flatten().map(|p| p.size).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    let cell = |curve: &[Point], size: f64| {
        let p = curve.iter().find(|p| p.size == size)?;
        median_of(&p.costs_ns.iter().map(|c| c.1).collect::<Vec<_>>()).map(brief)
    };
    let values = curves.iter().map(|c| columns.iter().map(|size| cell(c, *size)).collect()).collect();
    Some(dataset(
        "memory.surface",
        "Latency over stride and working set",
        "Random order over nodes one stride apart: along a row the caches show, down a column lines, sets and pages.",
        Shape::Matrix(Matrix {
            x: Axis::log("working set", Unit::Bytes),
            columns,
            column_names: Vec::new(),
            rows: STRIDES.iter().map(|s| format!("stride {s} B")).collect(),
            cell: Axis::log("latency", Unit::Nanoseconds),
            values,
        }),
    ))
}
