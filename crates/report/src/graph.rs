//! Reads the dataflow graphs of a record from two tables: the boxes, and the edges between them.
//!
//! A box is a node of the graph. An edge or queue carries tokens from one box to another. A schedule is a fixed order of boxes.

use std::collections::BTreeMap;

use machmeter_data::quantity::human;
use machmeter_data::shape::{Cell, CostTable, TableRow};
use machmeter_data::{Dataset, Record, Unit};

use crate::label;

/// Prefixes of the ids of the two tables; the name of the graph follows.
const BOXES: &str = "flow.boxes.";
const EDGES: &str = "flow.edges.";

/// A graph. Boxes and schedules are numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Graph<'r> {
    pub name: &'r str,
    pub boxes: Vec<Node<'r>>,
    pub edges: Vec<Edge<'r>>,
    /// Names, in the order of their first boxes.
    pub schedules: Vec<&'r str>,
    /// Number of edges whose box is in no row.
    pub lost: usize,
}

#[derive(Debug)]
pub(crate) struct Node<'r> {
    pub name: &'r str,
    pub schedule: usize,
    /// Share of the run's time, 0 to 1.
    pub share: Option<f64>,
    /// Name, schedule and figures in words.
    pub about: String,
}

#[derive(Debug)]
pub(crate) struct Edge<'r> {
    pub name: &'r str,
    pub from: usize,
    pub to: usize,
    /// Tokens of a queue: most at once / capacity.
    pub queue: Option<String>,
    /// Name, ends and figures in words.
    pub about: String,
}

impl<'r> Graph<'r> {
    /// The graph whose boxes this dataset holds; `None` for any other dataset.
    pub(crate) fn of(record: &'r Record, dataset: &'r Dataset) -> Option<Self> {
        let name = dataset.id.strip_prefix(BOXES)?;
        let boxes = dataset.shape.cost_table()?;
        let mut graph = Self { name, ..Self::default() };
        let mut numbers = BTreeMap::new();
        let (schedule, share) = (column(boxes, "schedule"), column(boxes, "share"));
        for row in &boxes.rows {
            let own = text(row, schedule);
            let number = *numbers.entry(own).or_insert(graph.schedules.len());
            if number == graph.schedules.len() {
                graph.schedules.push(own);
            }
            let about = format!("{}{}", row.name, figures(boxes, row));
            graph.boxes.push(Node { name: &row.name, schedule: number, share: value(row, share), about });
        }
        let edges = record.datasets.iter().filter(|d| d.params == dataset.params);
        let mut edges = edges.filter(|d| d.id.strip_prefix(EDGES) == Some(name));
        if let Some(edges) = edges.find_map(|d| d.shape.cost_table()) {
            graph.join(edges);
        }
        Some(graph)
    }

    fn join(&mut self, edges: &'r CostTable) {
        let [from, to, kind, capacity, most] =
            ["from", "to", "kind", "capacity", "most"].map(|label| column(edges, label));
        for row in &edges.rows {
            let end = |at| number(value(row, at)?, self.boxes.len());
            let (Some(from), Some(to)) = (end(from), end(to)) else {
                self.lost += 1;
                continue;
            };
            let tokens = |at| value(row, at).map_or_else(|| "?".to_owned(), |v| human(v, Unit::Count));
            let is_queue = text(row, kind) == "queue";
            let queue = is_queue.then(|| format!("{}/{}", tokens(most), tokens(capacity)));
            let (a, b) = (self.boxes[from].name, self.boxes[to].name);
            let about = match &queue {
                Some(tokens) => format!("queue {}, from {a} to {b}: {tokens} tokens at most", row.name),
                None => format!("{}, from {a} to {b}", row.name),
            };
            self.edges.push(Edge { name: &row.name, from, to, queue, about });
        }
    }

    /// Color level of each box by its share, 0 to 8, and the share of the last level.
    pub(crate) fn levels(&self) -> (Vec<usize>, f64) {
        let most = self.boxes.iter().filter_map(|b| b.share).fold(0.0, f64::max);
        // Without a share, or if all shares are 0, the level is 0.
        let level = |b: &Node<'_>| ((b.share.unwrap_or(0.0) / most * 9.0) as usize).min(8);
        (self.boxes.iter().map(level).collect(), most)
    }
}

impl Node<'_> {
    /// `12.3 %`; empty if the share is unknown.
    pub(crate) fn percent(&self) -> String {
        self.share.map_or_else(String::new, label::share)
    }
}

/// True if a dataset holds the boxes of a graph.
pub(crate) fn is_boxes(dataset: &Dataset) -> bool {
    dataset.id.starts_with(BOXES) && dataset.shape.cost_table().is_some()
}

fn column(t: &CostTable, label: &str) -> Option<usize> {
    t.columns.iter().position(|c| c.label == label)
}

fn text(row: &TableRow, at: Option<usize>) -> &str {
    if let Some(Cell::Text(text)) = at.and_then(|at| row.cells.get(at)) { text } else { "" }
}

/// A finite number; values without a measurement may be NaN.
fn value(row: &TableRow, at: Option<usize>) -> Option<f64> {
    let Some(Cell::Number(v)) = at.and_then(|at| row.cells.get(at)) else { return None };
    Some(*v).filter(|v| v.is_finite())
}

/// Index of a box from the number of its row, which begins at 1.
fn number(v: f64, boxes: usize) -> Option<usize> {
    (v == v.trunc() && v >= 1.0 && v <= boxes as f64).then(|| v as usize - 1)
}

/// `; schedule modem; calls 12; mean 1.20 us`.
fn figures(t: &CostTable, row: &TableRow) -> String {
    let mut out = String::new();
    for (column, cell) in t.columns.iter().zip(&row.cells) {
        let shown = match cell {
            Cell::Number(v) => match column.unit {
                Some(unit) if unit != Unit::Count => human(*v, unit),
                _ => human(*v, Unit::Count),
            },
            Cell::Text(text) => text.clone(),
            Cell::Empty(()) => continue,
        };
        out.push_str(&format!("; {} {shown}", column.label));
    }
    out
}

#[cfg(test)]
#[path = "graph_tests.rs"]
pub(crate) mod tests;
