//! Writes one chapter per probe: its rows, one or two pictures, and folded below them its other figures, tables and findings.

use machmeter_data::record::Finding;
use machmeter_data::summary::Mark;
use machmeter_data::summary::Row;
use machmeter_data::{Dataset, Record, Shape};

use super::{each, esc, figures, heat, trust};
use crate::{machine, pictures};

/// Number of pictures that are not folded.
const OPEN: usize = 2;

/// The probe of an id: the part before its first dot.
fn probe(id: &str) -> &str {
    id.split('.').next().unwrap_or(id)
}

/// Order of the probes on the page.
const ORDER: [&str; 11] =
    ["noise", "interactive", "memory", "sync", "ops", "net", "flow", "mpi", "trace", "simulate", "predict"];

/// The probes of a record in the order of the page; further ones follow in the order of their data.
pub(super) fn probes(record: &Record) -> Vec<&str> {
    let rows = record.summary.rows.iter().flat_map(|r| &r.figures).map(|f| probe(&f.id));
    let datasets = record.datasets.iter().map(|d| probe(&d.id));
    let findings = record.findings.iter().map(|f| probe(&f.id));
    let mut out = Vec::new();
    for name in datasets.chain(rows).chain(findings) {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out.sort_by_key(|name| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
    out
}

/// `Noise` for `noise`, `MPI` for `mpi`.
pub(super) fn title(probe: &str) -> String {
    let first = probe.chars().next().map_or(0, char::len_utf8);
    let (capitals, rest) = probe.split_at(if probe == "mpi" { probe.len() } else { first });
    capitals.to_uppercase() + rest
}

pub(super) fn all(page: &mut String, record: &Record) {
    let at_glance = pictures::datasets(record);
    for name in probes(record) {
        chapter(page, record, name, &at_glance);
    }
}

/// Writes the chapter of a probe. Datasets in `at_glance` are drawn at the top of the page; here the script draws them.
fn chapter(page: &mut String, record: &Record, name: &str, at_glance: &[usize]) {
    let anchor = esc(name);
    put!(page, "<section class=\"chapter\" id=\"c-{anchor}\" aria-labelledby=\"h-{anchor}\">");
    put!(page, "<h2 id=\"h-{anchor}\">{}</h2>", esc(&title(name)));
    rows(page, record, name);
    let own: Vec<(usize, &Dataset)> =
        record.datasets.iter().enumerate().filter(|(_, d)| probe(&d.id) == name).collect();
    let drawn = usize::from(boxes(page, record, name));
    let mut open: Vec<(usize, &Dataset)> =
        own.iter().copied().filter(|(_, d)| is_picture(d)).take(OPEN - drawn).collect();
    if open.is_empty() {
        open.extend(own.first());
    }
    for (place, (index, dataset)) in open.iter().enumerate() {
        figures::alone(page, record, *index, dataset, place == 0 && !at_glance.contains(index));
    }
    let rest: Vec<(usize, &Dataset)> =
        own.into_iter().filter(|(index, _)| open.iter().all(|(o, _)| o != index)).collect();
    if !rest.is_empty() {
        put!(page, "<details class=\"more\"><summary>{} more pictures and tables</summary>", rest.len());
        figures::several(page, record, &rest);
        page.push_str("</details>");
    }
    let findings: Vec<&Finding> = record.findings.iter().filter(|f| probe(&f.id) == name).collect();
    trust::findings(page, &findings);
    page.push_str("</section>");
}

/// Draws the machine as boxes in the chapter of the probe that measured its levels. Returns true if it was drawn.
fn boxes(page: &mut String, record: &Record, name: &str) -> bool {
    let ladder = record.summary.rows.iter().find(|r| r.section == "LADDER");
    let is_own = ladder.and_then(|r| r.figures.first()).is_some_and(|f| probe(&f.id) == name);
    let Some((svg, size)) = is_own.then(|| machine::draw(record)).flatten() else { return false };
    // The picture keeps its natural size: a small machine does not fill the page.
    let svg =
        svg.replacen("<svg ", &format!("<svg width=\"{:.0}\" height=\"{:.0}\" ", size.width, size.height), 1);
    put!(
        page,
        "<figure class=\"fig boxes\" aria-labelledby=\"boxes\"><h3 id=\"boxes\">The machine</h3><figcaption>Sizes and \
         latencies as measured. Between two boxes: one-way latency of a cache line between CPUs, over all pairs.</figcaption>\
         <div class=\"plot\" tabindex=\"0\" role=\"group\" aria-label=\"Boxes of the machine\">{svg}</div></figure>"
    );
    true
}

fn is_picture(dataset: &Dataset) -> bool {
    match &dataset.shape {
        Shape::CostTable(t) => figures::is_graph(dataset, t),
        Shape::Matrix(m) => !heat::is_table(m),
        _ => true,
    }
}

/// Writes the rows of a probe (name, figures, interval, marks), except those that a table lists.
fn rows(page: &mut String, record: &Record, name: &str) {
    let own = |r: &&Row| r.section != "TAKEN" && r.figures.first().is_some_and(|f| probe(&f.id) == name);
    let texts: Vec<_> =
        record.summary.rows.iter().filter(own).filter_map(|r| r.text(&record.metrics)).collect();
    let missing: Vec<_> =
        record.summary.rows.iter().filter(own).filter_map(|r| r.missing(&record.metrics)).collect();
    each(page, ("<dl class=\"rows\">", "</dl>"), &texts, |page, t| {
        let interval = esc(t.interval.as_deref().unwrap_or_default());
        let (name, figures) = (esc(&t.name), esc(&t.line()));
        put!(
            page,
            "<div><dt>{name}</dt><dd><b>{figures}</b> <span>{interval}</span>{}</dd></div>",
            marks(&t.marks)
        );
    });
    each(page, ("<dl class=\"rows\">", "</dl>"), &missing, |page, (name, why)| {
        put!(page, "<div><dt>{}</dt><dd><span>{}</span></dd></div>", esc(name), esc(why));
    });
}

/// Marks of a figure, each with its meaning as a tooltip.
pub(super) fn marks(marks: &[Mark]) -> String {
    let mark = |m: &Mark| format!(" <span class=\"mark\" title=\"{}\">{}</span>", m.legend(), m.name());
    marks.iter().map(mark).collect()
}
