//! Accounts of the followed threads: how long each ran, how long it waited for a CPU, and who had that CPU meanwhile.
//!
//! Pure: kernel events in order of time go in. A thread waits from the moment it is woken, or preempted, until it gets a CPU; this is what the kernel calls
//! run delay. The time of a wait belongs to the threads that run on the CPU that it waits for.

use std::collections::{BTreeMap, HashMap};

use machmeter_sys::trace::{EventKind, TaskState, TraceEvent};

use super::caught::{Keeper, Turn, Who};
use super::taken::Taken;
use super::wait::{Holder, Parts, Wait};

/// Waits that are kept whole.
const LONGEST: usize = 20;

/// What one thread did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Time on a CPU, ns.
    pub ran_ns: u64,
    /// Time runnable without a CPU, ns.
    pub waited_ns: u64,
    /// Number of waits.
    pub waits: u64,
    state: State,
    has_ended: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum State {
    /// Asleep, ended, or not seen yet.
    #[default]
    Away,
    Running {
        since_ns: u64,
    },
    Waiting {
        cpu: u16,
        since_ns: u64,
        was_preempted: bool,
        parts: Parts,
    },
}

#[derive(Debug, Default)]
struct Cpu {
    /// The thread that has the CPU; `None` until a switch shows it.
    current: Option<i32>,
    /// Start of its turn, ns.
    turn_ns: u64,
    /// Start of the time that is not charged yet, ns.
    since_ns: u64,
    /// Followed threads that wait for this CPU.
    waiting: Vec<i32>,
    /// Handlers that are open: name, start, time of handlers inside, ns.
    handlers: Vec<(String, u64, u64)>,
    /// Last event at which the scheduler brought an account up to date, ns.
    accounted_ns: Option<u64>,
    /// Time of handlers since then, ns.
    handlers_ns: u64,
}

/// The accounts of all followed threads.
#[derive(Debug, Default)]
pub struct Accounts {
    /// By thread id.
    pub threads: BTreeMap<i32, Thread>,
    /// Time of all waits per holder, ns.
    pub holders: HashMap<Holder, u64>,
    /// What was taken from followed threads that had a CPU.
    pub taken: Taken,
    /// Threads that ended and whose ids other programs got.
    ended: Vec<(i32, Thread)>,
    /// The longest waits, the longest first.
    pub longest: Vec<Wait>,
    /// The last turns on all CPUs, if a wait is to end the recording.
    pub keeper: Option<Keeper>,
    /// First and last event, ns.
    pub span_ns: Option<(u64, u64)>,
    cpus: BTreeMap<u16, Cpu>,
}

impl Accounts {
    /// Accounts that keep the last turns on all CPUs.
    pub fn keeping(keeper: Option<Keeper>) -> Self {
        Self { keeper, ..Self::default() }
    }

    /// Follows a thread, and all threads that it starts later.
    pub fn follow(&mut self, tid: i32) {
        self.threads.entry(tid).or_default();
    }

    /// The followed threads with their ids.
    pub fn all(&self) -> impl Iterator<Item = (i32, &Thread)> {
        let living = self.threads.iter().map(|(tid, thread)| (*tid, thread));
        living.chain(self.ended.iter().map(|(tid, thread)| (*tid, thread)))
    }

    /// A thread started another one, which can have the id of one that ended.
    fn forked(&mut self, parent: i32, child: i32) {
        if self.is_own(parent) {
            self.follow(child);
        } else if self.threads.get(&child).is_some_and(|t| t.has_ended) {
            self.ended.extend(self.threads.remove(&child).map(|thread| (child, thread)));
        }
    }

