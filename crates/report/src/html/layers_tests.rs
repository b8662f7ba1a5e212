//! Tests the drawings of planted graphs: the positions of boxes, the ends of edges, and robustness against any input.

use machmeter_data::Record;

use super::super::layout::MOST_BOXES;
use super::*;
use crate::graph::tests::{Joined, only, record, two_schedules};

type Point = (f64, f64);

fn drawn(record: &Record) -> String {
    draw(&only(record)).expect("a drawing")
}

/// Values of an attribute of all tags that begin with `tag`.
fn attributes(svg: &str, tag: &str, name: &str) -> Vec<f64> {
    let value = |part: &str| part.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse().ok();
    svg.split(tag).skip(1).map(|part| value(part).expect("a number")).collect()
}

/// Upper left corners of the boxes.
fn corners(svg: &str) -> Vec<(f64, f64)> {
    let of = |name| attributes(svg, "<rect class=\"box", name);
    of("x").into_iter().zip(of("y")).collect()
}

/// Class, begin and end of each line; heads have no curves.
fn ends(svg: &str) -> Vec<(&str, Point, Point)> {
    let mut out = Vec::new();
    for part in svg.split("<path class=\"").skip(1) {
        let mut words = part.split('"');
        let (class, d) = (words.next().expect("a class"), words.nth(1).expect("data"));
        if d.contains('C') {
            let words = d.split(['M', 'C', 'H', ' ']).filter(|n| !n.is_empty());
            let numbers: Vec<f64> = words.map(|n| n.parse().expect(n)).collect();
            let n = numbers.len();
            out.push((class, (numbers[0], numbers[1]), (numbers[n - 2], numbers[n - 1])));
        }
    }
    out
}

/// Checks that every box is inside the drawing and overlaps no other; returns the number of boxes.
fn checked(svg: &str) -> usize {
    let (width, height) = (attributes(svg, "<svg", "width")[0], attributes(svg, "<svg", "height")[0]);
    let corners = corners(svg);
    for (i, (x, y)) in corners.iter().enumerate() {
        assert!(*x >= 0.0 && x + WIDTH <= width && *y >= 0.0 && y + HEIGHT <= height, "box {i} in {svg}");
        let hit = |(a, b): &(f64, f64)| (a - x).abs() < WIDTH && (b - y).abs() < HEIGHT;
        assert!(!corners[..i].iter().any(hit), "box {i} lies on another in {svg}");
    }
    corners.len()
}

fn is_on_border((x, y): (f64, f64), (left, top): (f64, f64), at: f64) -> bool {
    (x - left - at).abs() < 0.11 && y >= top && y <= top + HEIGHT
}

#[test]
fn a_diamond_a_queue_and_a_circle_are_drawn_as_such() {
    let record = two_schedules();
    let svg = drawn(&record);
    assert_eq!(svg, drawn(&record), "the same again");
    assert_eq!(checked(&svg), 6);
    for text in
        ["front", "back", "source", "left", "right", "join", "loop", "filter", "hand over", "12/64", "25 %"]
    {
        assert_eq!(svg.matches(&format!(">{text}</text>")).count(), 1, "{text} in {svg}");
    }
    let told = "<title>source; schedule front; calls 12; firings 3456; mean 789 ns; share 25.0 %</title>";
    assert!(svg.contains(told));
    let at = corners(&svg);
    // Layers: the source, its two readers, their reader, the name of the queue, the reader of the queue, and the box it feeds.
    let layers: Vec<f64> = at.iter().map(|c| (c.0 - at[0].0) / COLUMN).collect();
    assert_eq!(layers, [0.0, 1.0, 1.0, 2.0, 4.0, 5.0]);
    assert_eq!(at[0].1 + at[3].1, at[1].1 + at[2].1, "even above and below");
    let graph = only(&record);
    let lines = ends(&svg);
    assert_eq!(lines.len(), graph.edges.len());
    for (edge, (class, begin, end)) in graph.edges.iter().zip(&lines) {
        let is_back = edge.name == "again";
        let (left, right) = if is_back { (edge.to, edge.from) } else { (edge.from, edge.to) };
        assert!(is_on_border(*begin, at[left], WIDTH), "{} begins at {begin:?}", edge.name);
        assert!(is_on_border(*end, at[right], 0.0), "{} ends at {end:?}", edge.name);
        assert_eq!(class.contains(" d"), is_back, "{} is dashed", edge.name);
    }
    assert_eq!(svg.matches("stroke-width=\"3\"").count(), 1);
    assert!(svg.contains("<rect class=\"box h8\"") && svg.contains("<rect class=\"box h0\""));
}

#[test]
fn schedules_have_frames_that_share_no_point() {
    // The second and the third run side by side, the first before them and the fourth after them.
    let boxes = [("a", "s", 0.1), ("b", "t", 0.1), ("c", "u", 0.1), ("d", "v", 0.1)];
    let queue = Some((1.0, 2.0));
    let edges =
        [("p", 1.0, 2.0, queue), ("q", 1.0, 3.0, queue), ("r", 2.0, 4.0, queue), ("s", 3.0, 4.0, queue)];
    let svg = drawn(&record(&boxes, &edges));
    assert_eq!(checked(&svg), 4);
    let of = |name| attributes(&svg, "<rect class=\"axis\"", name);
    let (x, y, wide, high) = (of("x"), of("y"), of("width"), of("height"));
    assert_eq!(x.len(), 4);
    for a in 0..4 {
        for b in 0..a {
            let apart = x[a] > x[b] + wide[b]
                || x[b] > x[a] + wide[a]
                || y[a] > y[b] + high[b]
                || y[b] > y[a] + high[a];
            assert!(apart, "{a} and {b}");
        }
        let (left, top) = corners(&svg)[a];
        assert!(left > x[a] && left + WIDTH < x[a] + wide[a] && top > y[a] && top + HEIGHT < y[a] + high[a]);
    }
    assert_eq!(y[1], y[0], "one row where there is room");
    assert!(y[2] > y[1]);
}

