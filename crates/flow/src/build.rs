//! From a graph to a program: orders of firing, memory, conditions.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machmeter_sys::mirror::Memory;

use crate::check::{check_edges, cycle_text, ports_of, wrong};
use crate::graph::{BoxSpec, EdgeSpec, FlowError, Graph, Kind, PortSpec, Way};
use crate::kernel::{Id, Place, Table};
use crate::names::Name;
use crate::program::{Choice, Of, Queues};
use crate::queue::{NO_LIMIT, Queue, ReadEnd};
use crate::rates::{self, Arc, NoOrder, Order};
use crate::ready::{Bitmap, ReadySet};
use crate::schedule::{Delay, Schedule, StaticIn, StaticOut, Waiter};
use crate::scheduler::Core;
use crate::segment::Group;
use crate::timer::{Log, Off};
use crate::views::OperationsOf;

/// Lines of memory that edges begin at, bytes.
const LINE_BYTES: usize = 64;
const MOST_BYTES: usize = 1 << 32;

/// Until a port is found that it is.
const NOBODY: Waiter = Waiter { schedule: Id::new(0), is_any: false };

struct Builder<'g> {
    graph: &'g Graph,
    choice: Choice,
    /// Of each queue and each reading end: what its schedule needs there, and who waits.
    writers: Vec<(u64, Waiter)>,
    readers: Vec<(u64, Waiter)>,
    distributors: Vec<Id<Schedule>>,
    bytes: usize,
    /// Places of static ports: offsets from the start.
    offsets: Vec<usize>,
    initial: Vec<(usize, Vec<u8>)>,
}

pub(crate) fn build(mut graph: Graph, choice: Choice) -> Result<Core, FlowError> {
    check_edges(&graph)?;
    // Boxes of a schedule in a row.
    graph.boxes.sort_by_key(|b| b.schedule);
    let mut b = Builder {
        graph: &graph,
        choice,
        writers: vec![(1, NOBODY); graph.queues],
        readers: vec![(1, NOBODY); graph.ends],
        distributors: vec![NOBODY.schedule; graph.groups.len()],
        bytes: 0,
        offsets: vec![0; graph.places],
        initial: Vec::new(),
    };
    let schedules: Vec<_> = (0..graph.schedules.len()).map(|s| b.schedule(s)).collect::<Result<_, _>>()?;
    if b.bytes > MOST_BYTES {
        return wrong(format!("{}: static edges take {} B, at most {MOST_BYTES}", graph.name, b.bytes));
    }
    let no_memory = |e| FlowError::Memory("static edges".to_owned(), e);
    let memory = Memory::plain(b.bytes.max(1)).map_err(no_memory)?;
    for (offset, bytes) in &b.initial {
        memory.fill(*offset, bytes);
    }
    let places: Table<Place> = b.offsets.iter().map(|offset| Cell::new(memory.at(*offset, 0))).collect();
    let (queues, ends) = b.queues()?;
    if choice.queues == Queues::Mirrored {
        for p in graph.boxes.iter().flat_map(|b| &b.ports) {
            if let (Kind::Queue { number, .. }, Some(place)) = (&graph.edges[p.edge].kind, p.place) {
                let first = queues[number.number()].readers[0].number();
                places[place].set(ends[first].memory.at(0, 0));
            }
        }
    }
    let groups = graph.groups.iter().zip(&b.distributors);
    let groups = groups.map(|(g, distributor)| Group {
        owner: Rc::clone(&g.owner),
        under_way: Cell::new(0),
        is_awaited: Cell::new(false),
        distributor: *distributor,
    });
    Ok(Core {
        is_static: schedules.len() == 1 && graph.queues == 0,
        ready: ReadySet::new(schedules.len()),
        schedules: schedules.into_iter().collect(),
        queues: queues.into_iter().collect(),
        ends: ends.into_iter().collect(),
        groups: groups.collect(),
        places,
        memory,
        operations: Cell::new(&OperationsOf::<Of<false, Bitmap>, Off>::ALL),
        log: Log::new(Name::TEXTS),
        boxes: graph.boxes.into_iter().map(|b| b.erased).collect(),
        watched: Vec::new(),
    })
}

