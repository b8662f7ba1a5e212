//! Writes the evidence for or against the result: warnings, checks, findings.

use machmeter_data::record::Finding;
use machmeter_data::{Check, CheckState, Hazard, Record};

use super::{END, each, esc, open_table};
use crate::label::counted;

/// Writes notes and checks, folded behind their numbers.
pub(super) fn section(page: &mut String, record: &Record) {
    let changing = record.warnings.iter().filter(|w| w.changes).count();
    let others = record.warnings.len() - changing;
    let count = |state: CheckState| record.checks.iter().filter(|c| c.state == state).count();
    let against = count(CheckState::Fail) + count(CheckState::Warn);
    let unseen = count(CheckState::Unknown);
    put!(
        page,
        "<section id=\"notes\" aria-labelledby=\"h-notes\"><details class=\"more\"><summary id=\"h-notes\">{}, {others} minor; \
         {}, {unseen} unavailable</summary>",
        counted(changing, "important note"),
        counted(against, "environment warning")
    );
    warnings(page, record);
    checks(page, &record.checks);
    page.push_str("</details></section>");
}

fn warnings(page: &mut String, record: &Record) {
    if record.warnings.is_empty() {
        page.push_str("<p class=\"quiet\">No warnings.</p>");
    }
    each(page, ("<ul class=\"warnings\">", "</ul>"), &record.warnings, |page, w| {
        let (code, text, next) = (esc(&w.code), esc(&w.text), esc(&w.next));
        put!(
            page,
            "<li><svg class=\"icon st-warn\" role=\"img\" aria-label=\"warning\"><use href=\"#i-warn\"/></svg><div>\
             <p><code>{code}</code> {text}</p><p class=\"next\">{next}</p></div></li>"
        );
    });
}

/// Symbol, class and word of a state. The word is always shown: color is never the only sign.
fn state(state: CheckState) -> (&'static str, &'static str) {
    match state {
        CheckState::Pass => ("pass", "pass"),
        CheckState::Warn => ("warn", "warning"),
        CheckState::Fail => ("fail", "fail"),
        CheckState::Unknown => ("unknown", "unknown"),
        CheckState::NotApplicable => ("na", "n/a"),
    }
}

fn checks(page: &mut String, checks: &[Check]) {
    if checks.is_empty() {
        page.push_str(
            "<p class=\"quiet\">This record has no environment checks: its disturbances are unknown.</p>",
        );
        return;
    }
    let in_states = |states: &[CheckState]| -> Vec<&Check> {
        let mut some: Vec<&Check> = checks.iter().filter(|c| states.contains(&c.state)).collect();
        some.sort_by_key(|c| (states.iter().position(|s| *s == c.state), c.id.clone()));
        some
    };
    let counts = ALL_STATES.map(|s| (in_states(&[s]).len(), state(s).1));
    let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
    put!(page, "<h3>Environment checks <small>{}</small></h3>", counts.collect::<Vec<_>>().join(" · "));
    let against = in_states(&[CheckState::Fail, CheckState::Warn]);
    if against.is_empty() {
        page.push_str("<p class=\"quiet\">No check found a problem.</p>");
    } else {
        table(page, "Checks that found a problem", &against);
    }
    let unknown = in_states(&[CheckState::Unknown]);
    if open_folded(page, "", "unavailable", &unknown) {
        table(page, "Unavailable checks", &unknown);
        page.push_str("</details>");
    }
    let quiet = in_states(&[CheckState::Pass, CheckState::NotApplicable]);
    if open_folded(page, " id=\"quiet-checks\"", "passed or not applicable", &quiet) {
        page.push_str("<p class=\"need quiet\">This page's script lists them.</p></details>");
    }
}

const ALL_STATES: [CheckState; 5] =
    [CheckState::Fail, CheckState::Warn, CheckState::Unknown, CheckState::Pass, CheckState::NotApplicable];

/// Begins a folded list of checks, with their names as its summary; returns false if there are none.
fn open_folded(page: &mut String, attributes: &str, what: &str, checks: &[&Check]) -> bool {
    if checks.is_empty() {
        return false;
    }
    let names: Vec<String> = checks.iter().map(|c| format!("{} {}", esc(&c.id), esc(&c.name))).collect();
    let (n, names) = (checks.len(), names.join(", "));
    put!(page, "<details{attributes}><summary>{n} {what}: <span class=\"quiet\">{names}</span></summary>");
    true
}

fn table(page: &mut String, label: &str, checks: &[&Check]) {
    let heads = ["State", "Check", "Seen", "Limit", "Weakens", "What to do"];
    open_table(page, label, "checks", heads.map(|head| (head, "")));
    for c in checks {
        row(page, c);
    }
    page.push_str(END);
}

fn row(page: &mut String, c: &Check) {
    let (class, word) = state(c.state);
    put!(
        page,
        "<tr><td class=\"state st-{class}\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#i-{class}\"/></svg>{word}</td>\
         <th scope=\"row\"><code>{}</code> {}</th><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}",
        esc(&c.id),
        esc(&c.name),
        esc(&c.source),
        esc(&c.observed),
        esc(c.limit.as_deref().unwrap_or("")),
        esc(&Hazard::names(&c.hazards)),
        esc(c.next.as_deref().unwrap_or(""))
    );
    if let Some(undo) = &c.undo {
        put!(page, " <span class=\"quiet\">Undo: {}</span>", esc(undo));
    }
    page.push_str("</td></tr>");
}

/// Writes the findings of a probe, folded.
pub(super) fn findings(page: &mut String, findings: &[&Finding]) {
    let summary = format!("<summary>{} with evidence</summary>", counted(findings.len(), "finding"));
    let open = format!("<details class=\"more\">{summary}<div class=\"findings\">");
    each(page, (&open, "</div></details>"), findings, |page, f| {
        let (verdict, text) = (esc(&f.verdict.replace('_', " ")), esc(&f.text));
        put!(page, "<article><p class=\"what\"><span class=\"tag\">{verdict}</span> {text}</p>");
        each(page, ("<ul>", "</ul>"), &f.evidence, |page, e| put!(page, "<li>{}</li>", esc(e)));
        put!(page, "<p class=\"quiet\"><code>{}</code></p></article>", esc(&f.id));
    });
}
