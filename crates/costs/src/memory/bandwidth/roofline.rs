//! The roofline (S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009) from measured ceilings, with measured loops.

use machmeter_data::shape::{Axis, CurveRow, Dataset, Mark};
use machmeter_data::{Unit, quantity::human};

use super::analyze::{Figure, Figures};

use super::sizes::Level;
use crate::show;

/// Least and greatest operations per byte shown.
const INTENSITIES: (f64, f64) = (1.0 / 64.0, 64.0);
const PLACED: [&str; 2] = ["daxpy", "triad"];

pub(super) fn dataset(figures: &Figures<'_>) -> Option<Dataset> {
    let peaks = figures.all.iter().filter(|f| f.is_peak());
    let peaks: Vec<(&str, f64)> = peaks.filter_map(|f| Some((f.row.operation.as_str(), f.rate()?))).collect();
    let highest = peaks.iter().map(|(_, p)| *p).fold(0.0, f64::max);
    let slopes: Vec<(Level, f64)> =
        Level::TABLE.iter().filter_map(|l| Some((*l, figures.plain("read", *l, 1)?.rate()?))).collect();
    if highest <= 0.0 || slopes.is_empty() {
        return None;
    }
    let mut rows: Vec<CurveRow> =
        slopes.iter().map(|(level, rate)| ceiling(*level, *rate, highest)).collect();
    let lower = peaks.iter().filter(|(_, p)| *p < 0.95 * highest);
    let flat = |peak: f64| vec![(INTENSITIES.0, peak), (INTENSITIES.1, peak)];
    rows.extend(lower.filter_map(|(name, peak)| show::curve(name, flat(*peak))));
    let caption = "Operations per second that a loop can reach, by its floating-point operations per byte requested: the \
                   bandwidth of reads from each level, up to the peak of multiply-adds on registers. One CPU. A loop that \
                   also stores can stay below its ceiling.";
    let axes = [Axis::log("operations per byte", Unit::Count), Axis::log("operations", Unit::FlopsPerSecond)];
    show::curves(["memory.roofline", "Roofline", caption], axes, rows, marks(figures))
}

fn ceiling(level: Level, rate: f64, peak: f64) -> CurveRow {
    let ridge = peak / rate;
    let mut x = vec![INTENSITIES.0, ridge, INTENSITIES.1];
    x.retain(|x| (INTENSITIES.0..=INTENSITIES.1).contains(x));
    let y = x.iter().map(|x| (x * rate).min(peak)).collect();
    CurveRow { name: format!("{} read", level.name()), x, y }
}

fn marks(figures: &Figures<'_>) -> Vec<Mark> {
    let mark = |f: &Figure<'_>| {
        let x = *f.row.extras.get("flops_per_byte")?;
        let flops = f.rate()? * x;
        let label = format!("{} {}", f.family, f.level);
        let bytes = human(f.working_set_bytes as f64, Unit::Bytes);
        let detail = format!("{} over {bytes}: {}", f.row.operation, human(flops, Unit::FlopsPerSecond));
        (x > 0.0).then(|| Mark { x, y: Some(flops), label, detail, ..Mark::default() })
    };
    // The widest of a family stands for it; a full plan has all widths.
    let placed = PLACED.iter().flat_map(|family| Level::TABLE.map(|level| figures.plain(family, level, 1)));
    placed.flatten().filter_map(mark).collect()
}