    fn is_own(&self, tid: i32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Takes the next event. `name` gives the name of a handler.
    pub fn event(&mut self, e: &TraceEvent, name: impl Fn(&EventKind) -> String) {
        let first = self.span_ns.map_or(e.ticks, |s| s.0);
        self.span_ns = Some((first, e.ticks));
        match &e.kind {
            EventKind::SwitchTo { prev_pid, prev_state, next_pid, .. } => {
                self.switch(e.cpu, e.ticks, (*prev_pid, *prev_state), *next_pid);
            }
            EventKind::Woken { pid, cpu } => self.wait(*pid, *cpu, e.ticks, false),
            EventKind::Moved { pid, cpu } => self.moved(*pid, *cpu, e.ticks),
            EventKind::Forked { parent, child } => self.forked(*parent, *child),
            EventKind::IrqEntry { .. } | EventKind::SoftirqEntry { .. } | EventKind::VectorEntry { .. } => {
                self.cpu(e.cpu).handlers.push((name(&e.kind), e.ticks, 0));
            }
            EventKind::IrqExit { .. } | EventKind::SoftirqExit { .. } | EventKind::VectorExit { .. } => {
                self.handled(e.cpu, e.ticks);
            }
            EventKind::Ran { pid, runtime_ns } => self.ran(e.cpu, e.ticks, *pid, *runtime_ns),
            _ => {}
        }
    }

    fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        self.cpus.entry(cpu).or_default()
    }

    /// Charges the time since the last event of a CPU to `holder`, for all that wait for the CPU.
    fn charge(&mut self, cpu: u16, now_ns: u64, holder: i32) {
        let Some(of) = self.cpus.get_mut(&cpu) else { return };
        let from_ns = of.since_ns;
        of.since_ns = now_ns.max(from_ns);
        let is_own = self.threads.contains_key(&holder);
        for tid in &of.waiting {
            let Some(Thread { state: State::Waiting { since_ns, was_preempted, parts, .. }, .. }) =
                self.threads.get_mut(tid)
            else {
                continue;
            };
            let holder = match holder {
                0 if *was_preempted => Holder::HeldBack,
                0 => Holder::Waking,
                tid if is_own => Holder::Own(tid),
                tid => Holder::Other(tid),
            };
            let ns = now_ns.saturating_sub(from_ns.max(*since_ns));
            parts.add(holder, ns);
        }
    }

    /// Charges the time until now to the thread that has the CPU, as far as one is known.
    fn charge_current(&mut self, cpu: u16, now_ns: u64) {
        if let Some(current) = self.cpu(cpu).current {
            self.charge(cpu, now_ns, current);
        }
    }

    /// Keeps the turn of a thread that ends.
    fn turn(&mut self, cpu: u16, now_ns: u64, tid: i32) {
        let start_ns = std::mem::replace(&mut self.cpu(cpu).turn_ns, now_ns);
        if let Some(keeper) = self.keeper.as_mut().filter(|_| start_ns > 0) {
            keeper.add(Turn { cpu, start_ns, ns: now_ns.saturating_sub(start_ns), who: Who::Thread(tid) });
        }
    }

    fn switch(&mut self, cpu: u16, now_ns: u64, (prev, state): (i32, TaskState), next: i32) {
        self.charge(cpu, now_ns, prev);
        self.turn(cpu, now_ns, prev);
        if self.threads.get(&prev).is_some_and(|t| matches!(t.state, State::Waiting { .. })) {
            // It came unseen, and nothing shows when: its wait ends here.
            self.arrive(prev, cpu, now_ns);
        }
        let start_ns = self.span_ns.map_or(now_ns, |s| s.0);
        let of = self.cpu(cpu);
        let before = of.current.replace(next);
        let is_first = before.is_none();
        (of.since_ns, of.accounted_ns, of.handlers_ns) = (now_ns, Some(now_ns), 0);
        // No handler is open during a switch: the exit of such a one was lost.
        of.handlers.clear();
        if let Some(before) = before.filter(|before| *before != prev) {
            self.left_unseen(before, now_ns);
        }
        if let Some(thread) = self.threads.get_mut(&prev).filter(|_| prev != 0) {
            match thread.state {
                State::Running { since_ns } => thread.ran_ns += now_ns.saturating_sub(since_ns),
                // It ran since before the first event.
                State::Away if is_first => thread.ran_ns += now_ns.saturating_sub(start_ns),
                _ => {}
            }
            thread.state = State::Away;
            thread.has_ended = state.has_ended();
            if state.is_runnable() {
                self.wait(prev, cpu, now_ns, true);
            }
        }
        if self.is_own(next) && next != 0 {
            self.arrive(next, cpu, now_ns);
        }
    }

