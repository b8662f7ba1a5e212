//! What was recorded: cells, their segments, every job of them. And the same as tables, to be stored, and back: a row per release,
//! one per segment, the rest as JSON in the second's notes. What was not told (run delay, steal, pressure) is stored as -1.

use machmeter_data::quantity::Unit;
use machmeter_data::{Column, Table};
use machmeter_engine::ProbeError;
use machmeter_engine::stream::{Fate, Job, Stream};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    pub setup: Setup,
    /// Cells in the order of the tasks, then of the loads.
    pub cells: Vec<Cell>,
    pub loads: Vec<LoadNote>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Policy of the tasks, as in force.
    pub task_policy: String,
    pub load_policy: String,
    pub real_time: bool,
    pub cpus: usize,
    pub timer_slack_ns: Option<u64>,
    /// Turns of the loop per ms of CPU time by calibration.
    pub turns_per_ms: f64,
    /// Time that calibration took in the slowest task process, ns.
    pub calibration_ns: u64,
    pub comment: String,
    /// What the kernel takes from real-time threads on purpose and other conditions, in words.
    pub conditions: Vec<String>,
    pub predicted_from: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub task: String,
    pub load: String,
    pub stream: Stream,
    #[serde(skip)]
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Start after the start of the run, ns.
    pub start_ns: u64,
    /// Length by plan, ns: releases before its end are scheduled.
    pub length_ns: u64,
    /// Every release, in order. Those of a chain have the waits of all its threads.
    #[serde(with = "crate::worker::short_jobs")]
    pub jobs: Vec<Job>,
    /// Releases by schedule; equal to the number of jobs, or something was lost.
    pub scheduled: u64,
    /// Units of work that the load got done meanwhile, and for how long it was counted, ns.
    pub load_work: u64,
    pub load_ns: u64,
    /// Wait for a CPU by the kernel's account (`schedstat`), over the threads of the task; ns.
    pub run_delay_ns: Option<u64>,
    /// CPU time by the kernel's account, over the threads of the task; ns.
    pub on_cpu_ns: Option<u64>,
    pub voluntary: u64,
    pub involuntary: u64,
    pub steal_ns: Option<u64>,
    /// Pressure: share of time in which some task waited for a CPU, by the kernel's account.
    pub cpu_pressure: Option<f64>,
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadNote {
    pub name: String,
    /// What a unit of its work is.
    pub work: String,
    /// Unit of its work, as a UCUM code of a rate or count.
    pub unit: String,
    pub caveats: Vec<String>,
    pub side_effects: Vec<String>,
    /// Why it could not be had, or ended early.
    pub failure: Option<String>,
}

const JOBS: &str = "interactive_jobs";
const SEGMENTS: &str = "interactive_segments";

/// The samples as tables. Times beyond 292 years and a trouble without a text do not survive.
pub fn to_tables(samples: &Samples) -> Vec<Table> {
    let json = |name: &str, value: Option<String>| (name.to_owned(), value.unwrap_or_default());
    let notes = vec![
        json("setup", serde_json::to_string(&samples.setup).ok()),
        json("cells", serde_json::to_string(&samples.cells).ok()),
        json("loads", serde_json::to_string(&samples.loads).ok()),
    ];
    let segments: Vec<(i32, i32, &Segment)> = samples
        .cells
        .iter()
        .zip(0..)
        .flat_map(|(c, i)| c.segments.iter().zip(0..).map(move |(s, k)| (i, k, s)))
        .collect();
    let mut jobs = Table { name: JOBS.to_owned(), notes: Vec::new(), columns: job_columns(&segments) };
    jobs.name_codes("fate", Fate::ALL.iter().map(|f| f.name().to_owned()));
    let mut segments = Table { name: SEGMENTS.to_owned(), notes, columns: segment_columns(&segments) };
    for table in [&mut jobs, &mut segments] {
        table.name_codes("cell", samples.cells.iter().map(|c| format!("{}/{}", c.task, c.load)));
    }
    vec![jobs, segments]
}

fn wide(name: &str, values: Vec<i64>) -> Column {
    Column::new(name, if name.ends_with("_ns") { Unit::Nanoseconds } else { Unit::Count }, values)
}

