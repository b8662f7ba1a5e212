//! From a graph to a program: orders of firing, memory, conditions.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::graph::{BoxSpec, EdgeSpec, FlowError, Graph, Kind, PortSpec, Way};
use crate::kernel::Memory;
use crate::names::Name;
use crate::queue::{NO_LIMIT, OperationsOf, Queue, ReadEnd};
use crate::rates::{self, Arc, NoOrder, Order};
use crate::ready::{Bitmap, Condition, Heap, MOST_SCHEDULES, Member, ReadySet};
use crate::schedule::{Delay, Schedule, State, StaticIn, StaticOut};
use crate::scheduler::{Core, Sampling, drive};
use crate::segment::Group;
use crate::timer::{Log, Off};

/// How tokens get between queues and boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queues {
    /// As in the published kernel: copied into and out of the memory of schedules, and within queues.
    Copying,
    /// Ports point into queues that are mapped twice.
    Mirrored,
}

/// How it is known who is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// As in the published kernel: a heap, and a look at all ports of a schedule when a queue of it changes.
    Heap,
    /// A bitmap, and counts of conditions that do not hold.
    Bitmap,
}

/// The kernel that runs a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub queues: Queues,
    pub ready: Ready,
    /// Iterations of a run at most.
    pub granularity: u32,
}

impl Choice {
    pub const FAST: Self = Self { queues: Queues::Mirrored, ready: Ready::Bitmap, granularity: 1 };
}

pub(crate) trait QueueWay: 'static {
    const COPIES: bool;
}
pub(crate) struct Copying;
pub(crate) struct Mirrored;
impl QueueWay for Copying {
    const COPIES: bool = true;
}
impl QueueWay for Mirrored {
    const COPIES: bool = false;
}

pub(crate) trait ReadyWay: 'static {
    fn insert(set: &ReadySet, schedule: usize);
    /// The ready schedule of the highest number.
    fn take(set: &ReadySet) -> Option<usize>;
    /// A member of a condition holds, which is noted in `is_met`.
    fn now_holds(core: &Core, is_met: &Cell<bool>, condition: usize);
    fn group_is_free(core: &Core, condition: usize);
    /// Whether all conditions of a schedule that does not run hold.
    fn can_run(core: &Core, s: &Schedule) -> bool;
}

/// A kernel, as types: its loop is compiled for each.
pub(crate) trait Kernel: 'static {
    type Queues: QueueWay;
    type Ready: ReadyWay;
}
impl<Q: QueueWay, R: ReadyWay> Kernel for (Q, R) {
    type Queues = Q;
    type Ready = R;
}

/// Why a program stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Sources are over, and nothing more can run.
    Over,
    /// After the turns that were asked for.
    Paused,
}

/// A graph that can be run.
pub struct Program {
    core: Core,
    choice: Choice,
}

/// Least common multiple.
fn multiple(a: usize, b: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    a / gcd(a, b) * b
}

/// Lines of memory that edges begin at, bytes.
const LINE_BYTES: usize = 64;
/// Memory of all static edges at most, bytes.
const MOST_BYTES: usize = 1 << 32;

struct Builder<'g> {
    graph: &'g Graph,
    choice: Choice,
    conditions: Vec<Condition>,
    /// Of each queue and each reading end: what its schedule needs there, and the condition.
    writers: Vec<(u64, usize)>,
    readers: Vec<(u64, usize)>,
    group_conditions: Vec<usize>,
    /// Bytes of static memory so far.
    bytes: usize,
    /// Places of static ports: offsets from the start.
    offsets: Vec<usize>,
    initial: Vec<(usize, Vec<u8>)>,
}

