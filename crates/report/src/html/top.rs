//! Writes the heading and the summary: the machine, the options of the run, and its results.

use machmeter_data::summary::{Compared, Fit, Place};
use machmeter_data::{CheckState, Record};

use super::{chapters, each, esc, figures};
use crate::chart::Size;
use crate::identity::Identity;
use crate::{label, pictures, tiles};

/// Most tiles of the report.
const TILES: usize = 8;
/// Size of a main picture, in units of its drawing.
const PICTURE: Size = Size { width: 520.0, height: 290.0 };

/// Writes the navigation and the identity of the machine.
pub(super) fn header(page: &mut String, record: &Record) {
    let id = Identity::of(record);
    page.push_str(
        "<a class=\"skip\" href=\"#glance\">Skip to the figures</a><div class=\"layout\"><nav class=\"side\" \
         aria-label=\"Sections\"><span class=\"brand\">machmeter</span><a href=\"#glance\">At a glance</a>",
    );
    for probe in chapters::probes(record) {
        put!(page, "<a class=\"sub\" href=\"#c-{}\">{}</a>", esc(probe), esc(&chapters::title(probe)));
    }
    page.push_str("<span class=\"group\">Reference</span>");
    let figures = (!record.metrics.is_empty()).then_some(("metrics", "All figures"));
    let others = [("notes", "Notes and checks"), ("machine", "Machine"), ("data", "Data")];
    for (anchor, name) in figures.into_iter().chain(others) {
        put!(page, "<a class=\"sub\" href=\"#{anchor}\">{name}</a>");
    }
    let started = record.run.started.replace('T', " ");
    let (what, took) = match record.run.wall_ns {
        0 => ("Calculated", String::new()),
        ns => ("Measured", format!(" for {}", label::duration(ns as f64))),
    };
    let (start, took) = (esc(started.get(..16).unwrap_or(&started)), esc(&took));
    let (tool, version) = (esc(&record.tool.name), esc(&record.tool.version));
    page.push_str("<button type=\"button\" id=\"theme\" class=\"js\" hidden>Theme: auto</button></nav>");
    put!(
        page,
        "<div class=\"column\"><header><h1>{}</h1><p class=\"lead\">{}, {}. ",
        esc(&id.machine()),
        esc(&id.name),
        esc(&id.kernel)
    );
    put!(page, "{what} {start} UTC{took} with {tool} {version}.</p></header>");
}

/// Writes the verdicts, the main figures and the main pictures.
pub(super) fn glance(page: &mut String, record: &Record) {
    page.push_str("<section id=\"glance\" aria-label=\"At a glance\">");
    if !record.complete {
        put!(
            page,
            "<p class=\"banner\"><svg class=\"icon st-warn\" aria-hidden=\"true\"><use href=\"#i-warn\"/></svg>\
             <strong>Incomplete:</strong> the run ended before its plan ({}). Figures cover what was measured until then.</p>",
            esc(&record.stopped_by)
        );
    }
    fitness(page, record);
    each(page, ("<ul class=\"tiles\">", "</ul>"), &tiles::tiles(record, TILES), |page, t| {
        let title = esc(&chapters::title(&t.section.to_lowercase()));
        let (probe, name) = (esc(t.probe), esc(&t.name));
        let target = t.moment.map_or(format!("c-{probe}"), |dataset| format!("fig-{dataset}"));
        put!(page, "<li><a class=\"label\" href=\"#{target}\">{title}: {name}</a>");
        put!(page, "<strong>{}{}</strong>", esc(&t.value), trend(&t.trend));
        page.push_str(&t.compared.as_ref().map_or_else(String::new, strip));
        put!(page, "<span class=\"note\">{}</span></li>", esc(&t.note));
    });
    important(page, record);
    to_paste(page, record);
    lines(page, record);
    main_pictures(page, record);
    page.push_str("</section>");
}

/// Writes the run in three lines of text, for a message; nothing for a run without figures.
fn to_paste(page: &mut String, record: &Record) {
    let [machine, verdicts, figures] = tiles::lines(record).map(|line| esc(&line));
    if !figures.is_empty() {
        put!(
            page,
            "<details class=\"paste\"><summary>Three lines to paste</summary><pre tabindex=\"0\">{machine}\n{verdicts}\n{figures}</pre></details>"
        );
    }
}

/// Most notes beside the verdicts.
const IMPORTANT: usize = 3;