/// Columns of 32 bits of the cell and the segment that each row belongs to.
fn places(rows: impl Iterator<Item = (i32, i32)>) -> Vec<Column> {
    let (cells, segments): (Vec<i32>, Vec<i32>) = rows.unzip();
    vec![Column::new("cell", Unit::Count, cells), Column::new("segment", Unit::Count, segments)]
}
type JobNumber = (&'static str, fn(&Job) -> u64);

const JOB_NUMBERS: [JobNumber; 5] = [
    ("number", |j| j.number),
    ("release_ns", |j| j.release_ns),
    ("wake_ns", |j| j.wake_ns),
    ("response_ns", |j| j.response_ns),
    ("cpu_ns", |j| j.cpu_ns),
];

fn job_columns(segments: &[(i32, i32, &Segment)]) -> Vec<Column> {
    let jobs = || segments.iter().flat_map(|(c, s, segment)| segment.jobs.iter().map(move |j| (*c, *s, j)));
    let mut out = places(jobs().map(|j| (j.0, j.1)));
    out.extend(JOB_NUMBERS.map(|(name, of)| wide(name, jobs().map(|j| of(j.2) as i64).collect())));
    let fates: Vec<i32> = jobs().map(|j| j.2.fate.number()).collect();
    out.push(Column::new("fate", Unit::Count, fates));
    out
}

/// A column of whole numbers: its name, and how a segment has and gets its value.
type Number = (&'static str, fn(&Segment) -> i64, fn(&mut Segment, i64));

const NUMBERS: [Number; 10] = [
    ("start_ns", |s| s.start_ns as i64, |s, v| s.start_ns = v as u64),
    ("length_ns", |s| s.length_ns as i64, |s, v| s.length_ns = v as u64),
    ("scheduled", |s| s.scheduled as i64, |s, v| s.scheduled = v as u64),
    ("load_work", |s| s.load_work as i64, |s, v| s.load_work = v as u64),
    ("load_ns", |s| s.load_ns as i64, |s, v| s.load_ns = v as u64),
    ("run_delay_ns", |s| told(s.run_delay_ns), |s, v| s.run_delay_ns = u64::try_from(v).ok()),
    ("on_cpu_ns", |s| told(s.on_cpu_ns), |s, v| s.on_cpu_ns = u64::try_from(v).ok()),
    ("voluntary", |s| s.voluntary as i64, |s, v| s.voluntary = v as u64),
    ("involuntary", |s| s.involuntary as i64, |s, v| s.involuntary = v as u64),
    ("steal_ns", |s| told(s.steal_ns), |s, v| s.steal_ns = u64::try_from(v).ok()),
];

fn told(value: Option<u64>) -> i64 {
    value.map_or(-1, |v| v as i64)
}

fn segment_columns(segments: &[(i32, i32, &Segment)]) -> Vec<Column> {
    let pressure: Vec<f64> = segments.iter().map(|s| s.2.cpu_pressure.unwrap_or(-1.0)).collect();
    let trouble: Vec<String> = segments.iter().map(|s| s.2.trouble.clone().unwrap_or_default()).collect();
    let mut out = places(segments.iter().map(|s| (s.0, s.1)));
    out.extend(NUMBERS.map(|(name, of, _)| wide(name, segments.iter().map(|s| of(s.2)).collect())));
    out.push(Column::new("cpu_pressure", Unit::One, pressure));
    out.push(Column::new("trouble", Unit::Count, trouble));
    out
}

/// Errors: the tables are not this probe's, lack a column or a note, or contradict each other.
pub fn from_tables(tables: &[Table]) -> Result<Samples, ProbeError> {
    let find = |name: &str| tables.iter().find(|t| t.name == name);
    let (Some(jobs), Some(segments)) = (find(JOBS), find(SEGMENTS)) else {
        let text = format!("no tables called {SEGMENTS} and {JOBS} to analyze as interactive");
        return Err(ProbeError::Usage(text));
    };
    let mut cells: Vec<Cell> = note(segments, "cells")?;
    let setup: Setup = note(segments, "setup")?;
    let loads: Vec<LoadNote> = note(segments, "loads")?;
    read_segments(segments, &mut cells)?;
    read_jobs(jobs, &mut cells)?;
    Ok(Samples { setup, cells, loads })
}

fn note<T: serde::de::DeserializeOwned>(table: &Table, key: &str) -> Result<T, ProbeError> {
    let bad = |why: &str| ProbeError::Usage(format!("table {}: note {key} {why}", table.name));
    let text = table.note(key).ok_or_else(|| bad("is missing"))?;
    serde_json::from_str(text).map_err(|e| bad(&format!("cannot be read: {e}")))
}

fn missing<'a, T: ?Sized>(table: &'a Table, name: &str, column: Option<&'a T>) -> Result<&'a T, ProbeError> {
    let text = || format!("table {}: column {name} is missing or of another kind", table.name);
    column.ok_or_else(|| ProbeError::Usage(text()))
}

fn wides<'a>(table: &'a Table, name: &str) -> Result<&'a [i64], ProbeError> {
    missing(table, name, table.i64s(name))
}

