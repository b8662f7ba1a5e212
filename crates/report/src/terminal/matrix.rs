//! Prints a matrix as an aligned table of figures, in several parts if the terminal is too narrow for all columns.

use machmeter_data::Unit;
use machmeter_data::shape::Matrix;

use super::TerminalStyle;
use super::columns::Columns;
use crate::chart::Levels;
use crate::label;

pub(super) fn table(m: &Matrix, style: &TerminalStyle) -> String {
    // If all cells are shares, the percent sign appears once, in the corner.
    let shares = m.cell.unit == Unit::One;
    let levels = Levels::of(m);
    let text = |v: f64| {
        let text = label::cell(v, m.cell.unit);
        if shares { text.trim_end_matches(" %").replace("> ", ">") } else { text }
    };
    let cell = |v: &Option<f64>| v.map_or(("-".to_owned(), ""), |v| (text(v), color(&levels, v)));
    let corner = if shares { "%".to_owned() } else { m.x.label.clone() };
    let heads: Vec<String> = std::iter::once(corner).chain(label::columns(m)).collect();
    let mut table = Columns::new(&heads, &(1..heads.len()).collect::<Vec<_>>());
    for (name, row) in m.rows.iter().zip(&m.values) {
        table.colored(std::iter::once((name.clone(), "")).chain(row.iter().map(cell)));
    }
    table.fit(style)
}

/// Colors shares by their distance to 100 %: green, plain, yellow, red. The good direction of other values is unknown here.
fn color(levels: &Levels, value: f64) -> &'static str {
    match (levels, levels.level(value)) {
        (Levels::Nines, 0..=1) => "32",
        (Levels::Nines, 4..=5) => "33",
        (Levels::Nines, 6..) => "31",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::shape::Axis;

    fn met() -> Matrix {
        let names = ["none", "burn", "compile"].map(str::to_owned).to_vec();
        let values = vec![vec![Some(1.0), Some(0.987), Some(0.3)], vec![Some(0.999_999), None, Some(0.0)]];
        let rows = vec!["audio".to_owned(), "video".to_owned()];
        Matrix::named("load", names, rows, Axis::linear("deadlines met", Unit::One), values)
    }

    #[test]
    fn figures_stand_under_their_names() {
        let wide = TerminalStyle::default();
        let expected =
            " %        none  burn  compile\n audio     100  98.7       30\n video  >99.99     -        0\n";
        assert_eq!(table(&met(), &wide), expected);
        let painted = table(&met(), &TerminalStyle { color: true, ..wide });
        let (red, green) = ("\u{1b}[31m       30\u{1b}[0m", "\u{1b}[32m     100");
        assert!(painted.contains(red) && painted.contains(green), "{painted:?}");
    }

    #[test]
    fn narrow_terminals_get_parts_that_fit() {
        let narrow = TerminalStyle { width: 24, ..TerminalStyle::default() };
        let text = table(&met(), &narrow);
        assert!(text.lines().all(|l| l.chars().count() <= 24), "{text}");
        assert_eq!(text.matches("audio").count(), 2);
    }
}