    /// The scheduler brought the account of a thread up to date. The event is of the CPU that did so, which can be another one than that of the thread.
    fn ran(&mut self, cpu: u16, now_ns: u64, tid: i32, runtime_ns: u64) {
        let has_it = |(_, of): &(&u16, &Cpu)| of.current == Some(tid);
        let its_cpu = match self.cpu(cpu).current {
            Some(current) if current == tid => Some(cpu),
            _ => self.cpus.iter().find(has_it).map(|(cpu, _)| *cpu),
        };
        if let Some(its_cpu) = its_cpu {
            return self.accounted(its_cpu, now_ns, runtime_ns);
        }
        let waits_for = match self.threads.get(&tid).map(|t| &t.state) {
            Some(State::Waiting { cpu, .. }) => *cpu,
            _ => cpu,
        };
        if waits_for == cpu {
            self.came_unseen(cpu, now_ns.saturating_sub(runtime_ns), tid);
            self.accounted(cpu, now_ns, runtime_ns);
        }
    }

    /// A thread has the CPU since `at_ns`, although no switch was traced: some kernels leave out switches away from certain tasks.
    fn came_unseen(&mut self, cpu: u16, at_ns: u64, tid: i32) {
        let at_ns = at_ns.max(self.cpu(cpu).since_ns);
        if let Some(before) = self.cpu(cpu).current {
            self.charge(cpu, at_ns, before);
            self.turn(cpu, at_ns, before);
            self.left_unseen(before, at_ns);
        }
        let of = self.cpu(cpu);
        (of.current, of.since_ns, of.accounted_ns, of.handlers_ns) = (Some(tid), at_ns, Some(at_ns), 0);
        if self.is_own(tid) {
            self.arrive(tid, cpu, at_ns);
        }
    }

