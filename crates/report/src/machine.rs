//! Draws the machine as nested boxes, from the memory to a core, with the latencies measured between them.

use std::collections::BTreeMap;

use machmeter_data::quantity::human;
use machmeter_data::summary::ends;
use machmeter_data::{FactValue, Facts, Metric, ParamValue, Record, Unit};

use crate::chart::Size;
use crate::svg::{Anchor, Svg};

/// Padding of a box, height of a text line, width of the innermost box, and distance to the neighbor box.
const PAD: f64 = 12.0;
const LINE: f64 = 17.0;
const LEAF: f64 = 190.0;
const WAY: f64 = 130.0;

/// Kinds of boxes from the outermost inwards, by their key in `cpu.topology`.
const SORTS: [&str; 3] = ["package", "cache", "core"];

/// The CPUs of one core, and the numbers of the units that contain it.
pub(crate) struct Core {
    /// First and last CPU of each run of CPUs.
    cpus: Vec<(i64, i64)>,
    /// The CPU list of the fact: `5,13`.
    list: String,
    /// Numbers by key: `package`, `cache`, `core` and further units.
    within: BTreeMap<String, i64>,
}

impl Core {
    /// Reads an item of `cpu.topology`: `cpus` is the CPU list of the core, the other entries are numbers of the units around it.
    fn read(item: &FactValue) -> Option<Self> {
        let entries = item.entries()?;
        let list = entries.get("cpus")?.text()?;
        let run = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let number = |(key, value): (&String, &FactValue)| match value {
            FactValue::Int(number) => Some((key.clone(), *number)),
            _ => None,
        };
        Some(Self {
            cpus: list.split(',').map(run).collect::<Option<_>>()?,
            list: list.to_owned(),
            within: entries.iter().filter_map(number).collect(),
        })
    }

    fn holds(&self, cpu: i64) -> bool {
        self.cpus.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
    }

    fn number(&self, sort: &str) -> Option<i64> {
        self.within.get(sort).copied()
    }

    /// `CPU 3`, `CPUs 5,13`.
    fn name(&self) -> String {
        let plural = if self.list.contains([',', '-']) { "s" } else { "" };
        format!("CPU{plural} {}", self.list)
    }

    /// Identity of the unit of kind `sort` that contains this core. Core numbers restart on every die, so the first CPU identifies a core.
    fn place(&self, sort: &str) -> Option<(Option<i64>, i64)> {
        match sort {
            "core" => Some((None, self.cpus.first()?.0)),
            _ => Some((self.number("package"), self.number(sort)?)),
        }
    }
}

/// The cores of a machine; empty if its record does not list them.
pub(crate) fn cores(facts: &Facts) -> Vec<Core> {
    let topology = facts.get("cpu.topology").and_then(|f| f.value.as_ref()?.items());
    topology.and_then(|items| items.iter().map(Core::read).collect()).unwrap_or_default()
}

/// Index of the core that contains a CPU.
pub(crate) fn core_of(cores: &[Core], cpu: i64) -> Option<usize> {
    cores.iter().position(|c| c.holds(cpu))
}

/// A box: its text, and the next box of its kind with the latencies between their CPUs.
struct Level {
    lines: Vec<String>,
    next: Option<(String, Vec<String>)>,
}

/// Draws the machine; returns the drawing and its size. `None` if the record has no topology or no latency.
pub(crate) fn draw(record: &Record) -> Option<(String, Size)> {
    let levels = levels(record)?;
    let sizes = sizes(&levels);
    let size = *sizes.first()?;
    let mut svg = Svg::new(size.width, size.height, "chart machine", "The machine with measured latencies");
    let (mut x, mut y) = (0.0, 0.0);
    for (i, (level, own)) in levels.iter().zip(&sizes).enumerate() {
        svg.rect(&format!("box b{}", i.min(3)), x, y, own.width, own.height);
        for (k, line) in level.lines.iter().enumerate() {
            let class = if k == 0 { "row" } else { "entry" };
            svg.text(class, x + PAD, y + PAD + 8.0 + LINE * k as f64, Anchor::Start, line);
        }
        if let Some((name, latencies)) = &level.next {
            next(&mut svg, (x + own.width, y), own.height, name, latencies, i);
        }
        x += PAD;
        y += PAD + LINE * level.lines.len() as f64;
    }
    Some((svg.finish(), size))
}

/// Draws the next box of a kind, closed, and the way to it: one latency above the line, the rest below it.
fn next(svg: &mut Svg, (x, y): (f64, f64), height: f64, name: &str, latencies: &[String], level: usize) {
    let middle = y + height / 2.0;
    svg.rect(&format!("box b{}", level.min(3)), x + WAY, y, WAY, height);
    svg.text("row", x + WAY * 1.5, middle + 4.0, Anchor::Middle, name);
    if !latencies.is_empty() {
        svg.line("axis", (x + 4.0, middle), (x + WAY - 4.0, middle));
    }
    for (i, text) in latencies.iter().enumerate() {
        let below = if i == 0 { -6.0 } else { LINE * i as f64 - 2.0 };
        svg.text("entry", x + WAY / 2.0, middle + below, Anchor::Middle, text);
    }
}

