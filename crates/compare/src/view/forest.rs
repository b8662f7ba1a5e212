//! The comparison as a page: a forest plot of the listed rows, each an interval with a dot, and the closing lines.
//!
//! Relative changes stand on an axis of ratios that is logarithmic, as all of their statistics are: `/1.1` is as far from 1 as `x1.1`. An arrow at the
//! edge shows an interval that goes on beyond it.

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
            let what =
                if scale == Scale::Relative { "B / A, log scale" } else { "B - A, in points or units" };
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

/// The ends of axes of ratios: changes by 1 % to the tenfold.
const REACHES: [f64; 10] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 9.0];

/// A scale that maps values to -1 to 1.
struct Scaled {
    scale: Scale,
    /// The value at the right end.
    reach: f64,
}

impl Scaled {
    /// An axis with room for nine intervals in ten.
    fn of(rows: &[&Row], scale: Scale) -> Self {
        let one = Self { scale, reach: f64::NAN };
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
        Self { scale, reach }
    }

    fn size(&self, value: f64) -> f64 {
        self.linear(value).abs()
    }

    /// The logarithm of a ratio; no cost falls to nothing or below.
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
            Scale::Absolute => {
                [(self.place(v), format!("+{}", digits(v))), (self.place(-v), format!("-{}", digits(v)))]
            }
        });
        let middle = if self.scale == Scale::Relative { "1" } else { "0" };
        sides.chain([(0.0, middle.to_owned())]).collect()
    }
}

/// Columns of letters that a name may have before it is set closer.
const LETTERS: usize = 62;

/// A line per row.
fn plot(rows: &[&Row], scale: Scale) -> String {
    let axis = Scaled::of(rows, scale);
    let x = |place: f64| NAMES + PLOT * f64::midpoint(1.0, place.clamp(-1.0, 1.0));
    let height = ROW * (rows.len() as f64 + 1.5);
    let mut out = format!("<svg viewBox=\"0 0 {} {height}\" role=\"img\">", NAMES + PLOT + SIDES);
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
        let (name, figures) = (escaped(&name), escaped(&format!("{} {sides}", figure::change(r, change))));
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

/// The next of 1, 2, 4, 10, 20, ... times a power of ten: its half is round, too.
fn round_up(reach: f64) -> f64 {
    let decade = 10_f64.powf(reach.log10().floor());
    [1.0, 2.0, 4.0, 10.0].into_iter().map(|n| n * decade).find(|n| *n >= reach).unwrap_or(reach)
}

fn escaped(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
