//! The card: one page as SVG with what a machine is and how it did, to print or to pin up.

mod parts;

use machmeter_data::{CheckState, Record, Shape};

use crate::identity::Identity;
use crate::svg::{Anchor, Svg};
use crate::{html, label, tiles};
use machmeter_data::finite;
use parts::{Column, LEFT, RIGHT, clip};

/// A4 portrait at 96 units per inch; on Letter it fits with wider side margins.
const WIDTH: f64 = 794.0;
const HEIGHT: f64 = 1123.0;
const TILES: usize = 6;

/// The card of a record as one SVG document.
///
/// Shows what the record has: parts without data are left out, facts that could not be read are called unknown.
pub fn render(record: &Record) -> String {
    let record = finite::record(record);
    let id = Identity::of(&record);
    let mut svg = Svg::new(WIDTH, HEIGHT, "card", &format!("{}: {} card", id.name, record.tool.name));
    svg.raw(&format!("<style>{}</style>", include_str!("../../assets/card.css")));
    svg.rect("paper", 0.0, 0.0, WIDTH, HEIGHT);
    heading(&mut svg, &record, &id);
    facts(&mut svg, &record, &id);
    parts::topology(&mut svg, &record.machine.before, &id);
    tiles(&mut svg, &record);
    let below_charts = charts(&mut svg, &record, 446.0);
    verdict(&mut svg, &record, below_charts);
    foot(&mut svg, &record);
    svg.finish()
}

fn heading(svg: &mut Svg, record: &Record, id: &Identity) {
    svg.text("title", LEFT, 66.0, Anchor::Start, &clip(&id.name, 34));
    svg.text("lead", LEFT, 90.0, Anchor::Start, &clip(&id.line(), 105));
    svg.text("key", RIGHT, 50.0, Anchor::End, &record.run.started.replace('T', " "));
    svg.text("key", RIGHT, 66.0, Anchor::End, &format!("{} {}", record.tool.name, record.tool.version));
    svg.line("rule", (LEFT, 104.0), (RIGHT, 104.0));
}

fn facts(svg: &mut Svg, record: &Record, id: &Identity) {
    let seen = match (id.cpus, id.cores) {
        (Some(c), Some(k)) if c != k => format!("{c} CPUs on {k} cores"),
        (Some(c), _) => format!("{c} CPUs"),
        _ => "unknown".to_owned(),
    };
    let mut column = Column::new(LEFT, 128.0);
    column.pair(svg, "CPU as sold", &id.cpu);
    column.pair(svg, "CPU as seen", &seen);
    column.pair(svg, "Clock", &id.clock);
    column.pair(svg, "Memory", &id.memory);
    column.pair(svg, "Kernel", &id.kernel);
    column.pair(svg, "Preemption", &id.preemption);
    column.pair(svg, "Mitigations", &id.mitigations);
    column.pair(svg, "Virtualization", &id.virtualization);
    column.pair(
        svg,
        "Measured",
        &format!("{}, {}", label::duration(record.run.wall_ns as f64), record.run.policy),
    );
}

fn tiles(svg: &mut Svg, record: &Record) {
    const GAP: f64 = 8.0;
    let width = (RIGHT - LEFT - 2.0 * GAP) / 3.0;
    for (i, t) in tiles::tiles(record, TILES).iter().enumerate() {
        let (x, y) = (LEFT + (width + GAP) * (i % 3) as f64, 308.0 + 64.0 * (i / 3) as f64);
        svg.rect("tile", x, y, width, 56.0);
        svg.text("key", x + 11.0, y + 18.0, Anchor::Start, &clip(&t.name, 34));
        svg.text("figure", x + 11.0, y + 44.0, Anchor::Start, &clip(&t.value, 28));
        let taken = t.value.chars().count() as f64 * 13.0;
        let room = ((width - 30.0 - taken) / 5.8).max(0.0) as usize;
        svg.text("note", x + width - 10.0, y + 44.0, Anchor::End, &clip(&t.note, room));
    }
}

