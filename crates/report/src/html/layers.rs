//! Draws a graph from left to right: boxes colored by their share of the time, a frame for each schedule.

use super::esc;
use super::layout::{GAP, HEIGHT, PAD, Place, Plan, plan};
use crate::graph::{Edge, Graph};
use crate::label::clipped;
use crate::svg::{Anchor, Svg, px};

/// Width of a box, and distance between layers.
const WIDTH: f64 = 98.0;
const COLUMN: f64 = 122.0;
/// Letters that fit into a box; a letter of size 11 is about 7 units wide.
const LETTERS: usize = 14;

/// Draws a graph; `None` if it is too large to be legible.
pub(super) fn draw(graph: &Graph<'_>) -> Option<String> {
    let plan = plan(graph)?;
    let last = plan.places.iter().map(|p| p.layer).max()?;
    let (width, height) = (x(last) + WIDTH + PAD + 2.0, plan.rows.last()?.1 + 2.0);
    let mut svg = Svg::new(width, height, "layers", &format!("Graph {}", graph.name));
    let text = "fill=\"currentColor\" font-size=\"11\"";
    svg.raw(&format!("<g {text} stroke-opacity=\".4\">"));
    for (name, (first, last, row)) in graph.schedules.iter().zip(&plan.frames) {
        let ((top, bottom), wide) = (plan.rows[*row], x(*last) - x(*first) + WIDTH);
        svg.rect("axis", x(*first) - PAD, top, wide + 2.0 * PAD, bottom - top);
        svg.text("name", x(*first), top + 14.0, Anchor::Start, &clipped(name, (wide / 7.0) as usize));
    }
    svg.raw(&format!("</g><g {text}>"));
    for (number, edge) in graph.edges.iter().enumerate() {
        line(&mut svg, &plan, number, edge);
    }
    for ((node, place), level) in graph.boxes.iter().zip(&plan.places).zip(graph.levels().0) {
        let (left, middle, percent) = (x(place.layer), place.y, node.percent());
        svg.raw(&format!("<g class=\"t{level}\"><title>{}</title>", esc(&node.about)));
        svg.rect(&format!("box h{level}"), left, middle - HEIGHT / 2.0, WIDTH, HEIGHT);
        lines(&mut svg, left, middle + 1.0, &clipped(node.name, LETTERS), &percent);
        svg.raw("</g>");
    }
    svg.raw("</g>");
    let size = format!("<svg width=\"{width:.0}\" height=\"{height:.0}\" ");
    Some(svg.finish().replacen("<svg ", &size, 1))
}

/// Left edge of the boxes of a layer.
fn x(layer: usize) -> f64 {
    2.0 + PAD + COLUMN * layer as f64
}

/// Writes two lines of text, above and below `y`.
fn lines(svg: &mut Svg, left: f64, y: f64, above: &str, below: &str) {
    svg.text("name", left + WIDTH / 2.0, y - 4.0, Anchor::Middle, above);
    svg.text("figure", left + WIDTH / 2.0, y + 11.0, Anchor::Middle, below);
}

/// Draws an edge as one line of curves with its head; a queue also gets its name and tokens.
fn line(svg: &mut Svg, plan: &Plan, number: usize, edge: &Edge<'_>) {
    let (way, is_back) = (&plan.ways[number], plan.is_back[number]);
    let way: Vec<&Place> = way.iter().map(|at| &plan.places[*at]).collect();
    let class = if is_back { "axis d4" } else { "axis" };
    let thick = if edge.queue.is_some() { " stroke-width=\"3\"" } else { "" };
    svg.raw(&format!("<g{thick}><title>{}</title>", esc(&edge.about)));
    if let [first, .., last] = way[..] {
        // The height at a box follows the direction of the edge. Parallel edges are shifted down.
        let twins = plan.ways[..number].iter().filter(|w| **w == plan.ways[number]).count();
        let port = |own: &Place, next: &Place| {
            own.y + (next.y - own.y).clamp(-8.0, 8.0) + (4.0 * twins as f64).min(8.0)
        };
        let begin = (x(first.layer) + WIDTH, port(first, way[1]));
        let end = (x(last.layer), port(last, way[way.len() - 2]));
        let (mut d, mut from) = (format!("M{} {}", px(begin.0), px(begin.1)), begin);
        for to in way[1..way.len() - 1].iter().map(|p| (x(p.layer), p.y)).chain([end]) {
            let [middle, y0, x1, y1] = [f64::midpoint(from.0, to.0), from.1, to.0, to.1].map(px);
            d.push_str(&format!("C{middle} {y0} {middle} {y1} {x1} {y1}"));
            from = (to.0 + WIDTH, to.1);
            if to != end {
                d.push_str(&format!("H{}", px(from.0)));
            }
        }
        svg.path(class, &d);
        let ((tip, at), back) = if is_back { (begin, 5.0) } else { (end, -5.0) };
        let [tip, at, wing, up, down] = [tip, at, tip + back, at - 3.0, at + 3.0].map(px);
        svg.path("axis", &format!("M{wing} {up}L{tip} {at}L{wing} {down}"));
    } else {
        // An edge from a box to itself: an arc over its upper edge, within the gap between boxes.
        let own = &plan.places[edge.from];
        let (right, top) = (x(own.layer) + WIDTH - 14.0, own.y - HEIGHT / 2.0);
        let [a, b, y, up] = [right - 22.0, right, top, top - GAP].map(px);
        svg.path(class, &format!("M{a} {y}C{a} {up} {b} {up} {b} {y}"));
    }
    svg.raw("</g>");
    if let (Some(tokens), Some(named)) = (&edge.queue, way.get(way.len() / 2)) {
        lines(svg, x(named.layer), named.y, &clipped(edge.name, LETTERS), &clipped(tokens, LETTERS));
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
