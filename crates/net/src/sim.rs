//! Links with planted parameters on a virtual clock: the cells, the pool, the sampler and the analysis are the real ones.

use std::cell::{Cell as Shared, RefCell};
use std::io;
use std::rc::Rc;

use machmeter_engine::cost::Rows;
use machmeter_engine::experiment::Enough;
use machmeter_engine::host::Silent;
use machmeter_engine::role::RoleError;
use machmeter_engine::sampling::{Mark, Sampler, Timing};
use machmeter_engine::{Analysis, Level};
use machmeter_stats::random::Random;
use machmeter_sys::clock::TickRate;
use machmeter_sys::link::{Link, Transport, Wait};

use crate::analyze::{analyze, links};
use crate::cells::Ends;
use crate::measure::ONE;
use crate::near::{Control, Near, OpenLink};
use crate::orders::{Answer, END, Ended, Order, Turns};
use crate::plan::{Sizes, Way};
use crate::set::{Cost, Links};

/// Parameters of messages from a size on, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planted {
    pub(crate) from_bytes: u64,
    pub(crate) gap_ns: f64,
    pub(crate) per_byte_ns: f64,
    pub(crate) send_ns: f64,
    pub(crate) recv_ns: f64,
    pub(crate) latency_ns: f64,
}

/// Noise of every timed batch, relative: symmetric, and spikes that make it longer by up to as much again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    pub(crate) base: f64,
    pub(crate) spikes: f64,
}

/// Turns of work a nanosecond takes.
const WORK_NS: f64 = 0.6;

/// A link and its two ends.
struct World {
    now_ns: Shared<f64>,
    segments: Vec<Planted>,
    turns: Shared<Turns>,
    /// Messages of this turn that were sent, when the link is free again, and when the far end is.
    sent: Shared<u32>,
    link_free_ns: Shared<f64>,
    far_free_ns: Shared<f64>,
    received: Shared<u64>,
    noise: Noise,
    random: RefCell<Random>,
}

impl World {
    fn segment(&self, bytes: u64) -> Planted {
        *self.segments.iter().rev().find(|s| s.from_bytes <= bytes).unwrap_or(&self.segments[0])
    }

    fn noise(&self) -> f64 {
        let random = &mut self.random.borrow_mut();
        let spike = if random.unit() < self.noise.spikes { random.unit() } else { 0.0 };
        (1.0 + self.noise.base * random.normal()).max(0.5) * (1.0 + spike)
    }
}

struct SimulatedLink(Rc<World>);

impl Link for SimulatedLink {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let w = &self.0;
        if message[0] & END != 0 {
            return Ok(());
        }
        let s = w.segment(message.len() as u64);
        let further_ns = s.per_byte_ns * (message.len() as f64 - 1.0);
        if w.sent.get() == 0 {
            // The last turn is over on all sides.
            w.link_free_ns.set(0.0);
            w.far_free_ns.set(0.0);
        }
        w.now_ns.set(w.now_ns.get() + s.send_ns);
        let departs_ns = w.now_ns.get().max(w.link_free_ns.get());
        w.link_free_ns.set(departs_ns + s.gap_ns + further_ns);
        let arrives_ns = departs_ns + s.latency_ns + further_ns;
        w.far_free_ns.set(arrives_ns.max(w.far_free_ns.get()) + s.recv_ns);
        w.sent.set(w.sent.get() + 1);
        w.received.set(w.received.get() + 1);
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> io::Result<()> {
        let w = &self.0;
        let s = w.segment(message.len() as u64);
        let turns = w.turns.get();
        let delay_ns = if turns.there > 1 { turns.delay_ns as f64 } else { 0.0 };
        let there_ns = w.far_free_ns.get() + delay_ns + s.send_ns;
        let here_ns = there_ns + s.latency_ns + s.per_byte_ns * (message.len() as f64 - 1.0);
        w.now_ns.set(here_ns.max(w.now_ns.get()) + s.recv_ns);
        w.sent.set(0);
        Ok(())
    }

