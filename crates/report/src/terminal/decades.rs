//! The ladder of decades as text: the exponent at the left, the operations of that decade beside it, as the seed prints it.

use machmeter_data::Unit;
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
            Some((decade, format!("{} {exact:.1}{}", printable(&r.name), if edge { "~" } else { "" })))
        })
        .collect();
    let (Some(low), Some(high)) = (placed.iter().map(|p| p.0).min(), placed.iter().map(|p| p.0).max()) else {
        return "   nothing was measured\n".to_owned();
    };
    let minus = d.value.unit == Unit::Nanoseconds && high <= 0;
    let mut out = format!("   {}\n", if minus { "Ten to power minus (seconds):" } else { "Ten to power:" });
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
                "Ten to power minus (seconds):",
                "9  rd cache -9.0",
                "8",
                "7  call -6.8",
                "6  rd main -6.5~",
                "5  fopen -4.7"
            ]
        );
        let none = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: Vec::new() };
        assert!(ladder(&none, &TerminalStyle::default()).contains("nothing"));
    }
}
