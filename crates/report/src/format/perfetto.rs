//! Exports a Perfetto trace in the native protobuf form (`TrackEvent`), for ui.perfetto.dev and `trace_processor`.
//!
//! A CPU has a track with a slice per detour, named by its source. A schedule of a dataflow graph has a track with a slice per firing, and a rank of an MPI
//! program one with a slice per call. A watch that a long wait ended has a track per CPU with a slice per turn. Every time series of the record is a counter.
//!
//! Field numbers: perfetto's `protos/perfetto/trace/{trace_packet,track_event/*}.proto`.

use std::collections::BTreeMap;
use std::io;

use machmeter_data::shape::Series;
use machmeter_data::{Record, Table, Unit, finite};

use super::firings::{BoxFirings, firings, mpi_calls, turns};
use super::protobuf::Message;
use super::{ExportError, gaps};
use machmeter_data::gaps::Gaps;

mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}
mod descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const COUNTER_UNIT_NAME: u32 = 6;
}
mod event {
    pub(super) const KIND: u32 = 9;
    pub(super) const TRACK: u32 = 11;
    pub(super) const NAME: u32 = 23;
    pub(super) const DOUBLE_VALUE: u32 = 44;
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
}

const ROOT_TRACK: u64 = 1;
/// Gaps below this length are counted per `COUNTED_NS`. As slices they would be most of the trace, and too short to see.
const SHORT_NS: f64 = 1_000.0;
const COUNTED_NS: f64 = 1e6;
const FIRST_CPU_TRACK: u64 = 1_000;
const FIRST_SHORT_TRACK: u64 = 500_000;
const FIRST_SCHEDULE_TRACK: u64 = 900_000;
const FIRST_COUNTER_TRACK: u64 = 1_000_000;

pub(super) fn write(record: &Record, tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let mut boxes = firings(tables);
    boxes.extend(mpi_calls(tables));
    boxes.extend(turns(tables));
    let gaps = if boxes.is_empty() { Some(gaps(tables, "perfetto")?) } else { None };
    let root = Message::default().number(descriptor::UUID, ROOT_TRACK).text(descriptor::NAME, "machmeter");
    // The first packet of a sequence marks the start of its incremental state.
    put(out, &Message::default().number(packet::SEQUENCE_FLAGS, 1).message(packet::TRACK_DESCRIPTOR, &root))?;
    if let Some(gaps) = gaps {
        slices(out, &gaps, tables)?;
    }
    fired(out, &boxes)?;
    let mut track = FIRST_COUNTER_TRACK;
    for d in &record.datasets {
        if let Some(s) = d.shape.series() {
            track = counters(out, &d.title, s, track)?;
        }
    }
    Ok(())
}

/// A packet as field 1 of the trace.
fn put(out: &mut dyn io::Write, packet: &Message) -> io::Result<()> {
    let packet = packet.clone().number(packet::SEQUENCE_ID, 1);
    out.write_all(Message::default().message(1, &packet).as_bytes())
}

fn describe(out: &mut dyn io::Write, track: &Message) -> io::Result<()> {
    put(out, &Message::default().message(packet::TRACK_DESCRIPTOR, track))
}

fn track_of(number: u64, name: &str) -> Message {
    let named = Message::default().number(descriptor::UUID, number).text(descriptor::NAME, name);
    named.number(descriptor::PARENT, ROOT_TRACK)
}

fn event_of(kind: u64, track: u64) -> Message {
    Message::default().number(event::KIND, kind).number(event::TRACK, track)
}

