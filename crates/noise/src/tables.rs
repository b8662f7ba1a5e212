//! The samples as tables, and back: what is one per window, gap or part is a column, the rest is one note.
//! Files of other tools have fewer columns and no such note: what they say is taken from the notes that they have.

mod collectives;

use std::collections::BTreeMap;

use machmeter_data::gaps::{GAPS, WINDOWS};
use machmeter_data::quantity::Unit;
use machmeter_data::{Column, Table, Values};
use machmeter_engine::ProbeError;
use machmeter_stats::histogram::Bucket;

use super::attribute::activity_log::{ActivityLog, Source, SourceKind};
use super::attribute::matching::{Attributed, Part, attribute};
use super::attribute::unlisted::{SLICES, Turn, Unlisted};
use super::samples::{CpuSamples, Lengths, Samples, Setup};
use machmeter_loops::noise::measure::sums_of;
use machmeter_loops::noise::measure::{Gap, Schedule, Sums};

const SOURCES: &str = "noise_sources";
const PARTS: &str = "noise_parts";
const HISTOGRAM: &str = "noise_histogram";
const UNLISTED: &str = "noise_unlisted";
const TURNS: &str = "noise_turns";

const WINDOW_COLUMNS: [&str; 9] = [
    "cpu",
    "start_ticks",
    "count",
    "detours",
    "detour_ticks",
    "stalls",
    "stall_ticks",
    "clusters",
    "own_ticks",
];
const GAP_COLUMNS: [&str; 6] = ["cpu", "start_ticks", "end_ticks", "source", "entry_ticks", "exit_ticks"];
const PART_COLUMNS: [&str; 5] = ["cpu", "gap", "source", "start_ticks", "ticks"];
const HISTOGRAM_COLUMNS: [&str; 4] = ["cpu", "low_ticks", "high_ticks", "count"];
const UNLISTED_COLUMNS: [&str; 5] = ["cpu", "slice", "source", "gaps", "ticks"];
const TURN_COLUMNS: [&str; 4] = ["cpu", "source", "start_ticks", "ticks"];

/// Windows into which an imported list of gaps is divided.
const IMPORTED_WINDOWS: usize = 1000;

/// Note of the windows table: everything that is no column, as JSON.
const RUN: &str = "run";

/// A table that grows row by row.
struct Rows {
    /// Those that end in `ticks` have that unit, the others count.
    names: &'static [&'static str],
    columns: Vec<Vec<i64>>,
}

impl Rows {
    fn new(names: &'static [&'static str]) -> Self {
        Self { names, columns: vec![Vec::new(); names.len()] }
    }

    fn push<const N: usize>(&mut self, row: [i64; N]) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    fn table(self, name: &str, notes: Vec<(String, String)>) -> Table {
        let of = name;
        let column = |(name, values): (&&str, Vec<i64>)| {
            let unit = if name.ends_with("ticks") { Unit::Ticks } else { Unit::Count };
            // A day of short gaps is more than 32 bits count.
            let values = if unit == Unit::Ticks || of == HISTOGRAM && *name == "count" {
                Values::I64(values)
            } else {
                Values::I32(values.into_iter().map(|v| v as i32).collect())
            };
            Column::new(name, unit, values)
        };
        let columns = self.names.iter().zip(self.columns).map(column).collect();
        Table { name: name.to_owned(), notes, columns }
    }
}

