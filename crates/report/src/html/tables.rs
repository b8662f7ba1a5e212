//! Writes the metrics, the machine facts, and the origin of the data.

use std::collections::BTreeSet;

use machmeter_data::{Fact, FactState, Record};

use super::{END, each, esc, open_table};

/// Writes the frame of the metrics; the script fills it with one line per id, which unfolds to a grid. Without the script it names the command that lists
/// them.
pub(super) fn metrics(page: &mut String, record: &Record) {
    if record.metrics.is_empty() {
        return;
    }
    let kinds = record.metrics.iter().map(|m| m.id.as_str()).collect::<BTreeSet<_>>().len();
    put!(
        page,
        "<section id=\"metrics\" aria-labelledby=\"h-metrics\"><h2 id=\"h-metrics\">Metrics <small>{} figures of {kinds} kinds</small></h2>\
         <p class=\"need quiet\">The script of this page shows the list. As a table without it: \
         <code>machmeter report THIS.html --csv</code>.</p>\
         <p class=\"js tools\" hidden><label>Search <input id=\"metric-search\" type=\"search\" placeholder=\"id, parameter, flag\" \
         autocomplete=\"off\"></label> <button type=\"button\" id=\"metric-all\">Unfold all</button> \
         <output id=\"metric-count\"></output></p><div id=\"metric-list\"></div></section>",
        record.metrics.len()
    );
}

pub(super) fn machine(page: &mut String, record: &Record) {
    page.push_str("<section id=\"machine\" aria-labelledby=\"h-machine\"><h2 id=\"h-machine\">Machine</h2>");
    let (before, after) = (&record.machine.before, &record.machine.after);
    let paths: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    if paths.is_empty() {
        page.push_str("<p class=\"quiet\">No machine facts are part of this record.</p></section>");
        return;
    }
    let changed = before.changed(after);
    let compared = !after.0.is_empty();
    if compared && !changed.is_empty() {
        put!(page, "<p>{} of {} facts changed while the run lasted:</p>", changed.len(), paths.len());
        changed_facts(page, record, &changed);
    } else if compared {
        put!(page, "<p class=\"quiet\">None of {} facts changed while the run lasted.</p>", paths.len());
    }
    put!(
        page,
        "<p class=\"need quiet\">All {0} facts: listed by this page's script.</p>\
         <details id=\"all-facts\" data-js hidden><summary>All {0} facts</summary></details></section>",
        paths.len()
    );
}

fn changed_facts(page: &mut String, record: &Record, paths: &[String]) {
    let heads = ["Fact", "Value", "After the run", "Source"];
    open_table(page, "Changed facts", "facts", heads.map(|head| (head, "")));
    let (before, after) = (&record.machine.before, &record.machine.after);
    for path in paths {
        let (a, b) = (before.get(path), after.get(path));
        put!(page, "<tr class=\"changed\"><th scope=\"row\"><code>{}</code>", esc(path));
        fact_cell(page, a);
        fact_cell(page, b);
        let source = a.or(b).map_or("", |f| f.source.as_str());
        put!(page, "<td>{}</tr>", esc(source));
    }
    page.push_str(END);
}

fn fact_cell(page: &mut String, fact: Option<&Fact>) {
    let Some(fact) = fact else {
        page.push_str("<td class=\"none\">not captured");
        return;
    };
    if let Some(text) = fact.human() {
        put!(page, "<td>{}", esc(&text));
        return;
    }
    let state = match fact.state {
        FactState::Known => "no value",
        FactState::Denied => "denied",
        FactState::Absent => "absent",
        FactState::Unsupported => "unsupported",
        FactState::Unreadable => "unreadable",
    };
    put!(page, "<td class=\"unknown\">{state}");
    if let Some(why) = &fact.why {
        put!(page, ": {}", esc(why));
    }
}

pub(super) fn provenance(page: &mut String, record: &Record, digest: &str) {
    page.push_str("<section id=\"data\" aria-labelledby=\"h-data\"><h2 id=\"h-data\">Data</h2>");
    put!(
        page,
        "<dl class=\"meta\"><div class=\"wide\"><dt>Command</dt><dd><code>{}</code></dd></div><div><dt>Level</dt><dd>{}</dd></div>\
         <div><dt>Scheduling</dt><dd>{}</dd></div><div><dt>Clock</dt><dd>{}</dd></div><div><dt>Commit</dt><dd>{}</dd></div>\
         <div><dt>Record</dt><dd><code>{}</code></dd></div><div><dt>Schema</dt><dd>{} {}</dd></div>\
         <div><dt>Embedded data</dt><dd><code>sha256 {digest}</code></dd></div><div><dt>Seed</dt><dd>{}</dd></div></dl>",
        esc(&record.run.command.join(" ")),
        esc(&record.run.level),
        esc(&record.run.policy),
        esc(&crate::identity::Identity::of(record).clock),
        esc(record.tool.commit.as_deref().unwrap_or("unknown")),
        esc(&record.id),
        esc(&record.format),
        esc(&record.version),
        record.run.seed
    );
    if let Some(p) = &record.provenance {
        put!(page, "<p>Imported from <code>{}</code> ({}).</p>", esc(&p.files.join(", ")), esc(&p.format));
        list(page, "Assumptions, because the format does not contain these facts:", &p.assumptions);
    }
    list(page, "Changed on the machine during the run, and undone:", &record.run.side_effects);
    if !record.run.tags.is_empty() {
        let tags: Vec<String> = record.run.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
        put!(page, "<p>Tags: {}</p>", esc(&tags.join(", ")));
    }
    if !record.run.parameters.is_empty() {
        let text = serde_json::to_string_pretty(&record.run.parameters).unwrap_or_default();
        put!(page, "<details><summary>Parameters</summary><pre>{}</pre></details>", esc(&text));
    }
    if !record.raw.is_empty() {
        page.push_str("<h3>Raw samples</h3>");
        let heads = [("File", ""), ("Table", ""), ("Rows", "num"), ("SHA-256", "")];
        open_table(page, "Raw samples", "raw", heads);
        for f in &record.raw {
            put!(page, "<tr><th scope=\"row\"><code>{}</code><td>{}", esc(&f.file), esc(&f.table));
            put!(page, "<td class=\"num\">{}<td><code>{}</code></tr>", f.rows, esc(&f.sha256));
        }
        page.push_str(END);
    }
    page.push_str("</section>");
}

fn list(page: &mut String, heading: &str, lines: &[String]) {
    let open = format!("<p>{heading}</p><ul>");
    each(page, (&open, "</ul>"), lines, |page, l| put!(page, "<li>{}</li>", esc(l)));
}
