//! Computes the layout of a graph (Sugiyama, Tagawa and Toda, 1981): the longest path to a box gives its layer, the mean of its neighbors its height.
//! Edges that close a cycle are laid out in reverse.

use std::collections::BTreeMap;

use crate::graph::Graph;

/// Most boxes, and most edges plus layers that they cross, of a graph that is drawn. The largest measured graph has 66 boxes.
pub(super) const MOST_BOXES: usize = 400;
const MOST_LINES: usize = 6_000;
/// Height of a box, gap between boxes or for a passing edge, height of a schedule's name, and padding of a frame.
pub(super) const HEIGHT: f64 = 34.0;
pub(super) const GAP: f64 = 12.0;
const HEAD: f64 = 20.0;
pub(super) const PAD: f64 = 8.0;

/// A box, or the point where a long edge crosses a layer; `y` is its middle.
pub(super) struct Place {
    pub layer: usize,
    row: usize,
    room: f64,
    pub y: f64,
}

/// The layout. `places` begins with the boxes; `ways` lists the places of each edge from left to right (empty for an edge from a box to itself).
/// `frames` holds the first layer, last layer and row of each schedule, and `rows` the upper and lower edge of each row.
pub(super) struct Plan {
    pub places: Vec<Place>,
    pub ways: Vec<Vec<usize>>,
    pub is_back: Vec<bool>,
    pub frames: Vec<(usize, usize, usize)>,
    pub rows: Vec<(f64, f64)>,
}

/// Computes the layout; `None` if the graph is too large.
pub(super) fn plan(graph: &Graph<'_>) -> Option<Plan> {
    let (rank, is_back) = ranks(graph);
    let turned =
        graph.edges.iter().zip(&is_back).enumerate().map(|(e, (edge, is_back))| {
            if *is_back { (edge.to, edge.from, e) } else { (edge.from, edge.to, e) }
        });
    let mut forward: Vec<_> = turned.filter(|(a, b, _)| a != b).collect();
    forward.sort_by_key(|(a, ..)| rank[*a]);
    // A queue needs one layer more: its middle place holds its name.
    let mut layers = vec![0; graph.boxes.len()];
    for &(a, b, e) in &forward {
        layers[b] = layers[b].max(layers[a] + 1 + usize::from(graph.edges[e].queue.is_some()));
    }
    let passed: usize = forward.iter().map(|(a, b, _)| layers[*b] - layers[*a]).sum();
    if layers.len() > MOST_BOXES || passed + graph.edges.len() > MOST_LINES {
        return None;
    }
    let frames = frames(graph, &layers);
    let row = |at: usize| frames[graph.boxes[at].schedule].2;
    let place = |layer, row, room| Place { layer, row, room, y: 0.0 };
    let boxes = layers.iter().enumerate().map(|(at, layer)| place(*layer, row(at), HEIGHT + GAP));
    let mut places: Vec<Place> = boxes.collect();
    let mut ways = vec![Vec::new(); graph.edges.len()];
    for (a, b, e) in forward {
        let named = graph.edges[e].queue.is_some().then(|| layers[a].midpoint(layers[b] + 1));
        ways[e].push(a);
        for layer in layers[a] + 1..layers[b] {
            ways[e].push(places.len());
            places.push(place(layer, row(b), GAP + if named == Some(layer) { HEIGHT } else { 0.0 }));
        }
        ways[e].push(b);
    }
    let rows = arrange(&mut places, &ways);
    Some(Plan { places, ways, is_back, frames, rows })
}

/// Numbers the boxes so that every edge leads to a greater number, except those that close a cycle. Depth-first search finds these.
fn ranks(graph: &Graph<'_>) -> (Vec<usize>, Vec<bool>) {
    let mut left = graph.boxes.len();
    let (mut out, mut is_seen, mut rank) = (vec![vec![]; left], vec![false; left], vec![usize::MAX; left]);
    for (e, edge) in graph.edges.iter().enumerate().rev() {
        out[edge.from].push((e, edge.to));
    }
    let mut is_back = vec![false; graph.edges.len()];
    for start in 0..rank.len() {
        let mut path = vec![start];
        while let Some(&at) = path.last() {
            is_seen[at] = true;
            match out[at].pop() {
                Some((e, to)) if is_seen[to] => is_back[e] = rank[to] == usize::MAX,
                Some((_, to)) => path.push(to),
                // All successors have their number.
                None if path.pop().is_some() && rank[at] == usize::MAX => {
                    left -= 1;
                    rank[at] = left;
                }
                None => {}
            }
        }
    }
    (rank, is_back)
}

/// First and last layer of each schedule, and the first row in which these layers are free.
fn frames(graph: &Graph<'_>, layers: &[usize]) -> Vec<(usize, usize, usize)> {
    let mut frames = vec![(usize::MAX, 0, 0); graph.schedules.len()];
    for (node, layer) in graph.boxes.iter().zip(layers) {
        let frame = &mut frames[node.schedule];
        (frame.0, frame.1) = (frame.0.min(*layer), frame.1.max(*layer));
    }
    let mut order: Vec<_> = frames.iter_mut().collect();
    order.sort();
    // Schedules come from left to right, so the last one of a row decides.
    let mut ends: Vec<usize> = Vec::new();
    for (first, last, row) in order {
        *row = ends.iter().position(|end| end < first).unwrap_or(ends.len());
        ends.resize(ends.len().max(*row + 1), 0);
        ends[*row] = *last;
    }
    frames
}

/// Sets the heights of places; returns the rows.
fn arrange(places: &mut [Place], ways: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut near = [vec![Vec::new(); places.len()], vec![Vec::new(); places.len()]];
    for pair in ways.iter().flat_map(|way| way.windows(2)) {
        near[0][pair[1]].push(pair[0]);
        near[1][pair[0]].push(pair[1]);
    }
    let mut cells: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        cells.entry((place.layer, place.row)).or_default().push(at);
    }
    let room = |cell: &[usize]| cell.iter().map(|at| places[*at].room).sum::<f64>();
    let mut cells: Vec<_> = cells.into_iter().map(|((_, row), cell)| (row, room(&cell), cell)).collect();
    let mut rows: Vec<(f64, f64)> = Vec::new();
    for row in 0..=cells.iter().map(|c| c.0).max().unwrap_or(0) {
        let rooms = cells.iter().filter(|c| c.0 == row).map(|c| c.1);
        let top = rows.last().map_or(2.0, |above| above.1 + PAD);
        rows.push((top, top + HEAD + rooms.fold(0.0, f64::max)));
    }
    for place in &mut *places {
        place.y = f64::midpoint(rows[place.row].0, rows[place.row].1);
    }
    // Alternates between left and right: sorts by the mean height of the neighbors on that side and centers each cell in its row.
    for side in [0, 1].repeat(6) {
        for (row, room, cell) in &mut cells {
            let mean = |at: &usize| match &near[side][*at][..] {
                [] => places[*at].y,
                near => near.iter().map(|n| places[*n].y).sum::<f64>() / near.len() as f64,
            };
            cell.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
            let mut free = f64::midpoint(rows[*row].0 + HEAD, rows[*row].1) - *room / 2.0;
            for at in cell {
                places[*at].y = free + places[*at].room / 2.0;
                free += places[*at].room;
            }
        }
        cells.reverse();
    }
    rows
}
