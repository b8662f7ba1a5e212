//! Heading and summary: who the machine is, what was asked, what came out.

use machmeter_data::Record;
use machmeter_data::summary::Fit;

use super::esc;
use super::page::{Page, put};
use crate::identity::Identity;
use crate::{label, tiles};

/// Tiles of the report.
const TILES: usize = 8;

pub(super) fn header(page: &mut Page, record: &Record) {
    let id = Identity::of(record);
    put!(
        page,
        "<a class=\"skip\" href=\"#figures\">Skip to figures</a><header class=\"top\"><div class=\"bar\">\
         <span class=\"brand\">machmeter <span>{}</span></span><nav aria-label=\"Sections\">",
        esc(&record.run.verb)
    );
    for (anchor, name, shown) in [
        ("summary", "Summary", true),
        ("trust", "Trust", true),
        ("figures", "Figures", !record.datasets.is_empty()),
        ("findings", "Findings", !record.findings.is_empty()),
        ("metrics", "Metrics", !record.metrics.is_empty()),
        ("machine", "Machine", true),
    ] {
        if shown {
            put!(page, "<a href=\"#{anchor}\">{name}</a>");
        }
    }
    put!(
        page,
        "</nav><button type=\"button\" id=\"theme\" class=\"js\" hidden>Theme: auto</button></div>\
         <h1>{}</h1><p class=\"lead\">{}</p><dl class=\"meta\">",
        esc(&id.name),
        esc(&id.line())
    );
    let pair = |page: &mut Page, name: &str, value: &str| {
        put!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", esc(value));
    };
    pair(page, "Date", &record.run.started.replace('T', " "));
    pair(page, "Duration", &label::duration(record.run.wall_ns as f64));
    pair(page, "Level", &record.run.level);
    pair(page, "Scheduling", &record.run.policy);
    pair(page, "Clock", &id.clock);
    let tool = match &record.tool.commit {
        Some(c) => format!(
            "{} {} ({})",
            record.tool.name,
            record.tool.version,
            c.chars().take(10).collect::<String>()
        ),
        None => format!("{} {}", record.tool.name, record.tool.version),
    };
    pair(page, "Tool", &tool);
    put!(
        page,
        "<div class=\"wide\"><dt>Command</dt><dd><code>{}</code></dd></div>",
        esc(&record.run.command.join(" "))
    );
    page.raw("</dl></header>");
}

pub(super) fn summary(page: &mut Page, record: &Record) {
    page.raw("<section id=\"summary\" aria-labelledby=\"h-summary\"><h2 id=\"h-summary\">Summary</h2>");
    if !record.complete {
        put!(
            page,
            "<p class=\"banner\"><svg class=\"icon st-warn\" aria-hidden=\"true\"><use href=\"#i-warn\"/></svg>\
             <strong>Incomplete:</strong> the run ended before its plan ({}). Figures cover what was measured until then.</p>",
            esc(&record.stopped_by)
        );
    }
    fitness(page, record);
    let tiles = tiles::tiles(record, TILES);
    if !tiles.is_empty() {
        page.raw("<ul class=\"tiles\">");
        for t in tiles {
            put!(
                page,
                "<li><span class=\"label\">{}</span><strong>{}</strong><span class=\"note\">{}</span></li>",
                esc(&t.name),
                esc(&t.value),
                esc(&t.note)
            );
        }
        page.raw("</ul>");
    }
    if !record.summary.lines.is_empty() {
        page.raw("<dl class=\"lines\">");
        for line in &record.summary.lines {
            let class = if is_table(&line.lines) { " class=\"table\" tabindex=\"0\"" } else { "" };
            put!(page, "<div><dt>{}</dt><dd{class}>", esc(&line.section));
            for text in &line.lines {
                put!(page, "<p>{}</p>", esc(text));
            }
            page.raw("</dd></div>");
        }
        page.raw("</dl>");
    }
    page.raw("</section>");
}

/// What the machine is fit for: a line a purpose, with the reason.
fn fitness(page: &mut Page, record: &Record) {
    if record.summary.fitness.is_empty() {
        return;
    }
    page.raw("<ul class=\"fitness\">");
    for f in &record.summary.fitness {
        let word = label::fit(f.fit);
        let state = match f.fit {
            Fit::Yes => "pass",
            Fit::Unknown => "unknown",
            Fit::Partly => "warn",
            Fit::No => "fail",
        };
        put!(
            page,
            "<li><svg class=\"icon st-{state}\" aria-hidden=\"true\"><use href=\"#i-{state}\"/></svg><strong>{}</strong> \
             <span class=\"note\">{word}:</span> {}</li>",
            esc(&f.purpose),
            esc(&f.reason)
        );
    }
    page.raw("</ul>");
}

/// Whether most lines are rows with aligned columns, which need letters of one width.
fn is_table(lines: &[String]) -> bool {
    let rows = lines.iter().filter(|l| l.trim().matches("  ").count() >= 3).count();
    rows * 2 > lines.len()
}
