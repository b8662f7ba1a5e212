//! The cells of a link: trains, single trips, work, receive calls, and the search for the size that waits.

use std::cell::RefCell;

use machmeter_engine::cost::{Pair, Proof, Row};
use machmeter_engine::disturbance::Disturbance;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_engine::sampling::{Bench, Company, KEPT_PREEMPTED, LONG_NS, Pace, Subject};
use machmeter_sys::clock::TickRate;
use machmeter_sys::link::{Transport, Wait};

use crate::near::{Near, name_of};
use crate::orders::Turns;
use crate::plan::{Operation, THRESHOLD, WORK_TURNS, Way};

/// What all cells use.
pub(crate) struct Ends {
    pub(crate) near: RefCell<Near>,
    placement: RefCell<Option<PlacementDetector>>,
    pub(crate) rate: TickRate,
}

impl Ends {
    pub(crate) fn new(near: Near, placement: Option<PlacementDetector>, rate: TickRate) -> Self {
        Self { near: RefCell::new(near), placement: RefCell::new(placement), rate }
    }

    /// How far the ends are apart now, ns; 0 where nobody looks.
    fn one_way_ns(&self, bits: u64) -> f64 {
        self.placement.borrow_mut().as_mut().map_or(0.0, |p| p.one_way_ns(bits))
    }
}

/// Turns of a pattern, or the work that stands between its messages while the far end waits.
pub(crate) struct Pattern<'n> {
    near: &'n RefCell<Near>,
    turns: Turns,
    work: u64,
    is_work_alone: bool,
    sent: u64,
    seen: u64,
}

impl<'n> Pattern<'n> {
    pub(crate) fn new(near: &'n RefCell<Near>, turns: Turns, work: u64) -> Self {
        Self { near, turns, work, is_work_alone: false, sent: 0, seen: 0 }
    }

    /// The pace of a row of work: an error of its length is one of every overhead, so that it has many short batches.
    pub(crate) const WORK_PACE: Pace = Pace::of(20_000.0, 32).among(Company::Partner);

    pub(crate) fn work_alone(near: &'n RefCell<Near>, turns: Turns) -> Self {
        Self { is_work_alone: true, ..Self::new(near, turns, WORK_TURNS) }
    }
}

impl Subject for Pattern<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        self.near.borrow_mut().begin(self.turns)
    }

    fn run(&mut self, turns: u64) -> bool {
        let mut near = self.near.borrow_mut();
        if self.is_work_alone {
            (near.work)(self.work * turns);
            return true;
        }
        (0..turns).all(|_| near.turn(self.work))
    }

    fn leave(&mut self) {
        let mut near = self.near.borrow_mut();
        // A link that failed refuses its next pattern with the reason.
        if let Ok(sent) = near.end() {
            self.sent += sent;
            self.seen += near.ended.messages;
        }
    }

    fn proof(&mut self) -> Option<Proof> {
        let loses = self.near.borrow().links[self.turns.link].transport.loses;
        if loses { None } else { Proof::of("messages at the far end", self.sent, self.seen) }
    }
}

/// A row of turns, told at the placement of each visit.
pub(crate) struct PatternCell<'n> {
    bench: Bench<'n>,
    pace: Pace,
    ends: &'n Ends,
}

impl<'n> PatternCell<'n> {
    pub(crate) fn new(ends: &'n Ends, row: Row, subject: Pattern<'n>, pace: Pace) -> Self {
        Self { bench: Bench::new(row, subject), pace, ends }
    }
}

