//! Draws the pictures of the book from the recorded run of the tests: the terminal page and the card.

use std::fmt::Write as _;

use machmeter_data::Record;
use machmeter_report::terminal::{TerminalStyle, page};
use sha2::Digest as _;

/// Columns of the page, and width and height of a letter.
const COLUMNS: usize = 100;
const LETTER: (f64, f64) = (8.0, 17.0);
const ROOM: f64 = 16.0;

/// The recorded run.
pub(crate) fn record() -> Record {
    Record::from_json(include_bytes!("../fixtures/glance.json")).expect("a record")
}

/// Files with their texts.
pub(crate) fn files() -> [(&'static str, String); 2] {
    [("page.svg", svg(&record())), ("card.svg", machmeter_report::card::render(&record()))]
}

/// SHA-256 of the first screen of a report: its styles and its first section.
pub(crate) fn first_screen(html: &str) -> String {
    let begin = html.find("<style>").unwrap_or(0);
    let end = html.find("id=\"notes\"").unwrap_or(html.len());
    let digest = sha2::Sha256::digest(&html.as_bytes()[begin..end]);
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The page as a terminal shows it.
fn svg(record: &Record) -> String {
    let text = page(record, &TerminalStyle { width: COLUMNS, color: true, ascii: false });
    let lines: Vec<&str> = text.lines().collect();
    let width = COLUMNS as f64 * LETTER.0 + 2.0 * ROOM;
    let height = lines.len() as f64 * LETTER.1 + 2.0 * ROOM;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\"><title>The page of \
         machmeter</title><style>text{{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d6dae0;white-space:pre}}\
         .b{{font-weight:700;fill:#fff}}.g{{fill:#6ad48c}}.y{{fill:#f0b357}}.r{{fill:#ff8b88}}</style>\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#101317\"/>\n"
    );
    for (i, line) in lines.iter().enumerate() {
        let y = ROOM + LETTER.1 * (i as f64 + 0.8);
        let mut column = 0;
        for (class, part) in parts(line) {
            let letters = part.chars().count();
            if !part.trim().is_empty() {
                let x = ROOM + LETTER.0 * column as f64;
                let long = LETTER.0 * letters as f64;
                let part = part.replace('&', "&amp;").replace('<', "&lt;");
                let _ = write!(
                    out,
                    "<text x=\"{x}\" y=\"{y:.1}\" textLength=\"{long}\" class=\"{class}\">{part}</text>"
                );
            }
            column += letters;
        }
        out.push('\n');
    }
    out + "</svg>\n"
}

/// Parts of a line with the class of their color.
pub(crate) fn parts(line: &str) -> Vec<(&'static str, String)> {
    let mut out = vec![("", String::new())];
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        let (code, behind) = after.split_once('m').unwrap_or((after, ""));
        out.last_mut().expect("one").1.push_str(before);
        let class = match code {
            "1" => "b",
            "31" => "r",
            "32" => "g",
            "33" => "y",
            _ => "",
        };
        out.push((class, String::new()));
        rest = behind;
    }
    out.last_mut().expect("one").1.push_str(rest);
    out
}
