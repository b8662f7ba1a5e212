//! What is wrong with a graph, in words that name boxes, ports and rates.

use crate::graph::{FlowError, Graph, Kind, PortSpec, Way};

pub(crate) fn wrong<T>(text: String) -> Result<T, FlowError> {
    Err(FlowError::Wrong(text))
}

pub(crate) fn ports_of(graph: &Graph, edge: usize) -> impl Iterator<Item = (usize, &PortSpec)> {
    let all = graph.boxes.iter().enumerate().flat_map(|(i, b)| b.ports.iter().map(move |p| (i, p)));
    all.filter(move |(_, p)| p.edge == edge)
}

pub(crate) fn check_edges(graph: &Graph) -> Result<(), FlowError> {
    if graph.boxes.is_empty() {
        return wrong(format!("{}: a graph without boxes", graph.name));
    }
    for (i, edge) in graph.edges.iter().enumerate() {
        let name = &edge.name;
        let writers: Vec<_> = ports_of(graph, i).filter(|(_, p)| p.way == Way::Out).collect();
        let readers: Vec<_> = ports_of(graph, i).filter(|(_, p)| p.way == Way::In).collect();
        let [(from, _)] = writers[..] else {
            let who: Vec<&str> = writers.iter().map(|(b, _)| graph.boxes[*b].name.as_str()).collect();
            let (n, who) = (who.len(), who.join(", "));
            return wrong(format!("edge {name}: {n} boxes write to it, not one: {who}"));
        };
        if readers.is_empty() {
            return wrong(format!("edge {name} has no reader"));
        }
        // A reader that an earlier box of its schedule fills need not wait.
        let may_be_0 = |b: usize, p: &PortSpec| {
            let is_local = from < b && graph.boxes[from].schedule == graph.boxes[b].schedule;
            is_local && p.place.is_none() && p.way == Way::In
        };
        if let Some((b, p)) = ports_of(graph, i).find(|(b, p)| p.rate == 0 && !may_be_0(*b, p)) {
            return wrong(format!("{}: a rate of 0", graph.port_text(b, p)));
        }
        if edge.token_bytes == 0 {
            return wrong(format!("edge {name}: tokens without bytes"));
        }
        match edge.kind {
            Kind::Static(_) => {
                let a = &graph.boxes[from];
                if let Some((b, _)) = readers.iter().find(|(b, _)| graph.boxes[*b].schedule != a.schedule) {
                    let (a, b) = (&a.name, &graph.boxes[*b].name);
                    return wrong(format!(
                        "edge {name} from {a} to {b} leaves its schedule: make it a queue"
                    ));
                }
                if let Some((b, _)) = ports_of(graph, i).find(|(_, p)| p.place.is_none()) {
                    let b = &graph.boxes[b].name;
                    return wrong(format!("edge {name}: {b} has a dynamic port, which needs a queue"));
                }
            }
            Kind::Queue { .. } => {
                if readers.iter().any(|(b, _)| *b == from) {
                    return wrong(format!("queue {name}: {} writes it and reads it", graph.boxes[from].name));
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn cycle_text(
    graph: &Graph,
    ports: &[(usize, usize, usize)],
    arcs: &[usize],
    mine: &[usize],
) -> String {
    let text = |a: &usize| {
        let (from, to, edge) = ports[*a];
        let end = |b: usize, way| {
            let b = &graph.boxes[mine[b]];
            (&b.name, b.ports.iter().find(|p| p.edge == edge && p.way == way).map_or(0, |p| p.rate))
        };
        let ((from, gives), (to, takes)) = (end(from, Way::Out), end(to, Way::In));
        format!("{from} gives {gives} of {}, {to} takes {takes}", graph.edges[edge].name)
    };
    arcs.iter().map(text).collect::<Vec<_>>().join("; ")
}
