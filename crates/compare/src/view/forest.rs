//! Draws a comparison as a page: a forest plot of the listed rows, each an interval with a dot, and the closing lines.
//!
//! Relative changes use a logarithmic axis of ratios, as all of their statistics do: `/1.1` is as far from 1 as `x1.1`. An arrow at the edge marks an interval
//! that extends beyond it.

use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::Unit;
use machmeter_data::quantity::digits;

use crate::comparison::{Comparison, Group, Row, Scale, Verdict};
use crate::view::{figure, text};

/// Height of a row, width of the names and of the plot, px.
const ROW: f64 = 22.0;
const NAMES: f64 = 430.0;
const PLOT: f64 = 480.0;
const SIDES: f64 = 520.0;
/// Most rows of a plot; for more, the table on a terminal (`-v`) or CSV is better.
const MOST: usize = 120;

const STYLE: &str = "body{font:14px system-ui,sans-serif;margin:24px;max-width:1380px;color:#1b1f24;background:#fff}\
svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:currentColor}line{stroke:currentColor}.axis{opacity:.35}\
.worse{color:#b3261e}.better{color:#1a7f37}.changed{color:#8250df}.same,.unclear{color:#57606a}\
a{color:inherit}@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}.worse{color:#ff7b72}.better{color:#56d364}.changed{color:#d2a8ff}\
.same,.unclear{color:#8b949e}}";

/// Pages of runs by the id of the run, as paths from the page of the comparison.
pub type Reports = BTreeMap<String, String>;

/// A comparison as a self-contained HTML page: no script, one style. Runs with a page in `reports` link to it.
pub fn html(c: &Comparison, reports: &Reports) -> String {
    let mut rows = text::shown(c, false, MOST);
    rows.retain(|r| r.change_ci.is_some() && (r.verdict.is_change() || !is_nothing(r)));
    let left_out = c.rows.len() - rows.len();
    let title = escaped(&title(c));
    let mut body = format!("<h1>{title}</h1>");
    let paragraph = |text: &str| format!("<p>{}</p>", escaped(text));
    for g in [&c.a, &c.b] {
        body += &side(g, reports);
    }
    for text in [figure::counts(c), figure::resolution(c)].iter().filter(|text| !text.is_empty()) {
        body += &paragraph(text);
    }
    body += LEGEND;
    let mut scales: Vec<(Scale, Unit)> = Vec::new();
    for row in &rows {
        let scale = (row.scale, if row.scale == Scale::Relative { Unit::One } else { row.unit });
        if !scales.contains(&scale) {
            scales.push(scale);
        }
    }
    for (scale, unit) in scales {
        let is_own = |r: &&Row| r.scale == scale && (scale == Scale::Relative || r.unit == unit);
        let of: Vec<&Row> = rows.iter().copied().filter(is_own).collect();
        let what = match (scale, unit) {
            (Scale::Relative, _) => "B / A, logarithmic".to_owned(),
            (Scale::Absolute, Unit::One) => "B - A, shares, percentage points".to_owned(),
            (Scale::Absolute, unit) => format!("B - A, {}", unit.ucum().trim_matches(['{', '}', '[', ']'])),
        };
        body += &format!("<h2>{what}</h2>{}", plot(&of, scale, &what));
    }
    if left_out > 0 {
        body +=
            &paragraph(&format!("{left_out} more rows without a change: machmeter compare -v lists them."));
    }
    let advice = c.advice.clone().unwrap_or_default();
    let (environment, notes) = (c.environment.join("; "), c.notes.join("; "));
    let closing = [figure::own_calibration(c), text::not_comparable(c), advice, environment, notes];
    for text in closing.iter().filter(|text| !text.is_empty()) {
        body += &paragraph(text);
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>{title}</title><style>{STYLE}</style></head>\
         <body><main>{body}</main></body></html>\n"
    )
}

/// `new against old: AMD EPYC`; both models if the machines differ.
fn title(c: &Comparison) -> String {
    let mut cpus: Vec<&str> =
        [&c.b, &c.a].into_iter().flat_map(|g| &g.runs).map(|r| r.cpu.as_str()).collect();
    cpus.retain(|cpu| !cpu.is_empty());
    cpus.dedup();
    let on = if cpus.is_empty() { String::new() } else { format!(": {}", cpus.join(" against ")) };
    format!("{} against {}{on}", c.b.label, c.a.label)
}

/// A side as a paragraph: its runs, their command, and links to their pages.
fn side(g: &Group, reports: &Reports) -> String {
    let mut text = escaped(&figure::group(g));
    let commands: BTreeSet<&str> =
        g.runs.iter().map(|r| r.command.as_str()).filter(|c| !c.is_empty()).collect();
    for command in commands {
        text += &format!(", <code>{}</code>", escaped(command));
    }
    let linked = g.runs.iter().filter_map(|r| Some((r, reports.get(&r.id)?)));
    for (run, page) in linked {
        let start = run.started.get(..19).unwrap_or(&run.started).replace('T', " ");
        text += &format!(", <a href=\"{}\">report of {}</a>", escaped(page), escaped(&start));
    }
    format!("<p>{text}</p>")
}

/// Both sides are zero, and nothing changed.
fn is_nothing(row: &Row) -> bool {
    [&row.a, &row.b].iter().all(|side| side.value == Some(0.0))
}

const LEGEND: &str = "<p>Dot: the change from A to B. Bar: its 95 % interval; an arrow if it goes on beyond the axis. \
                      Red: worse. Green: better. Violet: changed. Gray: same, or unclear: not decided at the bound on false changes.</p>";

/// Possible ends of an axis of ratios: changes from 1 % to tenfold.
const REACHES: [f64; 10] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 9.0];

