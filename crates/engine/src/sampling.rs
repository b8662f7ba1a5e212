//! Batches long for the clock and short against interruptions, in undisturbed pairs of two lengths, rows in random order.

use machmeter_stats::random::Random;
use machmeter_sys::clock::{SourceId, TickRate, TickSource, WithSource, dispatch};
use machmeter_sys::{affinity, thread};
use serde::{Deserialize, Serialize};

pub use machmeter_loops::subject::{GROUP_TURNS, Subject};

use crate::calibration::{self, Tried};
use crate::cost::{Pair, Row};
use crate::deadline::stop_requested;
use crate::disturbance::Disturbance;
use crate::disturbance::sibling::{CoreLook, CoreLooks, SiblingDetector};
use crate::host::Host;

/// What the kernel has counted of a thread so far, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Switches because it waited.
    pub voluntary_switches: u64,
    /// Switches against its will.
    pub involuntary_switches: u64,
    /// Its CPU, where known.
    pub cpu: Option<usize>,
}

impl Mark {
    #[inline]
    pub fn of_current_thread() -> Self {
        let thread::Usage { voluntary_switches, involuntary_switches, .. } =
            thread::Usage::of_current_thread();
        Self { voluntary_switches, involuntary_switches, cpu: affinity::current_cpu() }
    }
}

/// Time and disturbances, of the host or simulated.
pub trait Timing {
    /// Ticks that `work` takes.
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        let start = self.ticks();
        work();
        self.ticks().saturating_sub(start)
    }

    /// A reading of the clock, ticks. Readings of two threads may be compared as far as the clock was found to agree between CPUs.
    fn ticks(&mut self) -> u64;

    fn mark(&mut self) -> Mark;

    /// Time for humans and budgets, ns.
    fn now_ns(&self) -> u64;

    /// How wide the core is just now, as far as it is ours, and how quick; zeros where nobody looks ([`crate::disturbance::sibling`]).
    fn look_at_core(&mut self) -> CoreLook {
        CoreLook::default()
    }

    /// What happened to this thread since `mark`.
    fn disturbed_since(&mut self, mark: Mark) -> Option<Disturbance> {
        let now = self.mark();
        if now.involuntary_switches != mark.involuntary_switches {
            Some(Disturbance::Preempted)
        } else if now.cpu != mark.cpu {
            Some(Disturbance::Migrated)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct HostTiming {
    source: SourceId,
    sibling: Option<SiblingDetector>,
}

impl HostTiming {
    pub fn new(source: SourceId) -> Self {
        let time = |work: &mut dyn FnMut()| dispatch(source, Timed(work)).unwrap_or(0);
        let ticks = || dispatch(source, Reading).unwrap_or(0);
        Self { source, sibling: SiblingDetector::new(time, ticks) }
    }
}

struct Timed<'a>(&'a mut dyn FnMut());

impl WithSource for Timed<'_> {
    type Output = u64;

    #[inline(never)]
    fn run<S: TickSource>(self) -> u64 {
        let start = S::now();
        (self.0)();
        S::now().saturating_sub(start)
    }
}

struct Reading;

impl WithSource for Reading {
    type Output = u64;

    fn run<S: TickSource>(self) -> u64 {
        S::now()
    }
}

impl Timing for HostTiming {
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        // The source was qualified before, so it is there; without one no time would pass, and nothing would be kept.
        dispatch(self.source, Timed(work)).unwrap_or(0)
    }

    fn ticks(&mut self) -> u64 {
        dispatch(self.source, Reading).unwrap_or(0)
    }

    fn mark(&mut self) -> Mark {
        Mark::of_current_thread()
    }

    fn now_ns(&self) -> u64 {
        thread::monotonic_ns()
    }

    fn look_at_core(&mut self) -> CoreLook {
        let source = self.source;
        let look = |s: SiblingDetector| s.look(|work| dispatch(source, Timed(work)).unwrap_or(0));
        self.sibling.map(look).unwrap_or_default()
    }
}

/// How a row is visited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// How long a row runs at each visit before it is timed, ns ([`Pace::SETTLE_NS`]); once, for a short batch, where 0.
    pub settle_ns: u64,
    /// Length of a short batch, ns.
    pub batch_ns: f64,
    pub pairs_per_visit: usize,
    /// Which samples are kept, and how.
    #[serde(default)]
    pub company: Company,
    /// Whether turns are timed one by one ([`Pace::one_by_one`]): each is a pair with the meter's own time, that of no turn.
    #[serde(default)]
    pub one_by_one: bool,
}

