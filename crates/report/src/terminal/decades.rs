//! Prints the ladder of decades as text, in the manner of Howell's tables: the exponent on the left, the operations of that decade beside it.

use machmeter_data::quantity::human;
use machmeter_data::shape::{DecadeRow, Decades};
use machmeter_data::{Metric, Unit};

use super::rows::Signs;
use super::{TerminalStyle, printable};
use crate::label;

/// Lines of decades from the cheapest up; `~` marks an operation at the edge of its decade.
pub(super) fn ladder(d: &Decades, metrics: &[Metric], style: &TerminalStyle) -> String {
    let place = |r: &DecadeRow| {
        let ((decade, edge), exact) = (r.decade(d.value.unit)?, r.log10(d.value.unit)?);
        let (edge, figure) = (if edge { "~" } else { "" }, human(r.value, d.value.unit));
        let signs: String = r.marks(metrics).iter().map(|m| m.sign()).collect();
        Some((decade, format!("{} {exact:.1}{edge} ({figure}){signs}", printable(&r.name))))
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

/// Number of lines for names above the axis.
const LEVELS: usize = 3;
/// Longest name at the axis, characters.
const LONGEST: usize = 14;

/// Fewest columns of an axis; narrower views list the operations.
const AXIS: usize = 40;

/// A cost on the axis: its logarithm, its name without arguments in brackets, and the sign of a doubtful figure.
struct Place {
    log: f64,
    name: String,
    sign: Option<char>,
}

/// Lines with the operations on one axis of decades. Each is a dot, or the sign of a doubtful figure, with its name above if there is room. No name or
/// number is cut.
pub(super) fn strip(
    d: &Decades,
    metrics: &[Metric],
    style: &TerminalStyle,
    room: usize,
    signs: &mut Signs,
) -> Vec<String> {
    let shown = d.rows.iter().filter(|r| r.value > 0.0 && r.value.is_finite());
    let place = |r: &DecadeRow| {
        let name = printable(r.name.split(" (").next().unwrap_or_default());
        let mark = r.marks(metrics).pop();
        if let Some(key) = r.metric.as_ref().filter(|_| mark.is_some()) {
            signs.see_metrics(metrics.iter().filter(|m| m.key() == *key));
        }
        let sign = mark.and_then(|m| signs.sign(m).chars().next());
        Place { log: r.value.log10(), name, sign }
    };
    let mut rows: Vec<Place> = shown.map(place).collect();
    rows.sort_by(|a, b| a.log.total_cmp(&b.log));
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let width = room.saturating_sub(2);
    if width < AXIS {
        let line = |p: &Place| {
            let sign = p.sign.map_or(String::new(), |s| format!(" {s}"));
            format!("{}  {}{sign}", p.name, human(10_f64.powf(p.log), d.value.unit))
        };
        return rows.iter().map(line).collect();
    }
    let (low, high) = (first.log.floor(), last.log.ceil().max(first.log.floor() + 1.0));
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
    for p in &rows {
        let at = column(p.log);
        // If several costs share a column, the doubtful one is shown.
        if p.sign.is_some() || line[at] == axis || line[at] == tick {
            line[at] = p.sign.unwrap_or(mark);
        }
        if p.name.chars().count() <= LONGEST {
            centered(&mut levels, at, &p.name);
        }
    }
    let named = levels.into_iter().skip_while(|l| l.iter().all(|c| *c == ' '));
    named.chain([line, scale]).map(|c| c.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

/// Writes a text centered on a column, into the lowest line with free space there; nothing if no line has any.
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
    use machmeter_data::{MetricInfo, Params, Quality};

    #[test]
    fn operations_stand_at_their_decade() {
        let row = |name: &str, value| DecadeRow {
            name: name.to_owned(),
            metric: None,
            value,
            low: None,
            high: None,
        };
        let rows = vec![row("rd cache", 1.1), row("rd main", 328.0), row("fopen", 2e4), row("call", 170.0)];
        let d = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows };
        let text = ladder(&d, &[], &TerminalStyle::default());
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let expected = "cost by decade (10^-n s)|9  rd cache -9.0 (1.10 ns)|8|7  call -6.8 (170 ns)|\
                        6  rd main -6.5~ (328 ns)|5  fopen -4.7 (20.0 us)";
        assert_eq!(lines.join("|"), expected);
        let none = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: Vec::new() };
        assert!(ladder(&none, &[], &TerminalStyle::default()).contains("nothing"));
    }

    /// The sign replaces the dot of a figure, above all if several share a column; the legend explains it.
    #[test]
    fn a_doubtful_figure_has_its_sign_on_the_axis_and_in_the_ladder() {
        let mut metric = Metric::new(&DOUBTED, Params::new(), 20.0, "median", 9);
        metric.quality = Quality::Suspect;
        metric.flags = vec!["W404".to_owned()];
        let row = |name: &str, metric: Option<&Metric>, value| DecadeRow {
            name: name.to_owned(),
            metric: metric.map(Metric::key),
            value,
            low: None,
            high: None,
        };
        let rows = vec![row("a", Some(&metric), 20.0), row("b", None, 20.1), row("c", None, 900.0)];
        let (d, metrics) = (Decades { value: Axis::log("cost", Unit::Nanoseconds), rows }, [metric]);
        let style = TerminalStyle { ascii: true, ..TerminalStyle::default() };
        for room in [20, 60, 100] {
            let mut signs = Signs::default();
            let text = strip(&d, &metrics, &style, room, &mut signs).join("\n");
            assert_eq!(text.matches('!').count(), 1, "{text}");
            let mut legend = String::new();
            signs.legend(&mut legend, &style);
            assert!(legend.contains("weakened by W404"), "{legend}");
        }
        assert!(ladder(&d, &metrics, &style).contains("a -7.7 (20.0 ns)!   b"));
    }

    const DOUBTED: MetricInfo = MetricInfo::of("ops.cost", Unit::Nanoseconds);
}
