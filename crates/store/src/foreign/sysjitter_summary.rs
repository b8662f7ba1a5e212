//! The table that sysjitter prints: `name: value per core`.

use machmeter_data::Unit;

use super::codes::{self, warn};
use super::columns::{int32, list, real, shortened, table, text};
use super::{ForeignError, Imported, Input, Reader, SourceFile, imported};

pub(super) const READER: Reader = Reader {
    name: "sysjitter-summary",
    description: "sysjitter's printed table: core_i:, int_n:, int_min(ns): ... with one column per core",
    sniff: |input| matches!(input.files.as_slice(), [f] if f.text.trim_start().starts_with("core_i:") && f.text.contains("\nint_n:")),
    read,
};

const ASCENDING: &[&str] =
    &["int_min", "int_median", "int_90", "int_99", "int_999", "int_9999", "int_99999", "int_max"];

fn read(input: &Input) -> Result<Imported, ForeignError> {
    let file = input.files.first().ok_or_else(|| ForeignError::new("input".as_ref(), "no file given"))?;
    let mut out = imported(READER.name, input);
    let cpus: Vec<i32> = line(file, "core_i")?;
    let (mut cpu, mut statistic, mut value_ns) = (Vec::new(), Vec::new(), Vec::new());
    for name in ASCENDING.iter().chain(&["int_mean", "int_total"]) {
        let values: Vec<f64> = line(file, &format!("{name}(ns)"))?;
        if values.len() != cpus.len() {
            let what = format!("{name} has {} values for {} cores", values.len(), cpus.len());
            return Err(ForeignError::new(&file.path, what));
        }
        for (c, v) in cpus.iter().zip(values) {
            cpu.push(*c);
            statistic.push((*name).to_owned());
            value_ns.push(v);
        }
    }
    for c in &cpus {
        let sorted: Vec<f64> = cpu
            .iter()
            .zip(&value_ns)
            .filter(|(k, _)| *k == c)
            .map(|(_, v)| *v)
            .take(ASCENDING.len())
            .collect();
        if sorted.windows(2).any(|w| w[0] > w[1]) {
            warn(
                &mut out,
                codes::WRONG_EXTREMES,
                format!("core {c}: the printed quantiles are not in order"),
            );
        }
    }
    out.assume("the table has no samples: only quantiles and totals per core");
    let mut notes = vec![("cpu_is", "cpu".to_owned()), ("cpus", list(&cpus))];
    for (key, name) in [("threshold_ns", "threshold(ns)"), ("wall_ns", "runtime(ns)"), ("detours", "int_n")] {
        if let Ok(v) = line::<f64>(file, name) {
            notes.push((key, v.iter().map(f64::to_string).collect::<Vec<_>>().join(",")));
        }
    }
    let columns = vec![
        int32("cpu", Unit::Count, cpu),
        text("statistic", statistic),
        real("value_ns", Unit::Nanoseconds, value_ns),
    ];
    out.tables.push(table("noise_summary", columns, &notes, input)?);
    Ok(out)
}

/// The values of the line `name:`.
fn line<T: TryFrom64>(file: &SourceFile, name: &str) -> Result<Vec<T>, ForeignError> {
    for (i, l) in file.text.lines().enumerate() {
        if let Some(values) = l.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')) {
            return values
                .split_whitespace()
                .map(|w| {
                    w.parse::<f64>()
                        .ok()
                        .filter(|v| v.is_finite() && *v >= 0.0)
                        .and_then(T::from64)
                        .ok_or_else(|| {
                            ForeignError::at(
                                &file.path,
                                i + 1,
                                format!("found {:?}, expected a number", shortened(w)),
                            )
                        })
                })
                .collect();
        }
    }
    Err(ForeignError::new(&file.path, format!("no line \"{name}:\", which sysjitter prints")))
}

/// The two kinds of numbers in the table.
trait TryFrom64: Sized {
    fn from64(v: f64) -> Option<Self>;
}
impl TryFrom64 for f64 {
    fn from64(v: f64) -> Option<Self> {
        Some(v)
    }
}
impl TryFrom64 for i32 {
    fn from64(v: f64) -> Option<Self> {
        (v.fract() == 0.0 && v <= f64::from(Self::MAX)).then_some(v as Self)
    }
}