/// Who else works while a sample is taken, by plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Company {
    /// Nobody: samples during which the thread was switched out are left out, and looks at the core stand beside the rest.
    #[default]
    Alone,
    /// Another process, perhaps on the same core: nobody looks at the core. Batches too long to fall between two switches are kept.
    Partner,
    /// The same, and every sample is kept: its tail is what is asked for.
    Everybody,
}

/// Batches longer than this are hardly ever undisturbed on a busy machine, ns: half of the 4 ms from one tick to the next at 250 Hz.
pub const LONG_NS: f64 = 2e6;
/// Samples of a row that were kept although the thread was switched out.
pub const KEPT_PREEMPTED: &str = "kept_preempted";

impl Pace {
    /// 0.05 ms: over 1,000 steps of the coarsest clock, mostly between two ticks of the scheduler (40 us each).
    pub const BATCH_NS: f64 = 50_000.0;
    /// After a rest of 20 ms vector loops took up to twice their time for 1 ms (AMD Zen 5); dependent additions did not.
    pub const SETTLE_NS: u64 = 1_500_000;
    /// What a turn of some microseconds takes with its part of the looks at the core, rounded up, ns.
    const SINGLE_NS: f64 = 10_000.0;
    /// Batches of operations in which two CPUs take part.
    pub const SHARED_BATCH_NS: f64 = 100_000.0;

    pub const fn of(batch_ns: f64, pairs_per_visit: usize) -> Self {
        Self { settle_ns: 0, batch_ns, pairs_per_visit, company: Company::Alone, one_by_one: false }
    }

    /// The pace of single turns, a multiple of [`GROUP_TURNS`] in a visit; the two looks at the core around a group take most of the
    /// time.
    pub const fn one_by_one(turns_per_visit: usize) -> Self {
        Self { one_by_one: true, ..Self::of(Self::SINGLE_NS, turns_per_visit) }
    }

    /// The same, in this company.
    #[must_use]
    pub const fn among(self, company: Company) -> Self {
        Self { company, ..self }
    }

    /// Length of the first visit, with the calibration, which takes about as long as two pairs, and a tenth beside, ns.
    pub fn visit_ns(&self) -> u64 {
        let pair_ns = 3.0 * self.batch_ns * 1.1;
        ((self.pairs_per_visit as f64 + 2.0) * pair_ns) as u64 + self.settle_ns
    }
}

pub struct Bench<'a> {
    pub row: Row,
    pub subject: Box<dyn Subject + 'a>,
}

impl<'a> Bench<'a> {
    pub fn new(row: Row, subject: impl Subject + 'a) -> Self {
        Self { row, subject: Box::new(subject) }
    }
}

/// Takes the samples of benches.
pub struct Sampler {
    timing: Box<dyn Timing>,
    rate: TickRate,
    /// What times of pairs count from, on the clock of [`Timing::now_ns`].
    pub start_ns: u64,
    random: Random,
}

impl Sampler {
    /// On this host; the calling thread is the one that measures, already placed.
    pub fn on(host: &Host<'_>) -> Self {
        Self::new(HostTiming::new(host.source()), host.rate, host.seed)
    }

    pub fn new(timing: impl Timing + 'static, rate: TickRate, seed: u64) -> Self {
        let start_ns = timing.now_ns();
        Self { timing: Box::new(timing), rate, start_ns, random: Random::new(seed) }
    }

    pub fn now_ns(&self) -> u64 {
        self.timing.now_ns()
    }

    /// One visit: prepare, calibrate on the first, warm up, take pairs; each step is tried once even after `until_ns`.
    pub fn visit(&mut self, bench: &mut Bench<'_>, pace: &Pace, until_ns: u64) {
        if bench.row.refused.is_some() {
            return;
        }
        if let Err(why) = bench.subject.prepare() {
            bench.row.refused = Some(why);
            return;
        }
        if bench.row.long_turns == 0 {
            match self.turns_for(bench.subject.as_mut(), pace.batch_ns, until_ns) {
                Some(turns) => (bench.row.short_turns, bench.row.long_turns) = (turns, turns * 2),
                None => bench.row.refused = Some("the operation fails".to_owned()),
            }
        } else {
            // Warms what the visits in between have cooled.
            bench.subject.run(bench.row.short_turns.max(1));
        }
        if bench.row.refused.is_none() {
            let settled_ns = self.timing.now_ns().saturating_add(pace.settle_ns).min(until_ns);
            while pace.settle_ns > 0 && self.timing.now_ns() < settled_ns && !stop_requested() {
                bench.subject.run(bench.row.short_turns.max(1));
                bench.subject.partners_moved();
            }
            let visit = bench.row.next_visit();
            if pace.one_by_one {
                for _ in 0..pace.pairs_per_visit / GROUP_TURNS {
                    self.take_group(bench, visit);
                }
            } else {
                for _ in 0..pace.pairs_per_visit {
                    self.take(bench, visit, pace.company);
                }
            }
        }
        bench.subject.leave();
    }

