//! Exports detour durations as an `HdrHistogram` interval log (version 1.3): in ns, one tag per CPU, V2 compressed.
//!
//! Readers: `HdrHistogram`'s `HistogramLogProcessor`, the plotter of its web page, any port of the library.

use std::io;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use machmeter_data::{Record, Table};

use super::{ExportError, gaps};
use crate::pictures;
use machmeter_data::gaps::Gaps;

/// Three significant digits, the usual choice of the format's tools.
const DIGITS: u8 = 3;
const INTERVALS: usize = 10;

pub(super) fn write(record: &Record, tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let gaps = gaps(tables, "hlog")?;
    let mut out = out;
    let mut serializer = V2DeflateSerializer::new();
    let listed = gaps.listed_from_ns().map_or(String::new(), |ns| format!(" of {ns:.0} ns or more"));
    let (tool, started) = (&record.tool, &record.run.started);
    let comment = format!("[{} {}: gap durations{listed}, ns; started {started}]", tool.name, tool.version);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&comment)
        .with_base_time(SystemTime::UNIX_EPOCH)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut out, &mut serializer)?;
    // The recorded part of the run; other probes may have run before and after it.
    let recorded_ns = pictures::shares(record).map_or(0.0, |(_, s)| {
        s.start_ns + s.step_ns * s.rows.iter().map(|r| r.mean.len()).max().unwrap_or(0) as f64
    });
    let end_ns = (0..gaps.cpu.len()).map(|i| gaps.start_ns(i)).fold(recorded_ns, f64::max).max(1.0);
    let span_ns = end_ns / INTERVALS as f64;
    for (span, members) in by_span(&gaps, span_ns).into_iter().enumerate() {
        for cpu in gaps.cpus() {
            let histogram = histogram_of(&gaps, &members, cpu)?;
            let name = format!("CPU{cpu}");
            let tag = Tag::new(&name);
            let start = Duration::from_nanos((span_ns * span as f64) as u64);
            log.write_histogram(&histogram, start, Duration::from_nanos(span_ns as u64), tag)
                .map_err(|e| io::Error::other(format!("histogram of CPU {cpu}: {e:?}")))?;
        }
    }
    Ok(())
}

/// Row numbers, grouped by the interval in which the gap starts.
fn by_span(gaps: &Gaps<'_>, span_ns: f64) -> Vec<Vec<usize>> {
    let mut spans = vec![Vec::new(); INTERVALS];
    for i in 0..gaps.cpu.len() {
        spans[((gaps.start_ns(i) / span_ns) as usize).min(INTERVALS - 1)].push(i);
    }
    spans
}

fn histogram_of(gaps: &Gaps<'_>, rows: &[usize], cpu: i32) -> Result<Histogram<u64>, ExportError> {
    let mut histogram =
        Histogram::<u64>::new(DIGITS).map_err(|e| io::Error::other(format!("histogram: {e}")))?;
    for &row in rows.iter().filter(|i| gaps.cpu[**i] == cpu) {
        let recorded = histogram.record(gaps.duration_ns(row).round() as u64);
        recorded.map_err(|e| ExportError::BadRow { row, what: e.to_string() })?;
    }
    Ok(histogram)
}