/// Writes failed checks and important notes, each with its advice.
fn important(page: &mut String, record: &Record) {
    let failed = record.checks.iter().filter(|c| c.state == CheckState::Fail);
    let failed =
        failed.map(|c| (&c.id, format!("{}: {}", c.name, c.observed), c.next.clone().unwrap_or_default()));
    let changing = record.warnings.iter().filter(|w| w.changes);
    let changing = changing.map(|w| (&w.code, w.text.clone(), w.next.clone()));
    let all: Vec<_> = failed.chain(changing).take(IMPORTANT).collect();
    each(
        page,
        ("<ul class=\"important\" aria-label=\"Important notes\">", "</ul>"),
        &all,
        |page, (code, text, next)| {
            put!(
                page,
                "<li><code>{}</code> {} <span class=\"note\">{}</span></li>",
                esc(code),
                esc(text),
                esc(next)
            );
        },
    );
}

/// Draws earlier runs as a line whose last dot is this run. The scale begins at zero, so that small changes look small.
fn trend(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    if values.len() < 2 || most <= 0.0 {
        return String::new();
    }
    let step = 56.0 / (values.len() - 1) as f64;
    let at = |(i, v): (usize, &f64)| (2.0 + step * i as f64, 15.0 - 13.0 * v / most);
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(at).collect();
    let (x, y) = points[points.len() - 1];
    let line: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    let (runs, line) = (values.len() - 1, line.trim_end());
    format!(
        "<svg class=\"trend\" viewBox=\"0 0 62 17\" role=\"img\" aria-label=\"{runs} earlier runs\"><title>{runs} earlier runs, then this \
         one; from zero</title><polyline class=\"line c0\" points=\"{line}\"/><circle class=\"point c0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/></svg>"
    )
}

/// Draws the position of a figure within its usual range, as on the terminal.
fn strip(compared: &Compared) -> String {
    let [low, at, high] = compared.places().map(|p| 3.0 + 194.0 * p);
    let class = match compared.place() {
        Place::Usual => "usual",
        Place::Worse => "worse",
        Place::FarWorse => "far",
    };
    let (words, source) = (esc(&compared.words()), esc(&compared.usual.source));
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 200 12\" role=\"img\" aria-label=\"{words}\"><title>{words} ({source})</title>\
         <rect class=\"axis\" y=\"5\" width=\"200\" height=\"2\"/><rect class=\"range\" x=\"{low:.1}\" y=\"3\" width=\"{:.1}\" height=\"6\"/>\
         <circle class=\"{class}\" cx=\"{at:.1}\" cy=\"6\" r=\"4\"/></svg><span class=\"note\">{words}</span>",
        (high - low).max(2.0)
    )
}

fn lines(page: &mut String, record: &Record) {
    each(page, ("<dl class=\"lines\">", "</dl>"), &record.summary.lines, |page, line| {
        let class = if is_table(&line.lines) { " class=\"table\" tabindex=\"0\"" } else { "" };
        put!(page, "<div><dt>{}</dt><dd{class}>", esc(&line.section));
        for text in &line.lines {
            put!(page, "<p>{}</p>", esc(text));
        }
        page.push_str("</dd></div>");
    });
}

/// Draws the main pictures; each links to the figure that can be zoomed.
fn main_pictures(page: &mut String, record: &Record) {
    let found = pictures::all(record, PICTURE);
    let numbered: Vec<_> = found.iter().enumerate().collect();
    each(page, ("<div class=\"pictures\">", "</div>"), &numbered, |page, (i, p)| {
        put!(page, "<figure aria-labelledby=\"g-{i}\"><h2 id=\"g-{i}\">");
        put!(page, "<a href=\"#fig-{}\">{}</a></h2>", p.dataset, esc(&p.title));
        put!(page, "<figcaption>{}</figcaption>{}", esc(&p.about), p.svg);
        figures::legend(page, &p.legend.iter().map(String::as_str).collect::<Vec<_>>(), false);
        page.push_str("</figure>");
    });
}

/// Writes a verdict per purpose, with its reason.
fn fitness(page: &mut String, record: &Record) {
    each(page, ("<ul class=\"fitness\">", "</ul>"), &record.summary.fitness, |page, f| {
        let (word, purpose, reason) = (label::fit(f.fit), esc(&f.purpose), esc(&f.reason));
        let state = match f.fit {
            Fit::Yes => "pass",
            Fit::Unknown => "unknown",
            Fit::Partly => "warn",
            Fit::No => "fail",
        };
        put!(
            page,
            "<li class=\"{state}\"><svg class=\"icon st-{state}\" aria-hidden=\"true\"><use href=\"#i-{state}\"/></svg>\
             <strong>{purpose}</strong> <span class=\"note\">{word}:</span> {reason}</li>"
        );
    });
}

/// True if most lines are table rows, which need a monospaced font: aligned columns, or text behind a wide margin.
fn is_table(lines: &[String]) -> bool {
    let gaps = |l: &str| l.matches("  ").count();
    let is_row = |l: &&String| gaps(l.trim()) >= 3 || (gaps(l.trim()) > 0 && gaps(l.trim_end()) > 5);
    let rows = lines.iter().filter(is_row).count();
    rows * 2 > lines.len()
}
