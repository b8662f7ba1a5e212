//! Reads the JSON formats of timer and latency tools, which have one histogram per thread, keyed by microseconds.

use machmeter_data::{Column, Table, Unit};
use serde_json::Value;

use super::codes::{self, warn};
use super::columns::{list, shortened};
use super::{Imported, Input, Reader, Result, SourceFile};

/// cyclictest (rt-tests): the lateness of the wake-ups of a thread. Older versions write the keys `cmdline:` and `rt_test_version:` with a colon inside.
/// Latencies are whole microseconds, or nanoseconds if `resolution_in_ns` is 1.
pub(super) const CYCLICTEST: Reader = Reader {
    name: CYCLICTEST_LAYOUT.format,
    description: "cyclictest --json with a histogram (-h): wake-up latency per thread",
    sniff: |input| is_json_with(input, &["\"thread\"", "\"cycles\""]),
    fill: |input, out| {
        let bucket = "k to k+1 us (ns if the file uses ns)";
        wake_ups(input, out, "cyclictest", &CYCLICTEST_LAYOUT, bucket)
    },
};

const CYCLICTEST_LAYOUT: Layout = Layout {
    format: "cyclictest-json",
    threads: "thread",
    quantity: "wakeup_latency",
    first_edge: 0.0,
    clamps: false,
    unit_ns: |d| match d.get("resolution_in_ns").and_then(Value::as_i64) {
        Some(0) | None => Some(1000.0),
        Some(1) => Some(1.0),
        Some(_) => None,
    },
};

/// jitterdebugger's results.json: wake-up latency per CPU.
pub(super) const JITTERDEBUGGER: Reader = Reader {
    name: JITTERDEBUGGER_LAYOUT.format,
    description: "jitterdebugger --output DIR: DIR/results.json, wake-up latency per CPU",
    sniff: |input| {
        is_json_with(input, &["\"cpu\"", "\"histogram\""])
            && input.files.iter().all(|f| !f.text.contains("\"thread\""))
    },
    fill: |input, out| {
        let bucket = "k to k+1 units of the file's resolution";
        wake_ups(input, out, "jitterdebugger", &JITTERDEBUGGER_LAYOUT, bucket)
    },
};

const JITTERDEBUGGER_LAYOUT: Layout = Layout {
    format: "jitterdebugger-json",
    threads: "cpu",
    unit_ns: |d| d.pointer("/sysinfo/resolution_in_ns").map_or(Some(1000.0), Value::as_f64),
    ..CYCLICTEST_LAYOUT
};

/// oslat (rt-tests): the duration of each turn of a spinning loop. Bucket k counts turns of k-1 to k us (from the program's source: the index is the whole
/// number of us, printed plus one). The last bucket also includes everything beyond it.
pub(super) const OSLAT: Reader = Reader {
    name: OSLAT_LAYOUT.format,
    description: "oslat --json: histogram of loop turns per CPU, in buckets of 1 us",
    sniff: |input| is_json_with(input, &["\"thread\"", "\"freq\""]),
    fill: oslat,
};

const OSLAT_LAYOUT: Layout = Layout {
    format: "oslat-json",
    quantity: "turn_duration",
    first_edge: -1.0,
    clamps: true,
    unit_ns: |_| Some(1000.0),
    ..CYCLICTEST_LAYOUT
};

fn is_json_with(input: &Input, keys: &[&str]) -> bool {
    let has_keys = |f: &SourceFile| keys.iter().all(|key| f.text.contains(key));
    matches!(input.files.as_slice(), [f] if f.text.trim_start().starts_with('{') && has_keys(f))
}

/// Lateness of wake-ups is not stolen time (W706).
fn wake_ups(input: &Input, out: &mut Imported, program: &str, layout: &Layout, bucket: &str) -> Result<()> {
    read(input, layout, out)?;
    let text = format!("{program} measures the wake-up latency of a sleeping thread, not stolen time");
    warn(out, codes::OTHER_QUANTITY, text);
    out.assume(format!("bucket k holds latencies of {bucket}"));
    Ok(())
}

fn oslat(input: &Input, out: &mut Imported) -> Result<()> {
    let document = read(input, &OSLAT_LAYOUT, out)?;
    out.assume(
        "bucket k holds turns of k-1 to k us; the lowest bucket holds the undisturbed turns, which are not detours",
    );
    out.assume("there are no time stamps, so periods and coincidence between CPUs are unknown");
    let command = text_of(&document, "cmdline");
    if command.is_some_and(|c| c.split_whitespace().any(|w| matches!(w, "-B" | "--bias"))) {
        out.assume(
            "recorded with --bias: the shortest turn was subtracted from every value, and is not in the file",
        );
    }
    Ok(())
}

