//! interbench as of 0.31: its options, and its tables on the console and in `KERNEL.log`, measured by the engine of the interactive probe.
//!
//! Facts about the original come from its readme, manual page and sources (Con Kolivas, 2005 to 2016).

mod names;
mod options;
mod order;
mod recording;
mod sink;
mod table;

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use machmeter_data::quantity::{Unit, human};
use machmeter_engine::cpu_work::Spinner;
use machmeter_engine::{Attributes, deadline};
use machmeter_interactive::samples::Cell;
use machmeter_store::date;
use machmeter_sys::facts;
use machmeter_sys::guard::signals;

use super::bench::Bench;
use crate::{Exit, Failure, Registries, Result, output, session};
use options::Options;
use order::{CellOrder, Place, Table};
use sink::Sink;
use table::Figures;

pub(super) use options::define;

pub(super) fn run(name: &str, registries: &Registries, matches: &ArgMatches) -> Result<Exit> {
    let options = Options::of(name, matches)?;
    let cpus = if options.uniprocessor { 1 } else { session::cpus("all")?.2.len() };
    let bench = Bench::of_threads("--cpus", cpus, None)?;
    let directory = std::env::current_dir()
        .map_err(|e| Failure::cannot(format!("{name}: cannot read the current directory: {e}")))?;
    let place = Place { cpus: bench.cpus.to_string(), directory };
    let loads = registries.loads.infos();
    let available: Vec<&str> = loads.iter().map(|l| l.name).collect();
    let (tables, missing) = order::plan(name, &options, &place, &available)?;
    if !missing.is_empty() {
        output::say(&format!("{name}: not available in this program, left out: {}", missing.join(", ")));
    }
    permitted(name, &options)?;
    let kernel = kernel_release();
    let log = PathBuf::from(format!("{kernel}.log"));
    let mut sink = Sink::open(name, (!options.console_only).then_some(log.as_path()))?;
    let measured = Spinner::calibrate().turns_per_ms().round().max(1.0) as u64;
    if options.turns_per_ms.is_some() {
        output::say(&format!(
            "{name}: loops_per_ms is from the command line; this machine reaches {measured}"
        ));
    }
    let cells: usize = tables.iter().map(|t| t.cells.len()).sum();
    let about_ns = cells as f64 * recording::cell_ns(options.seconds) as f64;
    let about = human(about_ns, Unit::Nanoseconds);
    output::say(&format!("{name}: {cells} cells of {} s: about {about}", options.seconds));
    let stamp: String = date::now_stamp().chars().filter(char::is_ascii_digit).take(12).collect();
    let loops_per_ms = options.turns_per_ms.unwrap_or(measured);
    let preamble = table::preamble(&options, loops_per_ms, &kernel, &stamp);
    let mut told = Vec::new();
    let host = bench.host(registries.loads);
    let mut record = |order: &CellOrder| recording::record(name, &host, order, &mut told);
    let mut put = |text: &str| {
        sink.put(text);
        sink.is_open()
    };
    let exit = perform(name, &options, &tables, &preamble, &mut put, &mut record)?;
    tell(name, &sink);
    Ok(if sink.trouble.is_empty() { exit } else { Exit::CannotMeasure })
}

/// Records the tables cell by cell and writes a row for each. `put` writes whole lines and returns false once no output is left.
/// Errors: nothing could be recorded, or a load or task rejects its options.
fn perform(
    name: &str,
    options: &Options,
    tables: &[Table],
    preamble: &str,
    put: &mut dyn FnMut(&str) -> bool,
    record: &mut dyn FnMut(&CellOrder) -> Result<Cell>,
) -> Result<Exit> {
    let (mut rows, mut lost, mut why) = (0, 0, None);
    let mut going = put(preamble);
    for table in tables {
        if !going {
            break;
        }
        put(&table::title(table.task, options));
        for order in &table.cells {
            let cell = record(order);
            // A cell that a signal cut short has no figure for the full time.
            if deadline::stop_requested() {
                going = false;
                break;
            }
            match cell.map(|c| Figures::of(&c)) {
                Ok(Some(figures)) => {
                    rows += 1;
                    going = put(&table::row(order.load, &figures, options.real_time));
                }
                Ok(None) => lost += 1,
                Err(f) if f.exit == Exit::Usage && rows == 0 => return Err(f),
                Err(f) => {
                    output::say(&format!("{name}: {} under {}: {}", order.task, order.load, f.what));
                    lost += 1;
                    why.get_or_insert(f);
                }
            }
            if !going {
                break;
            }
        }
        put("\n");
    }
    put("\n");
    match (signals::stop_requested(), rows, lost, why) {
        (Some(signal), ..) => {
            output::say(&format!("{name}: stopped; {rows} cells were written"));
            Ok(signal.into())
        }
        (None, 0, _, Some(f)) => Err(f),
        (None, 0, ..) => Err(Failure::cannot(format!("{name}: no cell was recorded"))),
        (None, _, 0, _) => Ok(Exit::Fine),
        _ => Ok(Exit::Partial),
    }
}