/// Sizes of the boxes, from the outermost; each has room for its text, its content, and the neighbor of the content.
fn sizes(levels: &[Level]) -> Vec<Size> {
    let mut sizes: Vec<Size> = Vec::new();
    let mut inner = Size { width: LEAF - 2.0 * PAD, height: -PAD };
    for level in levels.iter().rev() {
        let longest = level.lines.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64;
        let width = inner.width.max(7.0 * longest) + 2.0 * PAD;
        let own = Size { width, height: inner.height + LINE * level.lines.len() as f64 + 2.0 * PAD };
        let beside = if level.next.is_some() { 2.0 * WAY } else { 0.0 };
        inner = Size { width: own.width + beside, ..own };
        sizes.push(own);
    }
    sizes.reverse();
    sizes
}

fn levels(record: &Record) -> Option<Vec<Level>> {
    let facts = &record.machine.before;
    let cores = cores(facts);
    let first = cores.first()?;
    let ladder = |name: &str| {
        let row = record.summary.rows.iter().find(|r| r.section == "LADDER" && r.name == name)?;
        Some(format!("{name}: {}", row.text(&record.metrics)?.list()))
    };
    let total = facts.number("memory.total").map(|b| human(b, Unit::Bytes)).unwrap_or_default();
    let memory = ladder("DRAM").map_or_else(String::new, |t| format!(", {t}"));
    let mut out = vec![Level { lines: vec![format!("Memory {total}{memory}")], next: None }];
    for (i, sort) in SORTS.iter().enumerate() {
        let Some(own) = first.place(sort) else { continue };
        // The units of this kind within the unit around them.
        let around = |c: &&Core| SORTS[..i].iter().all(|s| c.place(s) == first.place(s));
        let mut places: Vec<_> = cores.iter().filter(around).filter_map(|c| c.place(sort)).collect();
        places.sort_unstable();
        places.dedup();
        let mut lines = match *sort {
            "core" => vec![first.name()],
            "cache" => ladder("LLC").into_iter().collect(),
            _ => vec![format!("Package {}", own.1)],
        };
        if *sort == "core" {
            let threads = latencies(record, &cores, |a, b| a == b);
            lines.extend(
                (!threads.is_empty()).then(|| format!("between its threads: {}", threads.join(", "))),
            );
            lines.extend(["L1", "L2"].iter().filter_map(|n| ladder(n)));
        }
        let is_alone = places.len() < 2;
        if lines.is_empty() || is_alone && *sort == "package" {
            continue;
        }
        let ways = |a: usize, b: usize| {
            let (a, b) = (&cores[a], &cores[b]);
            a.place(sort) != b.place(sort) && SORTS[..i].iter().all(|s| a.place(s) == b.place(s))
        };
        let name = match (*sort, places.len() - 1) {
            ("core", 1) => {
                let other = cores.iter().find(|c| around(c) && c.place(sort) != Some(own));
                other.map_or_else(String::new, Core::name)
            }
            ("core", n) => format!("{n} cores"),
            (sort, 1) => format!("1 {sort}"),
            (sort, n) => format!("{n} {sort}s"),
        };
        let next = (!is_alone).then(|| (name, latencies(record, &cores, ways)));
        out.push(Level { lines, next });
    }
    let measured = record.summary.rows.iter().any(|r| r.section == "LADDER");
    measured.then_some(out)
}

/// Latencies between the CPUs of two cores in the relation `stands`, one text per placement of the virtual CPUs by the host. Each is the least and the
/// greatest over all pairs, and both are figures of the record.
fn latencies(record: &Record, cores: &[Core], stands: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let cpu = |p: Option<&ParamValue>| match p? {
        ParamValue::Int(cpu) => core_of(cores, *cpu),
        ParamValue::Text(_) => None,
    };
    let is_cas = |m: &&Metric| m.params.get("kind") == Some(&"cas".into());
    let pairs = record.metrics.iter().filter(|m| m.id.ends_with(".core_to_core") && is_cas(m));
    let found = pairs.filter(|m| {
        let ends = (cpu(m.params.get("from")), cpu(m.params.get("to")));
        matches!(ends, (Some(a), Some(b)) if stands(a, b))
    });
    let mut placements: Vec<(String, f64, f64)> = Vec::new();
    for (metric, ns) in found.filter_map(|m| Some((m, m.value?))) {
        let placement = metric.params.get("placement").map(ToString::to_string).unwrap_or_default();
        match placements.iter_mut().find(|p| p.0 == placement) {
            Some(known) => (known.1, known.2) = (known.1.min(ns), known.2.max(ns)),
            None => placements.push((placement, ns, ns)),
        }
    }
    let several = placements.len() > 1;
    let text = |(placement, low, high): &(String, f64, f64)| {
        let one = human(*low, Unit::Nanoseconds);
        let range =
            if one == human(*high, Unit::Nanoseconds) { one } else { ends(*low, *high, Unit::Nanoseconds) };
        if several { format!("{placement} {range}") } else { range }
    };
    placements.iter().map(text).collect()
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
