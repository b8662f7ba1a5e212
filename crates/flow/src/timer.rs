//! Exclusive times of nested events by one stamp a transition: for the kernel here, and for any other scheduler, as in
//! `examples/own_runtime.rs`.
//!
//! Stamps are fenced: an unfenced one books 8 to 9 ns of the work on its neighbor. A slice between two belongs to the innermost
//! event; a constant part of it is the timer's own.

use std::cell::{Cell, RefCell};

use machmeter_stats::histogram::LogHistogram;
use machmeter_stats::spread::stddev;
use machmeter_sys::clock::{OrderedCounter, TickSource, barrier};

/// Stamps between two reductions: 32 KiB, half of a first-level cache.
const STAMPS: usize = 4096;
const ENTER: u64 = 0;
const LEAVE: u64 = 1 << 6;
/// The innermost event and the one around it end, and one of the latter's kind begins: a turn of a loop.
const TURN: u64 = 2 << 6;
/// Start, stop and reduction, told apart by their code.
const MARK: u64 = 3 << 6;
const START: u64 = MARK;
const STOP: u64 = MARK | 1;
const REDUCED: u64 = MARK | 2;
const OPERATION: u64 = MARK;
const CODE: u64 = (1 << 6) - 1;
/// Events of one log at most.
pub const MOST_NAMES: usize = 1 << 6;
/// Empty events that calibrate, and those of a batch.
const CALIBRATION: usize = 64 * BATCH;
const BATCH: usize = 1024;

/// Where the time of events goes.
pub trait Timer: 'static {
    const ON: bool;
    fn enter(log: &Log, code: u8);
    fn leave(log: &Log);
    /// See the kernel's loop: apply and pass end, and the next pass, of this code, begins.
    fn turn(log: &Log, code: u8);
}

/// No timer: no code.
pub struct Off;

impl Timer for Off {
    const ON: bool = false;
    #[inline(always)]
    fn enter(_log: &Log, _code: u8) {}
    #[inline(always)]
    fn leave(_log: &Log) {}
    #[inline(always)]
    fn turn(_log: &Log, _code: u8) {}
}

/// A fenced stamp for every transition.
pub struct On;

impl Timer for On {
    const ON: bool = true;
    #[inline(always)]
    fn enter(log: &Log, code: u8) {
        log.stamp(ENTER | u64::from(code));
    }
    #[inline(always)]
    fn leave(log: &Log) {
        log.stamp(LEAVE);
    }
    #[inline(always)]
    fn turn(log: &Log, code: u8) {
        log.stamp(TURN | u64::from(code));
    }
}

/// Stamps not yet reduced, and the sums of the others.
pub struct Log {
    names: &'static [&'static str],
    stamps: Box<[Cell<u64>; STAMPS]>,
    next: Cell<usize>,
    reduced: RefCell<Sums>,
}

/// What the events of one name took.
pub struct Sum {
    pub called: u64,
    /// Exclusive time as it was stamped, ticks.
    pub raw_ticks: u64,
    /// Slices that it consists of: one more than the events within each.
    pub slices: u64,
    /// Of single events, the timer's own part taken off: mean, sum of squared distances from it, least and greatest, ticks.
    pub mean: f64,
    pub squares: f64,
    pub least: f64,
    pub most: f64,
    /// Of single events, ticks; what came out below zero counts as zero.
    pub histogram: Option<LogHistogram>,
}

const NOTHING: Sum = Sum {
    called: 0,
    raw_ticks: 0,
    slices: 0,
    mean: 0.0,
    squares: 0.0,
    least: f64::INFINITY,
    most: f64::NEG_INFINITY,
    histogram: None,
};

impl Sum {
    /// Time of all events, the timer's own part taken off, ticks.
    pub fn total_ticks(&self) -> f64 {
        self.mean * self.called as f64
    }

    fn add(&mut self, event: &Event, own_ticks: f64) {
        self.called += 1;
        let ticks = event.ticks as f64 - own_ticks * f64::from(event.slices);
        let off = ticks - self.mean;
        self.mean += off / self.called as f64;
        self.squares += off * (ticks - self.mean);
        self.least = self.least.min(ticks);
        self.most = self.most.max(ticks);
        self.histogram.get_or_insert_default().record(ticks.max(0.0).round() as u64);
    }
}

#[derive(Debug, Clone, Copy)]
struct Event {
    code: u8,
    ticks: u64,
    slices: u32,
}

pub struct Sums {
    by_code: Vec<Sum>,
    open: Vec<Event>,
    last: Option<u64>,
    started: Option<u64>,
    /// The timer's own part of a slice, ticks.
    pub own_ticks: f64,
    /// From each start to its stop, ticks.
    pub wall_ticks: u64,
    /// Outside of all events, and what reductions took, ticks.
    pub between_ticks: u64,
    pub reduction_ticks: u64,
}

impl Sums {
    fn new(names: usize) -> Self {
        Self {
            by_code: std::iter::repeat_with(|| NOTHING).take(names).collect(),
            open: Vec::with_capacity(32),
            last: None,
            started: None,
            own_ticks: 0.0,
            wall_ticks: 0,
            between_ticks: 0,
            reduction_ticks: 0,
        }
    }

    pub fn of(&self, code: u8) -> &Sum {
        &self.by_code[code as usize]
    }

    pub fn all(&self) -> &[Sum] {
        &self.by_code
    }

    /// All that was booked, ticks: the wall, if the books are right.
    pub fn raw_ticks(&self) -> u64 {
        let events: u64 = self.by_code.iter().map(|s| s.raw_ticks).sum();
        events + self.open.iter().map(|e| e.ticks).sum::<u64>() + self.between_ticks + self.reduction_ticks
    }

