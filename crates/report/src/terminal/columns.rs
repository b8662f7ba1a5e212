//! Collects a table and prints it in aligned columns.

use std::ops::Range;

use super::{TerminalStyle, printable, wrap};

const GAP: &str = "  ";

/// A table; the widths of its columns follow from the contents.
#[derive(Debug)]
pub(super) struct Columns {
    heads: Vec<Cell>,
    right: Vec<bool>,
    rows: Vec<Vec<Cell>>,
}

/// A text and the code of its color, empty for none.
type Cell = (String, &'static str);

impl Columns {
    /// A table with these headings; columns in `right` are aligned to the right.
    pub(super) fn new<S: AsRef<str>>(heads: &[S], right: &[usize]) -> Self {
        let heads: Vec<Cell> = heads.iter().map(|h| (printable(h.as_ref()), "")).collect();
        let right = (0..heads.len()).map(|i| right.contains(&i)).collect();
        Self { heads, right, rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.colored(cells.into_iter().map(|text| (text, "")));
    }

    /// Adds a row of cells with colors.
    pub(super) fn colored(&mut self, cells: impl Iterator<Item = Cell>) {
        let mut cells: Vec<Cell> = cells.map(|(text, color)| (printable(&text), color)).collect();
        cells.resize(self.heads.len(), (String::new(), ""));
        self.rows.push(cells);
    }

    /// The table in lines that fit into the terminal. If the columns do not fit side by side, it is split into parts that repeat the first column. A column
    /// that is too wide alone has its cells broken at words.
    pub(super) fn fit(&self, style: &TerminalStyle) -> String {
        let room = style.width.saturating_sub(1);
        let mut widths = self.widths();
        let Some((first, rest)) = widths.split_first_mut() else { return String::new() };
        let widest = rest.iter().copied().max().unwrap_or(0);
        // The first column shrinks until the widest other one fits beside it, but not below half of the room.
        if *first + GAP.len() + widest > room {
            *first = (*first).min(room.saturating_sub(GAP.len() + widest).max(room / 2)).max(1);
        }
        let beside = room.saturating_sub(*first + GAP.len()).max(1);
        for w in rest.iter_mut() {
            *w = beside.min(*w);
        }
        let parts = parts(rest, beside + GAP.len(), GAP.len());
        if parts.is_empty() {
            return self.part(&(1..1), &widths, style);
        }
        parts.iter().map(|p| self.part(&(p.start + 1..p.end + 1), &widths, style)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let width = |i: usize| self.rows.iter().chain([&self.heads]).map(|r| r[i].0.chars().count()).max();
        (0..self.heads.len()).map(|i| width(i).unwrap_or(0)).collect()
    }

    fn part(&self, columns: &Range<usize>, widths: &[usize], style: &TerminalStyle) -> String {
        let lines = |cells: &[Cell]| {
            let shown: Vec<usize> = std::iter::once(0).chain(columns.clone()).collect();
            let broken: Vec<Vec<String>> = shown.iter().map(|i| cut(&cells[*i].0, widths[*i])).collect();
            let height = broken.iter().map(Vec::len).max().unwrap_or(0);
            let padded = |n: usize, i: usize, lines: &[String]| {
                let (text, width) = (lines.get(n).map_or("", String::as_str), widths[i]);
                let gap = if i == 0 { " " } else { GAP };
                let text = if self.right[i] {
                    format!("{gap}{text:>width$}")
                } else {
                    format!("{gap}{text:<width$}")
                };
                if cells[i].1.is_empty() { text } else { style.paint(cells[i].1, &text) }
            };
            let line = |n: usize| {
                let line: String = shown.iter().zip(&broken).map(|(i, lines)| padded(n, *i, lines)).collect();
                line.trim_end().to_owned()
            };
            (0..height).map(line).collect::<Vec<String>>()
        };
        let heads = lines(&self.heads).into_iter().map(|line| style.paint("2", &line));
        heads.chain(self.rows.iter().flat_map(|r| lines(r))).map(|line| line + "\n").collect()
    }
}

/// Runs of columns that fit into `room` together, each column with a gap before it, in order; at least one column each.
pub(crate) fn parts(widths: &[usize], room: usize, gap: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut from, mut used) = (0, 0);
    for (c, w) in widths.iter().enumerate() {
        if c > from && used + w + gap > room {
            parts.push(from..c);
            (from, used) = (c, 0);
        }
        used += w + gap;
    }
    if from < widths.len() {
        parts.push(from..widths.len());
    }
    parts
}

/// Text in lines of at most `room` characters, broken at words if possible.
pub(super) fn cut(text: &str, room: usize) -> Vec<String> {
    if text.chars().count() <= room {
        return vec![text.to_owned()];
    }
    let pieces = wrap(text, room.max(1)).into_iter().flat_map(|line| {
        let letters: Vec<char> = line.chars().collect();
        letters.chunks(room.max(1)).map(|c| c.iter().collect::<String>()).collect::<Vec<_>>()
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Columns {
        let mut t = Columns::new(&["name", "value", "why"], &[1]);
        t.row(vec!["read of a neighbor".to_owned(), "12.5 ns".to_owned(), "nothing said".to_owned()]);
        t.row(vec!["x".to_owned(), "7 us".to_owned(), "the partner was not there in time".to_owned()]);
        t
    }

    #[test]
    fn what_fits_is_written_in_one_part() {
        let wide = TerminalStyle::default();
        assert_eq!(table().fit(&wide).lines().count(), 3);
    }

    #[test]
    fn narrow_terminals_get_parts_with_the_names_again_and_every_word() {
        for width in 24..80 {
            let text = table().fit(&TerminalStyle { width, ..TerminalStyle::default() });
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            for word in ["value", "12.5", "neighbor", "partner", "time", "why"] {
                assert!(text.contains(word), "{word} at {width}:\n{text}");
            }
        }
        let narrow = table().fit(&TerminalStyle { width: 40, ..TerminalStyle::default() });
        assert_eq!(narrow.matches("name").count(), 2, "{narrow}");
    }

    #[test]
    fn words_longer_than_the_room_are_cut() {
        assert_eq!(cut("aa bbbbbbb", 4), ["aa", "bbbb", "bbb"]);
        assert_eq!(cut("", 4), [""]);
        assert_eq!(parts(&[9, 9, 50, 1], 24, 2), [0..2, 2..3, 3..4]);
    }
}