/// The matrix of named things, percentile curve and source table side by side, then a spectrum or a time line; returns the height used.
fn charts(svg: &mut Svg, record: &Record, top: f64) -> f64 {
    let find = |wanted: fn(&Shape) -> bool| record.datasets.iter().find(|d| wanted(&d.shape));
    let percentiles = find(|s| matches!(s, Shape::Distribution(_)));
    let costs = find(|s| matches!(s, Shape::CostTable(t) if t.columns.iter().any(|c| c.unit.is_some())));
    let spectrum = find(|s| matches!(s, Shape::Curve(_)));
    let line = find(|s| matches!(s, Shape::Series(_)));
    let named = find(|s| matches!(s, Shape::Matrix(m) if !m.column_names.is_empty()));
    let mut y = top;
    if let Some(d) = named {
        y += parts::chart(svg, d, (LEFT, y), (RIGHT - LEFT, parts::named_height(d))) + 12.0;
    }
    if percentiles.is_some() || costs.is_some() {
        let half = if costs.is_some() { 376.0 } else { RIGHT - LEFT };
        let mut used = 0.0;
        if let Some(d) = percentiles {
            used = parts::chart(svg, d, (LEFT, y), (half, 206.0));
        }
        if let Some(d) = costs {
            let x = if percentiles.is_some() { LEFT + half + 20.0 } else { LEFT };
            used = f64::max(used, parts::sources(svg, d, x, y));
        }
        y += used + 14.0;
    }
    for d in [spectrum, line].into_iter().flatten() {
        let room = if matches!(d.shape, Shape::Series(_)) { 130.0 } else { 172.0 };
        if y + room + 34.0 < 930.0 {
            y += parts::chart(svg, d, (LEFT, y), (RIGHT - LEFT, room)) + 12.0;
        }
    }
    y
}

fn verdict(svg: &mut Svg, record: &Record, top: f64) {
    let mut y = top.max(860.0) + 20.0;
    svg.line("rule", (LEFT, y - 20.0), (RIGHT, y - 20.0));
    for f in &record.summary.fitness {
        let text = format!("{}: {}; {}", f.purpose, label::fit(f.fit), f.reason);
        svg.text("value", LEFT, y, Anchor::Start, &clip(&text, 112));
        y += 18.0;
    }
    if !record.complete {
        svg.text("warn", LEFT, y, Anchor::Start, &format!("Incomplete: ended by {}.", record.stopped_by));
        y += 17.0;
    }
    let warnings = record.warnings.iter().map(|w| format!("! {} {}", w.code, w.text));
    let checks = record.checks.iter().filter_map(|c| match c.state {
        CheckState::Fail => Some(format!("! {} {}: fail, {}", c.id, c.name, c.observed)),
        CheckState::Warn => Some(format!("! {} {}: warning, {}", c.id, c.name, c.observed)),
        CheckState::Unknown => Some(format!("? {} {}: unknown, {}", c.id, c.name, c.observed)),
        CheckState::Pass | CheckState::NotApplicable => None,
    });
    let all: Vec<String> = warnings.chain(checks).collect();
    let room = ((HEIGHT - 62.0 - y) / 17.0).max(0.0) as usize;
    let listed = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    for text in &all[..listed] {
        svg.text(
            if text.starts_with('!') { "warn" } else { "value" },
            LEFT,
            y,
            Anchor::Start,
            // What is bold is wider.
            &clip(text, if text.starts_with('!') { 100 } else { 112 }),
        );
        y += 17.0;
    }
    if listed < all.len() {
        svg.text("note", LEFT, y, Anchor::Start, &format!("and {} more in the report", all.len() - listed));
    }
}

fn foot(svg: &mut Svg, record: &Record) {
    svg.line("rule", (LEFT, HEIGHT - 52.0), (RIGHT, HEIGHT - 52.0));
    svg.text("code", LEFT, HEIGHT - 34.0, Anchor::Start, &clip(&record.run.command.join(" "), 70));
    svg.text(
        "code",
        RIGHT,
        HEIGHT - 34.0,
        Anchor::End,
        &format!("data sha256 {}", html::data_digest(record)),
    );
}
