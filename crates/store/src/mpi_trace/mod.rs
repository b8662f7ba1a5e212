//! Converts trace files of an MPI program to figures, pictures and the table `mpi_events`.
//!
//! Traces are untrusted input, like files of other tools, because ranks may have run on other machines. The reader checks every value
//! ([`machmeter_data::trace`]).

mod collectives;
mod figures;
mod info;
mod show;
mod warnings;

use std::fs;
use std::path::{Path, PathBuf};

use machmeter_data::record::Warning;
use machmeter_data::trace::{COMMUNICATORS, Call, EVENTS, EXTENSION, OPERATIONS, SPANS, Trace};
use machmeter_data::{Column, Dataset, Metric, Table, Unit, Values};

use crate::error::{Result, StoreError};

pub use info::{CODES, METRICS, ROWS};

/// The result of the traces of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// Figures.
    pub metrics: Vec<Metric>,
    /// Pictures and tables.
    pub datasets: Vec<Dataset>,
    /// Gaps and weaknesses of the traces.
    pub warnings: Vec<Warning>,
    /// `mpi_events` (unless there are more calls than `most_rows`), `mpi_communicators` and `mpi_ranks`.
    pub tables: Vec<Table>,
    /// True if each rank recorded until its end.
    pub complete: bool,
    /// Boot ids of the machines on which ranks ran.
    pub boots: Vec<String>,
    /// Version text of the MPI library.
    pub library: String,
    /// Command line of rank 0, or of the first rank in the directory.
    pub program: String,
    /// Names of the files.
    pub files: Vec<String>,
}

/// A rank with its position in time.
struct Rank<'a> {
    trace: &'a Trace<'a>,
    /// Offset that is subtracted from its clock to get the time after the start of the first rank, ns.
    origin_ns: i128,
    /// Its communicators, with numbers common to all ranks.
    communicators: Vec<usize>,
}

impl Rank<'_> {
    /// Time after the start of the first rank, ns.
    fn after_start_ns(&self, at_ns: u64) -> i64 {
        i64::try_from(i128::from(at_ns) - self.origin_ns).unwrap_or(i64::MAX)
    }

    /// Time of the rank in the program, ns.
    fn wall_ns(&self) -> u64 {
        self.trace.end_ns - self.trace.start_ns
    }

    /// The communicator of a call, with a number common to all ranks.
    fn communicator(&self, call: &Call) -> Option<usize> {
        self.communicators.get(call.communicator?).copied()
    }

    /// Time of its threads with calls, ns.
    fn threads_ns(&self) -> u64 {
        let threads = self.trace.threads.iter().filter(|t| t.calls > 0).count() as u64;
        self.wall_ns().saturating_mul(threads)
    }
}

/// Reads the traces in a directory; `None` if it has none. The table of calls has at most `most_rows` rows, or is left out.
///
/// # Errors
/// An unreadable directory or file, an invalid file, or files of several programs.
pub fn collect(dir: &Path, most_rows: usize) -> Result<Option<Collected>> {
    let listed = fs::read_dir(dir).map_err(|e| StoreError::io(dir, "read", &e))?;
    let mut paths: Vec<_> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == EXTENSION) && p.is_file());
    paths.sort();
    let read = |path: &PathBuf| {
        fs::read(path).map(|bytes| (path.clone(), bytes)).map_err(|e| StoreError::io(path, "read", &e))
    };
    analyze(dir, &paths.iter().map(read).collect::<Result<Vec<_>, _>>()?, most_rows)
}

/// The same from the bytes of files; `dir` names their directory in errors.
///
/// # Errors
/// An invalid file, or files of several programs.
pub fn analyze(dir: &Path, files: &[(PathBuf, Vec<u8>)], most_rows: usize) -> Result<Option<Collected>> {
    let mut traces = Vec::new();
    for (path, bytes) in files {
        traces.push(Trace::read(bytes).map_err(|e| StoreError::new(path, e.to_string()))?);
    }
    traces.sort_by_key(|t| t.rank);
    let Some(first) = traces.first() else { return Ok(None) };
    if let Some(twice) = traces.windows(2).find(|w| w[0].rank == w[1].rank) {
        let rank = twice[0].rank;
        let what = format!(
            "two traces of rank {rank}: the directory contains several programs, but each needs its own directory"
        );
        return Err(StoreError::new(dir, what));
    }
    if let Some(size) = traces.iter().map(|t| t.size).find(|size| *size != first.size) {
        let what = format!(
            "traces of programs of {} and {size} ranks:  each program needs its own directory",
            first.size
        );
        return Err(StoreError::new(dir, what));
    }
    let mut boots: Vec<String> = traces.iter().map(|t| t.boot.clone()).collect();
    boots.sort();
    boots.dedup();
    let is_one_clock = boots.len() == 1 && !boots[0].is_empty();
    let ranks = placed(&traces, is_one_clock);
    let matched = collectives::matched(&ranks, is_one_clock);
    let figures = figures::Figures::of(&ranks, &matched);
    let mut tables = Vec::new();
    if figures.all.calls() <= most_rows as u64 {
        tables.push(events(&ranks));
    }
    tables.extend([members(&ranks), spans(&ranks)]);
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Some(Collected {
        metrics: figures.metrics(),
        datasets: show::datasets(&ranks, &figures),
        warnings: warnings::warnings(&ranks, &matched, is_one_clock),
        tables,
        complete: warnings::is_complete(&traces),
        boots,
        library: first.library.clone(),
        program: first.program.clone(),
        files: files.iter().map(|(path, _)| name(path)).collect(),
    }))
}

