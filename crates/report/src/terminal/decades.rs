//! The ladder of decades as text: the exponent at the left, the operations of that decade beside it, as Howell prints it.

use machmeter_data::Unit;
use machmeter_data::quantity::human;
use machmeter_data::shape::{DecadeRow, Decades};

use super::{TerminalStyle, printable};
use crate::label;

/// Lines of decades from the cheapest up, with `~` after what lies on the edge to another decade.
pub(super) fn ladder(d: &Decades, style: &TerminalStyle) -> String {
    let place = |r: &DecadeRow| {
        let ((decade, edge), exact) = (r.decade(d.value.unit)?, r.log10(d.value.unit)?);
        let (edge, figure) = (if edge { "~" } else { "" }, human(r.value, d.value.unit));
        Some((decade, format!("{} {exact:.1}{edge} ({figure})", printable(&r.name))))
    };
    let placed: Vec<(i32, String)> = d.rows.iter().filter_map(place).collect();
    let (Some(low), Some(high)) = (placed.iter().map(|p| p.0).min(), placed.iter().map(|p| p.0).max()) else {
        return "   nothing was measured\n".to_owned();
    };
    let minus = d.value.unit == Unit::Nanoseconds && high <= 0;
    let what = if minus { "   seconds, ten to the power minus" } else { "   ten to the power" };
    let mut lines = vec![what.to_owned()];
    for decade in low..=high {
        let head = format!("{:>5}  ", if minus { -decade } else { decade });
        let mut line = head.clone();
        for (_, text) in placed.iter().filter(|p| p.0 == decade) {
            if line.len() > head.len() && line.chars().count() + text.chars().count() + 3 > style.width {
                lines.push(std::mem::replace(&mut line, " ".repeat(head.len())));
            }
            line += &format!("{text}   ");
        }
        lines.push(line);
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Lines of names above the axis.
const LEVELS: usize = 3;
/// Longest name that stands at the axis, characters.
const LONGEST: usize = 14;

/// Operations at their place on one axis of decades, each by its mark, and by name where there is room. `heading`, which takes `indent`
/// columns, stands before the first line.
pub(super) fn strip(d: &Decades, style: &TerminalStyle, heading: &str, indent: usize) -> String {
    let shown = d.rows.iter().filter(|r| r.value > 0.0 && r.value.is_finite());
    // Without what stands in brackets: arguments, marks.
    let name = |name: &str| printable(name.split(" (").next().unwrap_or_default());
    let mut rows: Vec<(f64, String)> = shown.map(|r| (r.value.log10(), name(&r.name))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return String::new() };
    let (low, high) = (first.0.floor(), last.0.ceil().max(first.0.floor() + 1.0));
    let width = style.width.saturating_sub(indent + 2).max(30);
    let column = |log: f64| ((log - low) / (high - low) * (width - 1) as f64).round() as usize;
    let (mark, axis, tick) = if style.ascii { ('o', '-', '+') } else { ('●', '─', '┼') };
    let mut line = vec![axis; width];
    let mut scale = vec![' '; width + LONGEST];
    for decade in low as i32..=high as i32 {
        let at = column(f64::from(decade));
        line[at] = tick;
        let text = label::tick(10_f64.powi(decade), d.value.unit);
        let from =
            (at + 1).saturating_sub(text.chars().count().div_ceil(2)).min(width - text.chars().count());
        scale.splice(from..from + text.chars().count(), text.chars());
    }
    let mut levels = vec![vec![' '; width]; LEVELS];
    for (log, name) in &rows {
        let at = column(*log);
        line[at] = mark;
        let length = name.chars().count();
        if length > LONGEST {
            continue;
        }
        let from = at.saturating_sub(length / 2).min(width - length);
        let (begin, end) = (from.saturating_sub(1), (from + length + 1).min(width));
        if let Some(level) = levels.iter_mut().rev().find(|l| l[begin..end].iter().all(|c| *c == ' ')) {
            level.splice(from..from + length, name.chars());
        }
    }
    let mut out = String::new();
    let named = levels.into_iter().skip_while(|l| l.iter().all(|c| *c == ' '));
    for (i, characters) in named.chain([line, scale]).enumerate() {
        let text: String = characters.into_iter().collect();
        let before = if i == 0 { heading.to_owned() } else { " ".repeat(indent) };
        out += &format!("{}\n", format!("{before}{text}").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::shape::Axis;

    #[test]
    fn operations_stand_at_their_decade() {
        let row = |name: &str, value| DecadeRow { name: name.to_owned(), value, low: None, high: None };
        let rows = vec![row("rd cache", 1.1), row("rd main", 328.0), row("fopen", 2e4), row("call", 170.0)];
        let d = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows };
        let text = ladder(&d, &TerminalStyle::default());
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let expected = "seconds, ten to the power minus|9  rd cache -9.0 (1.10 ns)|8|7  call -6.8 (170 ns)|\
                        6  rd main -6.5~ (328 ns)|5  fopen -4.7 (20.0 us)";
        assert_eq!(lines.join("|"), expected);
        let none = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: Vec::new() };
        assert!(ladder(&none, &TerminalStyle::default()).contains("nothing"));
    }
}
