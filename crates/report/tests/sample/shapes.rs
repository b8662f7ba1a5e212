//! Datasets of the synthetic record, one of every shape.

use machmeter_data::shape::{
    Axis, Cell, CostTable, Curve, CurveRow, Dataset, DecadeRow, Decades, Distribution, DistributionRow, Mark,
    Matrix, Scatter, ScatterGroup, Series, SeriesRow, Shape, TableColumn, TableRow,
};
use machmeter_data::{Params, Unit};

use super::Dice;

/// All of them; the series has `buckets` points.
pub fn datasets(cpus: usize, buckets: usize) -> Vec<Dataset> {
    let set = |id: &str, title: &str, caption: &str, shape| Dataset {
        id: id.to_owned(),
        params: Params::new(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        shape,
    };
    vec![
        set(
            "noise.timeline",
            "Time lost over the run",
            "Share of each window that the loop did not get. The band reaches from the least to the greatest window of a bucket, the line is their mean.",
            Shape::Series(series(cpus, buckets)),
        ),
        set(
            "noise.detours",
            "Detours: how long and how often",
            "Every class of detours at its duration and rate. Above and right of the crowd is what hurts.",
            Shape::Scatter(scatter()),
        ),
        set(
            "noise.spectrum",
            "Spectrum of the lost time",
            "Power of the window series. Sharp lines are periodic sources; named where known.",
            Shape::Curve(curve(cpus)),
        ),
        set(
            "noise.percentiles",
            "Duration of detours by percentile",
            "How long the longest share of detours took.",
            Shape::Distribution(distribution(cpus)),
        ),
        set(
            "noise.coincidence",
            "Time lost per CPU",
            "Dark cells above one another are disturbances that hit CPUs at once.",
            Shape::Matrix(matrix(cpus, 240, true)),
        ),
        set(
            "memory.core_to_core",
            "Core to core",
            "Time of one hand-over.",
            Shape::Matrix(matrix(cpus.min(8), cpus.min(8), false)),
        ),
        set(
            "ops.ladder",
            "Ten to the power minus",
            "What operations cost, decade by decade.",
            Shape::Decades(decades()),
        ),
        set(
            "noise.sources",
            "Who took the time",
            "Sources of detours by the time they took, all CPUs.",
            Shape::CostTable(costs()),
        ),
    ]
}

fn series(cpus: usize, buckets: usize) -> Series {
    let mut dice = Dice(1);
    let rows = (0..cpus)
        .map(|cpu| {
            let mut row = SeriesRow {
                name: format!("CPU {cpu}"),
                min: Vec::new(),
                mean: Vec::new(),
                max: Vec::new(),
                marks: vec![
                    Mark {
                        x: 3.2e9,
                        y: Some(0.9),
                        label: "27.6 ms".to_owned(),
                        detail: "cc1plus (pid 20112), longest of the run".to_owned(),
                    },
                    Mark {
                        x: 7.9e9,
                        y: Some(0.55),
                        label: "14.1 ms".to_owned(),
                        detail: "outside the kernel".to_owned(),
                    },
                ],
            };
            for i in 0..buckets {
                let burst = if (i * 10 / buckets) % 3 == cpu % 3 { 3.0 } else { 1.0 };
                let mean = (0.012 + 0.01 * dice.roll()) * burst;
                row.min.push(mean * 0.2 * dice.roll());
                row.max.push((mean * (1.5 + 8.0 * dice.roll().powi(6))).min(1.0));
                row.mean.push(mean);
            }
            row
        })
        .collect();
    Series { start_ns: 0.0, step_ns: 1e10 / buckets as f64, y: Axis::linear("time lost", Unit::One), rows }
}

fn scatter() -> Scatter {
    let mut dice = Dice(2);
    let mut group = |name: &str, n: usize, at: (f64, f64), wide: f64| ScatterGroup {
        name: name.to_owned(),
        points: (0..n)
            .map(|_| {
                (
                    at.0 * 10_f64.powf(wide * (dice.roll() - 0.5)),
                    at.1 * 10_f64.powf(wide * (dice.roll() - 0.5)),
                )
            })
            .collect(),
    };
    Scatter {
        x: Axis::log("duration", Unit::Nanoseconds),
        y: Axis::log("rate", Unit::Hertz),
        groups: vec![
            group("timer tick", 120, (3e3, 250.0), 0.4),
            group("cc1plus", 240, (2e6, 8.0), 1.8),
            group("rcu_sched", 90, (12e3, 30.0), 0.8),
            group("outside the kernel", 60, (80e3, 3.0), 1.6),
            group("page fault", 40, (900.0, 60.0), 0.5),
        ],
    }
}

fn curve(cpus: usize) -> Curve {
    let mut dice = Dice(3);
    let rows = (0..cpus)
        .map(|cpu| {
            let x: Vec<f64> = (0..400).map(|i| 0.5 * 10_000_f64.powf(f64::from(i) / 399.0)).collect();
            let y = x
                .iter()
                .map(|f| {
                    let line = |at: f64| 40.0 / (1.0 + ((f / at).ln() * 60.0).powi(2));
                    1e-7 * (1.0 + cpu as f64)
                        * (5.0 / (1.0 + f / 20.0) + 0.3 * dice.roll() + 0.1 + line(250.0) + line(1.0))
                })
                .collect();
            CurveRow { name: format!("CPU {cpu}"), x, y }
        })
        .collect();
    let mark = |x: f64, label: &str, detail: &str| Mark {
        x,
        y: None,
        label: label.to_owned(),
        detail: detail.to_owned(),
    };
    Curve {
        x: Axis::log("frequency", Unit::Hertz),
        y: Axis::log("power", Unit::PerHertz),
        rows,
        marks: vec![
            mark(250.0, "250 Hz tick", "timer tick, 3.0 us each"),
            mark(1.0, "1 Hz kworker", "2.1 ms each"),
        ],
    }
}

fn distribution(cpus: usize) -> Distribution {
    let rows = (0..cpus)
        .map(|cpu| {
            let mut quantiles: Vec<(f64, f64)> = (0..80)
                .map(|i| {
                    let x = 41_207_f64.powf(f64::from(i) / 79.0);
                    (1.0 - 1.0 / x, 1_200.0 * (1.0 + cpu as f64 * 0.2) * x.powf(0.85))
                })
                .collect();
            quantiles.push((1.0, 27.6e6 * (1.0 + cpu as f64 * 0.1)));
            DistributionRow { name: format!("CPU {cpu}"), n: 41_207, quantiles }
        })
        .collect();
    Distribution { value: Axis::log("duration", Unit::Nanoseconds), rows }
}

fn matrix(rows: usize, columns: usize, time: bool) -> Matrix {
    let mut dice = Dice(4);
    let values = (0..rows)
        .map(|r| {
            (0..columns)
                .map(|c| {
                    if time {
                        ((r + c) % 97 != 0).then(|| 0.001 * 10_f64.powf(2.4 * dice.roll()))
                    } else {
                        (r != c).then(|| 55.0 + 40.0 * dice.roll())
                    }
                })
                .collect()
        })
        .collect();
    Matrix {
        x: if time {
            Axis::linear("time after start", Unit::Nanoseconds)
        } else {
            Axis::linear("to CPU", Unit::Count)
        },
        columns: (0..columns)
            .map(|c| if time { c as f64 * 1e10 / columns as f64 } else { c as f64 })
            .collect(),
        column_names: Vec::new(),
        rows: (0..rows).map(|r| format!("CPU {r}")).collect(),
        cell: if time {
            Axis::log("time lost", Unit::One)
        } else {
            Axis::linear("hand-over", Unit::Nanoseconds)
        },
        values,
    }
}

fn costs() -> CostTable {
    let column = |label: &str, unit| TableColumn { label: label.to_owned(), unit };
    let row = |name: &str, kind: &str, share: f64, rate: f64, median: f64, max: Option<f64>| TableRow {
        name: name.to_owned(),
        cells: vec![
            Cell::Text(kind.to_owned()),
            Cell::Number(share),
            Cell::Number(rate),
            Cell::Number(median),
            max.map_or(Cell::Empty(()), Cell::Number),
        ],
    };
    CostTable {
        columns: vec![
            column("Kind", None),
            column("Share of lost time", Some(Unit::One)),
            column("Rate", Some(Unit::Hertz)),
            column("Median", Some(Unit::Nanoseconds)),
            column("Longest", Some(Unit::Nanoseconds)),
        ],
        rows: vec![
            row("cc1plus", "thread", 0.71, 8.1, 2.1e6, Some(27.6e6)),
            row("outside the kernel", "outside", 0.09, 3.2, 80e3, Some(14.1e6)),
            row("rcu_sched", "thread", 0.06, 30.0, 12e3, Some(91e3)),
            row("local_timer", "tick", 0.05, 250.0, 3.0e3, Some(22e3)),
            row("unknown", "unknown", 0.09, 19.0, 1.2e3, None),
        ],
    }
}

fn decades() -> Decades {
    let rows = [
        ("rd cache", 1.08),
        ("rd main", 152.0),
        ("call", 169.0),
        ("fopen", 21_000.0),
        ("thr_create", 29_000.0),
    ];
    let row = |(name, value): (&str, f64)| DecadeRow {
        name: name.to_owned(),
        value,
        low: Some(value * 0.9),
        high: Some(value * 1.2),
    };
    Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: rows.into_iter().map(row).collect() }
}
