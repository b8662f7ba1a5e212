//! The table printed by sysjitter: `name: value per core`.

use machmeter_data::{Column, Unit};

use super::codes::{self, warn};
use super::columns::{Cell, add_table, list, shortened};
use super::{Imported, Input, Reader, Result, SourceFile};

pub(super) const READER: Reader = Reader {
    name: "sysjitter-summary",
    description: "sysjitter's printed table: core_i:, int_n:, int_min(ns): ... with one column per core",
    sniff: |input| matches!(input.files.as_slice(), [f] if f.text.trim_start().starts_with("core_i:") && f.text.contains("\nint_n:")),
    fill,
};

const ASCENDING: &[&str] =
    &["int_min", "int_median", "int_90", "int_99", "int_999", "int_9999", "int_99999", "int_max"];

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let file = input.first()?;
    let is_number_of_cpu = |v: f64| v.fract() == 0.0 && v <= f64::from(i32::MAX);
    let cpus: Vec<i32> = line(file, "core_i", is_number_of_cpu)?.into_iter().map(|v| v as i32).collect();
    let mut rows: Vec<(i32, &str, f64)> = Vec::new();
    for name in ASCENDING.iter().chain(&["int_mean", "int_total"]) {
        let values = line(file, &format!("{name}(ns)"), |_| true)?;
        if values.len() != cpus.len() {
            let what = format!("{name} has {} values for {} cores", values.len(), cpus.len());
            return Err(file.fault(what));
        }
        rows.extend(cpus.iter().zip(values).map(|(c, v)| (*c, *name, v)));
    }
    for c in &cpus {
        let own = rows.iter().filter(|r| r.0 == *c).map(|r| r.2);
        if !own.take(ASCENDING.len()).is_sorted() {
            warn(out, codes::WRONG_EXTREMES, format!("core {c}: the printed quantiles are not in order"));
        }
    }
    out.assume("the table has no samples: only quantiles and totals per core");
    let mut notes = vec![("cpu_is", "cpu".to_owned()), ("cpus", list(&cpus))];
    for (key, name) in [("threshold_ns", "threshold(ns)"), ("wall_ns", "runtime(ns)"), ("detours", "int_n")] {
        if let Ok(v) = line(file, name, |_| true) {
            notes.push((key, v.iter().map(f64::to_string).collect::<Vec<_>>().join(",")));
        }
    }
    let columns = vec![
        Column::new("cpu", Unit::Count, rows.iter().map(|r| r.0).collect::<Vec<_>>()),
        Column::new("statistic", Unit::One, rows.iter().map(|r| r.1.to_owned()).collect::<Vec<_>>()),
        Column::new("value_ns", Unit::Nanoseconds, rows.iter().map(|r| r.2).collect::<Vec<_>>()),
    ];
    add_table(out, "noise_summary", columns, &notes);
    Ok(())
}

/// The values of the line `name:`; `allowed` must accept all of them.
fn line(file: &SourceFile, name: &str, allowed: fn(f64) -> bool) -> Result<Vec<f64>> {
    let values = |l: &'_ str| Some(l.strip_prefix(name)?.strip_prefix(':')?.to_owned());
    let mut found = (1..).zip(file.text.lines()).filter_map(|(at, l)| Some((at, values(l)?)));
    let (at, values) =
        found.next().ok_or_else(|| file.fault(format!("no line \"{name}:\", which sysjitter prints")))?;
    let wrong = |w: &str| file.fault_at(at, format!("found {:?}, expected a number", shortened(w)));
    let number = |w: &str| f64::parse(w).filter(|v| allowed(*v)).ok_or_else(|| wrong(w));
    values.split_whitespace().map(number).collect()
}