/// Differences between the formats.
struct Layout {
    format: &'static str,
    /// Key of the object that holds one object per thread or CPU.
    threads: &'static str,
    /// The quantity: `turn_duration` or `wakeup_latency`.
    quantity: &'static str,
    /// Begin of bucket `k`, in buckets: -1 if it holds [k-1, k), 0 if it holds [k, k+1).
    first_edge: f64,
    /// True if the last bucket also includes everything beyond it; else such values are in no bucket.
    clamps: bool,
    /// Nanoseconds of one unit of the bucket keys.
    unit_ns: fn(&Value) -> Option<f64>,
}

struct Thread {
    cpu: i32,
    /// (key, count), ascending.
    buckets: Vec<(f64, i64)>,
    max: Option<f64>,
    min: Option<f64>,
    duration_s: Option<f64>,
    samples: Option<i64>,
}

/// Text under `key`, or under the key of older versions.
fn text_of<'d>(document: &'d Value, key: &str) -> Option<&'d str> {
    document.get(key).or_else(|| document.get(format!("{key}:")))?.as_str()
}

/// Parses the document, puts the table of histograms into `out`, and returns the document.
fn read(input: &Input, layout: &Layout, out: &mut Imported) -> Result<Value> {
    let file = input.first()?;
    let document: Value =
        serde_json::from_str(&file.text).map_err(|e| file.fault_at(e.line(), format!("broken JSON: {e}")))?;
    let unit_ns = (layout.unit_ns)(&document)
        .filter(|u| u.is_finite() && *u > 0.0)
        .ok_or_else(|| file.fault("its resolution is not a positive number"))?;
    let threads = threads(&document, layout, file)?;
    let last_key = threads.iter().filter_map(|t| t.buckets.last()).map(|b| b.0).fold(0.0, f64::max);
    let mut buckets = Vec::new();
    for t in &threads {
        add_thread(&mut buckets, t, layout, unit_ns, last_key, out);
    }
    let overflow = if out.warnings.is_empty() { "none" } else { "last bucket of a CPU" };
    let mut notes = vec![
        ("quantity".to_owned(), layout.quantity.to_owned()),
        ("bucket_ns".to_owned(), unit_ns.to_string()),
        ("cpus".to_owned(), list(&threads.iter().map(|t| t.cpu).collect::<Vec<_>>())),
        ("overflow".to_owned(), overflow.to_owned()),
    ];
    notes.extend(threads.iter().flat_map(|t| thread_notes(t, unit_ns)));
    let columns = vec![
        Column::new("cpu", Unit::Count, buckets.iter().map(|b| b.0).collect::<Vec<i32>>()),
        Column::new("low_ns", Unit::Nanoseconds, buckets.iter().map(|b| b.1).collect::<Vec<f64>>()),
        Column::new("high_ns", Unit::Nanoseconds, buckets.iter().map(|b| b.2).collect::<Vec<f64>>()),
        Column::new("count", Unit::Count, buckets.iter().map(|b| b.3).collect::<Vec<i64>>()),
    ];
    out.tables.push(Table { name: "noise_histogram".to_owned(), notes, columns });
    for (name, key) in
        [("command", "cmdline"), ("tool_version", "rt_test_version"), ("started", "start_time")]
    {
        if let Some(v) = text_of(&document, key) {
            out.note(name, v);
        }
    }
    if let Some(kernel) = document.pointer("/sysinfo/release").and_then(Value::as_str) {
        out.note("kernel", kernel);
    }
    Ok(document)
}

/// CPU, both ends in ns, count.
type Bucket = (i32, f64, f64, i64);