impl Program {
    /// Checks a graph and makes it ready to run.
    ///
    /// # Errors
    /// What is wrong with it, naming boxes, ports and rates; or no memory.
    pub fn new(graph: Graph, choice: Choice) -> Result<Self, FlowError> {
        check_edges(&graph)?;
        let mut graph = graph;
        // Boxes of a schedule in a row.
        graph.boxes.sort_by_key(|b| b.schedule);
        let mut b = Builder {
            graph: &graph,
            choice,
            conditions: Vec::new(),
            writers: vec![(1, 0); graph.queues],
            readers: vec![(1, 0); graph.ends],
            group_conditions: vec![0; graph.groups.len()],
            bytes: 0,
            offsets: vec![0; graph.places],
            initial: Vec::new(),
        };
        let schedules: Vec<Schedule> =
            (0..graph.schedules.len()).map(|s| b.schedule(s)).collect::<Result<_, _>>()?;
        if b.bytes > MOST_BYTES {
            return Err(FlowError::Wrong(format!(
                "{}: static edges take {} B, at most {MOST_BYTES}",
                graph.name, b.bytes
            )));
        }
        let no_memory = |e| FlowError::Memory("static edges".to_owned(), e);
        let memory = Memory::plain(b.bytes.max(1)).map_err(no_memory)?;
        for (offset, bytes) in &b.initial {
            memory.fill(*offset, bytes);
        }
        let places = b.offsets.iter().map(|offset| Cell::new(memory.at(*offset, 0))).collect();
        let (queues, ends) = b.queues()?;
        let groups = graph.groups.iter().zip(&b.group_conditions);
        let groups = groups.map(|(g, condition)| Group {
            owner: Rc::clone(&g.owner),
            under_way: Cell::new(0),
            is_awaited: Cell::new(false),
            condition: *condition,
        });
        let core = Core {
            is_static: schedules.len() == 1 && graph.queues == 0,
            ready: ReadySet::new(schedules.len()),
            schedules: schedules.into(),
            queues: queues.into(),
            ends: ends.into(),
            conditions: b.conditions.into(),
            groups: groups.collect(),
            places,
            memory,
            operations: Cell::new(&OperationsOf::<(Mirrored, Bitmap), Off>::ALL),
            log: Log::new(Name::TEXTS),
            boxes: graph.boxes.into_iter().map(|b| b.erased).collect(),
        };
        Ok(Self { core, choice })
    }

    /// Runs until sources are over, or for so many turns of the scheduler.
    pub fn run(&mut self, sampling: Sampling, most_turns: u64, seed: u64) -> Ended {
        match (self.choice.queues, self.choice.ready) {
            (Queues::Copying, Ready::Heap) => {
                drive::<(Copying, Heap)>(&self.core, sampling, most_turns, seed)
            }
            (Queues::Copying, Ready::Bitmap) => {
                drive::<(Copying, Bitmap)>(&self.core, sampling, most_turns, seed)
            }
            (Queues::Mirrored, Ready::Heap) => {
                drive::<(Mirrored, Heap)>(&self.core, sampling, most_turns, seed)
            }
            (Queues::Mirrored, Ready::Bitmap) => {
                drive::<(Mirrored, Bitmap)>(&self.core, sampling, most_turns, seed)
            }
        }
    }

    /// Times of the kernel's events.
    pub fn log(&self) -> &Log {
        &self.core.log
    }

    /// What each schedule waits for: one line each, for messages.
    pub fn states(&self) -> Vec<String> {
        let line =
            |s: &Schedule| format!("{}: {:?}, {} conditions missing", s.name, s.state.get(), s.missing.get());
        self.core.schedules.iter().map(line).collect()
    }

    /// Bytes copied into, out of and within queues.
    pub fn copied_bytes(&self) -> u64 {
        self.core.queues.iter().map(|q| q.copied.get()).sum()
    }

    /// Of each queue: name, most tokens in it while timers were on, tokens left in it, tokens discarded at ends of segments.
    pub fn queues(&self) -> impl Iterator<Item = (&str, u64, u64, u64)> {
        self.core.queues.iter().map(|q| {
            let discarded = q.readers.iter().map(|end| self.core.ends[*end].discarded.get()).sum();
            (q.name.as_str(), q.high_water.get(), q.written.get() - q.least_read.get(), discarded)
        })
    }
}

fn wrong<T>(text: String) -> Result<T, FlowError> {
    Err(FlowError::Wrong(text))
}

/// Ports of an edge with their boxes.
fn ports_of(graph: &Graph, edge: usize) -> impl Iterator<Item = (usize, &PortSpec)> {
    let all = graph.boxes.iter().enumerate().flat_map(|(i, b)| b.ports.iter().map(move |p| (i, p)));
    all.filter(move |(_, p)| p.edge == edge)
}

