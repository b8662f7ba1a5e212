//! Metrics: one line per id with what its figures span, unfolded to a grid where two parameters span one, and to rows.

use std::collections::BTreeSet;

use machmeter_data::{Better, Metric, ParamValue, Quality, Record};

use super::esc;
use super::page::{Page, put};
use crate::label;

/// Metrics up to which every one has its row without the script; above that, those in grids have a cell only.
const STATIC_METRICS: usize = 300;
/// Figures of one id from which on a grid is clearer than rows.
const GRID_FIGURES: usize = 8;
/// Columns of a grid at most.
const GRID_COLUMNS: usize = 16;

/// The figures of one id, in the record's order.
struct Group<'a> {
    id: &'a str,
    metrics: Vec<&'a Metric>,
    /// Parameters in which its figures differ.
    varying: Vec<&'a str>,
}

pub(super) fn section(page: &mut Page, record: &Record) {
    if record.metrics.is_empty() {
        return;
    }
    let groups = groups(&record.metrics);
    put!(
        page,
        "<section id=\"metrics\" aria-labelledby=\"h-metrics\"><h2 id=\"h-metrics\">Metrics <small>{} figures of {} kinds</small></h2>\
         <p class=\"js tools\" hidden><label>Search <input id=\"metric-search\" type=\"search\" placeholder=\"id, parameter, flag\" \
         autocomplete=\"off\"></label> <button type=\"button\" id=\"metric-all\">Unfold all</button> \
         <output id=\"metric-count\"></output></p>",
        record.metrics.len(),
        groups.len()
    );
    let every_row = record.metrics.len() <= STATIC_METRICS;
    let probe = |g: &Group<'_>| g.id.split('.').next().unwrap_or(g.id).to_owned();
    let several = groups.iter().map(probe).collect::<BTreeSet<_>>().len() > 1;
    let mut last = String::new();
    for g in &groups {
        let this = probe(g);
        if several && this != last {
            put!(page, "<h3>{}</h3>", esc(&this));
            last = this;
        }
        group(page, g, every_row);
    }
    page.raw("</section>");
}

fn groups(metrics: &[Metric]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for m in metrics {
        match groups.iter_mut().find(|g| g.id == m.id) {
            Some(g) => g.metrics.push(m),
            None => groups.push(Group { id: &m.id, metrics: vec![m], varying: Vec::new() }),
        }
    }
    for g in &mut groups {
        let names: BTreeSet<&str> =
            g.metrics.iter().flat_map(|m| m.params.keys().map(String::as_str)).collect();
        let varies =
            |name: &&str| g.metrics.iter().any(|m| m.params.get(*name) != g.metrics[0].params.get(*name));
        g.varying = names.into_iter().filter(varies).collect();
    }
    groups
}

fn group(page: &mut Page, g: &Group<'_>, every_row: bool) {
    put!(
        page,
        "<details class=\"mg\" data-id=\"{0}\"><summary><code>{0}</code> {1}</summary><div>",
        esc(g.id),
        span(g)
    );
    let first = g.metrics[0];
    let better = match first.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
        Better::Neither => "neither way is better",
    };
    put!(page, "<p class=\"quiet\">{}; {better}.</p>", esc(&first.estimator));
    let in_grid = grid(page, g);
    if every_row || !in_grid {
        rows(page, g);
    } else {
        page.raw("<p class=\"quiet static\">Intervals: in the JSON record, or here with scripts on.</p>");
    }
    page.raw("</div></details>");
}

/// What a folded group says: its one figure with the interval, or how many there are and from where to where they reach.
fn span(g: &Group<'_>) -> String {
    let mut text = if let [only] = g.metrics.as_slice() {
        let params = label::params(&only.params);
        let ci = only.ci.as_ref().map_or_else(String::new, |ci| label::interval(ci, only.unit));
        format!("<span>{}</span><b>{}</b> <span>{}</span>", esc(&params), esc(&label::value(only)), esc(&ci))
    } else {
        let values = || g.metrics.iter().filter_map(|m| m.value.map(|v| (v, *m)));
        let least = values().min_by(|a, b| a.0.total_cmp(&b.0)).map(|v| label::value(v.1));
        let greatest = values().max_by(|a, b| a.0.total_cmp(&b.0)).map(|v| label::value(v.1));
        let reach = match (least, greatest) {
            (Some(a), Some(b)) if a == b => a,
            (Some(a), Some(b)) => format!("{a} to {b}"),
            _ => "-".to_owned(),
        };
        format!("<span>{} figures</span><b>{}</b>", g.metrics.len(), esc(&reach))
    };
    for quality in [Quality::Suspect, Quality::Rejected] {
        let n = g.metrics.iter().filter(|m| m.quality == quality).count();
        if n > 0 {
            text.push_str(&format!(" <span class=\"tag\">{n} {}</span>", label::quality(quality)));
        }
    }
    text
}

