//! Laws and points as text.

use std::fmt::Write as _;

use super::{Coefficient, Form, Point, Term};

/// Digits of a coefficient at most.
const MOST_DIGITS: i32 = 6;

impl Form {
    /// As `1000 + 600*p^2 + 1*p^2*d`: coefficients with the digits that their intervals support.
    pub fn text(&self) -> String {
        let term = |c: &Coefficient| match c.term {
            Term::One => digits(c),
            term => format!("{}*{}", digits(c), term.name()),
        };
        self.terms.iter().map(term).collect::<Vec<_>>().join(" + ")
    }
}

/// Up to the first digit of half the interval: one digit at least, six at most, without zeros at the end of an exact one.
fn digits(c: &Coefficient) -> String {
    let place = |v: f64| v.log10().floor() as i32;
    let half = (c.interval.high - c.value).max(c.value - c.interval.low);
    let last = place(half.max(f64::MIN_POSITIVE)).max(place(c.value) - MOST_DIGITS + 1).min(place(c.value));
    let unit = 10_f64.powi(last.abs());
    let rounded = if last > 0 { (c.value / unit).round() * unit } else { c.value };
    let text = format!("{rounded:.*}", (-last).max(0) as usize);
    if half < 10_f64.powi(last) && text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Points as Extra-P's text input of one region and metric; the values of a point are those of its launches.
pub fn extrap(region: &str, metric: &str, points: &[Point]) -> String {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by_key(|p| (p.p, p.d, p.launch));
    let of_point = || sorted.chunk_by(|a, b| (a.p, a.d) == (b.p, b.d));
    let mut out = String::from("PARAMETER p\nPARAMETER d\nPOINTS");
    for all in of_point() {
        let _ = write!(out, " ({} {})", all[0].p, all[0].d);
    }
    let _ = writeln!(out, "\nREGION {region}\nMETRIC {metric}");
    for all in of_point() {
        out.push_str("DATA");
        for point in all {
            let _ = write!(out, " {}", point.value);
        }
        out.push('\n');
    }
    out
}
