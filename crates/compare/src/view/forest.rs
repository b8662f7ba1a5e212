//! The comparison as a page: a forest plot of the rows that are told, a line with a dot each, and the closing lines.

use machmeter_data::quantity::digits;

use crate::comparison::{Comparison, Row, Scale, Verdict};
use crate::view::{figure, text};

/// Height of a row, width of the names and of the plot, px.
const ROW: f64 = 22.0;
const NAMES: f64 = 430.0;
const PLOT: f64 = 480.0;
const SIDES: f64 = 300.0;
/// Rows at most; beyond, the table on a terminal (`-v`) or CSV serves better.
const MOST: usize = 120;

const STYLE: &str = "body{font:14px system-ui,sans-serif;margin:24px;max-width:1240px;color:#1b1f24;background:#fff}\
svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:currentColor}line{stroke:currentColor}.axis{opacity:.35}\
.worse{color:#b3261e}.better{color:#1a7f37}.changed{color:#8250df}.same,.unclear{color:#57606a}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}.worse{color:#ff7b72}.better{color:#56d364}.changed{color:#d2a8ff}\
.same,.unclear{color:#8b949e}}";

/// The comparison as an HTML page that needs nothing else: no script, one style.
pub fn html(c: &Comparison) -> String {
    let mut rows = text::shown(c, true);
    rows.retain(|r| r.change_ci.is_some());
    let left_out = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    let mut body = format!("<h1>{} against {}</h1>", escaped(&c.b.label), escaped(&c.a.label));
    for g in [&c.a, &c.b] {
        body += &format!("<p>{}</p>", escaped(&figure::group(g)));
    }
    body += &format!("<p>{}</p>", escaped(&figure::counts(c)));
    for scale in [Scale::Relative, Scale::Absolute] {
        let of: Vec<&Row> = rows.iter().copied().filter(|r| r.scale == scale).collect();
        if !of.is_empty() {
            let what = if scale == Scale::Relative { "Change, %" } else { "Change, points or unit" };
            body += &format!("<h2>{what}</h2>{}", plot(&of, scale));
        }
    }
    if left_out > 0 {
        body += &format!("<p>{left_out} rows more: --csv has them.</p>");
    }
    let advice = c.advice.clone().unwrap_or_default();
    let closing = [
        figure::resolution(c),
        figure::own_calibration(c),
        advice,
        c.environment.join("; "),
        c.notes.join("; "),
    ];
    for text in closing.iter().filter(|text| !text.is_empty()) {
        body += &format!("<p>{}</p>", escaped(text));
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>Comparison</title><style>{STYLE}</style></head>\
         <body>{body}</body></html>\n"
    )
}

/// A line per row, on an axis that ends where the interval of the widest row of those that matter does.
fn plot(rows: &[&Row], scale: Scale) -> String {
    let ends = |r: &Row| r.change_ci.as_ref().map_or(0.0, |ci| ci.low.abs().max(ci.high.abs()));
    let mut widths: Vec<f64> = rows.iter().map(|r| ends(r)).collect();
    widths.sort_by(f64::total_cmp);
    // Nine rows in ten fit; of the others the line ends at the edge.
    let reach = round_up(machmeter_stats::quantile::quantile(&widths, 0.9).unwrap_or(1.0).max(1e-9));
    let x = |v: f64| NAMES + PLOT * f64::midpoint(1.0, (v / reach).clamp(-1.0, 1.0));
    let height = ROW * (rows.len() as f64 + 1.5);
    let mut out = format!("<svg viewBox=\"0 0 {} {height}\" role=\"img\">", NAMES + PLOT + SIDES);
    let factor = if scale == Scale::Relative { 100.0 } else { 1.0 };
    for part in [-1.0, -0.5, 0.0, 0.5, 1.0] {
        let (at, label) = (x(part * reach), digits(factor * part * reach));
        let sign = if part > 0.0 { "+" } else { "" };
        out += &format!(
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{ROW}\" y2=\"{height}\"/><text x=\"{at:.1}\" y=\"14\" \
             text-anchor=\"middle\">{sign}{label}</text>"
        );
    }
    for (i, r) in rows.iter().enumerate() {
        let y = ROW * (i as f64 + 1.5);
        let (Some(ci), Some(change)) = (&r.change_ci, r.change) else { continue };
        let class = if let Verdict::NotComparable { .. } = r.verdict { "unclear" } else { r.verdict.name() };
        let name: String = text::name(r).chars().take(62).collect();
        let sides = [&r.a, &r.b].map(|side| figure::value(side, r)).join(" to ");
        let (name, told) = (escaped(&name), escaped(&format!("{} {sides}", figure::change(r, change))));
        let ([low, high, at], below, right) =
            ([ci.low, ci.high, change].map(x), y + 4.0, NAMES + PLOT + 12.0);
        out += &format!(
            "<g class=\"{class}\"><title>{}</title><text x=\"0\" y=\"{below:.1}\">{name}</text><line x1=\"{low:.1}\" x2=\"{high:.1}\" \
             y1=\"{y:.1}\" y2=\"{y:.1}\" stroke-width=\"2\"/><circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"currentColor\"/>\
             <text x=\"{right:.1}\" y=\"{below:.1}\">{told}</text></g>",
            escaped(&r.key)
        );
    }
    out + "</svg>"
}

/// The next of 1, 2, 4, 10, 20, ... times a power of ten: its half is round, too.
fn round_up(reach: f64) -> f64 {
    let decade = 10_f64.powf(reach.log10().floor());
    [1.0, 2.0, 4.0, 10.0].into_iter().map(|n| n * decade).find(|n| *n >= reach).unwrap_or(reach)
}

fn escaped(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
