//! What each box costs: a stamp before and behind each apply, sums by load, the first firings one by one, and levels of queues.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machmeter_sys::clock::{OrderedCounter, TickSource, barrier};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::graph::Graph;
use crate::kernel::{Call, Watch};
use crate::topology::Topology;

/// Pairs of stamps that calibrate, and the share of the slowest that are left out.
const CALIBRATION: usize = 4_096;
const SLOW: usize = CALIBRATION / 100;
/// Looks at queues that are kept; when there are more every second goes.
const LOOKS: usize = 256;

/// Applies of a box with the same load: firings, or tokens moved where the box has dynamic ports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub load: u64,
    pub calls: u64,
    pub mean_ns: f64,
}

/// A firing: number of the box, begin and length in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firing {
    pub number: usize,
    pub begin_ticks: u64,
    pub ticks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub at_ticks: u64,
    pub levels: Vec<u64>,
}

#[derive(Default)]
struct Sums {
    /// By load: calls and ticks.
    loads: BTreeMap<u64, (u64, u64)>,
    /// It answered something else than [`Outcome::Done`].
    is_left: bool,
    control: Vec<u8>,
}

struct Looks {
    kept: Vec<Look>,
    /// Firings from a look to the next, and those since the last.
    every: u64,
    since: u64,
}

pub struct Profile {
    is_dynamic: Vec<bool>,
    boxes: RefCell<Vec<Sums>>,
    firings: RefCell<Vec<Firing>>,
    most_firings: usize,
    looks: RefCell<Looks>,
    begin_ticks: Cell<Option<u64>>,
    own_ticks: f64,
}

impl Profile {
    /// Of a run of this graph; the first `most_firings` are kept one by one.
    pub fn new(graph: &Graph, most_firings: usize) -> Self {
        let is_dynamic: Vec<bool> = Topology::of(graph).boxes.iter().map(|b| b.is_dynamic).collect();
        Self {
            boxes: RefCell::new(is_dynamic.iter().map(|_| Sums::default()).collect()),
            is_dynamic,
            firings: RefCell::new(Vec::with_capacity(most_firings)),
            most_firings,
            looks: RefCell::new(Looks { kept: Vec::with_capacity(LOOKS), every: 1, since: 0 }),
            begin_ticks: Cell::new(None),
            own_ticks: own_ticks(),
        }
    }

    /// Of each box what its applies took, the stamps' own part taken off.
    pub fn loads(&self, ns_per_tick: f64) -> Vec<Vec<Load>> {
        let load = |(load, (calls, ticks)): (&u64, &(u64, u64))| {
            let ticks = (*ticks as f64 / *calls as f64 - self.own_ticks).max(0.0);
            Load { load: *load, calls: *calls, mean_ns: ticks * ns_per_tick }
        };
        self.boxes.borrow().iter().map(|b| b.loads.iter().map(load).collect()).collect()
    }

    /// The first firings, and looks at queues, ticks counted from the first firing.
    pub fn firings(&self) -> Vec<Firing> {
        self.firings.borrow().clone()
    }

    pub fn looks(&self) -> Vec<Look> {
        self.looks.borrow().kept.clone()
    }

    /// Of each box the values that decide what others do, as bytes.
    pub fn controls(&self) -> Vec<Vec<u8>> {
        self.boxes.borrow().iter().map(|b| b.control.clone()).collect()
    }

    /// The first box without dynamic ports that once was not done.
    pub fn left_early(&self) -> Option<usize> {
        self.boxes.borrow().iter().zip(&self.is_dynamic).position(|(b, is_dynamic)| b.is_left && !is_dynamic)
    }
}

impl Watch for Profile {
    fn fire(&self, call: &mut Call<'_>) -> Outcome {
        let moved = call.moved();
        let begin_ticks = OrderedCounter::now();
        barrier();
        let outcome = call.apply();
        let ticks = OrderedCounter::now() - begin_ticks;
        let number = call.number();
        let load = if self.is_dynamic[number] { call.moved() - moved } else { u64::from(call.times()) };
        let mut boxes = self.boxes.borrow_mut();
        let sums = &mut boxes[number];
        let sum = sums.loads.entry(load).or_default();
        *sum = (sum.0 + 1, sum.1 + ticks);
        sums.is_left |= outcome != Outcome::Done;
        if let Some(bytes) = call.control().filter(|_| outcome == Outcome::Done) {
            sums.control.extend_from_slice(bytes);
        }
        let first_ticks = self.begin_ticks.get().unwrap_or(begin_ticks);
        self.begin_ticks.set(Some(first_ticks));
        let begin_ticks = begin_ticks - first_ticks;
        let mut firings = self.firings.borrow_mut();
        if firings.len() < self.most_firings {
            firings.push(Firing { number, begin_ticks, ticks });
        }
        self.looks.borrow_mut().look(begin_ticks + ticks, call);
        outcome
    }
}

impl Looks {
    fn look(&mut self, at_ticks: u64, call: &Call<'_>) {
        self.since += 1;
        if self.since < self.every {
            return;
        }
        self.since = 0;
        if self.kept.len() == LOOKS {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every *= 2;
        }
        self.kept.push(Look { at_ticks, levels: call.levels().collect() });
    }
}

/// What two stamps with nothing between them show, ticks: the mean without the slowest.
fn own_ticks() -> f64 {
    let once = || {
        let begin = OrderedCounter::now();
        barrier();
        OrderedCounter::now() - begin
    };
    let mut all: Vec<u64> = (0..CALIBRATION).map(|_| once()).collect();
    all.sort_unstable();
    all.truncate(CALIBRATION - SLOW);
    all.iter().sum::<u64>() as f64 / all.len() as f64
}
