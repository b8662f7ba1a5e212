//! Tests of the Graphviz export.

use super::*;
use crate::format::written;
use crate::graph::tests::{plant, record, two_schedules};

fn export(record: &Record) -> String {
    String::from_utf8(written("dot", record, &[]).expect("written")).expect("text")
}

/// The text outside of quotes, and the quoted strings as written; panics if a quote stays open.
fn parts(text: &str) -> (String, Vec<String>) {
    let (mut outside, mut strings) = (String::new(), Vec::new());
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        if c != '"' {
            outside.push(c);
            continue;
        }
        let mut string = String::new();
        loop {
            match letters.next().expect("a quote that closes") {
                '"' => break,
                '\\' => string.extend(['\\', letters.next().expect("an escaped letter")]),
                c => string.push(c),
            }
        }
        strings.push(string);
    }
    (outside, strings)
}

#[test]
fn schedules_are_clusters_and_queues_are_thick() {
    let text = export(&two_schedules());
    for part in [
        "digraph \"planted\" {",
        "subgraph cluster_0 {\n    label=\"front\";",
        "subgraph cluster_1 {\n    label=\"back\";",
        "b1 [label=\"source\\n25 %\"",
        "b6 [label=\"filter\",",
        "fillcolor=\"#0a2e5e\", fontcolor=white]",
        ", label=\"hand over 12/64\", penwidth=2];",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(text.matches(" -> ").count(), 7);
    assert_eq!(text.matches("penwidth").count(), 1);
    // Boxes of the first schedule come before the second cluster begins.
    let second = text.find("cluster_1").expect("a second cluster");
    assert!(text.find("  b4 [").expect("a box") < second && text.find("  b5 [").expect("a box") > second);
}

#[test]
fn no_name_breaks_out_of_its_quotes() {
    let names =
        ["\"", "\\", "\\\"", "end\\", "a\nb", "\u{0}\u{1b}[31m\r\t", "\"]; x -> y [label=\"", "&lt;", "{|}"];
    let boxes: Vec<_> = names.iter().map(|name| (*name, *name, f64::NAN)).collect();
    let edges: Vec<_> = names.iter().map(|name| (*name, 1.0, 2.0, Some((1.0, 2.0)))).collect();
    let mut record = record(&boxes, &edges);
    plant(&mut record, "x\"\\", &boxes, &edges);
    let text = export(&record);
    let (outside, strings) = parts(&text);
    assert_eq!(outside.matches("->").count(), 2 * names.len(), "{outside}");
    assert_eq!(outside.matches('{').count(), outside.matches('}').count());
    assert_eq!(outside.matches("digraph").count(), 2);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(strings.iter().all(|s| !s.contains('\n')), "{strings:?}");
    for string in ["\\\"", "\\\\", "\\\\\\\"", "end\\\\", "a\\nb", "&amp;lt;", "x\\\"\\\\"] {
        assert!(strings.iter().any(|s| s == string), "{string} in {strings:?}");
    }
}

#[test]
fn a_graph_of_very_many_boxes_and_schedules_is_written() {
    let names: Vec<String> = (0..100_000).map(|i| format!("n{i}")).collect();
    let boxes: Vec<_> = names.iter().map(|n| (n.as_str(), n.as_str(), 1e-5)).collect();
    let text = export(&record(&boxes, &[]));
    assert_eq!(text.matches("subgraph").count(), boxes.len());
    assert!(text.contains("b100000 [label=\"n99999\\n"));
}

#[test]
fn records_without_graphs_are_refused() {
    let why = written("dot", &Record::default(), &[]).expect_err("no graph");
    assert_eq!(why, "dot needs boxes of graphs (machmeter flow), but the record has none");
}