    fn take(&mut self, stamp: u64) {
        // 56 bits of a counter of 5 GHz last for 166 days.
        let (ticks, operation, code) = (stamp >> 8, stamp & OPERATION, (stamp & CODE) as u8);
        let mark = stamp & (OPERATION | CODE);
        if let Some(last) = self.last.replace(ticks) {
            let slice = ticks.wrapping_sub(last) & (u64::MAX >> 8);
            match self.open.last_mut() {
                _ if mark == REDUCED => self.reduction_ticks += slice,
                Some(event) => {
                    event.ticks += slice;
                    event.slices += 1;
                }
                None => self.between_ticks += slice,
            }
        }
        match operation {
            ENTER => self.open.push(Event { code, ticks: 0, slices: 0 }),
            LEAVE => self.close(),
            TURN => {
                self.close();
                self.close();
                self.open.push(Event { code, ticks: 0, slices: 0 });
            }
            _ if mark == START => self.started = Some(ticks),
            _ if mark == STOP => {
                let started = self.started.take().unwrap_or(ticks);
                self.wall_ticks += ticks.wrapping_sub(started) & (u64::MAX >> 8);
                self.last = None;
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        if let Some(event) = self.open.pop()
            && let Some(sum) = self.by_code.get_mut(event.code as usize)
        {
            sum.raw_ticks += event.ticks;
            sum.slices += u64::from(event.slices);
            sum.add(&event, self.own_ticks);
        }
    }
}

/// A figure of many: mean, standard deviation, least and greatest, ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub deviation: f64,
    pub least: f64,
    pub most: f64,
}

/// What an empty event reports for itself (Tt), and what it costs its surroundings (Tpt).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calibration {
    pub own: Spread,
    pub pair: Spread,
}

impl Log {
    /// A log of events with these names, at most [`MOST_NAMES`].
    pub fn new(names: &'static [&'static str]) -> Self {
        assert!(names.len() <= MOST_NAMES, "{} names, at most {MOST_NAMES}", names.len());
        Self {
            names,
            stamps: vec![Cell::new(0); STAMPS].try_into().unwrap_or_else(|_| unreachable!()),
            next: Cell::new(0),
            reduced: RefCell::new(Sums::new(names.len())),
        }
    }

    #[inline(always)]
    fn stamp(&self, what: u64) {
        let ticks = OrderedCounter::now();
        barrier();
        let at = self.next.get();
        self.stamps[at & (STAMPS - 1)].set(ticks << 8 | what);
        self.next.set(at + 1);
        if at + 1 == STAMPS {
            self.reduce();
        }
    }

    #[cold]
    #[inline(never)]
    fn reduce(&self) {
        self.empty();
        self.stamps[0].set(OrderedCounter::now() << 8 | REDUCED);
        barrier();
        self.next.set(1);
    }

    fn empty(&self) {
        let mut sums = self.reduced.borrow_mut();
        for stamp in &self.stamps[..self.next.get()] {
            sums.take(stamp.get());
        }
        self.next.set(0);
    }

    /// From here on time is booked.
    pub fn start(&self) {
        self.stamp(START);
    }

    pub fn stop(&self) {
        self.stamp(STOP);
    }

    pub fn sums(&self) -> std::cell::Ref<'_, Sums> {
        self.empty();
        self.reduced.borrow()
    }

    /// Forgets what was booked; what the timer's own part is stays.
    pub fn clear(&self) {
        self.next.set(0);
        let mut sums = self.reduced.borrow_mut();
        let own_ticks = sums.own_ticks;
        *sums = Sums { own_ticks, ..Sums::new(self.names.len()) };
    }

    /// Measures the timer's own part of a slice and takes it off from now on.
    #[must_use]
    pub fn calibrated(self) -> Self {
        self.calibrate();
        self
    }

    /// Empty events inside of another; the log is empty afterwards.
    pub fn calibrate(&self) -> Calibration {
        self.reduced.borrow_mut().own_ticks = 0.0;
        self.clear();
        let mut pairs = Vec::with_capacity(CALIBRATION / BATCH);
        for _ in 0..CALIBRATION / BATCH {
            self.empty();
            self.start();
            let begin = OrderedCounter::now();
            for _ in 0..BATCH {
                On::enter(self, 0);
                On::leave(self);
            }
            let took = OrderedCounter::now() - begin;
            self.stop();
            pairs.push(took as f64 / BATCH as f64);
        }
        self.empty();
        let own = {
            let sums = self.reduced.borrow();
            let sum = sums.of(0);
            let deviation = (sum.squares / (sum.called.max(2) - 1) as f64).sqrt();
            Spread { mean: undisturbed_mean(sum), deviation, least: sum.least, most: sum.most }
        };
        pairs.sort_by(f64::total_cmp);
        let (mean, least, most) = (pairs[pairs.len() / 2], pairs[0], pairs[pairs.len() - 1]);
        let pair = Spread { mean, deviation: stddev(&pairs).unwrap_or(0.0), least, most };
        self.clear();
        self.reduced.borrow_mut().own_ticks = own.mean;
        Calibration { own, pair }
    }
}

/// Mean without the slowest hundredth, which something else delayed; of single values a clock of coarse steps shows too little.
fn undisturbed_mean(sum: &Sum) -> f64 {
    let Some(histogram) = &sum.histogram else { return 0.0 };
    let (mut left, mut total, mut n) = (sum.called - sum.called / 100, 0.0, 0);
    for bucket in histogram.iter() {
        let taken = bucket.count.min(left);
        total += taken as f64 * (bucket.low as f64).midpoint(bucket.high as f64);
        n += taken;
        left -= taken;
    }
    total / n.max(1) as f64
}