fn check_edges(graph: &Graph) -> Result<(), FlowError> {
    if graph.boxes.is_empty() {
        return wrong(format!("{}: a graph without boxes", graph.name));
    }
    if graph.schedules.len() > MOST_SCHEDULES {
        return wrong(format!(
            "{}: {} schedules, at most {MOST_SCHEDULES}",
            graph.name,
            graph.schedules.len()
        ));
    }
    for (i, edge) in graph.edges.iter().enumerate() {
        let name = &edge.name;
        let writers: Vec<_> = ports_of(graph, i).filter(|(_, p)| p.way == Way::Out).collect();
        let readers: Vec<_> = ports_of(graph, i).filter(|(_, p)| p.way == Way::In).collect();
        let [(from, _)] = writers[..] else {
            let who: Vec<&str> = writers.iter().map(|(b, _)| graph.boxes[*b].name.as_str()).collect();
            return wrong(format!(
                "edge {name}: {} boxes write to it, not one: {}",
                who.len(),
                who.join(", ")
            ));
        };
        if readers.is_empty() {
            return wrong(format!("edge {name}: nobody reads it"));
        }
        if let Some((b, p)) = ports_of(graph, i).find(|(_, p)| p.rate == 0) {
            return wrong(format!("{}: a rate of 0", graph.port_text(b, p)));
        }
        if edge.token_bytes == 0 {
            return wrong(format!("edge {name}: tokens without bytes"));
        }
        match edge.kind {
            Kind::Static { .. } => {
                if let Some((b, _)) =
                    readers.iter().find(|(b, _)| graph.boxes[*b].schedule != graph.boxes[from].schedule)
                {
                    let (a, b) = (&graph.boxes[from].name, &graph.boxes[*b].name);
                    return wrong(format!(
                        "edge {name} from {a} to {b} leaves its schedule: make it a queue"
                    ));
                }
                if let Some((b, _)) = ports_of(graph, i).find(|(_, p)| p.place.is_none()) {
                    return wrong(format!(
                        "edge {name}: {} has a dynamic port, which needs a queue",
                        graph.boxes[b].name
                    ));
                }
            }
            Kind::Queue { .. } => {
                if let Some((b, _)) = readers.iter().find(|(b, _)| *b == from) {
                    return wrong(format!("queue {name}: {} writes it and reads it", graph.boxes[*b].name));
                }
            }
        }
    }
    Ok(())
}

/// One line for a cycle of arcs.
fn cycle_text(graph: &Graph, ports: &[(usize, usize, usize)], arcs: &[usize], mine: &[usize]) -> String {
    let text = |a: &usize| {
        let (from, to, edge) = ports[*a];
        let (from, to) = (mine[from], mine[to]);
        let rate = |b: usize, way| {
            graph.boxes[b].ports.iter().find(|p| p.edge == edge && p.way == way).map_or(0, |p| p.rate)
        };
        format!(
            "{} gives {} of {}, {} takes {}",
            graph.boxes[from].name,
            rate(from, Way::Out),
            graph.edges[edge].name,
            graph.boxes[to].name,
            rate(to, Way::In)
        )
    };
    arcs.iter().map(text).collect::<Vec<_>>().join("; ")
}