/// Tries the requested policies on a separate thread, so that a denied right is reported before anything runs.
fn permitted(name: &str, options: &Options) -> Result<()> {
    let real_time = if options.real_time { "-r" } else { "-B" };
    for (option, policy) in [(real_time, options.task_policy()), ("-N", options.load_policy())] {
        let attributes = Attributes { policy, ..Attributes::default() };
        let tried = machmeter_sys::thread::on_its_own(|| attributes.apply());
        let tried = tried.map_err(|e| Failure::cannot(format!("{name}: cannot start a thread: {e}")))?;
        tried.map_err(|why| Failure::usage(format!("{name}: {option}: {why}")))?;
    }
    Ok(())
}

/// `uname -r` in a form for file names.
fn kernel_release() -> String {
    let facts = facts::capture();
    facts.text("kernel.release").filter(|r| !r.is_empty()).unwrap_or("unknown").replace('/', "_")
}

fn tell(name: &str, sink: &Sink) {
    for trouble in &sink.trouble {
        output::say(&format!("{name}: {trouble}"));
    }
    let drawn = |log: &Path| format!("for charts: machmeter report {}; ", log.display());
    let view = sink.log().map_or_else(String::new, drawn);
    let more = "for percentiles, intervals and the work of the loads: machmeter interactive";
    output::say(&format!("{name}: {view}{more}"));
}

#[cfg(test)]
mod tests {
    use machmeter_engine::stream::{Fate, Job};
    use machmeter_interactive::samples::Segment;
    use machmeter_store::foreign::{Input, SideFacts, SourceFile, read_input};

    use super::options::parsed;
    use super::*;

    const MS: u64 = 1_000_000;
    const ALL: usize = usize::MAX;

    /// A cell whose jobs begin late by turns 1 ms and 3 ms; every tenth is dropped after 20 ms.
    fn fake(order: &CellOrder) -> Cell {
        let job = |k: u64| {
            let cpu_ns = order.stream.cpu_ns(k).unwrap_or(0);
            let dropped = k % 10 == 9;
            let wake_ns = if dropped { 20 * MS } else { MS + 2 * MS * (k % 2) };
            Job {
                number: k,
                release_ns: k * 50 * MS,
                wake_ns,
                response_ns: if dropped { wake_ns } else { wake_ns + cpu_ns },
                cpu_ns: if dropped { 0 } else { cpu_ns },
                fate: if dropped { Fate::Dropped } else { Fate::Ran },
            }
        };
        let jobs: Vec<Job> = (0..100).map(job).collect();
        let segment = Segment { length_ns: order.segment_ns, scheduled: 100, jobs, ..Segment::default() };
        Cell {
            task: order.task.to_lowercase(),
            load: order.load.to_lowercase(),
            stream: order.stream.clone(),
            segments: vec![segment],
        }
    }

    /// The output of a run with these options until it has written `lines` pieces, with recordings by `record`.
    fn taken(
        words: &[&str],
        lines: usize,
        record: &mut dyn FnMut(&CellOrder) -> Result<Cell>,
    ) -> (String, Result<Exit, String>) {
        let options = parsed(words).unwrap();
        let place = Place { cpus: "0".to_owned(), directory: PathBuf::from(".") };
        let (tables, _) = order::plan("interbench", &options, &place, order::EVERY_LOAD).unwrap();
        let preamble = table::preamble(&options, 1000, "6.1.0", "202611221200");
        let (mut text, mut left) = (String::new(), lines);
        let mut put = |lines: &str| {
            text.push_str(lines);
            left -= usize::from(left > 0);
            left > 0
        };
        let exit = perform("interbench", &options, &tables, &preamble, &mut put, record);
        (text, exit.map_err(|f| f.what))
    }