pub fn to_tables(samples: &Samples) -> Vec<Table> {
    let s = &samples.setup.schedule;
    let (mut windows, mut gaps) = (Rows::new(&WINDOW_COLUMNS), Rows::new(&GAP_COLUMNS));
    let (mut parts, mut histogram) = (Rows::new(&PART_COLUMNS), Rows::new(&HISTOGRAM_COLUMNS));
    let (mut unlisted, mut turns) = (Rows::new(&UNLISTED_COLUMNS), Rows::new(&TURN_COLUMNS));
    for c in &samples.cpus {
        let cpu = c.cpu as i64;
        for k in 0..c.counts.len().max(c.sums.len()) {
            let n = c.counts.get(k).copied().unwrap_or(0);
            let w = c.sums.get(k).copied().unwrap_or_default();
            let start = s.t0_ticks + k as u64 * s.window_ticks;
            let [detours, detour, stalls, stall, clusters, own] =
                [w.detours, w.detour_ticks, w.stalls, w.stall_ticks, w.clusters, w.own_ticks].map(i64::from);
            windows.push([cpu, start as i64, i64::from(n), detours, detour, stalls, stall, clusters, own]);
        }
        for (k, g) in c.gaps.iter().enumerate() {
            let a = c.attributed.get(k);
            let (source, entry, exit) =
                a.map_or((-1, 0, 0), |a| (i64::from(a.main), a.entry_ticks as i64, a.exit_ticks as i64));
            gaps.push([cpu, g.start_ticks as i64, g.end_ticks as i64, source, entry, exit]);
            for p in a.map_or(&[][..], |a| &a.parts) {
                parts.push([cpu, k as i64, i64::from(p.source), p.start_ticks as i64, p.ticks as i64]);
            }
        }
        for b in &c.lengths.buckets {
            histogram.push([cpu, b.low as i64, b.high as i64, b.count as i64]);
        }
        for u in &c.traced.unlisted {
            unlisted.push([cpu, i64::from(u.slice), i64::from(u.source), u.gaps as i64, u.ticks as i64]);
        }
        for t in &c.traced.turns {
            turns.push([cpu, i64::from(t.source), t.start_ticks as i64, t.ticks as i64]);
        }
    }
    let notes = notes(samples);
    let plain: Vec<_> = notes.iter().filter(|n| n.0 != RUN).cloned().collect();
    let tick = vec![("tick_hz".to_owned(), samples.setup.tick_hz.to_string())];
    let named = |mut table: Table| {
        table.name_codes("source", samples.activity_log.sources.iter().map(|s| s.name.clone()));
        table
    };
    let mut tables = vec![
        windows.table(WINDOWS, notes),
        named(gaps.table(GAPS, plain)),
        named(parts.table(PARTS, tick.clone())),
        histogram.table(HISTOGRAM, tick.clone()),
        sources(&samples.activity_log.sources),
    ];
    for (rows, name) in [(unlisted, UNLISTED), (turns, TURNS)] {
        if !rows.columns[0].is_empty() {
            tables.push(named(rows.table(name, tick.clone())));
        }
    }
    tables.extend(collectives::table(samples, tick));
    tables
}

/// What other programs read one by one, and everything at once.
fn notes(samples: &Samples) -> Vec<(String, String)> {
    let (setup, s) = (&samples.setup, &samples.setup.schedule);
    [
        ("tick_hz", setup.tick_hz.to_string()),
        ("t0_ticks", s.t0_ticks.to_string()),
        ("window_ticks", s.window_ticks.to_string()),
        ("threshold_ticks", s.threshold_ticks.to_string()),
        ("listing_ticks", complete_from(samples).to_string()),
        ("step_ticks", setup.step_ticks.to_string()),
        ("quantum", setup.quantum.clone()),
        ("policy", setup.policy.clone()),
        (RUN, serde_json::to_string(samples).unwrap_or_default()),
    ]
    .map(|(k, v)| (k.to_owned(), v))
    .to_vec()
}

/// Shortest detour that is listed on every CPU all the time, ticks.
fn complete_from(samples: &Samples) -> u64 {
    let s = &samples.setup.schedule;
    let of = |c: &CpuSamples| c.complete_from_ticks(s).unwrap_or(u64::MAX);
    samples.cpus.iter().map(of).max().unwrap_or(s.listing_ticks)
}

fn sources(sources: &[Source]) -> Table {
    let text = |name: &str, of: fn(&Source) -> &str| {
        Column::new(name, Unit::Count, sources.iter().map(|s| of(s).to_owned()).collect::<Vec<String>>())
    };
    let columns =
        vec![text("name", |s| &s.name), text("kind", |s| s.kind.name()), text("thread", |s| &s.thread)];
    Table { name: SOURCES.to_owned(), notes: Vec::new(), columns }
}

