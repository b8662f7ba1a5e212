//! What is shown: the table of kernels, bandwidth over working sets, bandwidth over CPUs.

use machmeter_data::Unit;
use machmeter_data::shape::{Axis, CurveRow, Dataset, TableRow};

use super::analyze::{Figure, Figures};
use super::plan::USUAL;
use super::sizes::Level;
use crate::show;

/// Families of the curves over CPUs, the widest kernel of each, where no kernels were asked for.
const CPU_CURVES: [&str; 4] = ["read", "write", "copy", "triad"];

/// All datasets that there are figures for. `chosen`: whether kernels were asked for, which are then those of the curves.
pub(super) fn all(figures: &Figures<'_>, chosen: bool) -> Vec<Dataset> {
    show::present([table(figures), sizes(figures, chosen), cpus(figures, chosen)])
}

/// Kernels of a curve: the widest of each of `families`, or all that were measured.
fn drawn<'r>(figures: &Figures<'r>, families: &[&str], chosen: bool) -> Vec<&'r str> {
    if !chosen {
        let widest = |f: &&str| {
            let at = |level, cpus| figures.plain(f, level, cpus);
            let many = || figures.cpu_counts().into_iter().find_map(|cpus| at(Level::Memory, cpus));
            at(Level::L1, 1).or_else(many).map(|f| f.row.operation.as_str())
        };
        return families.iter().filter_map(widest).collect();
    }
    let measured = figures.all.iter().filter(|f| !f.is_peak() && f.rate().is_some());
    show::distinct(measured.map(|f| f.row.operation.as_str()))
}

/// End of the labels of columns that count the reads of lines that are stored.
const WITH_ALLOCATE: &str = " with write-allocate";

type Filter<'f> = Box<dyn Fn(&Figure<'_>) -> bool + 'f>;

/// A row per kernel and width; columns by level, write-allocate, all CPUs, huge pages, zeros, and as STREAM.
fn table(figures: &Figures<'_>) -> Option<Dataset> {
    let most = figures.most_cpus();
    let shown = |f: &&Figure<'_>| !f.is_peak() && !f.is_level(Level::Sweep) && f.rate().is_some();
    let kernels = show::distinct(figures.all.iter().filter(shown).map(|f| f.row.operation.as_str()));
    let plain = |level: Level, cpus: i64| -> Filter<'_> {
        Box::new(move |f| f.is_level(level) && f.cpus == cpus && f.is_plain() && f.data() == figures.data)
    };
    let as_stream = |cpus: i64| -> Filter<'_> {
        Box::new(move |f| f.row.text("convention") == "stream" && f.cpus == cpus)
    };
    let memory = |f: &Figure<'_>| f.is_level(Level::Memory) && f.cpus == 1;
    let huge = move |f: &Figure<'_>| {
        memory(f) && f.row.text("pages") == "huge" && f.row.text("convention").is_empty()
    };
    let zeros = move |f: &Figure<'_>| memory(f) && f.is_plain() && f.data() == "zeros";
    let levels = Level::TABLE.map(|l| (l.name().to_owned(), plain(l, 1)));
    let mut columns: Vec<(String, Filter<'_>)> = levels.into();
    columns.push((format!("DRAM{WITH_ALLOCATE}"), plain(Level::Memory, 1)));
    if most > 1 {
        columns.push((format!("{most} CPUs"), plain(Level::Memory, most)));
        columns.push((format!("{most} CPUs{WITH_ALLOCATE}"), plain(Level::Memory, most)));
    }
    columns.push(("huge pages".to_owned(), Box::new(huge)));
    columns.push(("zeros".to_owned(), Box::new(zeros)));
    columns.push(("as STREAM".to_owned(), as_stream(1)));
    if most > 1 {
        columns.push((format!("as STREAM, {most} CPUs"), as_stream(most)));
    }
    let rate = |kernel: &str, (label, is): &(String, Filter<'_>)| {
        let found = figures.of_kernel(kernel).find(|f| is(f))?;
        if label.ends_with(WITH_ALLOCATE) { found.rate_with_allocate() } else { found.rate() }
    };
    // A column in which nothing was measured only takes room.
    columns.retain(|c| kernels.iter().any(|k| rate(k, c).is_some()));
    let row = |kernel: &&str| {
        let marks = figures.of_kernel(kernel).filter(|f| !f.is_level(Level::Sweep)).map(|f| f.cost.mark());
        let name = (*kernel).to_owned() + marks.max().unwrap_or("");
        TableRow { name, cells: columns.iter().map(|c| show::number(rate(kernel, c))).collect() }
    };
    let rows = kernels.iter().map(row).collect();
    let columns = columns.into_iter().map(|(label, _)| (label, Some(Unit::BytesPerSecond)));
    let caption = format!(
        "Bytes loaded and stored per second, as the instructions ask for them (STREAM counts so). With write-allocate: plus a \
         read of each line that is stored without having been loaded. Memory holds {} data and lies in small pages unless the \
         column says otherwise; kernels that only write repeat the vector they find first. As STREAM: rows for comparison with \
         that program, of the width that a compiler takes for its loops.",
        figures.data
    );
    show::table(["memory.bandwidth_table", "Bandwidth by kernel", &caption], columns, rows)
}

/// Bandwidth under ordinary conditions over `x`, where a figure belongs to the curve.
fn curves(
    figures: &Figures<'_>,
    families: &[&str],
    chosen: bool,
    x: fn(&Figure<'_>) -> Option<i64>,
) -> Vec<CurveRow> {
    let curve = |kernel: &str| {
        let plain = figures.of_kernel(kernel).filter(|f| f.is_plain() && f.data() == figures.data);
        show::curve(kernel, plain.filter_map(|f| Some((x(f)? as f64, f.rate()?))).collect())
    };
    drawn(figures, families, chosen).into_iter().filter_map(curve).collect()
}

fn sizes(figures: &Figures<'_>, chosen: bool) -> Option<Dataset> {
    let rows = curves(figures, &USUAL, chosen, |f| (f.cpus == 1).then_some(f.working_set_bytes));
    let axes = [
        Axis::log("working set, all operands", Unit::Bytes),
        Axis::log("requested bytes", Unit::BytesPerSecond),
    ];
    let caption = "One CPU, small pages. A copy of a working set reads half of it and writes the other half; both count.";
    show::curves(["memory.bandwidth_sizes", "Bandwidth over working sets", caption], axes, rows, Vec::new())
}

fn cpus(figures: &Figures<'_>, chosen: bool) -> Option<Dataset> {
    if figures.cpu_counts().len() < 3 {
        return None;
    }
    let rows = curves(figures, &CPU_CURVES, chosen, |f| f.is_level(Level::Memory).then_some(f.cpus));
    let axes = [
        Axis::log("CPUs at once", Unit::Count),
        Axis::linear("requested bytes, all CPUs", Unit::BytesPerSecond),
    ];
    let caption = "Each CPU uses its own memory, which it touched first. A flat curve is limited by memory.";
    show::curves(["memory.bandwidth_cpus", "Bandwidth over CPUs", caption], axes, rows, Vec::new())
}
