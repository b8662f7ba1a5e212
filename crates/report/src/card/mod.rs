//! The card: one page as SVG with what a machine is fit for, its main figures and pictures, to print or to pin up.

use machmeter_data::summary::Fit;
use machmeter_data::{Dataset, Record, finite};

use crate::chart::{self, Size};
use crate::identity::Identity;
use crate::svg::{Anchor, Svg};
use crate::{html, label, pictures, tiles};

/// A4 portrait at 96 units per inch; on Letter it fits with wider side margins.
const WIDTH: f64 = 794.0;
const HEIGHT: f64 = 1123.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 750.0;
const TILES: usize = 8;
/// Tiles of a row, and room between things.
const ACROSS: usize = 4;
const GAP: f64 = 10.0;
/// A picture without its title.
const PICTURE: Size = Size { width: 348.0, height: 222.0 };
/// Widths of letters by size of the text, of the fonts that are wide: plain, bold.
const LETTER: [f64; 2] = [0.56, 0.64];

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
    let below = verdict(&mut svg, &record, 128.0);
    let below = figures(&mut svg, &record, below + 6.0);
    let below = drawn(&mut svg, &record, below + 6.0);
    notes(&mut svg, &record, below + 22.0);
    foot(&mut svg, &record, &id);
    svg.finish()
}

fn heading(svg: &mut Svg, record: &Record, id: &Identity) {
    svg.text("title", LEFT, 66.0, Anchor::Start, &fitted(&id.name, 29.0, true, 520.0));
    svg.text("lead", LEFT, 90.0, Anchor::Start, &fitted(&id.line(), 13.5, false, RIGHT - LEFT));
    svg.text("key", RIGHT, 50.0, Anchor::End, &record.run.started.replace('T', " "));
    let tool = format!("{} {}", record.tool.name, record.tool.version);
    let took = label::duration(record.run.wall_ns as f64);
    svg.text("key", RIGHT, 66.0, Anchor::End, &format!("{tool}, {took}"));
    svg.line("rule", (LEFT, 104.0), (RIGHT, 104.0));
}

/// What the machine is fit for, a line each; returns where it ends.
fn verdict(svg: &mut Svg, record: &Record, top: f64) -> f64 {
    let mut y = top;
    for f in &record.summary.fitness {
        let class = match f.fit {
            Fit::Yes => "good",
            Fit::Unknown => "note",
            Fit::Partly => "warn",
            Fit::No => "bad",
        };
        svg.text(class, LEFT, y, Anchor::Start, label::fit(f.fit));
        svg.text("head", LEFT + 130.0, y, Anchor::Start, &f.purpose);
        let reason = fitted(&f.reason, 12.0, false, RIGHT - LEFT - 282.0);
        svg.text("value", LEFT + 282.0, y, Anchor::Start, &reason);
        y += 20.0;
    }
    if !record.complete {
        let text = format!("incomplete: ended by {}", record.stopped_by);
        svg.text("warn", LEFT, y, Anchor::Start, &fitted(&text, 12.0, true, RIGHT - LEFT));
        y += 20.0;
    }
    y
}

fn figures(svg: &mut Svg, record: &Record, top: f64) -> f64 {
    let width = (RIGHT - LEFT - GAP * (ACROSS - 1) as f64) / ACROSS as f64;
    let tiles = tiles::tiles(record, TILES);
    for (i, t) in tiles.iter().enumerate() {
        let x = LEFT + (width + GAP) * (i % ACROSS) as f64;
        let y = top + 72.0 * (i / ACROSS) as f64;
        let room = width - 18.0;
        svg.rect("tile", x, y, width, 64.0);
        svg.text("key", x + 9.0, y + 16.0, Anchor::Start, &fitted(&t.name, 11.0, false, room));
        svg.text("figure", x + 9.0, y + 40.0, Anchor::Start, &fitted(&t.value, 20.0, true, room));
        svg.text("note", x + 9.0, y + 56.0, Anchor::Start, &fitted(&t.note, 11.0, false, room));
    }
    top + 72.0 * tiles.len().div_ceil(ACROSS) as f64
}

/// The main pictures two in a row, and tasks by loads where these leave room.
fn drawn(svg: &mut Svg, record: &Record, top: f64) -> f64 {
    let found = pictures::all(record, PICTURE);
    let mut y = top;
    for pair in found.chunks(2) {
        for (i, p) in pair.iter().enumerate() {
            let x = LEFT + (PICTURE.width + GAP) * i as f64;
            svg.text("head", x, y + 14.0, Anchor::Start, &fitted(&p.title, 13.0, true, PICTURE.width));
            svg.text("note", x, y + 30.0, Anchor::Start, &fitted(&p.about, 11.0, false, PICTURE.width));
            place(svg, &p.svg, (x, y + 36.0), PICTURE);
        }
        y += PICTURE.height + 50.0;
    }
    let grid = |d: &Dataset| d.shape.matrix().filter(|m| m.column_names.len() > 2).map(|m| m.rows.len());
    let grid = record.datasets.iter().find_map(|d| Some((d, grid(d)?)));
    if let Some((dataset, rows)) = grid.filter(|_| found.len() <= 2) {
        y += named(svg, dataset, rows, y);
    }
    y
}

fn named(svg: &mut Svg, dataset: &Dataset, rows: usize, y: f64) -> f64 {
    let size = Size { width: RIGHT - LEFT, height: (20.0 + 18.0 * rows as f64).min(190.0) };
    svg.text("head", LEFT, y + 14.0, Anchor::Start, &fitted(&dataset.title, 13.0, true, size.width));
    if let Some(part) = chart::draw(dataset, size) {
        place(svg, &part, (LEFT, y + 22.0), size);
    }
    size.height + 30.0
}

fn place(svg: &mut Svg, part: &str, (x, y): (f64, f64), size: Size) {
    let head = format!("<svg x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" ", size.width, size.height);
    svg.raw(&part.replacen("<svg xmlns=\"http://www.w3.org/2000/svg\" ", &head, 1));
}

/// What failed and what changes what is read, as far as there is room.
fn notes(svg: &mut Svg, record: &Record, top: f64) {
    let all = label::notes(record);
    let room = ((HEIGHT - 74.0 - top) / 17.0).max(0.0) as usize;
    for (i, text) in all.iter().take(room).enumerate() {
        let text = fitted(text, 12.0, false, RIGHT - LEFT);
        svg.text("value", LEFT, top + 17.0 * i as f64, Anchor::Start, &text);
    }
}

fn foot(svg: &mut Svg, record: &Record, id: &Identity) {
    svg.line("rule", (LEFT, HEIGHT - 66.0), (RIGHT, HEIGHT - 66.0));
    let facts =
        format!("Memory {}. Weaknesses of the CPU: {}. Clock {}.", id.memory, id.mitigations, id.clock);
    svg.text("note", LEFT, HEIGHT - 50.0, Anchor::Start, &fitted(&facts, 11.0, false, RIGHT - LEFT));
    let command = fitted(&record.run.command.join(" "), 11.0, true, 420.0);
    svg.text("code", LEFT, HEIGHT - 34.0, Anchor::Start, &command);
    let digest = format!("data sha256 {}", html::data_digest(record));
    svg.text("code", RIGHT, HEIGHT - 34.0, Anchor::End, &digest);
}

/// As much of a text of this size as fits; what is cut ends in two dots.
fn fitted(text: &str, size: f64, is_bold: bool, room: f64) -> String {
    label::clipped(text, (room / (size * LETTER[usize::from(is_bold)])) as usize)
}
