//! What other tools store that is neither windows nor gaps; it is shown as what it is, and nothing more is claimed.

use std::collections::BTreeMap;

use machmeter_data::quantity::Unit;
use machmeter_data::shape::{Cell, CostTable, DistributionRow, TableColumn, TableRow};
use machmeter_data::{Dataset, Shape, Table};

use super::analyze::datasets::distribution;

const HISTOGRAM: &str = "noise_histogram";
const WORK: &str = "noise_work";
const SUMMARY: &str = "noise_summary";

const PER_DECADE: i32 = 10;

/// Pictures of everything in `tables` that is not windows or gaps.
pub(super) fn datasets(tables: &[Table]) -> Vec<Dataset> {
    let find = |name: &str| tables.iter().find(|t| t.name == name);
    [find(HISTOGRAM).and_then(histogram), find(WORK).and_then(work), find(SUMMARY).and_then(summary)]
        .into_iter()
        .flatten()
        .collect()
}

/// A histogram as percentile curves; a value stands for the upper end of its bucket, so no tail is made shorter.
fn histogram(t: &Table) -> Option<Dataset> {
    let cpu = t.i32s("cpu")?;
    let (low, high) = (t.f64s("low_ns")?, t.f64s("high_ns")?);
    let count = t.i64s("count")?;
    let mut buckets = Buckets::new();
    for i in 0..t.rows() {
        // The bucket beyond the last has no upper end: its lower end is all that is known.
        let value = if high[i].is_finite() { high[i] } else { low[i] };
        buckets.entry(cpu[i]).or_default().push((value, count[i].max(0) as u64));
    }
    let quantity = match t.note("quantity") {
        Some("wakeup_latency") => "wake-up latency (how late a timer woke the thread; not stolen time)",
        Some("turn_duration") => "duration of a turn of the loop (ordinary turns are the lowest values)",
        _ => "duration",
    };
    let caption = format!(
        "Percentiles of the {quantity}, from the file's buckets; each value is the upper end of its bucket."
    );
    distribution("noise.imported_histogram", "Imported histogram", caption, curves(buckets))
}

/// How many of which value, by CPU.
type Buckets = BTreeMap<i32, Vec<(f64, u64)>>;

fn curves(of_cpus: Buckets) -> Vec<DistributionRow> {
    let row = |(cpu, mut buckets): (i32, Vec<(f64, u64)>)| {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n: u64 = buckets.iter().map(|b| b.1).sum();
        let quantiles = || curve(n, |rank| at_rank(&buckets, rank));
        (n > 0).then(|| DistributionRow { name: format!("CPU {cpu}"), n, quantiles: quantiles() })
    };
    of_cpus.into_iter().filter_map(row).collect()
}

fn at_rank(buckets: &[(f64, u64)], rank: u64) -> f64 {
    let mut seen = 0;
    buckets
        .iter()
        .find(|b| {
            seen += b.1;
            seen > rank
        })
        .or(buckets.last())
        .map_or(0.0, |b| b.0)
}

/// (probability, value) pairs, ten per factor of ten of 1 / (1 - p), the maximum last.
fn curve(n: u64, value: impl Fn(u64) -> f64) -> Vec<(f64, f64)> {
    // Twenty factors of ten are more than 64 bits count.
    (0..20 * PER_DECADE)
        .map(|k| 10f64.powf(-f64::from(k) / f64::from(PER_DECADE)))
        .take_while(|rest| rest * n as f64 >= 1.0)
        .map(|rest| 1.0 - rest)
        .map(|p| ((p * 1e7).round() / 1e7, value(((n as f64 * p) as u64).min(n - 1))))
        .chain([(1.0, value(n - 1))])
        .collect()
}

fn work(t: &Table) -> Option<Dataset> {
    let (cpu, ticks) = (t.i32s("cpu")?, t.i64s("duration_ticks")?);
    let hz = t.note("tick_hz").and_then(|h| h.parse::<f64>().ok()).filter(|h| *h > 0.0);
    let scale = hz.map_or(1.0, |h| 1e9 / h);
    let mut durations = Buckets::new();
    for (c, d) in cpu.iter().zip(ticks) {
        durations.entry(*c).or_default().push(((*d).max(0) as f64 * scale, 1));
    }
    let unit = if hz.is_some() {
        ""
    } else {
        " The file does not contain the length of a tick: one tick is drawn as 1 ns."
    };
    let caption = format!("Percentiles of the time that one piece of fixed work took (FWQ).{unit}");
    distribution("noise.imported_work", "Durations of fixed work", caption, curves(durations))
}
fn summary(t: &Table) -> Option<Dataset> {
    let (cpu, statistic, value) = (t.i32s("cpu")?, t.texts("statistic")?, t.f64s("value_ns")?);
    let mut cpus: Vec<i32> = cpu.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let mut rows: Vec<TableRow> = Vec::new();
    for i in 0..t.rows() {
        let column = cpus.iter().position(|c| *c == cpu[i])?;
        let at = rows.iter().position(|r| r.name == statistic[i]).unwrap_or_else(|| {
            rows.push(TableRow { name: statistic[i].clone(), cells: vec![Cell::Empty(()); cpus.len()] });
            rows.len() - 1
        });
        if value[i].is_finite() {
            rows[at].cells[column] = Cell::Number(value[i]);
        }
    }
    let columns = cpus.iter().map(|c| TableColumn::new(format!("CPU {c}"), Unit::Nanoseconds)).collect();
    (!rows.is_empty()).then(|| {
        Dataset::new(
            "noise.imported_summary",
            "Imported summary",
            "Figures as printed by the other tool. They cannot be checked without its samples.",
            Shape::CostTable(CostTable { columns, rows }),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_reaches_the_maximum_and_never_descends() {
        let buckets = [(1e3, 900), (2e3, 99), (5e4, 1)];
        let c = curve(1000, |r| at_rank(&buckets, r));
        assert_eq!(c.first(), Some(&(0.0, 1e3)));
        assert_eq!(c.last(), Some(&(1.0, 5e4)));
        assert!(c.windows(2).all(|w| w[0].1 <= w[1].1));
    }
}
