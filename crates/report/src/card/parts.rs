//! Parts of the card.

use machmeter_data::quantity::human;
use machmeter_data::shape::Cell;
use machmeter_data::{Dataset, Facts, Shape, Unit};

use crate::chart::{self, Size};
use crate::identity::Identity;
use crate::svg::{Anchor, Svg};

/// Edges of the text.
pub(super) const LEFT: f64 = 44.0;
pub(super) const RIGHT: f64 = 750.0;
/// CPUs drawn as boxes at most.
const BOXES: u64 = 64;
/// Rows of the source table.
const SOURCES: usize = 6;

/// Pairs of a name and a value, one below the other.
#[derive(Debug)]
pub(super) struct Column {
    x: f64,
    y: f64,
}

impl Column {
    pub(super) fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(super) fn pair(&mut self, svg: &mut Svg, name: &str, value: &str) {
        svg.text("key", self.x, self.y, Anchor::Start, name);
        svg.text("value", self.x + 96.0, self.y, Anchor::Start, &clip(value, 56));
        self.y += 19.5;
    }
}

/// Nodes as frames, CPUs as boxes in them; very large machines are given in words.
pub(super) fn topology(svg: &mut Svg, facts: &Facts, id: &Identity) {
    const X: f64 = 490.0;
    const Y: f64 = 120.0;
    let Some(cpus) = id.cpus else {
        svg.text("note", X, Y + 8.0, Anchor::Start, "topology unknown");
        return;
    };
    let nodes = id.nodes.unwrap_or(1).clamp(1, cpus.max(1));
    let per_core = id.cores.filter(|k| *k > 0).map_or(1, |k| (cpus / k).max(1));
    let mut words = format!("{cpus} CPUs");
    if per_core > 1 {
        words.push_str(&format!(", {per_core} per core"));
    }
    match id.nodes {
        Some(n) => words.push_str(&format!(", {n} memory node{}", if n == 1 { "" } else { "s" })),
        None => words.push_str(", memory nodes unknown"),
    }
    svg.text("note", X, Y + 168.0, Anchor::Start, &words);
    if cpus > BOXES || nodes > 8 {
        svg.text("figure", X, Y + 70.0, Anchor::Start, &format!("{nodes} x {} CPUs", cpus / nodes));
        return;
    }
    let isolated = facts.get("cpu.isolated").and_then(|f| f.text()).unwrap_or("");
    let across = if nodes > 1 { 2.0 } else { 1.0 };
    let down = (nodes as f64 / across).ceil();
    let (w, h) = (260.0 / across - 6.0, 150.0 / down - 6.0);
    let per_node = cpus.div_ceil(nodes);
    for node in 0..nodes {
        let (x, y) = (X + (w + 6.0) * (node % across as u64) as f64, Y + (h + 6.0) * (node / across as u64) as f64);
        svg.rect("node", x, y, w, h);
        let columns = (per_node as f64 * w / h).sqrt().ceil().clamp(1.0, per_node as f64);
        let rows = (per_node as f64 / columns).ceil();
        let side = ((w - 8.0) / columns).min((h - 8.0) / rows).min(64.0);
        for k in 0..per_node.min(cpus - (node * per_node).min(cpus)) {
            let (bx, by) = (x + 5.0 + side * (k as f64 % columns), y + 5.0 + side * (k as f64 / columns).floor());
            svg.rect("core", bx, by, side - 3.0, side - 3.0);
            if side >= 16.0 {
                let middle = (side - 3.0) / 2.0;
                svg.text("cpu", bx + middle, by + middle + 3.0, Anchor::Middle, &(node * per_node + k).to_string());
            }
        }
    }
    if !isolated.is_empty() {
        svg.text("note", X, Y + 184.0, Anchor::Start, &format!("isolated: {isolated}"));
    }
}

/// A chart with its title at a place; returns the height it took.
pub(super) fn chart(svg: &mut Svg, dataset: &Dataset, (x, y): (f64, f64), (width, height): (f64, f64)) -> f64 {
    let mut shown = dataset.clone();
    if let Shape::Series(s) = &mut shown.shape {
        s.rows.truncate(1);
    }
    svg.text("head", x, y + 12.0, Anchor::Start, &clip(&dataset.title, 60));
    // A strip takes 1/2.6 of the height it is given.
    let asked = if matches!(shown.shape, Shape::Series(_)) { (height - 46.0) * 2.6 } else { height };
    if let Some(part) = chart::draw(&shown, Size { width, height: asked }) {
        let placed = format!("<svg x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\" ", y + 18.0);
        svg.raw(&part.replacen("<svg xmlns=\"http://www.w3.org/2000/svg\" ", &placed, 1));
    }
    let names = chart::legend(&shown.shape);
    let mut at = x + 62.0;
    if names.len() > 1 {
        for (i, name) in names.iter().enumerate().take(8) {
            let color = i % 8;
            svg.line(&format!("line c{color} d{color}"), (at, y + height + 24.0), (at + 18.0, y + height + 24.0));
            let name = clip(name, 16);
            svg.text("tick", at + 23.0, y + height + 27.5, Anchor::Start, &name);
            at += 36.0 + 6.0 * name.chars().count() as f64;
            if at > x + width - 80.0 {
                break;
            }
        }
        return height + 34.0;
    }
    height + 20.0
}

/// The first rows of a cost table by their first column of shares, with bars; returns the height taken.
pub(super) fn sources(svg: &mut Svg, dataset: &Dataset, x: f64, y: f64) -> f64 {
    let Shape::CostTable(t) = &dataset.shape else { return 0.0 };
    svg.text("head", x, y + 12.0, Anchor::Start, &clip(&dataset.title, 50));
    let column = t.columns.iter().position(|c| c.unit == Some(Unit::One));
    let column = column.or_else(|| t.columns.iter().position(|c| c.unit.is_some()));
    let Some(column) = column else { return 20.0 };
    let unit = t.columns[column].unit.unwrap_or(Unit::Count);
    let mut rows: Vec<(&str, f64)> = t
        .rows
        .iter()
        .filter_map(|r| match r.cells.get(column) {
            Some(Cell::Number(v)) => Some((r.name.as_str(), *v)),
            _ => None,
        })
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let greatest = rows.first().map_or(0.0, |r| r.1);
    svg.text("key", RIGHT, y + 12.0, Anchor::End, &t.columns[column].label.to_lowercase());
    for (i, (name, v)) in rows.iter().take(SOURCES).enumerate() {
        let line = y + 40.0 + 32.0 * i as f64;
        svg.text("value", x, line, Anchor::Start, &clip(name, 32));
        svg.text("value", RIGHT, line, Anchor::End, &human(*v, unit));
        let share = if greatest > 0.0 { v / greatest } else { 0.0 };
        svg.rect("tile", x, line + 5.0, RIGHT - x, 6.0);
        svg.rect("share", x, line + 5.0, (RIGHT - x) * share.clamp(0.0, 1.0), 6.0);
    }
    44.0 + 32.0 * rows.len().min(SOURCES) as f64
}

/// At most `room` characters; what is cut ends in two dots.
pub(super) fn clip(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(2)).collect::<String>() + ".."
}

/// Lines of at most `room` characters, broken at spaces.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(l) if l.chars().count() + 1 + word.chars().count() <= room => {
                l.push(' ');
                l.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
