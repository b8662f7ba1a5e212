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
    let what = if minus { "   cost by decade (10^-n s)" } else { "   by decade (10^n)" };
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

/// Fewest columns of an axis; narrower views list the operations.
const AXIS: usize = 40;

/// Lines with the operations on one axis of decades, each by its mark, and by name and number where these are free of others: neither is ever cut.
pub(super) fn strip(d: &Decades, style: &TerminalStyle, room: usize) -> Vec<String> {
    let shown = d.rows.iter().filter(|r| r.value > 0.0 && r.value.is_finite());
    // Without what stands in brackets: arguments, marks.
    let name = |name: &str| printable(name.split(" (").next().unwrap_or_default());
    let mut rows: Vec<(f64, String)> = shown.map(|r| (r.value.log10(), name(&r.name))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let width = room.saturating_sub(2);
    if width < AXIS {
        let line =
            |(log, name): &(f64, String)| format!("{name}  {}", human(10_f64.powf(*log), d.value.unit));
        return rows.iter().map(line).collect();
    }
    let (low, high) = (first.0.floor(), last.0.ceil().max(first.0.floor() + 1.0));
    let column = |log: f64| ((log - low) / (high - low) * (width - 1) as f64).round() as usize;
    let (mark, axis, tick) = if style.ascii { ('o', '-', '+') } else { ('●', '─', '┼') };
    let mut line = vec![axis; width];
    let mut scale = vec![' '; width];
    let mut levels = vec![vec![' '; width]; LEVELS];
    for decade in low as i32..=high as i32 {
        line[column(f64::from(decade))] = tick;
        let text = label::tick(10_f64.powi(decade), d.value.unit);
        centered(std::slice::from_mut(&mut scale), column(f64::from(decade)), &text);
    }
    for (log, name) in &rows {
        line[column(*log)] = mark;
        if name.chars().count() <= LONGEST {
            centered(&mut levels, column(*log), name);
        }
    }
    let named = levels.into_iter().skip_while(|l| l.iter().all(|c| *c == ' '));
    named.chain([line, scale]).map(|c| c.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

/// Writes a text around a column of the lowest of these lines that has room for it between spaces; nothing if none has.
fn centered(lines: &mut [Vec<char>], at: usize, text: &str) {
    let length = text.chars().count();
    let Some(last) = lines.first().and_then(|l| l.len().checked_sub(length)) else { return };
    let from = at.saturating_sub(length / 2).min(last);
    let (begin, end) = (from.saturating_sub(1), (from + length + 1).min(last + length));
    if let Some(line) = lines.iter_mut().rev().find(|l| l[begin..end].iter().all(|c| *c == ' ')) {
        line.splice(from..from + length, text.chars());
    }
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
        let expected = "cost by decade (10^-n s)|9  rd cache -9.0 (1.10 ns)|8|7  call -6.8 (170 ns)|\
                        6  rd main -6.5~ (328 ns)|5  fopen -4.7 (20.0 us)";
        assert_eq!(lines.join("|"), expected);
        let none = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: Vec::new() };
        assert!(ladder(&none, &TerminalStyle::default()).contains("nothing"));
    }
}
