//! Classes of detours by duration, one per decade.

use machmeter_data::quantity::Unit;
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::{Dataset, Shape};

use super::figures::{CpuView, Durations};

/// A class: name and the shortest duration in it, ns. Each ends where the next begins.
pub const CLASSES: [(&str, f64); 7] = [
    ("under 1 us", 0.0),
    ("1-10 us", 1e3),
    ("10-100 us", 1e4),
    ("100 us-1 ms", 1e5),
    ("1-10 ms", 1e6),
    ("10-100 ms", 1e7),
    ("over 100 ms", 1e8),
];
pub fn class_of(duration_ns: f64) -> usize {
    CLASSES.iter().rposition(|(_, low)| duration_ns >= *low).unwrap_or(0)
}
pub fn table(views: &[CpuView<'_>]) -> Dataset {
    let mut lots = vec![Durations { n: 0, lots: Vec::new() }; CLASSES.len()];
    for v in views {
        for (low, high, count) in v.all_durations().lots {
            let of = &mut lots[class_of(f64::midpoint(low, high))];
            of.lots.push((low, high, count));
            of.n += count;
        }
    }
    for of in &mut lots {
        of.lots.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let sum_ns = |d: &Durations| d.lots.iter().map(|l| f64::midpoint(l.0, l.1) * l.2 as f64).sum::<f64>();
    let wall_s: f64 = views.iter().map(CpuView::wall_s).sum();
    let rows = CLASSES
        .iter()
        .zip(&lots)
        .filter(|(_, d)| d.n > 0)
        .map(|((name, _), d)| TableRow {
            name: (*name).to_owned(),
            cells: vec![
                Cell::Number(d.n as f64),
                Cell::Number(d.n as f64 / wall_s),
                Cell::Number(sum_ns(d) / 1e9 / wall_s),
                d.quantile(0.5).map_or(Cell::Empty(()), Cell::Number),
            ],
        })
        .collect();
    let columns = vec![
        TableColumn::new("gaps", Unit::Count),
        TableColumn::new("rate per CPU", Unit::Hertz),
        TableColumn::new("of CPU time", Unit::One),
        TableColumn::new("median", Unit::Nanoseconds),
    ];
    Dataset::new(
        "noise.classes",
        "Gaps by duration",
        "Many short gaps and few long ones cost the same share of time but hurt different programs.",
        Shape::CostTable(CostTable { columns, rows }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decade_is_a_class() {
        assert_eq!(class_of(0.0), 0);
        assert_eq!(class_of(999.9), 0);
        assert_eq!(class_of(1000.0), 1);
        assert_eq!(class_of(5e9), 6);
    }
}
