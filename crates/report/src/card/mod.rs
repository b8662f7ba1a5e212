//! Draws the card: one page as SVG with the verdicts, the main figures and the main pictures, to print or to pin up.

use machmeter_data::summary::Fit;
use machmeter_data::{Dataset, Record, finite};

use crate::chart::{self, Size};
use crate::identity::Identity;
use crate::svg::{Anchor, Svg};
use crate::terminal::wrap;
use crate::{html, label, pictures, tiles};

/// A4 portrait at 96 units per inch; on Letter it fits with wider side margins.
const WIDTH: f64 = 794.0;
const HEIGHT: f64 = 1123.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 750.0;
const TILES: usize = 8;
/// Tiles per row, and space between elements.
const ACROSS: usize = 4;
const GAP: f64 = 10.0;
/// Size of a picture without its title.
const PICTURE: Size = Size { width: 348.0, height: 204.0 };
/// Width of a letter relative to the text size, estimated for wide fonts: plain, bold.
const LETTER: [f64; 2] = [0.56, 0.64];

/// Renders the card of a record as one SVG document.
///
/// Parts without data are left out. Facts without a value read "unknown".
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
    let machine = parts(&id.machine(), ", ", 24.0, true, 540.0);
    svg.text("title", LEFT, 66.0, Anchor::Start, &machine);
    svg.text(
        "lead",
        LEFT,
        90.0,
        Anchor::Start,
        &parts(&format!("{}, {}", id.name, id.kernel), ", ", 13.5, false, RIGHT - LEFT),
    );
    svg.text("key", RIGHT, 50.0, Anchor::End, &record.run.started.replace('T', " "));
    let tool = format!("{} {}", record.tool.name, record.tool.version);
    let took = label::duration(record.run.wall_ns as f64);
    svg.text("key", RIGHT, 66.0, Anchor::End, &format!("{tool}, {took}"));
    svg.line("rule", (LEFT, 104.0), (RIGHT, 104.0));
}

/// Draws the verdicts, each with its reason; returns the `y` below them.
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
        y = paragraph(svg, "value", (LEFT + 282.0, y), &f.reason, 12.0, RIGHT - LEFT - 282.0) + 4.0;
    }
    if !record.complete {
        let text = format!("incomplete: ended by {}", record.stopped_by);
        y = paragraph(svg, "warn", (LEFT, y), &text, 13.0, RIGHT - LEFT) + 4.0;
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
        svg.text("key", x + 9.0, y + 16.0, Anchor::Start, &parts(&t.name, ", ", 11.0, false, room));
        svg.text("figure", x + 9.0, y + 40.0, Anchor::Start, &t.value);
        svg.text("note", x + 9.0, y + 56.0, Anchor::Start, &parts(&t.note, "; ", 11.0, false, room));
    }
    top + 72.0 * tiles.len().div_ceil(ACROSS) as f64
}

/// Draws the main pictures, two per row with their legends, then the table of tasks and loads if there is room.
fn drawn(svg: &mut Svg, record: &Record, top: f64) -> f64 {
    let found = pictures::all(record, PICTURE);
    let mut y = top;
    for pair in found.chunks(2) {
        let mut end = y;
        for (i, p) in pair.iter().enumerate() {
            let x = LEFT + (PICTURE.width + GAP) * i as f64;
            svg.text("head", x, y + 14.0, Anchor::Start, &p.title);
            // Two lines for each text, so that pictures in a row begin at one height.
            paragraph(svg, "note", (x, y + 30.0), &p.about, 11.0, PICTURE.width);
            place(svg, &p.svg, (x, y + 50.0), PICTURE);
            let names: Vec<&str> = p.legend.iter().map(String::as_str).collect();
            end = end.max(legend(svg, &names, (x, y + PICTURE.height + 62.0)));
        }
        y = end + 8.0;
    }
    let grid = |d: &Dataset| d.shape.matrix().filter(|m| m.column_names.len() > 2).map(|m| m.rows.len());
    let grid = record.datasets.iter().find_map(|d| Some((d, grid(d)?)));
    if let Some((dataset, rows)) = grid.filter(|_| found.len() <= 2) {
        y += named(svg, record, dataset, rows, y);
    }
    y
}

