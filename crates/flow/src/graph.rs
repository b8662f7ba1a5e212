//! Graphs as they are described: schedules, boxes, edges. Nothing here runs; `program` makes something that does.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;

use crate::Primitive;
use crate::kernel::{Erased, Id, Place, Token, bytes_of};
use crate::queue::{Queue, ReadEnd};
use crate::segment::Exclusive;
use crate::views::{In, Out, ReadPort, WritePort};

#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    #[error("{0}: rates do not fit: {1}")]
    Inconsistent(String, String),
    #[error("{0}: deadlock: {1}")]
    Deadlock(String, String),
    #[error("{0}")]
    Wrong(String),
    #[error("no memory for {0}: {1}")]
    Memory(String, std::io::Error),
}

/// An edge of a graph: static within a schedule, or a queue.
pub struct Edge<T> {
    pub(crate) number: usize,
    tokens: PhantomData<T>,
}

impl<T> Clone for Edge<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Edge<T> {}

/// Numbers that ports get when they are bound.
const UNBOUND: usize = u32::MAX as usize;

impl<T: Token> Edge<T> {
    /// A port that takes this many tokens a firing.
    pub fn input(self, rate: u32) -> In<T> {
        In { edge: self.number, rate, place: Id::new(UNBOUND), tokens: PhantomData }
    }
    pub fn output(self, rate: u32) -> Out<T> {
        Out { edge: self.number, rate, place: Id::new(UNBOUND), tokens: PhantomData }
    }
    /// A port that reads as it likes; its schedule waits for at least so many tokens: 0 where an earlier box of it writes them.
    pub fn reader(self, least: u32) -> ReadPort<T> {
        ReadPort { edge: self.number, least, end: Id::new(UNBOUND), tokens: PhantomData }
    }
    /// A port that writes as it likes; its schedule runs when there is room for at least so many tokens.
    pub fn writer(self, least: u32) -> WritePort<T> {
        WritePort { edge: self.number, least, queue: Id::new(UNBOUND), tokens: PhantomData }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

pub(crate) struct PortSpec {
    pub(crate) edge: usize,
    pub(crate) way: Way,
    /// Tokens a firing; of dynamic ports the least.
    pub(crate) rate: u32,
    /// Number of a static port's place.
    pub(crate) place: Option<Id<Place>>,
    pub(crate) end: Option<Id<ReadEnd>>,
}

pub(crate) enum Kind {
    /// With tokens that are there at the beginning, as bytes.
    Static(Vec<u8>),
    Queue {
        number: Id<Queue>,
        capacity: u64,
        is_segmented: bool,
    },
}

pub(crate) struct EdgeSpec {
    pub(crate) name: String,
    pub(crate) token_bytes: usize,
    pub(crate) kind: Kind,
}

pub(crate) struct BoxSpec {
    pub(crate) name: String,
    pub(crate) schedule: usize,
    pub(crate) ports: Vec<PortSpec>,
    /// Any of its readers is enough for its schedule to run.
    pub(crate) reads_any: bool,
    /// Boxes that it stands for: more than one if fused.
    pub(crate) members: usize,
    pub(crate) erased: Erased,
}

pub(crate) struct ScheduleSpec {
    pub(crate) name: String,
    pub(crate) period_ns: Option<u64>,
    pub(crate) iterations: Option<u64>,
}

pub(crate) struct GroupSpec {
    /// Queue edges of the branches where the distributor writes, and where the merge reads.
    pub(crate) branches: Vec<(usize, usize)>,
    pub(crate) owner: Rc<Cell<Option<usize>>>,
}

#[derive(Default)]
pub struct Graph {
    pub(crate) name: String,
    pub(crate) is_fused: bool,
    pub(crate) schedules: Vec<ScheduleSpec>,
    pub(crate) edges: Vec<EdgeSpec>,
    pub(crate) boxes: Vec<BoxSpec>,
    pub(crate) groups: Vec<GroupSpec>,
    /// Static edges whose values decide what boxes do.
    pub(crate) controls: Vec<usize>,
    pub(crate) queues: usize,
    /// Queues of families beyond the first of each.
    family_queues: usize,
    pub(crate) places: usize,
    pub(crate) ends: usize,
    pub(crate) states: usize,
}

/// Takes the ports of a box that is being added.
pub struct Binder<'g> {
    edges: &'g [EdgeSpec],
    places: &'g mut usize,
    ends: &'g mut usize,
    ports: Vec<PortSpec>,
}

impl Binder<'_> {
    fn next<T>(counter: &mut usize) -> Id<T> {
        *counter += 1;
        Id::new(*counter - 1)
    }
    pub(crate) fn input(&mut self, edge: usize, rate: u32) -> Id<Place> {
        let is_queue = matches!(self.edges[edge].kind, Kind::Queue { .. });
        let (place, end) = (Self::next(self.places), is_queue.then(|| Self::next(self.ends)));
        self.ports.push(PortSpec { edge, way: Way::In, rate, place: Some(place), end });
        place
    }
    pub(crate) fn output(&mut self, edge: usize, rate: u32) -> Id<Place> {
        let place = Self::next(self.places);
        self.ports.push(PortSpec { edge, way: Way::Out, rate, place: Some(place), end: None });
        place
    }
    pub(crate) fn reader(&mut self, edge: usize, least: u32) -> Id<ReadEnd> {
        let end = Self::next(self.ends);
        self.ports.push(PortSpec { edge, way: Way::In, rate: least, place: None, end: Some(end) });
        end
    }
    /// The number of the queue; none of a static edge, which building refuses.
    pub(crate) fn writer(&mut self, edge: usize, least: u32) -> Id<Queue> {
        self.ports.push(PortSpec { edge, way: Way::Out, rate: least, place: None, end: None });
        match self.edges[edge].kind {
            Kind::Queue { number, .. } => number,
            Kind::Static(_) => Id::new(UNBOUND),
        }
    }
}