/// Values by two parameters, where exactly two vary and hardly a cell stays empty; false if they do not make a grid.
fn grid(page: &mut Page, g: &Group<'_>) -> bool {
    let [across, down] = g.varying.as_slice() else { return false };
    let of = |name: &str| {
        let mut seen: Vec<&ParamValue> = Vec::new();
        for value in g.metrics.iter().filter_map(|m| m.params.get(name)) {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        seen
    };
    let (columns, rows) = (of(across), of(down));
    let cells = columns.len() * rows.len();
    if g.metrics.len() < GRID_FIGURES || columns.len() > GRID_COLUMNS || cells > g.metrics.len() * 2 {
        return false;
    }
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"grid\"><thead><tr><th scope=\"col\">{} / {}",
        esc(g.id),
        esc(down),
        esc(across)
    );
    for c in &columns {
        put!(page, "<th scope=\"col\">{}", esc(&c.to_string()));
    }
    page.raw("</tr></thead><tbody>");
    for r in &rows {
        put!(page, "<tr><th scope=\"row\">{}", esc(&r.to_string()));
        for c in &columns {
            let found = g
                .metrics
                .iter()
                .find(|m| m.params.get(*across) == Some(*c) && m.params.get(*down) == Some(*r));
            let mark = if found.is_some_and(|m| m.quality == Quality::Suspect) { " ?" } else { "" };
            put!(page, "<td>{}{mark}", found.map_or_else(String::new, |m| esc(&label::value(m))));
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
    if g.metrics.iter().any(|m| m.quality == Quality::Suspect) {
        page.raw("<p class=\"quiet\">? marks figures that a check or warning weakens.</p>");
    }
    true
}

/// One row per figure: its parameters as headings, value, interval, n, and what weakens it.
fn rows(page: &mut Page, g: &Group<'_>) {
    let names: BTreeSet<&str> = g.metrics.iter().flat_map(|m| m.params.keys().map(String::as_str)).collect();
    let troubled = g.metrics.iter().any(|m| m.quality != Quality::Ok);
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}, rows\"><table class=\"rows\"><thead><tr>",
        esc(g.id)
    );
    for name in &names {
        put!(page, "<th scope=\"col\">{}", esc(name));
    }
    page.raw("<th scope=\"col\" class=\"num\">Value</th><th scope=\"col\" class=\"num\">Interval</th><th scope=\"col\" class=\"num\">n</th>");
    page.raw(if troubled {
        "<th scope=\"col\">Quality</th></tr></thead><tbody>"
    } else {
        "</tr></thead><tbody>"
    });
    for m in &g.metrics {
        page.raw("<tr>");
        for name in &names {
            put!(page, "<th>{}", m.params.get(*name).map_or_else(String::new, |v| esc(&v.to_string())));
        }
        let ci = m.ci.as_ref().map_or_else(|| "-".to_owned(), |ci| label::interval(ci, m.unit));
        put!(page, "<td>{}<td>{}<td>{}", esc(&label::value(m)), esc(&ci), m.n);
        if troubled {
            put!(page, "<td class=\"q\">{}", esc(&trouble(m)));
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
}

/// Quality, the codes that weaken it, and the reason if there is no value.
fn trouble(m: &Metric) -> String {
    let mut text = label::quality(m.quality).to_owned();
    if !m.flags.is_empty() {
        text = format!("{text} {}", m.flags.join(" "));
    }
    m.why.as_ref().map_or(text.clone(), |why| format!("{text}: {why}"))
}
