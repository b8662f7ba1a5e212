//! The ladder of decades as text: the exponent at the left, the operations of that decade beside it, as the seed prints it.

use machmeter_data::Unit;
use machmeter_data::quantity::human;
use machmeter_data::shape::Decades;

use super::{TerminalStyle, printable};

/// Lines of decades from the cheapest up, with `~` after what lies on the edge to another decade.
pub(super) fn ladder(d: &Decades, style: &TerminalStyle) -> String {
    let placed: Vec<(i32, String)> = d
        .rows
        .iter()
        .filter_map(|r| {
            let (decade, edge) = r.decade(d.value.unit)?;
            let exact = r.log10(d.value.unit)?;
            let edge = if edge { "~" } else { "" };
            let figure = human(r.value, d.value.unit);
            Some((decade, format!("{} {exact:.1}{edge} ({figure})", printable(&r.name))))
        })
        .collect();
    let (Some(low), Some(high)) = (placed.iter().map(|p| p.0).min(), placed.iter().map(|p| p.0).max()) else {
        return "   nothing was measured\n".to_owned();
    };
    let minus = d.value.unit == Unit::Nanoseconds && high <= 0;
    let what = if minus { "   seconds, ten to the power minus" } else { "   ten to the power" };
    let mut out = format!(
        "{what}
"
    );
    for decade in low..=high {
        let head = format!("{:>5}  ", if minus { -decade } else { decade });
        let mut line = head.clone();
        for (_, text) in placed.iter().filter(|p| p.0 == decade) {
            if line.len() > head.len() && line.chars().count() + text.chars().count() + 3 > style.width {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(head.len());
            }
            line.push_str(text);
            line.push_str("   ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::shape::{Axis, DecadeRow};

    #[test]
    fn operations_stand_at_their_decade() {
        let row = |name: &str, value| DecadeRow { name: name.to_owned(), value, low: None, high: None };
        let rows = vec![row("rd cache", 1.1), row("rd main", 328.0), row("fopen", 2e4), row("call", 170.0)];
        let d = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows };
        let text = ladder(&d, &TerminalStyle::default());
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "seconds, ten to the power minus",
                "9  rd cache -9.0 (1.10 ns)",
                "8",
                "7  call -6.8 (170 ns)",
                "6  rd main -6.5~ (328 ns)",
                "5  fopen -4.7 (20.0 us)"
            ]
        );
        let none = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: Vec::new() };
        assert!(ladder(&none, &TerminalStyle::default()).contains("nothing"));
    }
}