/// Draws the legend of a picture, with several names per line; returns the `y` below it.
fn legend(svg: &mut Svg, names: &[&str], (left, top): (f64, f64)) -> f64 {
    let (mut x, mut y) = (left, top);
    for (i, name) in names.iter().enumerate() {
        let width = 26.0 + 11.0 * LETTER[0] * name.chars().count() as f64 + 14.0;
        if x > left && x + width > left + PICTURE.width {
            (x, y) = (left, y + 15.0);
        }
        svg.line(&chart::line_class(i), (x, y - 4.0), (x + 22.0, y - 4.0));
        svg.text("note", x + 26.0, y, Anchor::Start, name);
        x += width;
    }
    if names.is_empty() { y - 12.0 } else { y + 8.0 }
}

fn named(svg: &mut Svg, record: &Record, dataset: &Dataset, rows: usize, y: f64) -> f64 {
    let size = Size { width: RIGHT - LEFT, height: (20.0 + 18.0 * rows as f64).min(190.0) };
    svg.text("head", LEFT, y + 14.0, Anchor::Start, &dataset.title);
    if let Some(part) = chart::draw(dataset, &record.metrics, size) {
        place(svg, &part, (LEFT, y + 22.0), size);
    }
    size.height + 30.0
}

fn place(svg: &mut Svg, part: &str, (x, y): (f64, f64), size: Size) {
    let head = format!("<svg x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" ", size.width, size.height);
    svg.raw(&part.replacen("<svg xmlns=\"http://www.w3.org/2000/svg\" ", &head, 1));
}

/// Draws failed checks and important notes in full until the room is used up.
fn notes(svg: &mut Svg, record: &Record, top: f64) {
    let mut y = top;
    for text in &label::notes(record) {
        let lines = wrapped(text, 12.0, RIGHT - LEFT).len() as f64;
        if y + LINE * (lines - 1.0) > HEIGHT - 90.0 {
            break;
        }
        y = paragraph(svg, "value", (LEFT, y), text, 12.0, RIGHT - LEFT);
    }
}

fn foot(svg: &mut Svg, record: &Record, id: &Identity) {
    svg.line("rule", (LEFT, HEIGHT - 66.0), (RIGHT, HEIGHT - 66.0));
    let facts = format!("Memory {}. Mitigations: {}. Clock {}.", id.memory, id.mitigations, id.clock);
    svg.text("note", LEFT, HEIGHT - 50.0, Anchor::Start, &parts(&facts, ", ", 11.0, false, RIGHT - LEFT));
    let command = parts(&record.run.command.join(" "), " ", 11.0, true, 420.0);
    svg.text("code", LEFT, HEIGHT - 34.0, Anchor::Start, &command);
    let digest = format!("data sha256 {}", html::data_digest(record));
    svg.text("code", RIGHT, HEIGHT - 34.0, Anchor::End, &digest);
}

/// Height of a line of text.
const LINE: f64 = 16.0;

/// Number of letters of this size that fit into `room`.
fn letters(size: f64, is_bold: bool, room: f64) -> usize {
    (room / (size * LETTER[usize::from(is_bold)])) as usize
}

fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    wrap(text, letters(size, false, room))
}

/// Draws a text in several lines; returns the `y` of the next line.
fn paragraph(svg: &mut Svg, class: &str, (x, top): (f64, f64), text: &str, size: f64, room: f64) -> f64 {
    let lines = wrapped(text, size, room);
    for (i, line) in lines.iter().enumerate() {
        svg.text(class, x, top + LINE * i as f64, Anchor::Start, line);
    }
    top + LINE * lines.len() as f64
}

/// The first parts of a text that fit, none of them cut; always at least one.
fn parts(text: &str, between: &str, size: f64, is_bold: bool, room: f64) -> String {
    let (most, mut out) = (letters(size, is_bold, room), String::new());
    for part in text.split(between) {
        let gap = if out.is_empty() { "" } else { between };
        if !out.is_empty() && (out.chars().count() + gap.len() + part.chars().count()) > most {
            break;
        }
        out.push_str(gap);
        out.push_str(part);
    }
    out
}