impl Cell for PatternCell<'_> {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.bench.row)
    }

    fn expected_ns(&self) -> u64 {
        self.pace.visit_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let regime_ns = self.ends.one_way_ns(visit.bits);
        let before = self.bench.row.pairs.len();
        visit.sampler.visit(&mut self.bench, &self.pace, visit.until_ns);
        let row = &mut self.bench.row;
        row.pairs[before..].iter_mut().for_each(|p| p.regime_ns = regime_ns);
        // The far end counts by visits: of short batches it spoils all, long ones are kept as those of the near end are.
        if self.pace.company == Company::Partner && self.ends.near.borrow().ended.preempted > 0 {
            let is_long = |p: &Pair| self.ends.rate.ns(p.short_ticks.max(p.long_ticks)) > LONG_NS;
            if row.pairs[before..].iter().all(is_long) {
                let kept = row.extras.entry(KEPT_PREEMPTED.to_owned()).or_insert(0.0);
                *kept += (row.pairs.len() - before) as f64;
            } else {
                row.pairs.drain(before..).for_each(|_| row.rejected.count(Disturbance::Partner));
            }
        }
    }

    fn into_rows(mut self: Box<Self>) -> Vec<Row> {
        self.bench.row.proof = self.bench.subject.proof();
        vec![kept(self.bench.row)]
    }
}

/// Receive calls of messages that are there: the end that receives the train waits for them and times its calls.
pub(crate) struct ReceiveCell<'n> {
    row: Row,
    ends: &'n Ends,
    turns: Turns,
    /// What the near end waits; 0 where the far end waits and times.
    near_delay_ns: u64,
}

/// Turns of a visit.
const RECEIVE_TURNS: u32 = 8;

impl<'n> ReceiveCell<'n> {
    pub(crate) fn new(ends: &'n Ends, mut row: Row, turns: Turns, near_delay_ns: u64) -> Self {
        row.long_turns = 1;
        Self { row, ends, turns, near_delay_ns }
    }

    /// Times of a visit, ns per call; fewer than turns where one failed.
    fn times_ns(&self) -> Result<Vec<f64>, String> {
        let mut near = self.ends.near.borrow_mut();
        near.begin(self.turns)?;
        if self.near_delay_ns > 0 {
            let own = (0..RECEIVE_TURNS).map_while(|_| near.waited_turn(self.near_delay_ns)).collect();
            near.end()?;
            return Ok(own);
        }
        let _ = (0..RECEIVE_TURNS).all(|_| near.turn(0));
        near.end()?;
        Ok(near.ended.receive_ns.clone())
    }
}

impl Cell for ReceiveCell<'_> {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn expected_ns(&self) -> u64 {
        2 * u64::from(RECEIVE_TURNS) * self.turns.delay_ns.max(self.near_delay_ns)
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        if self.row.refused.is_some() {
            return;
        }
        let regime_ns = self.ends.one_way_ns(visit.bits);
        let at_ns = visit.sampler.now_ns().saturating_sub(visit.sampler.start_ns) as f64;
        let times_ns = self.times_ns();
        let row = &mut self.row;
        match times_ns {
            Err(why) => row.refused = Some(why),
            Ok(times_ns) if times_ns.len() < RECEIVE_TURNS as usize => {
                row.rejected.count(Disturbance::Failed);
            }
            Ok(_) if self.ends.near.borrow().ended.preempted > 0 => row.rejected.count(Disturbance::Partner),
            Ok(times_ns) => {
                let number = row.next_visit();
                let ns_per_tick = self.ends.rate.ns_per_tick();
                row.pairs.extend(times_ns.iter().map(|ns| Pair {
                    at_ns,
                    visit: number,
                    // Each value is a mean of several calls, finer than a tick: in thousandths.
                    long_ticks: (ns.max(0.0) * f64::from(PARTS) / ns_per_tick).round() as u64,
                    regime_ns,
                    ..Pair::default()
                }));
            }
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![kept(self.row)]
    }
}

/// A row whose link failed later keeps the samples it has, and says so.
fn kept(mut row: Row) -> Row {
    if !row.pairs.is_empty() && row.refused.take().is_some() {
        row.extras.insert(FAILED_LATER.to_owned(), 1.0);
    }
    row.reached()
}

/// 1 where the link failed after the samples of the row were taken.
pub(crate) const FAILED_LATER: &str = "failed_later";

