//! A graph as it is drawn: boxes, and who gives tokens to whom.

use serde::{Deserialize, Serialize};

use crate::check::ports_of;
use crate::graph::{Graph, Kind, Way};
use crate::kernel::Control;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// Number of its schedule.
    pub schedule: usize,
    /// Boxes that it stands for: more than one if fused.
    pub members: usize,
    /// Whether it reads or writes a queue as it likes.
    pub is_dynamic: bool,
}

/// An edge to one of those that read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub name: String,
    /// Numbers of the boxes that write and read it.
    pub from: usize,
    pub to: usize,
    /// Number of the queue, in the order of [`Program::queues`](crate::Program::queues); none of a static edge.
    pub queue: Option<usize>,
}

/// A graph without what its boxes do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    pub schedules: Vec<String>,
    pub boxes: Vec<Node>,
    pub edges: Vec<Link>,
}

impl Topology {
    pub fn of(graph: &Graph) -> Self {
        let node = |b: &crate::graph::BoxSpec| Node {
            name: b.name.clone(),
            schedule: b.schedule,
            members: b.members,
            is_dynamic: b.ports.iter().any(|p| p.place.is_none()),
        };
        let mut edges = Vec::new();
        for (e, edge) in graph.edges.iter().enumerate() {
            let Some(from) = ports_of(graph, e).find(|(_, p)| p.way == Way::Out).map(|(b, _)| b) else {
                continue;
            };
            let queue = match edge.kind {
                Kind::Queue { number, .. } => Some(number.number()),
                Kind::Static(_) => None,
            };
            for (to, _) in ports_of(graph, e).filter(|(_, p)| p.way == Way::In) {
                edges.push(Link { name: edge.name.clone(), from, to, queue });
            }
        }
        Self {
            schedules: graph.schedules.iter().map(|s| s.name.clone()).collect(),
            boxes: graph.boxes.iter().map(node).collect(),
            edges,
        }
    }
}

/// By box: its static output whose values decide what other boxes do.
pub(crate) fn controls(graph: &Graph) -> Vec<Option<Control>> {
    let of = |b: &crate::graph::BoxSpec| {
        let port = b.ports.iter().find(|p| p.way == Way::Out && graph.controls.contains(&p.edge))?;
        let firing_bytes = port.rate as usize * graph.edges[port.edge].token_bytes;
        Some(Control { place: port.place?, firing_bytes })
    };
    graph.boxes.iter().map(of).collect()
}
