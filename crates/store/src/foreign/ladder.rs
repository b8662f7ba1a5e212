//! Latency over working sets: `ramlat` (sbc-bench), `lat_mem_rd` (lmbench), and plain lines of size and ns, as scripts around multichase write them. The
//! function of the memory probe finds the levels, and they have its names.

use machmeter_data::metric::params;
use machmeter_data::quantity::human;
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, Curve, CurveRow, Mark};
use machmeter_data::{Dataset, Interval, Metric, MetricInfo, Params, Shape, Unit, metric};
use machmeter_stats::levels::{Capacity, CurvePoint, Level, levels, only_size_between};

use super::columns::{all, passed_over, unexpected};
use super::{Imported, Input, Reader, Result, SourceFile};

pub(super) const LAT_MEM_RD: Reader = Reader {
    name: "lat-mem-rd",
    description: "lmbench lat_mem_rd: lines of megabytes and ns after a line \"stride=BYTES",
    sniff: |input| all(input, |f| f.text.lines().any(|l| stride(l).is_some())),
    fill: |input, out| fill(input, out, lat_mem_rd),
};

pub(super) const RAMLAT: Reader = Reader {
    name: "ramlat",
    description: "ramlat, also in a log of sbc-bench: a line of columns (size: ... 1xPTR ...), then lines of size and ns",
    sniff: |input| all(input, |f| f.text.lines().any(|l| pointer_column(l).is_some())),
    fill: |input, out| fill(input, out, ramlat),
};

pub(super) const SIZE_NS: Reader = Reader {
    name: "size-ns",
    description: "multichase in a loop: lines of working set (bytes, or with K, M, G) and ns per load",
    sniff: |input| all(input, looks_like_size_ns),
    fill: |input, out| fill(input, out, size_ns),
};

metric!(
    LATENCY, "memory.latency", ["level", "order", "pages", "stride_bytes", "working_set_bytes"], Nanoseconds, Lower,
    weakened by [], "As detected on the printed curve."
);
metric!(
    CACHE_SIZE, "memory.cache_size", ["level"], Bytes, Higher,
    weakened by [], "As detected on the printed curve."
);

/// Figures of a curve, under ids of the memory probe.
pub const METRICS: &[MetricInfo] = &[LATENCY, CACHE_SIZE];

#[derive(Default)]
struct Ladder {
    name: String,
    stride_bytes: Option<i64>,
    points: Vec<CurvePoint>,
}

/// Stride in bytes from the line that begins a curve of `lat_mem_rd`.
fn stride(line: &str) -> Option<i64> {
    line.trim_start().trim_start_matches('"').strip_prefix("stride=")?.trim().parse().ok().filter(|b| *b > 0)
}

/// Position of the column of single pointers in the heading of a table of `ramlat`, not counting the sizes.
fn pointer_column(line: &str) -> Option<usize> {
    line.trim_start().strip_prefix("size:")?.split_whitespace().position(|c| c == "1xPTR")
}

/// A size in bytes: `4096`, `4k`, `1.5M`, `2GiB`.
fn bytes(text: &str) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[number.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1.0,
        "k" => 1_024.0,
        "m" => 1_048_576.0,
        "g" => 1_073_741_824.0,
        _ => return None,
    };
    positive(number).map(|n| n * unit)
}

fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)
}

fn point(line: &str, size: impl Fn(&str) -> Option<f64>) -> Option<CurvePoint> {
    let mut words = line.split_whitespace();
    let point = CurvePoint { bytes: size(words.next()?)?, ns: positive(words.next()?)? };
    words.next().is_none().then_some(point)
}

/// True for lines of size and ns. Other tools write two numbers per line, too, so sizes must be multiples of 16, and a time must have decimals.
fn looks_like_size_ns(file: &SourceFile) -> bool {
    let lines: Vec<&str> = file.text.lines().filter(|l| !passed_over(l)).collect();
    let points: Option<Vec<CurvePoint>> = lines.iter().map(|l| point(l, bytes)).collect();
    let decimal = |line: &&str| line.split_whitespace().nth(1).is_some_and(|ns| ns.contains('.'));
    points.is_some_and(|p| p.len() > 3 && p.iter().all(|p| p.bytes % 16.0 == 0.0))
        && lines.iter().any(decimal)
}

