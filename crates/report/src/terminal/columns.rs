//! Aligned columns.

use super::{TerminalStyle, printable};

/// Space between columns.
const GAP: &str = "  ";

/// A table being collected; widths follow from the contents.
#[derive(Debug)]
pub(super) struct Columns {
    heads: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// A table with these headings; columns in `right` are aligned to the right.
    pub(super) fn new<S: AsRef<str>>(heads: &[S], right: &[usize]) -> Self {
        let heads: Vec<String> = heads.iter().map(|h| printable(h.as_ref())).collect();
        let right = (0..heads.len()).map(|i| right.contains(&i)).collect();
        Self { heads, right, rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(super) fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.heads.len(), String::new());
        self.rows.push(cells.iter().map(|c| printable(c)).collect());
    }

    /// The lines, each with one leading space.
    pub(super) fn write(&self, style: &TerminalStyle) -> String {
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|i| self.rows.iter().chain([&self.heads]).map(|r| r[i].chars().count()).max().unwrap_or(0))
            .collect();
        let line = |cells: &[String]| {
            let padded: Vec<String> = cells
                .iter()
                .enumerate()
                .map(|(i, c)| {
                    let fill = " ".repeat(widths[i] - c.chars().count());
                    if self.right[i] { format!("{fill}{c}") } else { format!("{c}{fill}") }
                })
                .collect();
            format!(" {}", padded.join(GAP)).trim_end().to_owned()
        };
        let mut out = style.paint("2", &line(&self.heads)) + "\n";
        for r in &self.rows {
            out.push_str(&line(r));
            out.push('\n');
        }
        out
    }
}
