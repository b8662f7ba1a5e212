//! Exports graphs for Graphviz: one `digraph` each, the boxes of a schedule in a cluster, colored by their share of the time.

use std::io;

use machmeter_data::{Record, Table};

use super::ExportError;
use crate::graph::Graph;

/// Colors of the report in its light theme (`--h0` to `--h8`), from the least share to the greatest.
const FILLS: [&str; 9] =
    ["#edf3fb", "#d3e3f6", "#b2cff0", "#8bb7e8", "#619bdd", "#3b7fcf", "#2062b3", "#134789", "#0a2e5e"];
/// Index of the first color on which white text is easier to read than black.
const DARK: usize = 6;

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let graphs: Vec<Graph<'_>> = record.datasets.iter().filter_map(|d| Graph::of(record, d)).collect();
    if graphs.is_empty() {
        return Err(ExportError::NoFigures { format: "dot", needs: "boxes of graphs (machmeter flow)" });
    }
    for graph in &graphs {
        one(record, graph, out)?;
    }
    Ok(())
}

fn one(record: &Record, graph: &Graph<'_>, out: &mut dyn io::Write) -> Result<(), ExportError> {
    let origin = format!("{} {}: {}", record.tool.name, record.tool.version, record.run.started);
    writeln!(out, "digraph {} {{", quoted(graph.name))?;
    writeln!(out, "  comment={};", quoted(&origin))?;
    writeln!(out, "  rankdir=LR;")?;
    writeln!(out, "  node [shape=box, style=\"rounded,filled\"];")?;
    let (levels, _) = graph.levels();
    let mut members = vec![Vec::new(); graph.schedules.len()];
    for (at, node) in graph.boxes.iter().enumerate() {
        members[node.schedule].push(at);
    }
    for (number, (name, members)) in graph.schedules.iter().zip(&members).enumerate() {
        writeln!(out, "  subgraph cluster_{number} {{")?;
        writeln!(out, "    label={};", quoted(name))?;
        for &at in members {
            let node = &graph.boxes[at];
            let text = format!("{}\n{}", node.name, node.percent());
            let ink = if levels[at] < DARK { "black" } else { "white" };
            let (number, label, about) = (at + 1, quoted(text.trim_end_matches('\n')), quoted(&node.about));
            let colors = format!("fillcolor=\"{}\", fontcolor={ink}", FILLS[levels[at]]);
            writeln!(out, "    b{number} [label={label}, tooltip={about}, {colors}];")?;
        }
        writeln!(out, "  }}")?;
    }
    for edge in &graph.edges {
        let (from, to, about) = (edge.from + 1, edge.to + 1, quoted(&edge.about));
        write!(out, "  b{from} -> b{to} [tooltip={about}")?;
        if let Some(tokens) = &edge.queue {
            write!(out, ", label={}, penwidth=2", quoted(&format!("{} {tokens}", edge.name)))?;
        }
        writeln!(out, "];")?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

/// A quoted string. In labels, `\` begins an escape and `&` an HTML entity.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "dot_tests.rs"]
mod tests;
