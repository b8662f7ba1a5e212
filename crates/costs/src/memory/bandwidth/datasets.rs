//! What is shown: the table of kernels, bandwidth over working sets, bandwidth over CPUs.

use machmeter_data::Unit;
use machmeter_data::shape::{Axis, Cell, CurveRow, Dataset, TableRow};

use super::analyze::{Figure, Figures};
use super::sizes::Level;
use crate::show;

/// Families of the curves over working sets, the widest kernel of each, where no kernels were asked for.
const CURVES: [&str; 3] = ["read", "write", "copy"];
/// Families of the curves over CPUs, likewise.
const CPU_CURVES: [&str; 4] = ["read", "write", "copy", "triad"];

/// All datasets that there are figures for. `chosen`: whether kernels were asked for, which are then those of the curves.
pub(super) fn all(figures: &Figures<'_>, chosen: bool) -> Vec<Dataset> {
    [table(figures), sizes(figures, chosen), cpus(figures, chosen)].into_iter().flatten().collect()
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

/// A row per kernel and width; columns by level, with and without write-allocate, with all CPUs, huge pages, zeros, and as
/// STREAM.
fn table(figures: &Figures<'_>) -> Option<Dataset> {
    let most = figures.most_cpus();
    let shown = |f: &&Figure<'_>| !f.is_peak() && !f.is_level(Level::Sweep) && f.rate().is_some();
    let kernels = show::distinct(figures.all.iter().filter(shown).map(|f| f.row.operation.as_str()));
    if kernels.is_empty() {
        return None;
    }
    let mut labels: Vec<String> = Level::TABLE.iter().map(|l| l.name().to_owned()).collect();
    labels.push("DRAM with write-allocate".to_owned());
    if most > 1 {
        labels.push(format!("{most} CPUs"));
        labels.push(format!("{most} CPUs with write-allocate"));
    }
    labels.push("huge pages".to_owned());
    labels.push("zeros".to_owned());
    labels.push("as STREAM".to_owned());
    if most > 1 {
        labels.push(format!("as STREAM, {most} CPUs"));
    }
    let row = |kernel: &str| {
        let find = |test: &dyn Fn(&&Figure<'_>) -> bool| {
            figures
                .all
                .iter()
                .filter(|f| f.row.operation == kernel && f.row.text("convention").is_empty())
                .find(test)
        };
        let plain = |level: Level, cpus: i64| {
            find(&|f| f.is_level(level) && f.cpus == cpus && f.is_plain() && f.data() == figures.data)
        };
        let cell = show::number;
        let mut cells: Vec<Cell> =
            Level::TABLE.iter().map(|l| cell(plain(*l, 1).and_then(Figure::rate))).collect();
        cells.push(cell(plain(Level::Memory, 1).and_then(Figure::rate_with_allocate)));
        if most > 1 {
            cells.push(cell(plain(Level::Memory, most).and_then(Figure::rate)));
            cells.push(cell(plain(Level::Memory, most).and_then(Figure::rate_with_allocate)));
        }
        let memory = |f: &&Figure<'_>| f.is_level(Level::Memory) && f.cpus == 1;
        cells.push(cell(find(&|f| memory(f) && f.row.text("pages") == "huge").and_then(Figure::rate)));
        cells.push(cell(find(&|f| memory(f) && f.is_plain() && f.data() == "zeros").and_then(Figure::rate)));
        let as_stream = |cpus: i64| {
            let of = |f: &&Figure<'_>| f.row.operation == kernel && f.row.text("convention") == "stream";
            figures.all.iter().filter(of).find(|f| f.cpus == cpus).and_then(Figure::rate)
        };
        cells.push(cell(as_stream(1)));
        if most > 1 {
            cells.push(cell(as_stream(most)));
        }
        let of_kernel = |f: &&Figure<'_>| f.row.operation == kernel && !f.is_level(Level::Sweep);
        let mark = figures.all.iter().filter(of_kernel).map(|f| f.cost.mark()).max().unwrap_or("");
        TableRow { name: kernel.to_owned() + mark, cells }
    };
    let rows: Vec<TableRow> = kernels.iter().map(|k| row(k)).collect();
    // A column in which nothing was measured only takes room.
    let used: Vec<bool> =
        (0..labels.len()).map(|i| rows.iter().any(|r| r.cells[i] != Cell::Empty(()))).collect();
    let keep = |cells: Vec<Cell>| cells.into_iter().zip(&used).filter(|(_, u)| **u).map(|(c, _)| c).collect();
    let columns = labels.into_iter().zip(&used).filter(|(_, u)| **u);
    let columns = columns.map(|(label, _)| (label, Some(Unit::BytesPerSecond)));
    let rows = rows.into_iter().map(|r| TableRow { name: r.name, cells: keep(r.cells) }).collect();
    let caption = format!(
        "Bytes loaded and stored per second, as the instructions ask for them (STREAM counts so). With write-allocate: plus a \
         read of each line that is stored without having been loaded. Memory holds {} data and lies in small pages unless the \
         column says otherwise; kernels that only write repeat the vector they find first. As STREAM: rows for comparison with \
         that program, of the width that a compiler takes for its loops.",
        figures.data
    );
    show::table(["memory.bandwidth_table", "Bandwidth by kernel", &caption], columns, rows)
}

fn sizes(figures: &Figures<'_>, chosen: bool) -> Option<Dataset> {
    let rows: Vec<CurveRow> = drawn(figures, &CURVES, chosen)
        .into_iter()
        .map(|kernel| {
            let same = |f: &&Figure<'_>| {
                f.row.operation == kernel && f.cpus == 1 && f.is_plain() && f.data() == figures.data
            };
            let mut points: Vec<(f64, f64)> = figures
                .all
                .iter()
                .filter(same)
                .filter_map(|f| Some((f.working_set_bytes as f64, f.rate()?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points.dedup_by(|a, b| a.0 == b.0);
            let (x, y) = points.into_iter().unzip();
            CurveRow { name: kernel.to_owned(), x, y }
        })
        .filter(|r: &CurveRow| r.x.len() > 1)
        .collect();
    let axes = [
        Axis::log("working set, all operands", Unit::Bytes),
        Axis::log("requested bytes", Unit::BytesPerSecond),
    ];
    let caption = "One CPU, small pages. A copy of a working set reads half of it and writes the other half; both count.";
    show::curves(["memory.bandwidth_sizes", "Bandwidth over working sets", caption], axes, rows, Vec::new())
}

fn cpus(figures: &Figures<'_>, chosen: bool) -> Option<Dataset> {
    let counts = figures.cpu_counts();
    if counts.len() < 3 {
        return None;
    }
    let rows: Vec<CurveRow> = drawn(figures, &CPU_CURVES, chosen)
        .into_iter()
        .map(|kernel| {
            let same = |f: &&Figure<'_>| {
                f.row.operation == kernel
                    && f.is_level(Level::Memory)
                    && f.is_plain()
                    && f.data() == figures.data
            };
            let of = |cpus: &i64| figures.all.iter().filter(same).find(|f| f.cpus == *cpus)?.rate();
            let points = counts.iter().filter_map(|c| Some((*c as f64, of(c)?)));
            let (x, y) = points.unzip();
            CurveRow { name: kernel.to_owned(), x, y }
        })
        .filter(|r| r.x.len() > 1)
        .collect();
    let axes = [
        Axis::log("CPUs at once", Unit::Count),
        Axis::linear("requested bytes, all CPUs", Unit::BytesPerSecond),
    ];
    let caption = "Each CPU on memory of its own that it has touched first. Where a curve is flat, memory is the limit.";
    show::curves(["memory.bandwidth_cpus", "Bandwidth over CPUs", caption], axes, rows, Vec::new())
}