fn smalls<'a>(table: &'a Table, name: &str) -> Result<&'a [i32], ProbeError> {
    missing(table, name, table.i32s(name))
}

fn read_segments(table: &Table, cells: &mut [Cell]) -> Result<(), ProbeError> {
    let (cell, number) = (smalls(table, "cell")?, smalls(table, "segment")?);
    let numbers: Vec<&[i64]> = NUMBERS.iter().map(|n| wides(table, n.0)).collect::<Result<_, _>>()?;
    let pressure = missing(table, "cpu_pressure", table.f64s("cpu_pressure"))?;
    let trouble = missing(table, "trouble", table.texts("trouble"))?;
    for (i, (cell, number)) in cell.iter().zip(number).enumerate() {
        let target = usize::try_from(*cell).ok().and_then(|c| cells.get_mut(c));
        let Some(c) = target.filter(|c| i32::try_from(c.segments.len()) == Ok(*number)) else {
            let text = format!("table {SEGMENTS}: row {i}: segment {number} of cell {cell} is out of place");
            return Err(ProbeError::Usage(text));
        };
        let mut segment = Segment {
            cpu_pressure: Some(pressure[i]).filter(|p| *p >= 0.0),
            trouble: Some(trouble[i].clone()).filter(|t| !t.is_empty()),
            ..Segment::default()
        };
        NUMBERS.iter().zip(&numbers).for_each(|((_, _, set), column)| set(&mut segment, column[i]));
        c.segments.push(segment);
    }
    Ok(())
}

