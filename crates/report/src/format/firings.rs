//! Reads single executions from raw tables: firings of boxes (flow probe) and calls of MPI operations (traces).
//!
//! A firing is one execution of a box of a dataflow graph. The table `flow_rows` has a row per box, `flow_pairs` a row per firing.

use std::collections::BTreeMap;

use machmeter_data::Table;
use machmeter_data::trace::EVENTS;
use serde::Deserialize;

/// Operation of the rows that hold firings.
const FIRING: &str = "firing of a box";

/// A box with its firings.
pub(super) struct BoxFirings {
    /// `graph: schedule`, or the rank and thread.
    pub(super) track: String,
    pub(super) name: String,
    /// Begin and length of each firing, ns.
    pub(super) firings: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Rest {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    graph: String,
    schedule: String,
    #[serde(rename = "box")]
    name: String,
}

/// Boxes in a record's raw tables; empty without the two tables. Unreadable rows are left out.
pub(super) fn firings(tables: &[Table]) -> Vec<BoxFirings> {
    let table = |name: &str| tables.iter().find(|t| t.name == name);
    let read = || {
        let (rows, pairs) = (table("flow_rows")?, table("flow_pairs")?);
        let tick_hz = rows.notes.iter().find(|(k, _)| k == "tick_hz")?.1.parse::<f64>().ok()?;
        let ns_per_tick = 1e9 / tick_hz;
        let (operations, rests) = (rows.texts("operation")?, rows.texts("rest")?);
        let mut boxes: Vec<Option<BoxFirings>> = operations
            .iter()
            .zip(rests)
            .map(|(operation, rest)| {
                let p = serde_json::from_str::<Rest>(rest).ok().filter(|_| operation == FIRING)?.params;
                let track = format!("{}: {}", p.graph, p.schedule);
                Some(BoxFirings { track, name: p.name, firings: Vec::new() })
            })
            .collect();
        let (of, at, ticks) = (pairs.i32s("row")?, pairs.f64s("at_ns")?, pairs.i64s("long_ticks")?);
        for ((row, at_ns), ticks) in of.iter().zip(at).zip(ticks) {
            let owner = usize::try_from(*row).ok().and_then(|i| boxes.get_mut(i)?.as_mut());
            let length_ns = *ticks as f64 * ns_per_tick;
            if let Some(b) = owner.filter(|_| at_ns.is_finite() && length_ns.is_finite() && *ticks >= 0) {
                b.firings.push((*at_ns, length_ns));
            }
        }
        Some(boxes.into_iter().flatten().collect())
    };
    read().unwrap_or_default()
}

/// Calls of MPI operations by rank, thread and operation, in the same form; empty without an event table. Calls that never returned are left out.
pub(super) fn mpi_calls(tables: &[Table]) -> Vec<BoxFirings> {
    let read = || {
        let events = tables.iter().find(|t| t.name == EVENTS)?;
        let names: Vec<String> = serde_json::from_str(events.note("names.operation")?).ok()?;
        let (ranks, threads) = (events.i32s("rank")?, events.i32s("thread")?);
        let (operations, starts, durations) =
            (events.i32s("operation")?, events.i64s("start_ns")?, events.i64s("duration_ns")?);
        let mut all: BTreeMap<(i32, i32, i32), BoxFirings> = BTreeMap::new();
        for i in (0..events.rows()).filter(|i| durations[*i] >= 0) {
            let key = (ranks[i], threads[i], operations[i]);
            let Some(name) = usize::try_from(key.2).ok().and_then(|o| names.get(o)) else { continue };
            let own = || {
                let thread = if key.1 == 0 { String::new() } else { format!(", thread {}", key.1) };
                let track = format!("rank {}{thread}", key.0);
                BoxFirings { track, name: name.clone(), firings: Vec::new() }
            };
            all.entry(key).or_insert_with(own).firings.push((starts[i] as f64, durations[i] as f64));
        }
        Some(all.into_values().collect())
    };
    read().unwrap_or_default()
}

/// Turns of threads and handlers on each CPU, around the wait that ended a watch; empty without their table.
pub(super) fn turns(tables: &[Table]) -> Vec<BoxFirings> {
    let read = || {
        let table = tables.iter().find(|t| t.name == "beside_turns")?;
        let (cpus, names) = (table.i32s("cpu")?, table.texts("name")?);
        let (starts, durations) = (table.i64s("start_ns")?, table.i64s("duration_ns")?);
        let mut all: BTreeMap<(i32, &str), BoxFirings> = BTreeMap::new();
        for i in (0..table.rows()).filter(|i| durations[*i] >= 0 && names[*i] != "idle") {
            let track = || format!("CPU {}", cpus[i]);
            let own = || BoxFirings { track: track(), name: names[i].clone(), firings: Vec::new() };
            let turn = (starts[i] as f64, durations[i] as f64);
            all.entry((cpus[i], &names[i])).or_insert_with(own).firings.push(turn);
        }
        Some(all.into_values().collect())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use machmeter_data::{Column, Record, Table, Unit, Values};

    use super::*;

    fn column(name: &str, values: impl Into<Values>) -> Column {
        Column::new(name, Unit::One, values)
    }

    fn table(name: &str, columns: Vec<Column>) -> Table {
        let mut t = Table::new(name, columns).unwrap();
        t.notes.push(("tick_hz".to_owned(), "2e9".to_owned()));
        t
    }

    fn tables() -> Vec<Table> {
        let rest = |name: &str| {
            format!(r#"{{"params":{{"graph":"g","schedule":"s","box":"{name}"}},"extras":{{}}}}"#)
        };
        let rows = vec![
            column("operation", [FIRING, "run", FIRING, FIRING].map(str::to_owned).to_vec()),
            column("rest", vec![rest("fft"), rest("no"), "not JSON".to_owned(), rest("sink")]),
        ];
        // Left out: a firing of the unreadable box, one of no box, and one of negative length.
        let pairs = vec![
            column("row", vec![0, 3, 0, 1, 2, -1, 99, 0]),
            column("at_ns", vec![100.0, 130.0, 200.0, 0.0, 0.0, 0.0, 0.0, 300.0]),
            column("long_ticks", vec![40_i64, 20, 60, 9, 9, 9, 9, -5]),
        ];
        vec![table("flow_rows", rows), table("flow_pairs", pairs)]
    }

    #[test]
    fn firings_are_read_and_what_is_no_firing_is_left_out() {
        let found = firings(&tables());
        let [fft, sink] = &found[..] else { panic!("{} boxes", found.len()) };
        assert_eq!((fft.name.as_str(), &fft.firings[..]), ("fft", &[(100.0, 20.0), (200.0, 30.0)][..]));
        assert_eq!((sink.track.as_str(), &sink.firings[..]), ("g: s", &[(130.0, 10.0)][..]));
        assert!(firings(&tables()[..1]).is_empty() && firings(&[]).is_empty());
    }

    /// Number of occurrences of each text in the trace of these tables.
    fn times<const N: usize>(tables: &[Table], texts: [&str; N]) -> [usize; N] {
        let out = crate::format::written("perfetto", &Record::default(), tables).unwrap();
        texts.map(|text| out.windows(text.len()).filter(|w| *w == text.as_bytes()).count())
    }

    #[test]
    fn a_trace_has_a_slice_per_firing() {
        assert_eq!(times(&tables(), ["fft", "sink", "g: s"]), [2, 1, 1]);
    }

    #[test]
    fn a_trace_has_a_track_per_cpu_with_a_slice_per_turn() {
        let columns = vec![
            column("cpu", vec![0, 0, 1]),
            column("start_ns", vec![-5_i64, 40, 20]),
            column("duration_ns", vec![5_i64, 6, 7]),
            column("name", ["hog:7", "idle", "hog:7"].map(str::to_owned).to_vec()),
        ];
        let table = Table::new("beside_turns", columns).unwrap();
        assert_eq!(times(&[table], ["hog:7", "CPU 0", "CPU 1", "idle"]), [2, 1, 1, 0]);
    }

    #[test]
    fn a_trace_has_a_slice_per_mpi_call_and_a_track_per_rank() {
        let columns = vec![
            column("rank", vec![0, 0, 1, 1]),
            column("thread", vec![0, 0, 0, 1]),
            column("operation", vec![1, 1, 0, 7]),
            column("start_ns", vec![10_i64, 40, 20, 30]),
            column("duration_ns", vec![5_i64, 6, -1, 8]),
        ];
        let mut events = table("mpi_events", columns);
        events.name_codes("operation", ["MPI_Send".to_owned(), "MPI_Recv".to_owned()]);
        let found = mpi_calls(std::slice::from_ref(&events));
        let [only] = &found[..] else { panic!("an open call and one of no name are shown") };
        assert_eq!((only.track.as_str(), only.name.as_str()), ("rank 0", "MPI_Recv"));
        assert_eq!(only.firings, [(10.0, 5.0), (40.0, 6.0)]);
        assert_eq!(times(&[events], ["MPI_Recv", "rank 0"]), [2, 1]);
    }
}