/// Operations that a turn of a row of receive calls counts as, so that its ticks are fine enough.
pub(crate) const PARTS: u32 = 1_000;

/// The search for the largest message that a fresh link takes while nobody receives.
pub(crate) struct ThresholdCell {
    row: Row,
    transport: &'static Transport,
    /// Whether powers of two suffice.
    is_coarse: bool,
    searches: u32,
}

const SEARCHES: u32 = 3;
/// Largest message tried, bytes.
const MOST_TRIED: u64 = 64 << 20;
/// A send that takes nothing for so long waits for the receiver, ns: hundreds of round trips of the links of one machine.
const WAITS_NS: u64 = 5_000_000;

impl ThresholdCell {
    pub(crate) fn new(transport: &'static Transport, is_coarse: bool) -> Self {
        let way = Way { transport: transport.name, wait: name_of(Wait::Polling), direction: "there" };
        Self { row: way.row(Operation::THRESHOLD), transport, is_coarse, searches: 0 }
    }

    /// Whether a fresh link takes a message of this size; `None` where it refuses the size itself.
    fn takes(&self, message: &[u8]) -> Result<Option<bool>, String> {
        let failed = |e: std::io::Error| e.to_string();
        let [near, _far] = self.transport.pair().map_err(failed)?;
        let mut near = near.open(Wait::Polling).map_err(failed)?;
        near.set_limit(WAITS_NS).map_err(failed)?;
        match near.send(message) {
            Ok(()) => Ok(Some(true)),
            Err(e) if e.kind() == std::io::ErrorKind::TimedOut => Ok(Some(false)),
            Err(_) => Ok(None),
        }
    }

    /// The largest size it takes, bytes, and whether larger ones are refused instead of waiting.
    pub(crate) fn search(&self) -> Result<(u64, bool), String> {
        let message = vec![1; MOST_TRIED as usize];
        let (mut low, mut high, mut refuses) = (0, MOST_TRIED + 1, false);
        let mut try_bytes = |bytes: u64| -> Result<bool, String> {
            let taken = self.takes(&message[..bytes as usize])?;
            refuses |= taken.is_none();
            Ok(taken == Some(true))
        };
        // By powers of two first: large messages cost time.
        for bytes in (0..).map(|i| 1 << i).take_while(|bytes| *bytes <= MOST_TRIED) {
            if !try_bytes(bytes)? {
                high = bytes;
                break;
            }
            low = bytes;
        }
        while !self.is_coarse && high - low > 1 && high <= MOST_TRIED {
            let middle = low.midpoint(high);
            if try_bytes(middle)? { low = middle } else { high = middle }
        }
        Ok((low, refuses))
    }
}

impl Cell for ThresholdCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn expected_ns(&self) -> u64 {
        40 * WAITS_NS
    }

    fn wants(&self, _enough: bool) -> bool {
        self.searches < if self.is_coarse { 1 } else { SEARCHES } && self.row.refused.is_none()
    }

    fn visit(&mut self, _visit: &mut Visit<'_>) {
        let (bytes, refuses) = match self.search() {
            Ok((bytes, refuses)) => (bytes as f64, refuses),
            Err(why) => {
                self.row.refused = Some(why);
                return;
            }
        };
        self.searches += 1;
        let extras = &mut self.row.extras;
        let [least, most, searches] = THRESHOLD;
        let before = |name: &str| extras.get(name).copied().unwrap_or(bytes);
        let (low, high) = (before(least).min(bytes), before(most).max(bytes));
        let (n, refuses) = (f64::from(self.searches), f64::from(u8::from(refuses)));
        extras.extend(
            [(least, low), (most, high), (searches, n), (REFUSES, refuses)].map(|(k, v)| (k.to_owned(), v)),
        );
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        // It has no pairs.
        vec![if self.searches == 0 { self.row.reached() } else { self.row }]
    }
}

/// 1 where longer messages are refused, 0 where their sender waits.
pub(crate) const REFUSES: &str = "refuses_longer";