/// Adds the buckets of a thread. If the layout clamps, the bucket `last_key` includes everything beyond it. Else values in no bucket form a last bucket that
/// extends to the largest value.
fn add_thread(
    to: &mut Vec<Bucket>,
    t: &Thread,
    layout: &Layout,
    unit_ns: f64,
    last_key: f64,
    out: &mut Imported,
) {
    let end = |key: f64| key + layout.first_edge + 1.0;
    let mut add = |from: f64, end: f64, count: i64, is_open: bool| {
        let (low_ns, high_ns) = (from * unit_ns, end * unit_ns);
        if is_open {
            let (cpu, ends) =
                (t.cpu, [low_ns, high_ns].map(|ns| format!("{:.0} us", ns * 1e-3)).join(" and "));
            let text = format!("CPU {cpu}: {count} values are only known to be between {ends}");
            warn(out, codes::OVERFLOW, text);
        }
        to.push((t.cpu, low_ns, high_ns, count));
    };
    for (key, n) in &t.buckets {
        let is_last = layout.clamps && *key == last_key;
        let beyond = t.max.filter(|max| is_last && end(*max) > end(*key));
        add((key + layout.first_edge).max(0.0), end(beyond.unwrap_or(*key)), *n, beyond.is_some());
    }
    let held = t.buckets.iter().fold(0_i64, |sum, b| sum.saturating_add(b.1));
    let missing = t.samples.map_or(0, |all| all.saturating_sub(held));
    let from = t.buckets.last().map_or(0.0, |b| end(b.0));
    if let Some(max) = t.max.filter(|max| !layout.clamps && missing > 0 && end(*max) > from) {
        add(from, end(max), missing, true);
    }
}

fn thread_notes(t: &Thread, unit_ns: f64) -> impl Iterator<Item = (String, String)> {
    let notes = [
        ("min_ns", t.min.map(|v| v * unit_ns)),
        ("max_ns", t.max.map(|v| v * unit_ns)),
        ("wall_ns", t.duration_s.map(|s| s * 1e9)),
        ("samples", t.samples.map(|c| c as f64)),
    ];
    let cpu = t.cpu;
    notes.into_iter().filter_map(move |(key, v)| Some((format!("{key}.cpu{cpu}"), v?.to_string())))
}

fn threads(document: &Value, layout: &Layout, file: &SourceFile) -> Result<Vec<Thread>> {
    let objects = document.get(layout.threads).and_then(Value::as_object).filter(|o| !o.is_empty());
    let objects = objects.ok_or_else(|| {
        file.fault(format!("no threads under {:?}, expected {} JSON", layout.threads, layout.format))
    })?;
    let mut threads = Vec::new();
    for (name, object) in objects {
        let wrong = |what: &str| file.fault(format!("{} {}: {what}", layout.threads, shortened(name)));
        let number: i32 = name.parse().map_err(|_| wrong("its key is not a number"))?;
        let cpu = object.get("cpu").and_then(Value::as_i64).filter(|c| *c >= 0);
        let histogram = match object.get("histogram") {
            None => return Err(wrong("no histogram; record with one (cyclictest: -h 1000)")),
            Some(h) => h.as_object().ok_or_else(|| wrong("its histogram is not an object"))?,
        };
        let mut buckets = Vec::with_capacity(histogram.len());
        for (key, n) in histogram {
            let edge = key.parse::<f64>().ok().filter(|k| k.is_finite() && *k >= 0.0);
            let Some(bucket) = edge.zip(n.as_u64().and_then(|n| i64::try_from(n).ok())) else {
                let (key, n) = (shortened(key), shortened(&n.to_string()));
                return Err(wrong(&format!("bucket {key:?} is {n}, expected a number of us and a count")));
            };
            buckets.push(bucket);
        }
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let number_of = |key: &str| object.get(key).and_then(Value::as_f64).filter(|v| *v >= 0.0);
        threads.push(Thread {
            cpu: cpu.and_then(|c| i32::try_from(c).ok()).unwrap_or(number),
            buckets,
            max: number_of("max"),
            min: number_of("min"),
            duration_s: number_of("duration"),
            samples: object.get("cycles").or_else(|| object.get("count")).and_then(Value::as_i64),
        });
    }
    threads.sort_by_key(|t| t.cpu);
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_scales_the_buckets() {
        let text = r#"{"version": 3, "sysinfo": {"resolution_in_ns": 1}, "cpu": {"3": {"histogram": {"2000": 7}, "max": 2000}}}"#;
        let files = vec![SourceFile::new("r.json", text.as_bytes())];
        let out = JITTERDEBUGGER.read(&Input { files, ..Input::default() }).unwrap();
        let t = out.table("noise_histogram").unwrap();
        assert_eq!(t.i32s("cpu").unwrap(), [3]);
        assert_eq!(t.column("low_ns").unwrap().values, machmeter_data::Values::F64(vec![2000.0]));
    }
}