#[test]
fn lines_are_crossed_no_more_than_needed() {
    // Two chains whose second boxes are in the other order.
    let boxes = [("a", "s", 0.1), ("b", "s", 0.1), ("d", "s", 0.1), ("c", "s", 0.1)];
    let svg = drawn(&record(&boxes, &[("p", 1.0, 4.0, None), ("q", 2.0, 3.0, None)]));
    let at = corners(&svg);
    assert_eq!((at[0].1, at[1].1), (at[3].1, at[2].1));
}

#[test]
fn long_edges_pass_beside_boxes_and_twins_beside_each_other() {
    let boxes: Vec<_> = ["a", "b", "c", "d"].map(|n| (n, "s", 0.1)).into();
    let edges: Vec<Joined<'_>> =
        [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0), (1.0, 4.0), (1.0, 2.0)].map(|(a, b)| ("e", a, b, None)).into();
    let svg = drawn(&record(&boxes, &edges));
    assert_eq!(checked(&svg), 4);
    let lines = ends(&svg);
    assert_ne!(lines[0].1, lines[4].1, "twins");
    // The long edge is level across the second and the third box.
    let is_long = |d: &&str| d.split('"').next().is_some_and(|d| d.contains('H'));
    let long = svg.split("d=\"").find(is_long).expect("a long edge");
    let level: f64 =
        long.split('H').next().and_then(|d| d.rsplit(' ').next()).expect("a height").parse().unwrap();
    for (_, top) in &corners(&svg)[1..3] {
        assert!(level < *top || level > top + HEIGHT, "{level} in {top}");
    }
}

#[test]
fn names_stay_text() {
    let name = "</text><script>\u{1}\"'&";
    let svg = drawn(&record(
        &[(name, name, f64::INFINITY), ("a name that is far too long", "s", -1.0)],
        &[(name, 1.0, 2.0, Some((f64::NAN, 1.0)))],
    ));
    assert_eq!(checked(&svg), 2);
    assert!(!svg.contains("<script") && !svg.contains('\u{1}') && !svg.contains("NaN"), "{svg}");
    assert!(svg.contains("&lt;script&gt;") && svg.contains(">?/1</text>"), "{svg}");
    for part in [">a name that ..</text>", "<title>a name that is far too long; "] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
}

#[test]
fn any_graph_within_the_bounds_is_drawn_and_no_other() {
    let many = |n: usize| vec![("b", "s", 0.1); n];
    assert_eq!(checked(&drawn(&record(&many(MOST_BOXES), &[]))), MOST_BOXES);
    for n in [0, MOST_BOXES + 1, 100_000] {
        assert!(draw(&only(&record(&many(n), &[]))).is_none(), "{n} boxes");
    }
    // Every box has an edge to every box, itself included.
    let pairs = |n: usize| -> Vec<Joined<'_>> {
        let end = |i: usize| ((i / n + 1) as f64, (i % n + 1) as f64);
        (0..n * n).map(|i| ("e", end(i).0, end(i).1, (i % 3 == 0).then_some((1.0, 2.0)))).collect()
    };
    let svg = drawn(&record(&many(12), &pairs(12)));
    assert_eq!(checked(&svg), 12);
    let dashed = ends(&svg).iter().filter(|line| line.0.contains(" d")).count();
    assert_eq!(dashed, 12 * 13 / 2, "back or to itself");
    assert!(draw(&only(&record(&many(100), &pairs(100)))).is_none(), "10,000 edges");
    let to_itself: Vec<Joined<'_>> = vec![("e", 1.0, 1.0, Some((1.0, 1.0))); 3];
    assert_eq!(ends(&drawn(&record(&many(1), &to_itself))).len(), 3);
}

#[test]
fn the_chapter_has_the_drawing_above_the_folded_table() {
    let mut planted = two_schedules();
    let page = super::super::render(&planted);
    let figure = page.split("<figure ").nth(1).and_then(|f| f.split("</figure>").next()).expect("a figure");
    let order =
        ["Boxes of planted", "<svg width", "<span class=\"key t8\">50 %</span>", "<details>", "<table"];
    let at = order.map(|part| figure.find(part).expect(part));
    assert!(at.is_sorted(), "{at:?}");
    assert!(page.contains("Edges of planted") && !page.contains("Not drawn"));
    // A graph with an edge to a missing row is drawn with a note. A graph that is too large is a table only.
    let of_page = |boxes: &[_], edges: &[Joined<'_>]| super::super::render(&record(boxes, edges));
    assert!(of_page(&[("a", "s", 0.5)], &[("e", 1.0, 7.0, None)]).contains("Not drawn: 1 edges"));
    let page = of_page(&vec![("b", "s", 0.1); MOST_BOXES + 1], &[]);
    assert!(!page.contains("class=\"layers\""));
    assert_eq!(page.matches("<th scope=\"row\">b").count(), MOST_BOXES + 1);
    planted.datasets.remove(1);
    assert!(super::super::render(&planted).contains("class=\"layers\""), "without edges");
}
