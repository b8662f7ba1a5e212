//! Renders the HTML report: one file that works from disk and offline. Its content policy allows only its own style and script.
//!
//! The essential part works without scripts: verdicts, the main figures and pictures, notes, tables of costs and findings. The script draws the rest from
//! the embedded record: more pictures, the tables under them, metrics and facts. Because the record is embedded, the page is also a data file.

/// Adds formatted markup to a page. Tables of figures omit the end tags of their cells, as HTML permits, because there are thousands.
macro_rules! put {
    ($page:expr, $($parts:tt)*) => {{
        // Writing to a String can't fail.
        let _ = std::fmt::Write::write_fmt($page, format_args!($($parts)*));
    }};
}

mod chapters;
mod costs;
mod figures;
mod heat;
mod layers;
mod layout;
mod tables;
mod top;
mod trust;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use machmeter_data::{Record, Shape, deflated, finite};

use crate::chart::Levels;
use crate::{budget, digest};

const STYLE: &str =
    concat!(include_str!("../../assets/vendor/uplot/uPlot.min.css"), include_str!("../../assets/viewer.css"));

/// Help on the charts of chapters, with the script and without it.
const HINT: &str = "<p class=\"quiet js\" hidden>Drag over a chart to zoom, double-click to go back. With the keyboard: Tab to a \
    chart, arrows move the cursor, <kbd>+</kbd> and <kbd>-</kbd> zoom, <kbd>0</kbd> resets.</p>\
    <p class=\"need quiet\">Some pictures, and the tables under pictures, are drawn by this page's script, in browsers from 2023 on. \
    Their numbers are in the record: <code>machmeter report THIS.html --json</code>.</p>";

/// The parts of the viewer; each uses those before it.
const VIEWER: [&str; 8] = [
    include_str!("../../assets/viewer/words.js"),
    include_str!("../../assets/viewer/chart.js"),
    include_str!("../../assets/viewer/lines.js"),
    include_str!("../../assets/viewer/heat.js"),
    include_str!("../../assets/viewer/tables.js"),
    include_str!("../../assets/viewer/metrics.js"),
    include_str!("../../assets/viewer/facts.js"),
    include_str!("../../assets/viewer/start.js"),
];

/// The script: uPlot as published, then the viewer without comments, indentation and blank lines.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut script = include_str!("../../assets/vendor/uplot/uPlot.iife.min.js").to_owned();
    script.push_str("\n(()=>{'use strict';\n");
    for line in VIEWER.iter().flat_map(|part| part.lines()).map(str::trim) {
        let comment = line.starts_with("/*") && line.ends_with("*/");
        if !comment && !line.is_empty() {
            script.push_str(line);
            script.push('\n');
        }
    }
    script.push_str("})();");
    script
});

/// Renders the report of a record as one HTML document.
///
/// Figures, facts and checks are embedded with all digits, values of datasets with six. A value that is not finite is rejected with its reason before
/// anything is drawn.
pub fn render(record: &Record) -> String {
    let mut record = finite::record(record);
    budget::apply(&mut record);
    share_scales(&mut record);
    let json = json(&record);
    let mut page = String::new();
    head(&mut page, &record);
    page.push_str(include_str!("../../assets/icons.svg"));
    top::header(&mut page, &record);
    page.push_str("<main>");
    top::glance(&mut page, &record);
    trust::section(&mut page, &record);
    page.push_str(HINT);
    chapters::all(&mut page, &record);
    tables::metrics(&mut page, &record);
    tables::machine(&mut page, &record);
    tables::provenance(&mut page, &record, &digest::short(&json));
    page.push_str("</main>");
    put!(
        &mut page,
        "<footer>Written by {} {}. This file holds its own data: <code>machmeter compare</code> and \
         <code>machmeter report</code> read it like the JSON record.</footer></div></div>",
        esc(&record.tool.name),
        esc(&record.tool.version)
    );
    put!(
        &mut page,
        "<script type=\"application/zlib\" id=\"machmeter-record\">{}</script><script>{}</script></body></html>\n",
        deflated::write(&json),
        SCRIPT.as_str()
    );
    page
}

/// The record as JSON; the page embeds it deflated.
fn json(record: &Record) -> String {
    // Serializing a record can't fail: keys are strings, and there is no I/O.
    serde_json::to_string(record).unwrap_or_default()
}

/// The first twelve hexadecimal digits of the digest of the embedded data, before deflation. Equal digits mean equal data.
pub(crate) fn data_digest(finite_record: &Record) -> String {
    let mut record = finite_record.clone();
    budget::apply(&mut record);
    digest::short(&json(&record))
}

/// Gives matrices of one id a common scale of colors, so that equal values have equal colors.
fn share_scales(record: &mut Record) {
    let mut ranges: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (id, m) in record.datasets.iter().filter_map(|d| Some((&d.id, d.shape.matrix()?))) {
        let (low, high) = Levels::range_of(m);
        let range = ranges.entry(id.clone()).or_insert((low, high));
        *range = (range.0.min(low), range.1.max(high));
    }
    for d in &mut record.datasets {
        if let Shape::Matrix(m) = &mut d.shape {
            m.range = ranges.get(&d.id).copied().filter(|r| r.0 <= r.1);
        }
    }
}

fn head(page: &mut String, record: &Record) {
    let identity = crate::identity::Identity::of(record);
    put!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"generator\" content=\"{} {}\">\
         <title>{}, {}: machmeter {}</title><style>{STYLE}</style></head><body>",
        digest::policy_source(STYLE),
        digest::policy_source(&SCRIPT),
        esc(&record.tool.name),
        esc(&record.tool.version),
        esc(&identity.machine()),
        esc(&identity.name),
        esc(&record.run.verb)
    );
}

/// Begins a table with these headings, each with its class; [`END`] ends it.
fn open_table<'h>(
    page: &mut String,
    label: &str,
    class: &str,
    heads: impl IntoIterator<Item = (&'h str, &'h str)>,
) {
    put!(page, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">", esc(label));
    put!(page, "<table class=\"{class}\"><thead><tr>");
    for (head, class) in heads {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        put!(page, "<th scope=\"col\"{class}>{}", esc(head));
    }
    page.push_str("</tr></thead><tbody>");
}

const END: &str = "</tbody></table></div>";

/// Writes items between the opening and closing markup of their list; nothing if there are no items.
fn each<T>(page: &mut String, (open, close): (&str, &str), items: &[T], write: impl Fn(&mut String, &T)) {
    if !items.is_empty() {
        page.push_str(open);
        for item in items {
            write(page, item);
        }
        page.push_str(close);
    }
}

fn esc(text: &str) -> String {
    crate::svg::escape(text)
}
