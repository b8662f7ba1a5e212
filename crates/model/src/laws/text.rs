//! Laws as text.

use super::{Coefficient, Form, Term};

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