fn slices(out: &mut dyn io::Write, gaps: &Gaps<'_>, tables: &[Table]) -> io::Result<()> {
    let names = tables.iter().find(|t| t.name == "noise_sources").and_then(|t| t.texts("name"));
    let sources = gaps.table.i32s("source");
    for cpu in gaps.cpus() {
        let track = FIRST_CPU_TRACK + u64::try_from(cpu).unwrap_or(0);
        describe(out, &track_of(track, &format!("CPU {cpu} gaps")))?;
        let mut rows: Vec<usize> = (0..gaps.cpu.len()).filter(|i| gaps.cpu[*i] == cpu).collect();
        rows.sort_by_key(|i| gaps.start_ticks[*i]);
        let (short, long): (Vec<usize>, Vec<usize>) =
            rows.into_iter().partition(|i| gaps.duration_ns(*i) < SHORT_NS);
        counted(out, gaps, &short, cpu)?;
        for i in long {
            let source = sources.and_then(|s| usize::try_from(s[i]).ok());
            let name = source.and_then(|s| names?.get(s)).map_or("detour", String::as_str);
            let start_ns = gaps.start_ns(i);
            timed(out, start_ns, &event_of(event::BEGIN, track).text(event::NAME, name))?;
            timed(out, start_ns + gaps.duration_ns(i), &event_of(event::END, track))?;
        }
    }
    Ok(())
}

/// A firing on a track: begin and length, ns, and the name of the box.
type Fired<'b> = (f64, f64, &'b str);

/// Writes a track per schedule with a slice per firing, in order of time.
fn fired(out: &mut dyn io::Write, boxes: &[BoxFirings]) -> io::Result<()> {
    let mut tracks: Vec<(&str, Vec<Fired<'_>>)> = Vec::new();
    for b in boxes {
        let at = tracks.iter().position(|t| t.0 == b.track).unwrap_or_else(|| {
            tracks.push((&b.track, Vec::new()));
            tracks.len() - 1
        });
        tracks[at].1.extend(b.firings.iter().map(|(begin_ns, ns)| (*begin_ns, *ns, b.name.as_str())));
    }
    for ((name, mut all), track) in tracks.into_iter().zip(FIRST_SCHEDULE_TRACK..) {
        describe(out, &track_of(track, name))?;
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (begin_ns, ns, name) in all {
            timed(out, begin_ns, &event_of(event::BEGIN, track).text(event::NAME, name))?;
            timed(out, begin_ns + ns, &event_of(event::END, track))?;
        }
    }
    Ok(())
}

/// Writes the number of short gaps in each millisecond, only where it changes.
fn counted(out: &mut dyn io::Write, gaps: &Gaps<'_>, rows: &[usize], cpu: i32) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let track = FIRST_SHORT_TRACK + u64::try_from(cpu).unwrap_or(0);
    let described = track_of(track, &format!("CPU {cpu} gaps under 1 us, per ms"));
    describe(out, &described.message(descriptor::COUNTER, &Message::default()))?;
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for i in rows {
        let at = (gaps.start_ns(*i).max(0.0) / COUNTED_NS) as u64;
        *counts.entry(at).or_default() += 1;
        // The count returns to zero in the next millisecond, unless it has gaps, too.
        counts.entry(at + 1).or_default();
    }
    for (at, count) in counts {
        let value = event_of(event::COUNTER, track).double(event::DOUBLE_VALUE, count as f64);
        timed(out, at as f64 * COUNTED_NS, &value)?;
    }
    Ok(())
}

fn timed(out: &mut dyn io::Write, at_ns: f64, event: &Message) -> io::Result<()> {
    let stamp = at_ns.max(0.0).round() as u64;
    put(out, &Message::default().number(packet::TIMESTAMP, stamp).message(packet::TRACK_EVENT, event))
}

/// Writes one counter per row with the mean of every bucket; returns the next free track.
fn counters(out: &mut dyn io::Write, title: &str, series: &Series, first: u64) -> io::Result<u64> {
    let mut track = first;
    let (factor, unit) = if series.y.unit == Unit::One { (100.0, "%") } else { (1.0, series.y.unit.ucum()) };
    for row in &series.rows {
        let counter = Message::default().text(descriptor::COUNTER_UNIT_NAME, unit);
        let described = track_of(track, &format!("{title}, {}", row.name));
        describe(out, &described.message(descriptor::COUNTER, &counter))?;
        for (i, mean) in row.mean.iter().enumerate() {
            let value = event_of(event::COUNTER, track).double(event::DOUBLE_VALUE, mean * factor);
            timed(out, series.start_ns + series.step_ns * i as f64, &value)?;
        }
        track += 1;
    }
    Ok(track)
}
