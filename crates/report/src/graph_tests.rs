//! Tests of the graph reader, and planted graphs for the tests of the drawings.

use machmeter_data::Shape;
use machmeter_data::shape::TableColumn;

use super::*;

/// Name, schedule, share.
pub(crate) type Planted<'a> = (&'a str, &'a str, f64);
/// Name, rows of its ends, and for a queue the most tokens at once and the capacity.
pub(crate) type Joined<'a> = (&'a str, f64, f64, Option<(f64, f64)>);

/// Adds both tables of a graph.
pub(crate) fn plant(record: &mut Record, name: &str, boxes: &[Planted<'_>], edges: &[Joined<'_>]) {
    let number = Cell::Number;
    let boxes = boxes.iter().map(|(name, schedule, share)| TableRow {
        name: (*name).to_owned(),
        cells: vec![
            Cell::Text((*schedule).to_owned()),
            number(12.0),
            number(3_456.0),
            number(789.0),
            number(*share),
        ],
    });
    let edges = edges.iter().map(|(name, from, to, queue)| {
        let (kind, tokens) = match queue {
            Some((most, capacity)) => ("queue", [number(*capacity), number(*most), number(0.0)]),
            None => ("static", [(); 3].map(Cell::Empty)),
        };
        let ends = [number(*from), number(*to), Cell::Text(kind.to_owned())];
        TableRow { name: (*name).to_owned(), cells: ends.into_iter().chain(tokens).collect() }
    });
    let columns = |of: &[(&str, Option<Unit>)]| of.iter().map(|(l, u)| TableColumn::new(*l, *u)).collect();
    let counts = ["calls", "firings"].map(|l| (l, Some(Unit::Count)));
    let of_boxes = [
        ("schedule", None),
        counts[0],
        counts[1],
        ("mean", Some(Unit::Nanoseconds)),
        ("share", Some(Unit::One)),
    ];
    let of_edges = ["from", "to", "kind", "capacity", "most", "discarded"].map(|l| (l, None));
    for (id, title, columns, rows) in [
        (BOXES, "Boxes", columns(&of_boxes), boxes.collect()),
        (EDGES, "Edges", columns(&of_edges), edges.collect()),
    ] {
        let shape = Shape::CostTable(CostTable { columns, rows });
        record.datasets.push(Dataset::new(&format!("{id}{name}"), format!("{title} of {name}"), "", shape));
    }
}

pub(crate) fn record(boxes: &[Planted<'_>], edges: &[Joined<'_>]) -> Record {
    let mut record = Record::default();
    plant(&mut record, "planted", boxes, edges);
    record
}

pub(crate) fn only(record: &Record) -> Graph<'_> {
    record.datasets.iter().find_map(|d| Graph::of(record, d)).expect("a graph")
}

/// Two schedules: a diamond, and behind a queue a cycle of two boxes.
pub(crate) fn two_schedules() -> Record {
    let boxes = [
        ("source", "front", 0.25),
        ("left", "front", 0.5),
        ("right", "front", 0.125),
        ("join", "front", 0.0625),
        ("loop", "back", 0.03125),
        ("filter", "back", f64::NAN),
    ];
    let edges = [
        ("a", 1.0, 2.0, None),
        ("b", 1.0, 3.0, None),
        ("c", 2.0, 4.0, None),
        ("d", 3.0, 4.0, None),
        ("hand over", 4.0, 5.0, Some((12.0, 64.0))),
        ("e", 5.0, 6.0, None),
        ("again", 6.0, 5.0, None),
    ];
    record(&boxes, &edges)
}

#[test]
fn tables_are_read_as_a_graph() {
    let record = two_schedules();
    let graph = only(&record);
    assert_eq!((graph.name, &graph.schedules[..]), ("planted", &["front", "back"][..]));
    let schedules: Vec<usize> = graph.boxes.iter().map(|b| b.schedule).collect();
    assert_eq!(schedules, [0, 0, 0, 0, 1, 1]);
    assert_eq!(graph.levels(), (vec![4, 8, 2, 1, 0, 0], 0.5));
    assert_eq!(graph.boxes[0].percent(), "25 %");
    assert_eq!(graph.boxes[5].percent(), "");
    let about = "source; schedule front; calls 12; firings 3456; mean 789 ns; share 25.0 %";
    assert_eq!(graph.boxes[0].about, about);
    let queues: Vec<_> = graph.edges.iter().filter_map(|e| e.queue.as_deref()).collect();
    assert_eq!(queues, ["12/64"]);
    assert_eq!((graph.edges[4].from, graph.edges[4].to, graph.lost), (3, 4, 0));
}

#[test]
fn edges_of_rows_that_are_not_there_are_counted() {
    let ends = [0.0, 3.0, -1.0, 1.5, f64::NAN, f64::INFINITY, 1e300];
    let mut edges: Vec<Joined<'_>> = ends.iter().map(|end| ("e", *end, 1.0, None)).collect();
    edges.extend(ends.iter().map(|end| ("e", 1.0, *end, None)));
    edges.push(("fine", 2.0, 1.0, None));
    let record = record(&[("a", "s", 0.5), ("b", "s", 0.5)], &edges);
    let graph = only(&record);
    assert_eq!((graph.lost, graph.edges.len()), (2 * ends.len(), 1));
    assert_eq!((graph.edges[0].from, graph.edges[0].to), (1, 0));
}

#[test]
fn what_has_another_shape_or_name_is_no_graph() {
    let mut record = two_schedules();
    record.datasets[0].id = "flow.graphs".to_owned();
    assert!(record.datasets.iter().all(|d| Graph::of(&record, d).is_none()));
    let mut record = two_schedules();
    // Tables without columns: boxes without schedules, and no edge has ends.
    for d in &mut record.datasets {
        if let Shape::CostTable(t) = &mut d.shape {
            t.columns.clear();
        }
    }
    let graph = only(&record);
    assert_eq!((graph.boxes.len(), graph.edges.len(), graph.lost), (6, 0, 7));
    assert_eq!(graph.schedules, [""]);
}
