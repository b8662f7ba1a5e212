//! What calls mean, and which of them belong together: messages by the rules of MPI, collectives by their order over a communicator.
//!
//! A trace has no requests, no source of the receive of a `Sendrecv`, and of a receive from any rank not who it was. What follows from
//! the order of calls is taken from it, and counted in [`Matched::guesses`].

use std::collections::{BTreeMap, HashMap, VecDeque};

use machmeter_data::trace::{ABSENT, ANY, Kind, OPERATIONS};

use super::calls::{Call, Calls};

pub(super) const NONE: u32 = u32::MAX;

/// What a call is to a replay. `Make` makes a persistent request, `Start` starts one of them, or all; `Await` returns when one request is done,
/// or all, or looks whether they are; `Nothing` costs nothing, and nobody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Message { sends: bool, receives: bool, blocks: bool },
    Make { sends: bool },
    Start { all: bool },
    Await { all: bool, looks: bool },
    Together { blocks: bool },
    Nothing,
    Unknown,
}

fn role(operation: usize) -> Role {
    let o = &OPERATIONS[operation];
    let message = |sends, receives, blocks| Role::Message { sends, receives, blocks };
    match o.name {
        "Send" | "Ssend" | "Rsend" => message(true, false, true),
        // A buffered send never waits for its receiver.
        "Isend" | "Issend" | "Irsend" | "Ibsend" | "Bsend" => message(true, false, false),
        // The message is taken where it is found.
        "Recv" | "Mprobe" => message(false, true, true),
        "Irecv" => message(false, true, false),
        "Sendrecv" | "Sendrecv_replace" => message(true, true, true),
        "Isendrecv" | "Isendrecv_replace" => message(true, true, false),
        "Send_init" | "Ssend_init" | "Rsend_init" | "Bsend_init" => Role::Make { sends: true },
        "Recv_init" => Role::Make { sends: false },
        "Start" => Role::Start { all: false },
        "Startall" => Role::Start { all: true },
        "Wait" | "Waitany" | "Waitsome" => Role::Await { all: false, looks: false },
        "Waitall" => Role::Await { all: true, looks: false },
        "Test" | "Testany" | "Testsome" => Role::Await { all: false, looks: true },
        "Testall" => Role::Await { all: true, looks: true },
        "Mrecv" | "Imrecv" | "Probe" | "Iprobe" | "Request_get_status" | "Buffer_detach" => Role::Nothing,
        name if name.starts_with("Neighbor") || name.starts_with("Ineighbor") || name.ends_with("_init") => {
            Role::Unknown
        }
        _ => match o.kind {
            Kind::Collective => Role::Together { blocks: true },
            Kind::CollectiveStart => Role::Together { blocks: false },
            // What makes a communicator or window is collective over the one it names; what frees one names none.
            Kind::Communicator if o.arguments.communicator != ABSENT => Role::Together { blocks: true },
            Kind::Communicator => Role::Nothing,
            _ => Role::Unknown,
        },
    }
}

/// Messages that calls of a thread start beyond one each: a call that starts all requests that were made starts many.
pub(super) fn started_together(calls: &[Call]) -> u64 {
    let mut made = 0;
    let started = |call: &Call| match role(call.operation) {
        Role::Make { .. } => {
            made += 1;
            0
        }
        Role::Start { all: true } => made,
        _ => 0,
    };
    calls.iter().map(started).sum()
}

/// The operation whose cost a collective call has, as the mpi probe names it; none of those that make communicators.
pub(super) fn base(operation: usize) -> Option<&'static str> {
    let name = OPERATIONS[operation].name;
    let name = if OPERATIONS[operation].kind == Kind::CollectiveStart { &name[1..] } else { name };
    let same = |wanted: &str| name.eq_ignore_ascii_case(wanted);
    BASES.iter().find(|(_, variants)| variants.iter().any(|v| same(v))).map(|(base, _)| *base)
}

/// Operations with a cost, and the calls that are taken for them.
pub const BASES: &[(&str, &[&str])] = &[
    ("barrier", &["barrier"]),
    ("bcast", &["bcast"]),
    ("scatter", &["scatter", "scatterv"]),
    ("gather", &["gather", "gatherv"]),
    ("allgather", &["allgather", "allgatherv"]),
    ("alltoall", &["alltoall", "alltoallv", "alltoallw"]),
    ("reduce", &["reduce"]),
    ("allreduce", &["allreduce"]),
    ("reduce_scatter", &["reduce_scatter", "reduce_scatter_block"]),
    ("scan", &["scan", "exscan"]),
];

/// One side of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) rank: u32,
    pub(super) at_ns: u64,
    pub(super) bytes: u64,
    sends: bool,
    peer: i32,
    tag: i32,
    communicator: u32,
    /// Tag of the send of the same call, which the receive of a `Sendrecv` has most likely, too.
    own_tag: i32,
    is_of_both: bool,
}

impl Half {
    fn to(&self) -> u32 {
        if self.sends { self.peer as u32 } else { self.rank }
    }