impl Graph {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether [`crate::chain!`] makes one box of a chain.
    #[must_use]
    pub fn fused(mut self, is_fused: bool) -> Self {
        self.is_fused = is_fused;
        self
    }

    pub fn is_fused(&self) -> bool {
        self.is_fused
    }

    /// Begins a schedule: boxes added from here on belong to it.
    pub fn schedule(&mut self, name: &str) {
        self.schedules.push(ScheduleSpec { name: name.to_owned(), period_ns: None, iterations: None });
    }

    /// The schedule that was begun last runs once a period.
    pub fn every(&mut self, period_ns: u64) {
        if let Some(s) = self.schedules.last_mut() {
            s.period_ns = Some(period_ns);
        }
    }

    /// The schedule that was begun last is over after so many iterations, whatever its granularity: for sources.
    pub fn iterations(&mut self, n: u64) {
        if let Some(s) = self.schedules.last_mut() {
            s.iterations = Some(n);
        }
    }

    fn push_edge<T: Token>(&mut self, name: &str, kind: Kind) -> Edge<T> {
        self.edges.push(EdgeSpec { name: name.to_owned(), token_bytes: size_of::<T>(), kind });
        Edge { number: self.edges.len() - 1, tokens: PhantomData }
    }

    /// An edge between boxes of one schedule: one writes, any number read.
    pub fn edge<T: Token>(&mut self, name: &str) -> Edge<T> {
        self.delayed(name, &[])
    }

    /// An edge with tokens that are there at the beginning.
    pub fn delayed<T: Token>(&mut self, name: &str, initial: &[T]) -> Edge<T> {
        self.push_edge(name, Kind::Static(bytes_of(initial).to_vec()))
    }

    /// Values of this static edge decide what boxes with dynamic ports do: [`virtual_time`](crate::virtual_time) keeps them.
    pub fn control<T: Token>(&mut self, edge: Edge<T>) {
        self.controls.push(edge.number);
    }

    /// A queue with room for at least this many tokens; one box writes, each that reads gets all tokens.
    pub fn queue<T: Token>(&mut self, name: &str, capacity: u64) -> Edge<T> {
        self.push_queue(name, capacity, false)
    }

    /// A queue whose tokens come in segments.
    pub fn segmented<T: Token>(&mut self, name: &str, capacity: u64) -> Edge<T> {
        self.push_queue(name, capacity, true)
    }

    /// Segmented queues of which a distributor writes one at a time: an exclusive output family, one entry of the queue count.
    pub fn family<T: Token>(&mut self, name: &str, n: usize, capacity: u64) -> Vec<Edge<T>> {
        self.family_queues += n.saturating_sub(1);
        (0..n).map(|i| self.segmented(&format!("{name} {i}"), capacity)).collect()
    }

    fn push_queue<T: Token>(&mut self, name: &str, capacity: u64, is_segmented: bool) -> Edge<T> {
        let number = Id::new(self.queues);
        self.queues += 1;
        self.push_edge(name, Kind::Queue { number, capacity, is_segmented })
    }

    /// Adds a box to the schedule that was begun last.
    pub fn add<B: Primitive>(&mut self, name: &str, state: B, ports: B::Ports) {
        self.add_members(name, state, ports, 1);
    }

    /// A box that stands for several.
    pub fn add_members<B: Primitive>(&mut self, name: &str, state: B, ports: B::Ports, members: usize) {
        if self.schedules.is_empty() {
            self.schedule("main");
        }
        let mut binder =
            Binder { edges: &self.edges, places: &mut self.places, ends: &mut self.ends, ports: Vec::new() };
        let erased = Erased::new(state, ports, &mut binder);
        let (name, schedule, ports) = (name.to_owned(), self.schedules.len() - 1, binder.ports);
        self.boxes.push(BoxSpec { name, schedule, ports, reads_any: false, members, erased });
    }

    /// The box added last runs when any of its dynamic inputs has what it needs, not all of them.
    pub fn reading_any(&mut self) {
        if let Some(b) = self.boxes.last_mut() {
            b.reads_any = true;
        }
    }

    /// Of branches, each from a queue that a distributor writes to one that a merge reads, one at a time has a segment.
    pub fn exclusive<A: Token, B: Token>(&mut self, branches: &[(Edge<A>, Edge<B>)]) -> Exclusive {
        let owner = Rc::new(Cell::new(None));
        let branches = branches.iter().map(|(a, b)| (a.number, b.number)).collect();
        self.groups.push(GroupSpec { branches, owner: Rc::clone(&owner) });
        Exclusive { owner }
    }

    /// A state outside of all branches, a box of its own that never fires; the group lends it to the branch that has the segment.
    pub fn state<S: 'static>(&mut self, value: S) -> Rc<RefCell<S>> {
        self.states += 1;
        Rc::new(RefCell::new(value))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Boxes, members of fused ones and states each counted.
    pub fn box_count(&self) -> usize {
        self.boxes.iter().map(|b| b.members).sum::<usize>() + self.states
    }

    pub fn schedule_count(&self) -> usize {
        self.schedules.len()
    }

    /// Queues; a family counts as one.
    pub fn queue_count(&self) -> usize {
        self.queues - self.family_queues
    }

    pub(crate) fn port_text(&self, of: usize, port: &PortSpec) -> String {
        let what = if port.way == Way::In { "takes" } else { "gives" };
        format!("{} {what} {} of {}", self.boxes[of].name, port.rate, self.edges[port.edge].name)
    }
}
