//! The HTML report: one file that works from disk, offline, under a content policy that allows nothing but its own two
//! blocks. Everything can be read with scripts off; the script adds zoom, search, sorting and the theme switch.
//!
//! The record is embedded as JSON, so that the page is also the data ([`extract`]).

mod data_table;
mod figures;
mod page;
mod tables;
mod top;
mod trust;

use machmeter_data::Record;

use crate::{budget, digest, finite};
use page::{Page, put};

const STYLE: &str =
    concat!(include_str!("../../assets/vendor/uplot/uPlot.min.css"), include_str!("../../assets/viewer.css"));
const SCRIPT: &str = concat!(
    include_str!("../../assets/vendor/uplot/uPlot.iife.min.js"),
    include_str!("../../assets/viewer.js")
);
const RECORD_OPEN: &str = "<script type=\"application/json\" id=\"machmeter-record\">";

/// The report of a record as one HTML document.
///
/// Metrics, facts and checks are embedded with all digits, values of datasets with six. A value that is not finite is
/// rejected with the reason before anything is drawn.
pub fn render(record: &Record) -> String {
    let mut record = finite::record(record);
    budget::apply(&mut record);
    let json = embedded(&record);
    let mut page = Page::default();
    head(&mut page, &record);
    page.raw(include_str!("../../assets/icons.svg"));
    top::header(&mut page, &record);
    page.raw("<main>");
    top::summary(&mut page, &record);
    trust::section(&mut page, &record);
    figures::section(&mut page, &record);
    trust::findings(&mut page, &record.findings);
    tables::metrics(&mut page, &record);
    tables::machine(&mut page, &record);
    tables::provenance(&mut page, &record, &digest::short(&json));
    page.raw("</main>");
    put!(
        page,
        "<footer>Written by {} {}. This file holds its own data: <code>machmeter compare</code> and \
         <code>machmeter report</code> read it like the JSON record.</footer>",
        esc(&record.tool.name),
        esc(&record.tool.version)
    );
    put!(page, "{RECORD_OPEN}{json}</script><script>{SCRIPT}</script></body></html>\n");
    page.finish()
}

/// The record as JSON, taken out of a page that [`render`] wrote; nothing if there is none.
pub fn extract(html: &str) -> Option<String> {
    let start = html.find(RECORD_OPEN)? + RECORD_OPEN.len();
    let length = html[start..].find("</script>")?;
    Some(html[start..start + length].to_owned())
}

/// JSON in which `<` is written as an escape, so that nothing inside can end the block or open a comment. In JSON it can
/// stand only inside strings.
fn embedded(record: &Record) -> String {
    // Serializing a record can't fail: keys are strings, and there is no I/O.
    serde_json::to_string(record).unwrap_or_else(|_| "null".to_owned()).replace('<', "\\u003c")
}

/// Twelve hexadecimal digits over the embedded data of a record: equal digits, equal data.
pub(crate) fn data_digest(finite_record: &Record) -> String {
    let mut record = finite_record.clone();
    budget::apply(&mut record);
    digest::short(&embedded(&record))
}

fn head(page: &mut Page, record: &Record) {
    let identity = crate::identity::Identity::of(record);
    put!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"generator\" content=\"{} {}\">\
         <title>{}: {} report</title><style>{STYLE}</style></head><body>",
        digest::policy_source(STYLE),
        digest::policy_source(SCRIPT),
        esc(&record.tool.name),
        esc(&record.tool.version),
        esc(&identity.name),
        esc(&record.run.verb)
    );
}

fn esc(text: &str) -> String {
    crate::svg::escape(text)
}