impl Builder<'_> {
    fn take_bytes(&mut self, bytes: u64) -> usize {
        let offset = self.bytes;
        let bytes = usize::try_from(bytes).unwrap_or(MOST_BYTES).min(MOST_BYTES);
        self.bytes = (offset + bytes.next_multiple_of(LINE_BYTES)).min(2 * MOST_BYTES);
        offset
    }

    fn capacity(edge: &EdgeSpec, capacity: u64) -> u64 {
        let (page, token) = (machmeter_sys::mirror::page_bytes() as u64, edge.token_bytes as u64);
        let whole = page / rates::gcd(page, token) * token;
        (capacity.max(1) * token).next_multiple_of(whole) / token
    }

    fn schedule(&mut self, number: usize) -> Result<Schedule, FlowError> {
        let graph = self.graph;
        let spec = &graph.schedules[number];
        let mine: Vec<_> = (0..graph.boxes.len()).filter(|b| graph.boxes[*b].schedule == number).collect();
        if mine.is_empty() {
            return wrong(format!("schedule {} has no boxes", spec.name));
        }
        let order = self.order(&mine, &spec.name)?;
        let repetitions = |b: usize| order.repetitions[mine.iter().position(|m| *m == b).unwrap_or(0)];
        let mut s = Ports::default();
        let mut most = u64::from(self.choice.granularity.max(1));
        for b in &mine {
            for p in graph.boxes[*b].ports.iter().filter(|p| p.place.is_some()) {
                if let Kind::Queue { capacity, .. } = graph.edges[p.edge].kind {
                    let need = u64::from(p.rate) * repetitions(*b);
                    let capacity = Self::capacity(&graph.edges[p.edge], capacity);
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
            graph.boxes[mine[*b]].erased.entry(mine[*b], [*first, *times, order.repetitions[*b]])
        });
        let writes_what_it_reads = mine.iter().flat_map(|b| &graph.boxes[*b].ports).any(|p| {
            let reads = |(b, other): (usize, &PortSpec)| other.way == Way::In && mine.contains(&b);
            p.way == Way::Out
                && matches!(graph.edges[p.edge].kind, Kind::Queue { .. })
                && ports_of(graph, p.edge).any(reads)
        });
        let has_segments = !s.segmented.is_empty() || !s.forwards.is_empty();
        let is_plain = s.tokens_from.len() == s.inputs.len()
            && s.room_in.len() == s.outputs.len()
            && s.any_of.is_empty()
            && s.delays.is_empty()
            && (spec.period_ns, spec.iterations) == (None, None)
            && !writes_what_it_reads
            && !order.is_cyclic
            && !has_segments;
        Ok(Schedule {
            tokens_from: s.tokens_from.into(),
            room_in: s.room_in.into(),
            any_of: s.any_of.into(),
            group: s.group,
            most: most as u32,
            granularity: Cell::new(most as u32),
            entries: entries.collect(),
            is_cyclic: order.is_cyclic,
            inputs: s.inputs.into(),
            outputs: s.outputs.into(),
            delays: s.delays.into(),
            boxes: mine[0]..mine[0] + mine.len(),
            segmented: s.segmented.into(),
            forwards: s.forwards.into(),
            has_segments,
            is_always_plain: is_plain,
            is_plain: Cell::new(is_plain),
            period_ns: spec.period_ns,
            left: Cell::new(spec.iterations.unwrap_or(u64::MAX)),
            ..Schedule::default()
        })
    }

    fn order(&self, mine: &[usize], name: &str) -> Result<Order, FlowError> {
        let graph = self.graph;
        let (mut arcs, mut ports) = (Vec::new(), Vec::new());
        for (e, edge) in graph.edges.iter().enumerate() {
            let Kind::Static(initial) = &edge.kind else { continue };
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
        let text = |cycle: &[usize]| cycle_text(graph, &ports, cycle, mine);
        rates::order(mine.len(), &arcs).map_err(|e| match e {
            NoOrder::Inconsistent(cycle) => FlowError::Inconsistent(name.to_owned(), text(&cycle)),
            NoOrder::Deadlock(cycle) => FlowError::Deadlock(name.to_owned(), text(&cycle)),
            NoOrder::TooMany => FlowError::Wrong(format!("{name}: an iteration has too many firings")),
        })
    }

    /// Memory, places and conditions of a box's ports.
    fn ports(&mut self, schedule: usize, b: usize, repetitions: u64, most: u64, s: &mut Ports) {
        let graph = self.graph;
        let spec: &BoxSpec = &graph.boxes[b];
        for p in &spec.ports {
            let edge = &graph.edges[p.edge];
            let iteration = u64::from(p.rate) * repetitions;
            match (&edge.kind, p.place) {
                (Kind::Static(initial), Some(place)) if p.way == Way::Out => {
                    let iteration_bytes = iteration * edge.token_bytes as u64;
                    let offset = self.take_bytes(initial.len() as u64 + most * iteration_bytes);
                    self.offsets[place.number()] = offset + initial.len();
                    for (_, input) in ports_of(graph, p.edge).filter(|(_, p)| p.way == Way::In) {
                        if let Some(place) = input.place {
                            self.offsets[place.number()] = offset;
                        }
                    }
                    if !initial.is_empty() {
                        self.initial.push((offset, initial.clone()));
                        let iteration_bytes = iteration_bytes as usize;
                        s.delays.push(Delay { offset, bytes: initial.len(), iteration_bytes });
                    }
                }
                (Kind::Static(_), _) => {}
                (Kind::Queue { number, is_segmented, .. }, place) => {
                    let need = place.map_or(u64::from(p.rate), |_| iteration);
                    let offset = match (place, self.choice.queues) {
                        (Some(place), Queues::Copying) => {
                            let offset = self.take_bytes(most * need * edge.token_bytes as u64);
                            self.offsets[place.number()] = offset;
                            offset
                        }
                        _ => 0,
                    };
                    let waiter =
                        Waiter { schedule: Id::new(schedule), is_any: place.is_none() && spec.reads_any };
                    if let (Way::In, Some(end)) = (p.way, p.end) {
                        self.readers[end.number()] = (need, waiter);
                        if waiter.is_any { &mut s.any_of } else { &mut s.tokens_from }.push(end);
                        if let Some(place) = place {
                            s.inputs.push(StaticIn { end, queue: *number, place, need, offset });
                            s.segmented.extend(is_segmented.then_some(end));
                        }
                        continue;
                    }
                    self.writers[number.number()] = (need, Waiter { is_any: false, ..waiter });
                    s.room_in.push(*number);
                    if let Some(place) = place {
                        let reader = ports_of(graph, p.edge).find_map(|(_, p)| p.end).expect("checked");
                        s.outputs.push(StaticOut { queue: *number, reader, place, need, offset });
                        s.forwards.extend(is_segmented.then_some(*number));
                    } else if let Some((group, _)) = group_of(graph, p.edge) {
                        self.distributors[group.number()] = waiter.schedule;
                        s.group = Some(group);
                    }
                }
            }
        }
    }

    fn queues(&self) -> Result<(Vec<Queue>, Vec<ReadEnd>), FlowError> {
        let graph = self.graph;
        let mut ends: Vec<Option<ReadEnd>> = (0..graph.ends).map(|_| None).collect();
        let mut queues = Vec::new();
        for (e, edge) in graph.edges.iter().enumerate() {
            let Kind::Queue { number, capacity, is_segmented } = edge.kind else { continue };
            let capacity = Self::capacity(edge, capacity);
            let bytes = capacity as usize * edge.token_bytes;
            let no_memory = |why| FlowError::Memory(format!("queue {}", edge.name), why);
            let mirrored = match self.choice.queues {
                Queues::Mirrored => Some(Rc::new(Memory::mirrored(bytes).map_err(no_memory)?)),
                Queues::Copying => None,
            };
            let mut readers: Vec<Id<ReadEnd>> = Vec::new();
            for (end, place) in ports_of(graph, e).filter_map(|(_, p)| Some((p.end?, p.place))) {
                readers.push(end);
                let memory = match &mirrored {
                    Some(shared) => Rc::clone(shared),
                    None => Rc::new(Memory::plain(bytes).map_err(no_memory)?),
                };
                let (need, waiter) = self.readers[end.number()];
                ends[end.number()] = Some(ReadEnd {
                    queue: number,
                    place,
                    read: Cell::new(0),
                    read_at: Cell::new(0),
                    write_at: Cell::new(0),
                    memory,
                    visible: Cell::new(0),
                    need,
                    threshold: Cell::new(need),
                    is_met: Cell::new(false),
                    waiter,
                    limit: Cell::new(NO_LIMIT),
                    later_ends: RefCell::new(VecDeque::with_capacity(LINE_BYTES)),
                    passed: Cell::new(0),
                    discarded: Cell::new(0),
                    group: graph.groups.iter().position(|g| g.branches.iter().any(|b| b.1 == e)).map(Id::new),
                });
            }
            let (need, waiter) = self.writers[number.number()];
            let ring_end = readers
                .first()
                .and_then(|end| ends[end.number()].as_ref())
                .map_or(std::ptr::null_mut(), |e| e.memory.at(bytes, 0));
            queues.push(Queue {
                ring_end,
                name: edge.name.clone(),
                capacity,
                token_bytes: edge.token_bytes,
                ring_bytes: bytes,
                written: Cell::new(0),
                write_at: Cell::new(0),
                least_read: Cell::new(0),
                need,
                is_met: Cell::new(false),
                waiter,
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

#[derive(Default)]
struct Ports {
    inputs: Vec<StaticIn>,
    outputs: Vec<StaticOut>,
    delays: Vec<Delay>,
    segmented: Vec<Id<ReadEnd>>,
    forwards: Vec<Id<Queue>>,
    tokens_from: Vec<Id<ReadEnd>>,
    room_in: Vec<Id<Queue>>,
    any_of: Vec<Id<ReadEnd>>,
    group: Option<Id<Group>>,
}

/// The group and the branch of a queue that a distributor writes.
fn group_of(graph: &Graph, edge: usize) -> Option<(Id<Group>, usize)> {
    let branch = |g: &crate::graph::GroupSpec| g.branches.iter().position(|b| b.0 == edge);
    graph.groups.iter().enumerate().find_map(|(i, g)| Some((Id::new(i), branch(g)?)))
}