    /// Takes a group of single turns between two looks at the core, after one that is not timed: the looks cool what a turn uses.
    fn take_group(&mut self, bench: &mut Bench<'_>, visit: u32) {
        let (row, subject) = (&mut bench.row, bench.subject.as_mut());
        let begin = row.pairs.len();
        let mut looks = CoreLooks::default();
        looks.add(self.timing.look_at_core());
        let mut done = subject.run(1);
        for _ in 0..GROUP_TURNS {
            let at_ns = self.timing.now_ns().saturating_sub(self.start_ns) as f64;
            let mark = self.timing.mark();
            let short_ticks = self.timing.time(&mut || done &= subject.run(0));
            let long_ticks = self.timing.time(&mut || done &= subject.run(1));
            match self.timing.disturbed_since(mark) {
                _ if !done => row.rejected.count(Disturbance::Failed),
                Some(disturbance) => row.rejected.count(disturbance),
                None => row.pairs.push(Pair { at_ns, visit, short_ticks, long_ticks, ..Pair::default() }),
            }
        }
        looks.add(self.timing.look_at_core());
        row.pairs[begin..].iter_mut().for_each(|p| p.core = looks.together());
        subject.partners_moved();
    }

    /// Takes one pair, or counts why not.
    fn take(&mut self, bench: &mut Bench<'_>, visit: u32, company: Company) {
        let row = &mut bench.row;
        let turns = [row.short_turns, row.long_turns];
        let (pair, disturbed) = self.pair(bench.subject.as_mut(), turns, company == Company::Alone);
        let keeps = match company {
            Company::Alone => false,
            Company::Partner => self.rate.ns(pair.short_ticks.max(pair.long_ticks)) > LONG_NS,
            Company::Everybody => true,
        };
        match disturbed {
            Some(Disturbance::Preempted) if keeps => {
                *row.extras.entry(KEPT_PREEMPTED.to_owned()).or_insert(0.0) += 1.0;
                row.pairs.push(Pair { visit, ..pair });
            }
            Some(disturbance) => row.rejected.count(disturbance),
            None => row.pairs.push(Pair { visit, ..pair }),
        }
    }

    fn pair(
        &mut self,
        subject: &mut dyn Subject,
        [short_turns, long_turns]: [u64; 2],
        looks_at_core: bool,
    ) -> (Pair, Option<Disturbance>) {
        let at_ns = self.timing.now_ns().saturating_sub(self.start_ns) as f64;
        let mark = self.timing.mark();
        let mut done = true;
        let mut looks = CoreLooks::default();
        if looks_at_core {
            looks.add(self.timing.look_at_core());
        }
        let mut batch = |turns: u64| {
            if turns == 0 {
                return 0;
            }
            let ticks = self.timing.time(&mut || done &= subject.run(turns));
            if looks_at_core {
                looks.add(self.timing.look_at_core());
            }
            ticks
        };
        // In either order equally often, so that what changes over a pair favors neither.
        let long_first = self.random.unit() < 0.5;
        let (short_ticks, long_ticks) = if long_first {
            let long = batch(long_turns);
            (batch(short_turns), long)
        } else {
            (batch(short_turns), batch(long_turns))
        };
        let disturbed = self.timing.disturbed_since(mark);
        // Whatever came of the pair: here subjects replace what they have used up.
        let moved = subject.partners_moved();
        let disturbed = match (done, disturbed) {
            (false, _) => Some(Disturbance::Failed),
            (true, Some(d)) => Some(d),
            (true, None) => (!moved).then_some(Disturbance::Partner),
        };
        (Pair { at_ns, short_ticks, long_ticks, core: looks.together(), ..Pair::default() }, disturbed)
    }

    /// Turns of which a batch takes about `batch_ns`. None when the operation fails. Ends at `until_ns` with what it has.
    fn turns_for(&mut self, subject: &mut dyn Subject, batch_ns: f64, until_ns: u64) -> Option<u64> {
        calibration::turns_for(batch_ns, |turns| {
            let mut done = true;
            let ticks = self.timing.time(&mut || done = subject.run(turns));
            let tried = Tried { ns: self.rate.ns(ticks), late: self.timing.now_ns() >= until_ns };
            done.then_some(tried)
        })
    }
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