    fn set_limit(&mut self, _limit_ns: u64) -> io::Result<()> {
        Ok(())
    }

    fn describe(&self) -> String {
        String::new()
    }
}

/// What the far end answers beside the link.
struct Beside {
    world: Rc<World>,
    waits: bool,
}

impl Control for Beside {
    fn send(&mut self, order: &Order) -> Result<(), RoleError> {
        let Order::Turns(turns) = order;
        self.world.turns.set(*turns);
        self.world.received.set(0);
        self.waits = true;
        Ok(())
    }

    fn receive(&mut self, _within_ns: u64) -> Result<Answer, RoleError> {
        if std::mem::take(&mut self.waits) {
            return Ok(Answer::Ready);
        }
        let (turns, messages) = (self.world.turns.get(), self.world.received.get());
        let recv_ns = self.world.segment(turns.bytes).recv_ns;
        let timed = if turns.delay_ns > 0 { messages / u64::from(turns.there) } else { 0 };
        let receive_ns = (0..timed).map(|_| recv_ns * self.world.noise()).collect();
        Ok(Answer::Ended(Ended { messages, receive_ns, ..Ended::default() }))
    }
}

struct Clock(Rc<World>);

impl Timing for Clock {
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        let start_ns = self.0.now_ns.get();
        work();
        let took_ns = (self.0.now_ns.get() - start_ns) * self.0.noise();
        self.0.now_ns.set(start_ns + took_ns);
        // Steps of 10 ns.
        (took_ns / 10.0).round() as u64 * 10
    }
    fn ticks(&mut self) -> u64 {
        self.0.now_ns.get() as u64
    }
    fn mark(&mut self) -> Mark {
        Mark::default()
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get() as u64
    }
}

/// Largest message, bytes, and virtual time of a run, ns.
const LAST: u64 = 1 << 20;
const RUN_NS: u64 = 60_000_000_000;

/// What the probe finds of a link with these parameters, and its jumps.
pub(crate) fn found(segments: &[Planted], noise: Noise, seed: u64) -> (Analysis, Vec<u64>) {
    let world = Rc::new(World {
        now_ns: Shared::new(1.0),
        segments: segments.to_vec(),
        turns: Shared::new(ONE),
        sent: Shared::default(),
        link_free_ns: Shared::default(),
        far_free_ns: Shared::default(),
        received: Shared::default(),
        noise,
        random: RefCell::new(Random::new(seed)),
    });
    let tcp = Transport::named("tcp").unwrap();
    let link = OpenLink::new(tcp, Wait::Polling, Box::new(SimulatedLink(Rc::clone(&world))));
    let control = Beside { world: Rc::clone(&world), waits: false };
    let mut near = Near::over(Box::new(control), vec![link]);
    let clock = Rc::clone(&world);
    near.work = Box::new(move |turns| clock.now_ns.set(clock.now_ns.get() + WORK_NS * turns as f64));
    let ends = Ends::new(near, None, TickRate::NANOSECONDS);
    let mut set = Links::new(&ends, &Silent);
    let way = Way { transport: "tcp", wait: "polling", direction: "there" };
    let at = |bytes: u64| {
        let s = world.segment(bytes);
        (bytes, 2.0 * (s.send_ns + s.latency_ns + s.recv_ns + s.per_byte_ns * bytes as f64))
    };
    let cost = Cost::of(&[at(1), at(LAST)]).unwrap();
    set.add_link(0, way, Sizes::of((1, LAST), None), cost);
    let mut sampler = Sampler::new(Clock(Rc::clone(&world)), TickRate::NANOSECONDS, seed);
    let rows = set.rows_until(&mut sampler, RUN_NS, Enough::at(Level::Standard), seed);
    let rows = Rows { tick_hz: 1e9, step_ticks: 10, rows, ..Rows::default() };
    let jumps = links(&rows, None, &mut Analysis::default()).iter().flat_map(|f| f.table.jumps()).collect();
    (analyze(&crate::tests::params(&[]), &rows, seed), jumps)
}