/// Places ranks on one axis of time: the monotonic clock if they share it, else the wall clock of each machine.
fn placed<'a>(traces: &'a [Trace<'a>], is_one_clock: bool) -> Vec<Rank<'a>> {
    let start_ns = |t: &Trace<'_>| i128::from(if is_one_clock { t.start_ns } else { t.start_real_ns });
    let first_ns = traces.iter().map(start_ns).min().unwrap_or(0);
    let communicators = collectives::numbered(traces);
    let place = |(trace, communicators): (&'a Trace<'a>, Vec<usize>)| {
        let origin_ns = i128::from(trace.start_ns) - (start_ns(trace) - first_ns);
        Rank { trace, origin_ns, communicators }
    };
    traces.iter().zip(communicators).map(place).collect()
}

/// A table; its columns have equal length.
fn table(name: &str, columns: Vec<Column>) -> Table {
    Table { name: name.to_owned(), notes: Vec::new(), columns }
}

/// All calls, rank by rank. A call that did not return has the duration -1.
fn events(ranks: &[Rank<'_>]) -> Table {
    let calls = || ranks.iter().flat_map(|r| r.trace.calls().map(move |c| (r, c)));
    let ints = |of: &dyn Fn(&Rank<'_>, &Call) -> i32| Values::I32(calls().map(|(r, c)| of(r, &c)).collect());
    let longs = |of: &dyn Fn(&Rank<'_>, &Call) -> i64| Values::I64(calls().map(|(r, c)| of(r, &c)).collect());
    let took_ns = |c: &Call| c.duration_ns.map_or(-1, |ns| ns.min(i64::MAX as u64) as i64);
    let communicator = |r: &Rank<'_>, c: &Call| r.communicator(c).map_or(-1, |index| index as i32);
    let columns = vec![
        Column::new("rank", Unit::Count, ints(&|r, _| r.trace.rank as i32)),
        Column::new("thread", Unit::Count, ints(&|_, c| c.thread as i32)),
        Column::new("operation", Unit::Count, ints(&|_, c| c.operation as i32)),
        Column::new("start_ns", Unit::Nanoseconds, longs(&|r, c| r.after_start_ns(c.start_ns))),
        Column::new("duration_ns", Unit::Nanoseconds, longs(&|_, c| took_ns(c))),
        Column::new("bytes", Unit::Bytes, longs(&|_, c| c.bytes as i64)),
        Column::new("peer", Unit::Count, ints(&|_, c| c.peer)),
        Column::new("tag", Unit::Count, ints(&|_, c| c.tag)),
        Column::new("communicator", Unit::Count, ints(&communicator)),
    ];
    let mut table = table(EVENTS, columns);
    table.name_codes("operation", OPERATIONS.iter().map(|o| format!("MPI_{}", o.name)));
    table
}

/// Communicators other than those of all ranks in order, one row per member.
fn members(ranks: &[Rank<'_>]) -> Table {
    let mut rows: Vec<(i32, i32, i32)> = Vec::new();
    let mut told = std::collections::BTreeSet::new();
    for r in ranks {
        for (own, index) in r.trace.communicators.iter().zip(&r.communicators) {
            if told.insert(*index) {
                let members = own.members.iter().flatten().zip(0..);
                rows.extend(members.map(|(world, rank)| (*index as i32, rank, *world as i32)));
            }
        }
    }
    let column = |name: &str, get: fn(&(i32, i32, i32)) -> i32| {
        Column::new(name, Unit::Count, Values::I32(rows.iter().map(get).collect()))
    };
    let columns = vec![column("communicator", |r| r.0), column("member", |r| r.1), column("rank", |r| r.2)];
    table(COMMUNICATORS, columns)
}

/// Time of each rank in the program: from the return of `MPI_Init` to `MPI_Finalize`, or to the last known time.
fn spans(ranks: &[Rank<'_>]) -> Table {
    let longs =
        |of: &dyn Fn(&Rank<'_>) -> u64| Values::I64(ranks.iter().map(|r| r.after_start_ns(of(r))).collect());
    let rank: Vec<i32> = ranks.iter().map(|r| r.trace.rank as i32).collect();
    let columns = vec![
        Column::new("rank", Unit::Count, rank),
        Column::new("start_ns", Unit::Nanoseconds, longs(&|r| r.trace.start_ns)),
        Column::new("end_ns", Unit::Nanoseconds, longs(&|r| r.trace.end_ns)),
    ];
    table(SPANS, columns)
}

#[cfg(test)]
mod tests;