fn size_ns(file: &SourceFile) -> Result<Vec<Ladder>> {
    let mut ladder = Ladder { name: file.name().to_owned(), ..Ladder::default() };
    for (i, line) in file.text.lines().enumerate().filter(|(_, l)| !passed_over(l)) {
        ladder.points.push(point(line, bytes).ok_or_else(|| unexpected(file, i, line, "a size and ns"))?);
    }
    Ok(vec![ladder])
}

fn lat_mem_rd(file: &SourceFile) -> Result<Vec<Ladder>> {
    let mut out: Vec<Ladder> = Vec::new();
    for (i, line) in file.text.lines().enumerate().filter(|(_, l)| !passed_over(l)) {
        if let Some(bytes) = stride(line) {
            let name = format!("stride {bytes} B");
            out.push(Ladder { name, stride_bytes: Some(bytes), points: Vec::new() });
        } else if let Some(ladder) = out.last_mut() {
            // The sizes have five decimals of megabytes; rounding to lines of 64 bytes restores them.
            let whole = |text: &str| Some((positive(text)? * 1_048_576.0 / 64.0).round().max(1.0) * 64.0);
            let found = point(line, whole);
            ladder.points.push(found.ok_or_else(|| unexpected(file, i, line, "megabytes and ns"))?);
        }
    }
    Ok(out)
}

fn ramlat(file: &SourceFile) -> Result<Vec<Ladder>> {
    let mut out: Vec<Ladder> = Vec::new();
    let (mut column, mut heading) = (None, None);
    for (i, line) in file.text.lines().enumerate() {
        if let Some(at) = pointer_column(line) {
            column = Some(at);
            let name = heading.take().unwrap_or_else(|| "1xPTR".to_owned());
            out.push(Ladder { name, ..Ladder::default() });
            continue;
        }
        // `Executing ramlat on cpu0 (Cortex-A53), results in ns:`
        if let Some((_, cpu)) = line.split_once("ramlat on ") {
            heading = Some(cpu.split(", results").next().unwrap_or(cpu).trim().to_owned());
        }
        let size = line.split_once(':').and_then(|(size, prices)| Some((bytes(size.trim())?, prices)));
        match (size, column, out.last_mut()) {
            (Some((bytes, prices)), Some(at), Some(ladder)) => {
                let ns = prices.split_whitespace().nth(at).and_then(positive);
                let ns = ns.ok_or_else(|| unexpected(file, i, line, "a size and ns in every column"))?;
                ladder.points.push(CurvePoint { bytes, ns });
            }
            // A table ends at the first line of another form.
            _ => column = None,
        }
    }
    Ok(out)
}

fn fill(input: &Input, out: &mut Imported, parse: fn(&SourceFile) -> Result<Vec<Ladder>>) -> Result<()> {
    let mut found = Vec::new();
    for file in &input.files {
        for ladder in parse(file)?.into_iter().filter(|l| !l.points.is_empty()) {
            let of = levels(&ladder.points).map_err(|e| file.fault(format!("{}: {e}", ladder.name)))?;
            found.push((ladder, of));
        }
    }
    let Some((first, of)) = found.first() else {
        return Err(input.fault("no curve of sizes and ns in it"));
    };
    out.assume("the last level is memory if the curve shows more than one level");
    out.assume("order of the loads, page size and other load on the machine are not in the file");
    if is_coarse(&first.points) {
        out.assume("one working set per octave: too coarse for caches less than an octave apart");
    }
    if found.len() > 1 {
        out.assume(format!(
            "figures are those of {}; the other curves appear in charts and summaries only",
            first.name
        ));
    }
    out.metrics = metrics(first, of);
    out.datasets.push(staircase(&found));
    let line = |(ladder, of): &(Ladder, Vec<Level>)| summary(ladder, of, found.len() > 1);
    let lines = found.iter().map(line).collect();
    out.summary.lines.push(SummaryLine { section: "MEMORY".to_owned(), lines });
    Ok(())
}