/// Samples from tables: our own, or imported gaps without windows (selfish, sysjitter) or windows without gaps (FTQ).
/// Errors: neither table is there, or one lacks a column or a note that is needed.
pub fn from_tables(tables: &[Table]) -> Result<Samples, ProbeError> {
    let find = |name: &str| tables.iter().find(|t| t.name == name);
    let (windows, gaps) = (find(WINDOWS), find(GAPS));
    let imported = super::import::datasets(tables);
    let Some(any) = windows.or(gaps).or(tables.first().filter(|_| !imported.is_empty())) else {
        return Err(ProbeError::Usage(format!("no table called {WINDOWS} or {GAPS} to analyze as noise")));
    };
    let mut cpus = BTreeMap::new();
    let mut t0_ticks = number(any, "t0_ticks").map(|v| v as u64);
    for (table, read) in [(windows, read_windows as Reader), (gaps, read_gaps)] {
        let Some(table) = table else { continue };
        read(table, &mut cpus)?;
        t0_ticks = t0_ticks.or(rows(table, ["start_ticks"])?.min().map(|[start]| start as u64));
    }
    let run = windows.and_then(|w| w.note(RUN)).map(serde_json::from_str::<Samples>).transpose();
    let run = run.map_err(|e| ProbeError::Usage(format!("table {WINDOWS}: note {RUN}: {e}")))?;
    if let Some(run) = run {
        return own(tables, cpus, run);
    }
    let mut cpus: Vec<CpuSamples> = cpus.into_values().collect();
    let schedule = imported_schedule(any, &cpus, t0_ticks.unwrap_or(0));
    let mut activity_log = ActivityLog::none();
    for (i, c) in cpus.iter_mut().enumerate() {
        c.lengths = Lengths::of_gaps(&c.gaps);
        c.attributed = attribute(&mut activity_log, i, &c.gaps);
        if gaps.is_some() {
            let windows = if c.counts.is_empty() { schedule.windows } else { c.counts.len() };
            c.sums = sums_of(&c.gaps, &Schedule { windows, ..schedule });
        }
    }
    Ok(Samples {
        setup: Setup {
            quantum: any.note("quantum").unwrap_or("unknown").to_owned(),
            schedule,
            tick_hz: number(any, "tick_hz").unwrap_or(0.0),
            step_ticks: number(any, "step_ticks").map_or(1, |v| v as u64),
            policy: any.note("policy").unwrap_or("unknown").to_owned(),
            has_gaps: gaps.is_some(),
            ..Setup::default()
        },
        cpus,
        activity_log,
        imported,
        ..Samples::default()
    })
}

type Cpus = BTreeMap<i64, CpuSamples>;
type Reader = fn(&Table, &mut Cpus) -> Result<(), ProbeError>;

fn number(table: &Table, key: &str) -> Option<f64> {
    table.note(key).and_then(|v| v.parse::<f64>().ok())
}

fn missing(table: &Table, column: &str) -> ProbeError {
    ProbeError::Usage(format!("table {}: column {column} is missing", table.name))
}

/// The rows of these columns, which hold whole numbers.
fn rows<'t, const N: usize>(
    t: &'t Table,
    names: [&str; N],
) -> Result<impl Iterator<Item = [i64; N]> + use<'t, N>, ProbeError> {
    let whole = |v: &&Values| matches!(v, Values::I32(_) | Values::I64(_));
    let column =
        |name: &&str| t.column(name).map(|c| &c.values).filter(whole).ok_or_else(|| missing(t, name));
    let columns = names.iter().map(column).collect::<Result<Vec<&Values>, _>>()?;
    let value = |column: &Values, row: usize| match column {
        Values::I32(v) => i64::from(v[row]),
        Values::I64(v) => v[row],
        Values::F64(_) | Values::Text(_) => 0,
    };
    Ok((0..t.rows()).map(move |row| std::array::from_fn(|k| value(columns[k], row))))
}

fn of(cpu: i64, cpus: &mut Cpus) -> &mut CpuSamples {
    cpus.entry(cpu)
        .or_insert_with(|| CpuSamples { cpu: usize::try_from(cpu).unwrap_or(0), ..CpuSamples::default() })
}

/// Counts, and sums where the table has them.
fn read_windows(t: &Table, cpus: &mut Cpus) -> Result<(), ProbeError> {
    for [cpu, count] in rows(t, ["cpu", "count"])? {
        of(cpu, cpus).counts.push(u32::try_from(count).unwrap_or(0));
    }
    if t.column("detours").is_some() {
        for [cpu, _, _, sums @ ..] in rows(t, WINDOW_COLUMNS)? {
            let [detours, detour_ticks, stalls, stall_ticks, clusters, own_ticks] = sums.map(|v| v as u32);
            let sums = Sums { detours, detour_ticks, stalls, stall_ticks, clusters, own_ticks };
            of(cpu, cpus).sums.push(sums);
        }
    }
    Ok(())
}

/// Gaps, and their main sources and lags where the table has them.
fn read_gaps(t: &Table, cpus: &mut Cpus) -> Result<(), ProbeError> {
    for [cpu, start, end] in rows(t, ["cpu", "start_ticks", "end_ticks"])? {
        of(cpu, cpus).gaps.push(Gap { start_ticks: start as u64, end_ticks: end as u64 });
    }
    for [cpu, _, _, source, entry, exit] in rows(t, GAP_COLUMNS).into_iter().flatten() {
        if let Ok(main) = u32::try_from(source) {
            let (entry_ticks, exit_ticks) = (entry as u64, exit as u64);
            let attributed = Attributed { main, entry_ticks, exit_ticks, parts: Vec::new() };
            of(cpu, cpus).attributed.push(attributed);
        }
    }
    Ok(())
}