    #[test]
    fn a_run_writes_the_log_of_the_original_with_figures_that_are_right() {
        let (text, exit) =
            taken(&["-W", "Audio", "-w", "None", "-w", "Burn", "-t", "5"], ALL, &mut |o| Ok(fake(o)));
        assert_eq!(exit, Ok(Exit::Fine));
        // 50 of 100 jobs wait 1 ms, 40 wait 3 ms and 10 wait 20 ms: mean 3.7; squares 50 + 360 + 4000.
        let sd = ((50.0 + 360.0 + 4000.0 - 100.0 * 3.7 * 3.7) / 99.0_f64).sqrt();
        assert_eq!(format!("{sd:.2}"), "5.54");
        let rows = "None\t    3.7 +/- 5.54          20\t\t  90\t         90\n\
                    Burn\t    3.7 +/- 5.54          20\t\t  90\t         90\n\n\n";
        assert!(text.ends_with(rows), "{text}");
        assert!(text.contains("running every load for 5 seconds"));
        let file = SourceFile::new("6.1.0.log", text.as_bytes());
        let read = read_input(&Input { files: vec![file], known: SideFacts::default() }).unwrap();
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        let sds: Vec<f64> =
            read.metrics.iter().filter(|m| m.id == "interactive.jitter").filter_map(|m| m.value).collect();
        assert_eq!(sds.len(), 2);
        assert!(sds.iter().all(|v| (v / 5.54e6 - 1.0).abs() < 1e-9), "the true SD, read as such: {sds:?}");
    }

    #[test]
    fn every_cell_of_a_default_run_has_its_row_in_order() {
        let mut seen = Vec::new();
        let (text, _) = taken(&[], ALL, &mut |o| {
            seen.push(format!("{}/{}", o.task, o.load));
            Ok(fake(o))
        });
        assert_eq!(seen.len(), 8 + 7 + 7 + 8);
        assert_eq!((seen[0].as_str(), seen[8].as_str()), ("Audio/None", "Video/None"));
        let rows: Vec<&str> = text.lines().filter(|l| l.contains("+/-") && !l.starts_with("Load")).collect();
        let loads: Vec<&str> = rows.iter().filter_map(|r| r.split('\t').next()).collect();
        let expected: Vec<&str> = seen.iter().filter_map(|s| s.split('/').nth(1)).collect();
        assert_eq!(loads, expected);
        assert_eq!(text.matches("--- Benchmarking simulated cpu of ").count(), 4);
        // Gaming has no deadlines: 5 columns of figures, less the last.
        let gaming = text.split("cpu of Gaming").nth(1).unwrap();
        assert!(gaming.lines().nth(2).is_some_and(|l| l.split_whitespace().count() == 6), "{gaming}");
    }

    #[test]
    fn real_time_tables_are_in_microseconds() {
        let (text, _) = taken(&["-r", "-W", "Audio", "-w", "Burn"], ALL, &mut |o| Ok(fake(o)));
        assert!(text.contains("Audio real time in") && text.contains("SD (us)"), "{text}");
        assert!(text.contains("Burn\t   3700 +/- 5542       20000\t\t  90\t         90\n"), "{text}");
    }

    #[test]
    fn fixed_work_counts_executed_jobs() {
        let (text, _) = taken(&["-l", "1000", "-W", "Video", "-w", "None"], ALL, &mut |o| Ok(fake(o)));
        assert!(text.contains("\t\t  90\t"), "nine of ten jobs ran: {text}");
    }

    #[test]
    fn a_cell_that_fails_costs_its_row_only() {
        let mut record = |o: &CellOrder| match o.load {
            "Burn" => Err(Failure::cannot("no such luck")),
            "Read" => Ok(Cell { segments: Vec::new(), ..fake(o) }),
            _ => Ok(fake(o)),
        };
        let (text, exit) = taken(&["-W", "Audio"], ALL, &mut record);
        assert_eq!(exit, Ok(Exit::Partial));
        assert!(!text.contains("Burn") && !text.contains("Read") && text.contains("Compile"), "{text}");
        let (_, exit) = taken(&["-W", "Audio"], ALL, &mut |_| Err(Failure::cannot("no such luck")));
        assert_eq!(exit, Err("no such luck".to_owned()));
        let (_, exit) =
            taken(&["-W", "Audio"], ALL, &mut |_| Err(Failure::usage("task audio: not permitted")));
        assert_eq!(exit, Err("task audio: not permitted".to_owned()));
    }

    #[test]
    fn nobody_to_write_for_ends_the_run() {
        let mut cells = 0;
        let (_, exit) = taken(&[], 4, &mut |o| {
            cells += 1;
            Ok(fake(o))
        });
        assert!(exit.is_ok() && cells == 2, "{cells}");
    }
}