    /// Ends the run of a followed thread that no switch ended.
    fn left_unseen(&mut self, tid: i32, at_ns: u64) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && let State::Running { since_ns } = thread.state
        {
            thread.ran_ns += at_ns.saturating_sub(since_ns);
            thread.state = State::Away;
        }
    }

    /// A followed thread begins to wait for a CPU.
    fn wait(&mut self, tid: i32, cpu: u16, now_ns: u64, was_preempted: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if thread.state != State::Away {
            return;
        }
        thread.state = State::Waiting { cpu, since_ns: now_ns, was_preempted, parts: Parts::default() };
        self.cpu(cpu).waiting.push(tid);
    }

    /// A followed thread that waits is moved to another CPU.
    fn moved(&mut self, tid: i32, to: u16, now_ns: u64) {
        let Some(State::Waiting { cpu, .. }) = self.threads.get(&tid).map(|t| &t.state) else { return };
        let from = *cpu;
        self.charge_current(from, now_ns);
        self.charge_current(to, now_ns);
        self.cpu(from).waiting.retain(|t| *t != tid);
        self.cpu(to).waiting.push(tid);
        // The new CPU's time so far belongs to no wait of this thread.
        self.cpu(to).since_ns = now_ns;
        if let Some(Thread { state: State::Waiting { cpu, .. }, .. }) = self.threads.get_mut(&tid) {
            *cpu = to;
        }
    }

    /// A followed thread gets a CPU.
    fn arrive(&mut self, tid: i32, on: u16, now_ns: u64) {
        if let Some(State::Waiting { cpu, .. }) = self.threads.get(&tid).map(|t| &t.state)
            && *cpu != on
        {
            let from = *cpu;
            self.charge_current(from, now_ns);
            self.cpu(from).waiting.retain(|t| *t != tid);
        }
        self.cpu(on).waiting.retain(|t| *t != tid);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let before = std::mem::replace(&mut thread.state, State::Running { since_ns: now_ns });
        if let State::Running { since_ns } = before {
            thread.ran_ns += now_ns.saturating_sub(since_ns);
        }
        let State::Waiting { since_ns, parts, .. } = before else { return };
        self.waited(tid, on, since_ns, now_ns, parts);
    }

    /// Books a wait of a followed thread.
    fn waited(&mut self, tid: i32, on: u16, since_ns: u64, now_ns: u64, parts: Parts) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let parts = parts.all();
        let ns = now_ns.saturating_sub(since_ns);
        thread.waited_ns += ns;
        thread.waits += 1;
        for (holder, ns) in &parts {
            *self.holders.entry(*holder).or_default() += ns;
        }
        if let Some(keeper) = self.keeper.as_mut().filter(|k| k.is_beyond(ns)) {
            keeper.catch(Wait { tid, cpu: on, start_ns: since_ns, ns, parts: parts.clone() }, now_ns);
        }
        if self.longest.len() < LONGEST || self.longest.last().is_some_and(|l| l.ns < ns) {
            self.longest.push(Wait { tid, cpu: on, start_ns: since_ns, ns, parts });
            self.longest.sort_by_key(|w| std::cmp::Reverse(w.ns));
            self.longest.truncate(LONGEST);
        }
    }

    /// A handler ends.
    fn handled(&mut self, cpu: u16, now_ns: u64) {
        let of = self.cpu(cpu);
        let Some((name, start_ns, inside_ns)) = of.handlers.pop() else { return };
        let ns = now_ns.saturating_sub(start_ns);
        match of.handlers.last_mut() {
            Some(outer) => outer.2 += ns,
            None => of.handlers_ns += ns,
        }
        let current = of.current;
        if let Some(keeper) = &mut self.keeper {
            keeper.add(Turn { cpu, start_ns, ns, who: Who::Handler(name.clone()) });
        }
        if current.is_some_and(|tid| self.is_own(tid)) {
            *self.taken.handlers.entry(name).or_default() += ns.saturating_sub(inside_ns);
        }
    }

    /// The scheduler brought the account of the current thread up to date.
    fn accounted(&mut self, cpu: u16, now_ns: u64, runtime_ns: u64) {
        let of = self.cpu(cpu);
        let handlers_ns = std::mem::take(&mut of.handlers_ns);
        let Some(from_ns) = of.accounted_ns.replace(now_ns) else { return };
        if of.current.is_some_and(|tid| self.is_own(tid)) {
            let missing_ns = now_ns as i64 - from_ns as i64 - runtime_ns as i64;
            self.taken.add(missing_ns, handlers_ns);
        }
    }

    /// Sets the times of a thread to those of the scheduler's counters.
    pub fn counted(&mut self, tid: i32, ran_ns: u64, waited_ns: u64) {
        let thread = self.threads.entry(tid).or_default();
        (thread.ran_ns, thread.waited_ns) = (ran_ns, waited_ns);
    }

    /// Notes a wait that exceeds the limit and has not ended yet.
    pub fn look_for_overdue(&mut self) {
        let Some((_, now_ns)) = self.span_ns else { return };
        let overdue = self.threads.iter().find_map(|(tid, thread)| match &thread.state {
            State::Waiting { cpu, since_ns, .. } => {
                let ns = now_ns.saturating_sub(*since_ns);
                let is_beyond = self.keeper.as_ref().is_some_and(|k| k.is_beyond(ns));
                is_beyond.then_some((*tid, *cpu, *since_ns, ns))
            }
            _ => None,
        });
        let Some((tid, cpu, start_ns, ns)) = overdue else { return };
        self.charge_current(cpu, now_ns);
        if let Some(Thread { state: State::Waiting { parts, .. }, .. }) = self.threads.get(&tid)
            && let Some(keeper) = &mut self.keeper
        {
            keeper.catch(Wait { tid, cpu, start_ns, ns, parts: parts.clone().all() }, now_ns);
        }
    }

    /// Ends the accounts of threads that still run or wait.
    pub fn end(&mut self) {
        let Some((_, now_ns)) = self.span_ns else { return };
        let cpus: Vec<u16> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.charge_current(cpu, now_ns);
            if let Some(current) = self.cpu(cpu).current {
                self.turn(cpu, now_ns, current);
            }
        }
        let tids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in tids {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            match std::mem::take(&mut thread.state) {
                State::Running { since_ns } => thread.ran_ns += now_ns.saturating_sub(since_ns),
                State::Waiting { cpu, since_ns, parts, .. } => self.waited(tid, cpu, since_ns, now_ns, parts),
                State::Away => {}
            }
        }
    }
}