/// Our own samples: what is left are parts, lengths, sources, and the note.
fn own(tables: &[Table], mut cpus: Cpus, mut samples: Samples) -> Result<Samples, ProbeError> {
    let find = |name: &str| {
        let lacking = || ProbeError::Usage(format!("no table called {name} beside {WINDOWS}"));
        tables.iter().find(|t| t.name == name).ok_or_else(lacking)
    };
    let parts = find(PARTS)?;
    for [cpu, gap, source, start, ticks] in rows(parts, PART_COLUMNS)? {
        let part = Part { source: source as u32, start_ticks: start as u64, ticks: ticks as u64 };
        let whole = of(cpu, &mut cpus).attributed.get_mut(gap as usize);
        whole.ok_or_else(|| missing(parts, "gap"))?.parts.push(part);
    }
    for [cpu, low, high, count] in rows(find(HISTOGRAM)?, HISTOGRAM_COLUMNS)? {
        let lengths = &mut of(cpu, &mut cpus).lengths;
        let bucket = Bucket { low: low as u64, high: high as u64, count: count as u64 };
        lengths.count += bucket.count;
        lengths.buckets.push(bucket);
    }
    let beside = |name: &str| tables.iter().find(|t| t.name == name);
    for [cpu, slice, source, gaps, ticks] in
        beside(UNLISTED).map(|t| rows(t, UNLISTED_COLUMNS)).transpose()?.into_iter().flatten()
    {
        if (0..SLICES as i64).contains(&slice) {
            let row = Unlisted {
                source: source as u32,
                slice: slice as u32,
                gaps: gaps as u64,
                ticks: ticks as u64,
            };
            of(cpu, &mut cpus).traced.unlisted.push(row);
        }
    }
    for [cpu, source, start, ticks] in
        beside(TURNS).map(|t| rows(t, TURN_COLUMNS)).transpose()?.into_iter().flatten()
    {
        let turn = Turn { source: source as u32, start_ticks: start as u64, ticks: ticks as u64 };
        of(cpu, &mut cpus).traced.turns.push(turn);
    }
    let t = find(SOURCES)?;
    let text = |name: &str| t.texts(name).ok_or_else(|| missing(t, name));
    let rows = text("name")?.iter().zip(text("kind")?).zip(text("thread")?);
    let source = |((name, kind), thread): ((&String, &String), &String)| Source {
        name: name.clone(),
        kind: SourceKind::named(kind),
        thread: thread.clone(),
    };
    samples.activity_log.sources = rows.map(source).collect();
    let sources = samples.activity_log.sources.len();
    let named =
        |a: &Attributed| (a.main as usize) < sources && a.parts.iter().all(|p| (p.source as usize) < sources);
    for c in &mut samples.cpus {
        if let Some(read) = cpus.remove(&(c.cpu as i64)) {
            let Lengths { count, buckets, .. } = read.lengths;
            (c.counts, c.sums, c.gaps, c.attributed) = (read.counts, read.sums, read.gaps, read.attributed);
            c.traced = read.traced;
            (c.lengths.count, c.lengths.buckets) = (count, buckets);
        }
        let traced =
            c.traced.unlisted.iter().map(|u| u.source).chain(c.traced.turns.iter().map(|t| t.source));
        if !c.attributed.iter().all(named) || !traced.into_iter().all(|s| (s as usize) < sources) {
            return Err(missing(t, "name of a source"));
        }
    }
    samples.collectives = collectives::read(tables)?;
    Ok(samples)
}

/// Windows of an imported file. A gap list alone is as long as its wall time, or else its last event, says.
fn imported_schedule(any: &Table, cpus: &[CpuSamples], t0_ticks: u64) -> Schedule {
    let windows = cpus.iter().map(|c| c.counts.len()).max().unwrap_or(0);
    let threshold_ticks = number(any, "threshold_ticks").map_or(0, |v| v as u64);
    let all = |window_ticks: u64, windows| {
        Schedule::all_listed(t0_ticks, window_ticks.max(1), windows, threshold_ticks)
    };
    if windows > 0 {
        return all(number(any, "window_ticks").map_or(0, |v| v as u64), windows);
    }
    let end = cpus.iter().flat_map(|c| &c.gaps).map(|g| g.end_ticks).max().unwrap_or(0);
    let wall = number(any, "wall_ticks").map_or(end.saturating_sub(t0_ticks), |w| w as u64);
    all(wall.div_ceil(IMPORTED_WINDOWS as u64), IMPORTED_WINDOWS)
}