fn read_jobs(table: &Table, cells: &mut [Cell]) -> Result<(), ProbeError> {
    let [cell, segment, fate] = [smalls(table, "cell")?, smalls(table, "segment")?, smalls(table, "fate")?];
    let numbers: Vec<&[i64]> = JOB_NUMBERS.iter().map(|n| wides(table, n.0)).collect::<Result<_, _>>()?;
    for i in 0..table.rows() {
        let bad = |what: &str| ProbeError::Usage(format!("table {JOBS}: row {i}: {what}"));
        let at = |v: i32| usize::try_from(v).ok();
        let target = at(cell[i])
            .and_then(|c| cells.get_mut(c))
            .and_then(|c| at(segment[i]).and_then(|s| c.segments.get_mut(s)));
        let jobs = &mut target.ok_or_else(|| bad("no such segment"))?.jobs;
        let fate = Fate::from_number(fate[i]).ok_or_else(|| bad("its fate is unknown"))?;
        let mut values = [0; JOB_NUMBERS.len()];
        for (value, column) in values.iter_mut().zip(&numbers) {
            *value = u64::try_from(column[i]).map_err(|_| bad("a time is negative"))?;
        }
        let [number, release_ns, wake_ns, response_ns, cpu_ns] = values;
        jobs.push(Job { number, release_ns, wake_ns, response_ns, cpu_ns, fate });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use machmeter_data::Values;
    use machmeter_engine::Probe;
    use machmeter_engine::stream::{Deadline, Demand, Overload, Release, Stream};

    use super::*;
    use crate::Interactive;
    use crate::params::tests::params;

    fn samples() -> Samples {
        let stream = Stream {
            release: Release::Poisson { mean_ns: 125_000_000 },
            demand: Demand::Cpu { ns: 1_000_000 },
            deadline: Deadline::After { ns: 50_000_000 },
            overload: Overload::Queue { most_periods: 3 },
            stages: vec![Demand::Launch, Demand::Turns { turns: 7 }],
        };
        let job = |number: u64, fate: Fate| Job {
            number,
            release_ns: number * 1_000_003,
            wake_ns: 17 + number,
            response_ns: 9_000_000_000_000,
            cpu_ns: 0,
            fate,
        };
        let whole = Segment {
            start_ns: 5,
            length_ns: 3_000_000_000,
            jobs: vec![job(0, Fate::Ran), job(1, Fate::RanBehind), job(2, Fate::Dropped)],
            scheduled: 3,
            load_work: 99,
            load_ns: 2_999_999_999,
            run_delay_ns: Some(0),
            on_cpu_ns: Some(123),
            voluntary: 4,
            involuntary: 5,
            steal_ns: Some(6),
            cpu_pressure: Some(0.1),
            trouble: None,
        };
        let empty = Segment { trouble: Some("killed, \"at once\"".to_owned()), ..Segment::default() };
        let cell = |load: &str, segments: Vec<Segment>| Cell {
            task: "typing".to_owned(),
            load: load.to_owned(),
            stream: stream.clone(),
            segments,
        };
        Samples {
            setup: Setup {
                task_policy: "fifo:45".to_owned(),
                turns_per_ms: 1.0 / 3.0,
                timer_slack_ns: Some(1),
                conditions: vec!["line\nbreak".to_owned()],
                ..Setup::default()
            },
            cells: vec![
                cell("none", vec![whole.clone(), empty.clone()]),
                cell("burn", Vec::new()),
                cell("ring", vec![empty, whole]),
            ],
            loads: vec![LoadNote { name: "burn".to_owned(), unit: "Hz".to_owned(), ..LoadNote::default() }],
        }
    }

    #[test]
    fn samples_come_back_exactly() {
        let s = samples();
        let tables = to_tables(&s);
        assert_eq!(tables[0].rows(), 6);
        let again = from_tables(&tables).unwrap();
        assert_eq!(again, s);
        let params = params(&[]).unwrap();
        // The probe's whole analysis, predictions included.
        let analysis = |s: &Samples| format!("{:?}", Interactive::analyze(&params, s, 3));
        assert_eq!(analysis(&again), analysis(&s));
        let nothing = Samples::default();
        assert_eq!(from_tables(&to_tables(&nothing)).unwrap(), nothing);
    }

    #[test]
    fn what_is_not_ours_is_refused_in_one_line() {
        let refused = |tables: &[Table]| from_tables(tables).unwrap_err().to_string();
        let none = "no tables called interactive_segments and interactive_jobs to analyze as interactive";
        assert_eq!(refused(&[]), none);
        let change = |f: &dyn Fn(&mut Vec<Table>)| {
            let mut t = to_tables(&samples());
            f(&mut t);
            let text = refused(&t);
            assert!(!text.contains('\n'), "{text}");
            text
        };
        assert!(change(&|t| t[1].notes.clear()).contains("note cells is missing"));
        assert!(change(&|t| t[1].notes[1].1 = "[{}]".to_owned()).contains("note cells cannot be read"));
        assert!(change(&|t| t[0].columns.truncate(3)).contains("column fate is missing"));
        assert!(change(&|t| t[0].columns[7].values = Values::I32(vec![9; 6])).contains("fate"));
        assert!(change(&|t| t[0].columns[0].values = Values::I32(vec![7; 6])).contains("no such segment"));
        assert!(change(&|t| t[0].columns[3].values = Values::I64(vec![-1; 6])).contains("negative"));
        assert!(change(&|t| t[1].columns[0].values = Values::I32(vec![2; 4])).contains("out of place"));
    }
}
