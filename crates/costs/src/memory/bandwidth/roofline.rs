//! The roofline (S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009) from measured ceilings: what a loop can reach at
//! most, by its operations per byte, for operands that lie in each cache or in memory; and where measured loops stand.

use machmeter_data::shape::{Axis, CurveRow, Dataset, Mark};
use machmeter_data::{Unit, quantity::human};

use super::analyze::{Figure, Figures};
use super::plan::split;
use super::sizes::Level;
use crate::show;

/// Least and greatest operations per byte shown.
const INTENSITIES: (f64, f64) = (1.0 / 64.0, 64.0);
const PLACED: [&str; 2] = ["daxpy", "triad"];

/// The roofline, if a peak and a bandwidth are known.
pub(super) fn dataset(figures: &Figures<'_>) -> Option<Dataset> {
    let peaks: Vec<(&str, f64)> = figures
        .all
        .iter()
        .filter(|f| f.is_peak())
        .filter_map(|f| Some((f.row.operation.as_str(), f.rate()?)))
        .collect();
    let highest = peaks.iter().map(|(_, p)| *p).fold(0.0, f64::max);
    let slopes: Vec<(Level, f64)> =
        Level::TABLE.iter().filter_map(|l| Some((*l, figures.plain("read", *l, 1)?.rate()?))).collect();
    if highest <= 0.0 || slopes.is_empty() {
        return None;
    }
    let mut rows: Vec<CurveRow> =
        slopes.iter().map(|(level, rate)| ceiling(*level, *rate, highest)).collect();
    for (name, peak) in peaks.iter().filter(|(_, p)| *p < 0.95 * highest) {
        rows.push(CurveRow {
            name: (*name).to_owned(),
            x: vec![INTENSITIES.0, INTENSITIES.1],
            y: vec![*peak, *peak],
        });
    }
    let caption = "Operations per second that a loop can reach, by its floating-point operations per byte requested: the \
                   bandwidth of reads from each level, up to the peak of multiply-adds on registers. One CPU. A loop that \
                   also stores can stay below its ceiling.";
    let axes = [Axis::log("operations per byte", Unit::Count), Axis::log("operations", Unit::FlopsPerSecond)];
    show::curves(["memory.roofline", "Roofline", caption], axes, rows, marks(figures))
}

/// Bandwidth times operations per byte, up to the peak.
fn ceiling(level: Level, rate: f64, peak: f64) -> CurveRow {
    let ridge = peak / rate;
    let mut x = vec![INTENSITIES.0, ridge, INTENSITIES.1];
    x.retain(|x| (INTENSITIES.0..=INTENSITIES.1).contains(x));
    let y = x.iter().map(|x| (x * rate).min(peak)).collect();
    CurveRow { name: format!("{} read", level.name()), x, y }
}

fn marks(figures: &Figures<'_>) -> Vec<Mark> {
    let placed = |f: &&Figure<'_>| PLACED.contains(&f.family) && f.cpus == 1 && f.is_plain();
    let data = |f: &&Figure<'_>| f.data() == figures.data && !f.is_level(Level::Sweep);
    // The widest of a family stands for it; a full plan has all widths.
    let widest = |f: &&Figure<'_>| {
        Level::TABLE
            .iter()
            .filter_map(|l| figures.plain(f.family, *l, 1))
            .any(|best| best.row.operation == f.row.operation && best.level == f.level)
    };
    figures
        .all
        .iter()
        .filter(placed)
        .filter(data)
        .filter(widest)
        .filter_map(|f| {
            let intensity = *f.row.extras.get("flops_per_byte")?;
            let flops = f.rate()? * intensity;
            (intensity > 0.0).then(|| Mark {
                x: intensity,
                y: Some(flops),
                label: format!("{} {}", split(&f.row.operation).0, f.level),
                detail: format!(
                    "{} over {}: {}",
                    f.row.operation,
                    human(f.working_set_bytes as f64, Unit::Bytes),
                    human(flops, Unit::FlopsPerSecond)
                ),
                ..Mark::default()
            })
        })
        .collect()
}