    fn is_open(&self) -> bool {
        self.peer == ANY || self.tag == ANY
    }
}

/// What a call does; numbers are of halves, or of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Message { halves: [u32; 2], blocks: bool },
    Await { all: bool },
    Together { group: u32, blocks: bool },
}

/// A collective call of all members of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) communicator: u32,
    pub(super) operation: usize,
    /// Rank of the program, where the operation has a root.
    pub(super) root: Option<u32>,
    /// Bytes of the member with the most.
    pub(super) bytes: u64,
}

/// What had to be taken from the order of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guesses {
    /// Waits for one of several requests: the oldest that can have been done.
    pub waits: u64,
    /// Receives whose sender the trace does not name: the first message that nobody else received.
    pub receives: u64,
    /// Starts of persistent requests: in the order in which they were made.
    pub starts: u64,
}

/// Calls with what belongs together.
#[derive(Debug, Clone, Default)]
pub(super) struct Matched {
    /// Steps of each thread: number of the call, and what it does.
    pub(super) steps: Vec<Vec<(u32, Step)>>,
    pub(super) halves: Vec<Half>,
    /// Counterpart of each half, or [`NONE`].
    pub(super) partner: Vec<u32>,
    pub(super) groups: Vec<Group>,
    /// Calls by name that are not replayed.
    pub(super) left_out: BTreeMap<String, u64>,
    pub(super) guesses: Guesses,
}

/// A collective call: thread, index among its steps, call.
type Member = (usize, usize, Call);

pub(super) fn matched(calls: &Calls) -> Matched {
    let mut all = Matched::default();
    let mut sequences: BTreeMap<u32, BTreeMap<u32, Vec<Member>>> = BTreeMap::new();
    for (thread, t) in calls.threads.iter().enumerate() {
        let steps = all.read(t.rank, &t.calls);
        for (index, (call, step)) in steps.iter().enumerate() {
            let call = t.calls[*call as usize];
            if let (Step::Together { .. }, Some(communicator)) = (step, call.communicator) {
                let own = sequences.entry(communicator).or_default().entry(t.rank).or_default();
                own.push((thread, index, call));
            }
        }
        all.steps.push(steps);
    }
    all.meet();
    all.leave_out_alone();
    for (communicator, members) in sequences {
        all.gather(calls, communicator, members);
    }
    all
}

impl Matched {
    fn leave_out(&mut self, operation: usize) {
        *self.left_out.entry(OPERATIONS[operation].name.to_owned()).or_default() += 1;
    }

    /// Steps of a thread; groups are not known yet.
    fn read(&mut self, rank: u32, calls: &[Call]) -> Vec<(u32, Step)> {
        let (mut steps, mut made, mut next_start) = (Vec::new(), Vec::<(bool, Call)>::new(), 0);
        let looks = |call: &Call| matches!(role(call.operation), Role::Await { looks: true, .. });
        for (index, call) in calls.iter().enumerate() {
            let mut add = |step| steps.push((index as u32, step));
            match role(call.operation) {
                Role::Message { sends, receives, blocks } => {
                    if let Some(halves) = self.halves(rank, call, call, [sends, receives]) {
                        add(Step::Message { halves, blocks });
                    }
                }
                Role::Make { sends } => made.push((sends, *call)),
                Role::Start { all } => {
                    let count = if all { made.len() } else { made.len().min(1) };
                    self.guesses.starts += u64::from(made.len() > 1 && !all);
                    for _ in 0..count {
                        let (sends, init) = made[next_start % made.len()];
                        next_start += 1;
                        if let Some(halves) = self.halves(rank, call, &init, [sends, !sends]) {
                            add(Step::Message { halves, blocks: false });
                        }
                    }
                    if count == 0 {
                        self.leave_out(call.operation);
                    }
                }
                // Of looks in a row the last one found it done.
                Role::Await { looks: true, .. } if calls.get(index + 1).is_some_and(looks) => {}
                Role::Await { all, .. } => add(Step::Await { all }),
                Role::Together { blocks } if call.communicator.is_some() => {
                    add(Step::Together { group: NONE, blocks });
                }
                Role::Nothing => {}
                Role::Together { .. } | Role::Unknown => self.leave_out(call.operation),
            }
        }
        steps
    }

    /// What a call with arguments `of`, started by `call`, sends and receives; `None` for one with nobody.
    fn halves(&mut self, rank: u32, call: &Call, of: &Call, which: [bool; 2]) -> Option<[u32; 2]> {
        let ([sends, receives], is_of_both) = (which, is_both(of));
        let mut add = |sends: bool, peer, tag| {
            let (at_ns, bytes, own_tag) = (call.start_ns, of.bytes, of.tag);
            let communicator = of.communicator.unwrap_or(NONE);
            let half = Half { rank, at_ns, bytes, sends, peer, tag, communicator, own_tag, is_of_both };
            self.halves.push(half);
            (self.halves.len() - 1) as u32
        };
        // `MPI_PROC_NULL` of the send says nothing of the receive.
        let send = if sends && of.peer >= 0 { add(true, of.peer, of.tag) } else { NONE };
        let receive = match receives {
            true if is_of_both => add(false, ANY, ANY),
            true if of.peer >= ANY => add(false, of.peer, of.tag),
            _ => NONE,
        };
        (send != NONE || receive != NONE).then_some([send, receive])
    }