impl Builder<'_> {
    fn take_bytes(&mut self, bytes: u64) -> usize {
        let offset = self.bytes;
        let bytes = usize::try_from(bytes).unwrap_or(MOST_BYTES).min(MOST_BYTES);
        self.bytes = (offset + bytes.next_multiple_of(LINE_BYTES)).min(2 * MOST_BYTES);
        offset
    }

    fn capacity(&self, edge: &EdgeSpec, capacity: u64) -> u64 {
        let page = machmeter_sys::mirror::page_bytes();
        let whole = multiple(page, edge.token_bytes) as u64;
        (capacity.max(1) * edge.token_bytes as u64).next_multiple_of(whole) / edge.token_bytes as u64
    }

    fn condition(&mut self, schedule: usize, members: Vec<Member>) -> usize {
        self.conditions.push(Condition { schedule, members: members.into(), met: Cell::new(0) });
        self.conditions.len() - 1
    }

    fn schedule(&mut self, number: usize) -> Result<Schedule, FlowError> {
        let graph = self.graph;
        let mine: Vec<usize> =
            (0..graph.boxes.len()).filter(|b| graph.boxes[*b].schedule == number).collect();
        let name = &graph.schedules[number].name;
        if mine.is_empty() {
            return wrong(format!("schedule {name} has no boxes"));
        }
        let (order, _) = self.order(&mine, name)?;
        let repetitions = |b: usize| order.repetitions[mine.iter().position(|m| *m == b).unwrap_or(0)];
        let first_condition = self.conditions.len();
        let mut s = Ports::default();
        let mut most = u64::from(self.choice.granularity.max(1));
        for b in &mine {
            for p in graph.boxes[*b].ports.iter().filter(|p| p.place.is_some()) {
                if let Kind::Queue { capacity, .. } = graph.edges[p.edge].kind {
                    let need = u64::from(p.rate) * repetitions(*b);
                    let capacity = self.capacity(&graph.edges[p.edge], capacity);
                    if need > capacity {
                        let text = graph.port_text(*b, p);
                        return wrong(format!(
                            "{text}, {need} an iteration, and the queue holds {capacity}: make it larger"
                        ));
                    }
                    most = most.min(capacity / need);
                }
            }
        }
        for b in &mine {
            self.ports(number, *b, repetitions(*b), most, &mut s);
        }
        let entries = order.firings.iter().map(|(b, first, times)| {
            graph.boxes[mine[*b]].erased.entry(*first as u32, *times as u32, order.repetitions[*b] as u32)
        });
        let has_segments = !s.segmented.is_empty() || !s.forwards.is_empty();
        Ok(Schedule {
            name: name.clone(),
            state: Cell::new(State::QueueWait),
            missing: Cell::new(0),
            conditions: first_condition..self.conditions.len(),
            most: Cell::new(most as u32),
            granularity: Cell::new(most as u32),
            resume: Cell::new(0),
            entries: entries.collect(),
            is_cyclic: order.is_cyclic,
            inputs: s.inputs.into(),
            outputs: s.outputs.into(),
            delays: s.delays.into(),
            boxes: mine[0]..mine[0] + mine.len(),
            segmented: s.segmented.into(),
            forwards: s.forwards.into(),
            has_segments,
            in_segment: Cell::new(false),
            period_ns: graph.schedules[number].period_ns,
            due_ns: Cell::new(0),
            left: Cell::new(graph.schedules[number].iterations.unwrap_or(u64::MAX)),
        })
    }

    fn order(&self, mine: &[usize], name: &str) -> Result<(Order, Vec<Arc>), FlowError> {
        let graph = self.graph;
        let (mut arcs, mut ports) = (Vec::new(), Vec::new());
        for (e, edge) in graph.edges.iter().enumerate() {
            let Kind::Static { initial } = &edge.kind else { continue };
            let local = |b: usize| mine.iter().position(|m| *m == b);
            let Some((from, out)) = ports_of(graph, e).find(|(_, p)| p.way == Way::Out) else { continue };
            let Some(from) = local(from) else { continue };
            for (to, input) in ports_of(graph, e).filter(|(_, p)| p.way == Way::In) {
                let Some(to) = local(to) else { continue };
                let initial = (initial.len() / edge.token_bytes) as u64;
                let (gives, takes) = (u64::from(out.rate), u64::from(input.rate));
                arcs.push(Arc { from, gives, to, takes, initial });
                ports.push((from, to, e));
            }
        }
        let found = rates::order(mine.len(), &arcs).map_err(|e| match e {
            NoOrder::Inconsistent(cycle) => {
                FlowError::Inconsistent(name.to_owned(), cycle_text(graph, &ports, &cycle, mine))
            }
            NoOrder::Deadlock(cycle) => {
                FlowError::Deadlock(name.to_owned(), cycle_text(graph, &ports, &cycle, mine))
            }
            NoOrder::TooMany => FlowError::Wrong(format!("{name}: an iteration has too many firings")),
        })?;
        Ok((found, arcs))
    }

    /// Memory, places and conditions of a box's ports.
    fn ports(&mut self, schedule: usize, b: usize, repetitions: u64, most: u64, s: &mut Ports) {
        let graph = self.graph;
        let spec: &BoxSpec = &graph.boxes[b];
        let mut any = Vec::new();
        let mut group = None;
        for p in &spec.ports {
            let edge = &graph.edges[p.edge];
            let iteration = u64::from(p.rate) * repetitions;
            match (&edge.kind, p.place) {
                (Kind::Static { initial }, Some(place)) if p.way == Way::Out => {
                    let iteration_bytes = iteration * edge.token_bytes as u64;
                    let offset = self.take_bytes(initial.len() as u64 + most * iteration_bytes);
                    self.offsets[place] = offset + initial.len();
                    for (_, input) in ports_of(graph, p.edge).filter(|(_, p)| p.way == Way::In) {
                        if let Some(place) = input.place {
                            self.offsets[place] = offset;
                        }
                    }
                    if !initial.is_empty() {
                        self.initial.push((offset, initial.clone()));
                        let iteration_bytes = iteration_bytes as usize;
                        s.delays.push(Delay { offset, bytes: initial.len(), iteration_bytes });
                    }
                }
                (Kind::Static { .. }, _) => {}
                (Kind::Queue { number, is_segmented, .. }, place) => {
                    let need = place.map_or(u64::from(p.rate), |_| iteration);
                    let offset = match (place, self.choice.queues) {
                        (Some(place), Queues::Copying) => {
                            let offset = self.take_bytes(most * need * edge.token_bytes as u64);
                            self.offsets[place] = offset;
                            offset
                        }
                        _ => 0,
                    };
                    if let (Way::In, Some(end)) = (p.way, p.end) {
                        if place.is_none() && spec.reads_any {
                            any.push(Member::Read(end));
                            self.readers[end].0 = need;
                            continue;
                        }
                        self.readers[end] = (need, self.condition(schedule, vec![Member::Read(end)]));
                        if let Some(place) = place {
                            s.inputs.push(StaticIn { end, place, need, offset });
                            s.segmented.extend(is_segmented.then_some(end));
                        }
                    } else {
                        self.writers[*number] =
                            (need, self.condition(schedule, vec![Member::Write(*number)]));
                        match place {
                            Some(place) => {
                                s.outputs.push(StaticOut { queue: *number, place, need, offset });
                                s.forwards.extend(is_segmented.then_some(*number));
                            }
                            None => group = group.or(group_of(graph, p.edge).map(|(g, _)| g)),
                        }
                    }
                }
            }
        }
        if !any.is_empty() {
            let ends: Vec<usize> = any
                .iter()
                .filter_map(|m| if let Member::Read(end) = m { Some(*end) } else { None })
                .collect();
            let condition = self.condition(schedule, any);
            ends.into_iter().for_each(|end| self.readers[end].1 = condition);
        }
        if let Some(group) = group {
            self.group_conditions[group] = self.condition(schedule, vec![Member::Group(group)]);
        }
    }

    fn queues(&self) -> Result<(Vec<Queue>, Vec<ReadEnd>), FlowError> {
        let graph = self.graph;
        let mut ends: Vec<Option<ReadEnd>> = (0..graph.ends).map(|_| None).collect();
        let mut queues = Vec::new();
        for (e, edge) in graph.edges.iter().enumerate() {
            let Kind::Queue { number, capacity, is_segmented } = edge.kind else { continue };
            let capacity = self.capacity(edge, capacity);
            let bytes = capacity as usize * edge.token_bytes;
            let no_memory = |why| FlowError::Memory(format!("queue {}", edge.name), why);
            let mirrored = match self.choice.queues {
                Queues::Mirrored => Some(Rc::new(Memory::mirrored(bytes).map_err(no_memory)?)),
                Queues::Copying => None,
            };
            let readers: Vec<usize> = ports_of(graph, e).filter_map(|(_, p)| p.end).collect();
            for end in &readers {
                let memory = match &mirrored {
                    Some(shared) => Rc::clone(shared),
                    None => Rc::new(Memory::plain(bytes).map_err(no_memory)?),
                };
                let (need, condition) = self.readers[*end];
                ends[*end] = Some(ReadEnd {
                    queue: number,
                    read: Cell::new(0),
                    read_at: Cell::new(0),
                    write_at: Cell::new(0),
                    memory,
                    need: Cell::new(need),
                    is_met: Cell::new(false),
                    condition,
                    limit: Cell::new(NO_LIMIT),
                    later_ends: RefCell::new(VecDeque::with_capacity(LINE_BYTES)),
                    passed: Cell::new(0),
                    discarded: Cell::new(0),
                    group: graph.groups.iter().position(|g| g.branches.iter().any(|b| b.1 == e)),
                });
            }
            let (need, condition) = self.writers[number];
            queues.push(Queue {
                name: edge.name.clone(),
                capacity,
                token_bytes: edge.token_bytes,
                written: Cell::new(0),
                write_at: Cell::new(0),
                least_read: Cell::new(0),
                need: Cell::new(need),
                is_met: Cell::new(false),
                condition,
                readers: readers.into(),
                is_segmented,
                is_open: Cell::new(false),
                begun: Cell::new(0),
                group: group_of(graph, e),
                high_water: Cell::new(0),
                copied: Cell::new(0),
            });
        }
        Ok((queues, ends.into_iter().flatten().collect()))
    }
}

/// Ports of a schedule on queues, and its delays.
#[derive(Default)]
struct Ports {
    inputs: Vec<StaticIn>,
    outputs: Vec<StaticOut>,
    delays: Vec<Delay>,
    segmented: Vec<usize>,
    forwards: Vec<usize>,
}

/// The group and the branch of a queue that a distributor writes.
fn group_of(graph: &Graph, edge: usize) -> Option<(usize, usize)> {
    let branch = |g: &crate::graph::GroupSpec| g.branches.iter().position(|b| b.0 == edge);
    graph.groups.iter().enumerate().find_map(|(i, g)| Some((i, branch(g)?)))
}