/// True if adjacent working sets of a curve are an octave or more apart, with tolerance for rounded sizes.
fn is_coarse(points: &[CurvePoint]) -> bool {
    points.windows(2).all(|w| w[1].bytes / w[0].bytes > 1.9)
}

/// Names of levels as in the memory probe.
fn names(of: &[Level]) -> Vec<String> {
    let name = |i: usize| match of.len() - 1 - i {
        0 if i > 0 => "DRAM".to_owned(),
        1 if i > 1 => "LLC".to_owned(),
        _ => format!("L{}", i + 1),
    };
    (0..of.len()).map(name).collect()
}

fn metrics(ladder: &Ladder, of: &[Level]) -> Vec<Metric> {
    let mut out = Vec::new();
    for (level, name) in of.iter().zip(names(of)) {
        let mut latency: Params = params([("level", name.as_str().into())]);
        latency.extend(ladder.stride_bytes.map(|b| ("stride_bytes".to_owned(), b.into())));
        out.push(Metric::new(&LATENCY, latency, level.price_ns, "median inside the level", 0));
        out.extend(level.end.map(|end| {
            let size = params([("level", name.as_str().into())]);
            let Capacity { bytes, low_bytes, high_bytes } = end.capacity;
            let ci = Interval::new(0.95, low_bytes, high_bytes, "bracket");
            Metric::new(&CACHE_SIZE, size, bytes, "largest working set at the level's price", 0).with_ci(ci)
        }));
    }
    out
}

fn summary(ladder: &Ladder, of: &[Level], named: bool) -> String {
    let size = |b: f64| human(b, Unit::Bytes);
    let level = |(level, name): (&Level, String)| {
        let ends = level.end.map(|e| match only_size_between(e.capacity.low_bytes, e.capacity.high_bytes) {
            Some(bytes) => format!(" {}", size(bytes)),
            None => format!(" {} to {}", size(e.capacity.low_bytes), size(e.capacity.high_bytes)),
        });
        let (ends, name) = (ends.unwrap_or_default(), if name == "DRAM" { "memory" } else { &name });
        format!("{name}{ends} {}", human(level.price_ns, Unit::Nanoseconds))
    };
    let levels = of.iter().zip(names(of)).map(level).collect::<Vec<_>>().join(", ");
    if named { format!("{}: {levels}", ladder.name) } else { levels }
}

fn staircase(found: &[(Ladder, Vec<Level>)]) -> Dataset {
    let row = |(ladder, _): &(Ladder, Vec<Level>)| CurveRow {
        name: ladder.name.clone(),
        x: ladder.points.iter().map(|p| p.bytes).collect(),
        y: ladder.points.iter().map(|p| p.ns).collect(),
    };
    let marks = found.first().into_iter().flat_map(|(_, of)| {
        let mark = |(level, name): (&Level, String)| {
            let x = level.end?.capacity.bytes;
            let detail = format!("{name} found: {}", human(x, Unit::Bytes));
            Some(Mark { x, y: None, detail, label: name, edge: true })
        };
        of.iter().zip(names(of)).filter_map(mark).collect::<Vec<_>>()
    });
    let curve = Curve {
        x: Axis::log("working set", Unit::Bytes),
        y: Axis::log("latency", Unit::Nanoseconds),
        rows: found.iter().map(row).collect(),
        marks: marks.collect(),
    };
    let caption =
        "Cost of a load, as printed. Flat parts are caches, the last one is memory. Marks: ends of levels.";
    Dataset::new("memory.staircase", "Latency over working set", caption, Shape::Curve(curve))
}