    /// Messages and receives without the other side are left out: its rank left no trace, or what it did is not known.
    fn leave_out_alone(&mut self) {
        for (half, _) in self.halves.iter().zip(&self.partner).filter(|(_, partner)| **partner == NONE) {
            // The receive of a `Sendrecv` may be one from nobody.
            let name = match (half.sends, half.is_of_both) {
                (true, _) => "messages without a receive",
                (false, true) => continue,
                (false, false) => "receives without a message",
            };
            *self.left_out.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Messages in the order of time per receiver, communicator, sender and tag; then what is left to those that take any.
    fn meet(&mut self) {
        self.partner = vec![NONE; self.halves.len()];
        let mut order: Vec<u32> = (0..self.halves.len() as u32).collect();
        order.sort_by_key(|h| self.halves[*h as usize].at_ns);
        let mut queues: HashMap<(u32, u32, i32, i32), [VecDeque<u32>; 2]> = HashMap::new();
        for h in &order {
            let half = &self.halves[*h as usize];
            if half.is_open() {
                continue;
            }
            let from = if half.sends { half.rank as i32 } else { half.peer };
            let queue = queues.entry((half.to(), half.communicator, from, half.tag)).or_default();
            if let Some(other) = queue[usize::from(!half.sends)].pop_front() {
                (self.partner[*h as usize], self.partner[other as usize]) = (other, *h);
            } else {
                queue[usize::from(half.sends)].push_back(*h);
            }
        }
        let mut left: HashMap<(u32, u32), [Vec<u32>; 2]> = HashMap::new();
        for h in order.into_iter().filter(|h| self.partner[*h as usize] == NONE) {
            let half = &self.halves[h as usize];
            if half.sends || half.is_open() {
                left.entry((half.to(), half.communicator)).or_default()[usize::from(half.sends)].push(h);
            }
        }
        for [receives, mut sends] in left.into_values() {
            for h in receives {
                let half = self.halves[h as usize];
                let fits = |other: &u32, tag: i32| {
                    let send = &self.halves[*other as usize];
                    (half.peer == ANY || half.peer as u32 == send.rank) && (tag == ANY || tag == send.tag)
                };
                let likely = if half.tag == ANY { half.own_tag } else { half.tag };
                let found = sends.iter().position(|s| fits(s, likely));
                if let Some(at) = found.or_else(|| sends.iter().position(|s| fits(s, half.tag))) {
                    let other = sends.remove(at);
                    self.guesses.receives += 1;
                    (self.partner[h as usize], self.partner[other as usize]) = (other, h);
                }
            }
        }
    }

    /// The n-th collective call of each member is one call.
    fn gather(&mut self, calls: &Calls, communicator: u32, members: BTreeMap<u32, Vec<Member>>) {
        let is_whole = match calls.members.get(&communicator) {
            Some(own) => own.len() == members.len() && own.iter().all(|r| members.contains_key(r)),
            None => members.len() == calls.ranks as usize,
        };
        let mut sequences: Vec<Vec<Member>> = members.into_values().collect();
        for own in &mut sequences {
            own.sort_by_key(|(_, _, call)| call.start_ns);
        }
        let common = if is_whole { sequences.iter().map(Vec::len).min().unwrap_or(0) } else { 0 };
        let operation = |own: &[Member], n: usize| own[n].2.operation;
        let alike = |n: &usize| sequences.iter().all(|s| operation(s, *n) == operation(&sequences[0], *n));
        let done = (0..common).take_while(alike).count();
        for n in 0..done {
            let own = sequences.iter().map(|s| &s[n].2);
            let group = Group {
                communicator,
                operation: operation(&sequences[0], n),
                root: own.clone().find_map(|c| u32::try_from(c.peer).ok()),
                bytes: own.map(|c| c.bytes).max().unwrap_or(0),
            };
            for (thread, index, _) in sequences.iter().map(|s| s[n]) {
                if let Step::Together { group, .. } = &mut self.steps[thread][index].1 {
                    *group = self.groups.len() as u32;
                }
            }
            self.groups.push(group);
        }
        for (_, _, call) in sequences.into_iter().flat_map(|s| s.into_iter().skip(done)) {
            self.leave_out(call.operation);
        }
    }

    /// Whether what was started by a half can have been over at a time: a message that was sent later cannot.
    pub(super) fn can_be_over(&self, half: u32, at_ns: u64) -> bool {
        let Some(h) = self.halves.get(half as usize) else { return true };
        h.sends || self.halves.get(self.partner[half as usize] as usize).is_none_or(|p| p.at_ns <= at_ns)
    }
}

/// Whether a call sends and receives, of which the trace has the send.
fn is_both(call: &Call) -> bool {
    matches!(role(call.operation), Role::Message { sends: true, receives: true, .. })
}