/// A scale that maps values to -1 to 1.
struct Scaled {
    scale: Scale,
    /// The value at the right end.
    reach: f64,
    /// Values are shares.
    is_share: bool,
}

impl Scaled {
    /// An axis that fits nine of ten intervals.
    fn of(rows: &[&Row], scale: Scale) -> Self {
        let is_share = scale == Scale::Absolute && rows.iter().all(|r| r.unit == Unit::One);
        let one = Self { scale, reach: f64::NAN, is_share };
        let mut widths: Vec<f64> = rows
            .iter()
            .filter_map(|r| r.change_ci.as_ref())
            .flat_map(|ci| [one.size(ci.low), one.size(ci.high)])
            .collect();
        widths.sort_by(f64::total_cmp);
        let most = machmeter_stats::quantile::quantile(&widths, 0.9).unwrap_or(1.0).max(1e-9);
        let reach = match scale {
            Scale::Relative => {
                REACHES.into_iter().find(|r| r.ln_1p() >= most).unwrap_or(REACHES[REACHES.len() - 1])
            }
            Scale::Absolute => round_up(most),
        };
        Self { scale, reach, is_share }
    }

    fn size(&self, value: f64) -> f64 {
        self.linear(value).abs()
    }

    /// An absolute change as its axis prints it: shares in points.
    fn label(&self, value: f64) -> String {
        if self.is_share { digits(100.0 * value) } else { digits(value) }
    }

    /// The logarithm of a ratio; values at or below zero, which no cost has, are clamped.
    fn linear(&self, value: f64) -> f64 {
        if self.scale == Scale::Relative { value.max(1e-9 - 1.0).ln_1p() } else { value }
    }

    fn place(&self, value: f64) -> f64 {
        self.linear(value) / self.linear(self.reach)
    }

    /// Values of the axis with their labels: both ends, both halves, and no change.
    fn ticks(&self) -> Vec<(f64, String)> {
        let half = match self.scale {
            Scale::Relative => (self.reach.ln_1p() / 2.0).exp_m1(),
            Scale::Absolute => self.reach / 2.0,
        };
        let sides = [half, self.reach].into_iter().flat_map(|v| match self.scale {
            Scale::Relative => {
                let (place, factor) = (self.place(v), digits(1.0 + v));
                [(place, format!("x{factor}")), (-place, format!("/{factor}"))]
            }
            Scale::Absolute => [
                (self.place(v), format!("+{}", self.label(v))),
                (self.place(-v), format!("-{}", self.label(v))),
            ],
        });
        let middle = if self.scale == Scale::Relative { "1" } else { "0" };
        sides.chain([(0.0, middle.to_owned())]).collect()
    }
}

/// Most letters of a name in normal spacing.
const LETTERS: usize = 62;

/// Draws a line per row.
fn plot(rows: &[&Row], scale: Scale, what: &str) -> String {
    let axis = Scaled::of(rows, scale);
    let x = |place: f64| NAMES + PLOT * f64::midpoint(1.0, place.clamp(-1.0, 1.0));
    let height = ROW * (rows.len() as f64 + 1.5);
    let mut out =
        format!("<svg viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"{what}\">", NAMES + PLOT + SIDES);
    for (place, label) in axis.ticks() {
        let at = x(place);
        out += &format!(
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{ROW}\" y2=\"{height}\"/><text x=\"{at:.1}\" y=\"14\" \
             text-anchor=\"middle\">{label}</text>"
        );
    }
    for (i, r) in rows.iter().enumerate() {
        let y = ROW * (i as f64 + 1.5);
        let (Some(ci), Some(change)) = (&r.change_ci, r.change) else { continue };
        let class = if let Verdict::NotComparable { .. } = r.verdict { "unclear" } else { r.verdict.name() };
        let name = text::name(r);
        let closer = if name.chars().count() > LETTERS {
            format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", NAMES - 12.0)
        } else {
            String::new()
        };
        let sides = [&r.a, &r.b].map(|side| figure::value(side, r)).join(" to ");
        let word = figure::word(&r.verdict);
        let figures = format!("{word}: {}, {sides}", figure::change_and_range(r));
        let (name, figures) = (escaped(&name), escaped(&figures));
        let places = [ci.low, ci.high, change].map(|v| axis.place(v));
        let ([low, high, at], below, right) = (places.map(x), y + 4.0, NAMES + PLOT + 12.0);
        let arrows: String =
            places[..2].iter().filter(|p| p.abs() > 1.0).map(|p| arrow(x(*p), y, p.signum())).collect();
        out += &format!(
            "<g class=\"{class}\"><title>{}</title><text x=\"0\" y=\"{below:.1}\"{closer}>{name}</text><line x1=\"{low:.1}\" x2=\"{high:.1}\" \
             y1=\"{y:.1}\" y2=\"{y:.1}\" stroke-width=\"2\"/>{arrows}<circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"currentColor\"/>\
             <text x=\"{right:.1}\" y=\"{below:.1}\">{figures}</text></g>",
            escaped(&r.key)
        );
    }
    out + "</svg>"
}

/// The head of an arrow at the edge of the plot.
fn arrow(x: f64, y: f64, direction: f64) -> String {
    let (back, [up, down]) = (x - 8.0 * direction, [y - 5.0, y + 5.0]);
    format!("<path d=\"M{x:.1} {y:.1} L{back:.1} {up:.1} L{back:.1} {down:.1} Z\" fill=\"currentColor\"/>")
}

/// The next of 1, 2, 4, 10 times a power of ten, whose half is round, too.
fn round_up(reach: f64) -> f64 {
    let decade = 10_f64.powf(reach.log10().floor());
    [1.0, 2.0, 4.0, 10.0].into_iter().map(|n| n * decade).find(|n| *n >= reach).unwrap_or(reach)
}

fn escaped(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
