//! Draws tables and pictures of a trace.

use machmeter_data::shape::{
    Axis, Cell, CostTable, Distribution, DistributionRow, Matrix, TableColumn, TableRow,
};
use machmeter_data::{Dataset, Shape, Unit};
use machmeter_stats::quantile::quantile;

use super::Rank;
use super::figures::{Figures, name};

/// Probabilities of a distribution.
const PROBABILITIES: [f64; 12] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];
/// Most operations in a picture: those with the most time.
const MOST_DRAWN: usize = 8;
/// Most ranks in a matrix that is still legible.
const MOST_RANKS: u32 = 64;

fn number(value: Option<f64>) -> Cell {
    value.filter(|v| v.is_finite()).map_or(Cell::Empty(()), Cell::Number)
}

pub(super) fn datasets(ranks: &[Rank<'_>], figures: &Figures<'_>) -> Vec<Dataset> {
    let mut out = vec![
        Dataset::new(
            "mpi.operations",
            "MPI operations",
            "Calls of all ranks, without calls made by the library itself. Waiting: share of the time in matched blocking \
             collectives before the last rank enters.",
            operations(figures),
        ),
        Dataset::new(
            "mpi.ranks",
            "MPI ranks",
            "In MPI: share of the time of the threads that call it. Waiting: time in blocking collectives before the last rank enters.",
            by_rank(ranks, figures),
        ),
    ];
    let rows = durations(figures);
    if !rows.is_empty() {
        let value = Axis::log("time of a call", Unit::Nanoseconds);
        let shape = Shape::Distribution(Distribution { value, rows, limits: Vec::new() });
        let caption =
            "Time of single calls on their ranks, including waiting, for the operations with the most time.";
        out.push(Dataset::new("mpi.durations", "Time of MPI calls", caption, shape));
    }
    out.extend(sent(ranks, figures));
    out
}

fn operations(figures: &Figures<'_>) -> Shape {
    let columns = vec![
        TableColumn::new("calls", Unit::Count),
        TableColumn::new("of the time", Unit::One),
        TableColumn::new("median", Unit::Nanoseconds),
        TableColumn::new("99 %", Unit::Nanoseconds),
        TableColumn::new("longest", Unit::Nanoseconds),
        TableColumn::new("bytes", Unit::Bytes),
        TableColumn::new("waiting", Unit::One),
        TableColumn::new("most often last", None),
    ];
    let row = |(operation, sum): &(usize, super::figures::Sum)| {
        let of = |p| number(quantile(&sum.durations_ns, p));
        let matched = figures.matched(*operation);
        let waiting = matched.filter(|m| m.time_ns > 0.0).map(|m| m.waiting_ns / m.time_ns);
        let last = matched.and_then(|m| {
            let (rank, times) = m.last.iter().max_by_key(|(_, times)| **times)?;
            Some(format!("rank {rank}, {:.0} %", 100.0 * *times as f64 / m.calls as f64))
        });
        TableRow {
            name: name(*operation),
            cells: vec![
                Cell::Number(sum.calls() as f64),
                number(figures.share(sum)),
                of(0.5),
                of(0.99),
                of(1.0),
                if sum.bytes > 0 { Cell::Number(sum.bytes as f64) } else { Cell::Empty(()) },
                number(waiting),
                last.map_or(Cell::Empty(()), Cell::Text),
            ],
        }
    };
    Shape::CostTable(CostTable { columns, rows: figures.operations.iter().map(row).collect() })
}

fn by_rank(ranks: &[Rank<'_>], figures: &Figures<'_>) -> Shape {
    let columns = vec![
        TableColumn::new("machine", None),
        TableColumn::new("calls", Unit::Count),
        TableColumn::new("time", Unit::Nanoseconds),
        TableColumn::new("in MPI", Unit::One),
        TableColumn::new("waiting", Unit::Nanoseconds),
        TableColumn::new("on a CPU", Unit::One),
    ];
    let row = |(r, in_mpi_ns): (&Rank<'_>, &f64)| {
        let threads = &r.trace.threads;
        let wall_ns: f64 = threads.iter().map(|t| t.wall_ns as f64).sum();
        let cpu_ns: f64 = threads.iter().map(|t| t.cpu_ns as f64).sum();
        let share = |part: f64, all: f64| number((all > 0.0).then(|| (part / all).min(1.0)));
        TableRow {
            name: format!("rank {}", r.trace.rank),
            cells: vec![
                Cell::Text(r.trace.host.clone()),
                Cell::Number(threads.iter().map(|t| t.calls).sum::<u64>() as f64),
                Cell::Number(r.wall_ns() as f64),
                share(*in_mpi_ns, r.threads_ns() as f64),
                number(figures.matched.waiting_ns.get(&r.trace.rank).copied()),
                share(cpu_ns, wall_ns),
            ],
        }
    };
    Shape::CostTable(CostTable { columns, rows: ranks.iter().zip(&figures.rank_ns).map(row).collect() })
}

fn durations(figures: &Figures<'_>) -> Vec<DistributionRow> {
    let row = |(operation, sum): &(usize, super::figures::Sum)| {
        let of = |p: &f64| Some((*p, quantile(&sum.durations_ns, *p)?));
        let quantiles: Vec<(f64, f64)> = PROBABILITIES.iter().filter_map(of).collect();
        let n = sum.durations_ns.len() as u64;
        (n > 0).then(|| DistributionRow { name: name(*operation), n, quantiles })
    };
    figures.operations.iter().take(MOST_DRAWN).filter_map(row).collect()
}

/// Bytes from rank to rank.
fn sent(ranks: &[Rank<'_>], figures: &Figures<'_>) -> Option<Dataset> {
    let size = ranks.first()?.trace.size;
    if figures.sent.is_empty() || size > MOST_RANKS {
        return None;
    }
    let names: Vec<String> = (0..size).map(|r| format!("rank {r}")).collect();
    let cell = |from: u32, to: u32| figures.sent.get(&(from, to)).map(|bytes| *bytes as f64);
    let values = (0..size).map(|from| (0..size).map(|to| cell(from, to)).collect()).collect();
    let matrix = Matrix::named("receiver", names.clone(), names, Axis::log("bytes", Unit::Bytes), values);
    let caption = "Bytes of messages from the rank of the row to the rank of the column, without collectives and persistent requests.";
    Some(Dataset::new("mpi.sent", "Messages from rank to rank", caption, Shape::Matrix(matrix)))
}
