//! An operation that is repeated in a loop and counts, while it is timed, how often it did what it should.

use std::io;
use std::mem::take;
use std::sync::atomic::Ordering;

use machmeter_data::metric::ParamValue;
use machmeter_engine::cost::{Kind, Proof, Row};
use machmeter_engine::experiment::Enough;
use machmeter_engine::sampling::{Bench, Subject};
use machmeter_sys::pages::{Backing, Pages};

/// A row to measure, and whether it belongs to the few that come first when time is short. Who measures it names its part.
pub(super) struct Planned<'a> {
    pub(super) bench: Bench<'a>,
    pub(super) first: bool,
}

impl<'a> Planned<'a> {
    pub(super) fn new(operation: &str, kind: Kind, subject: impl Subject + 'a) -> Self {
        Self { bench: Bench::new(Row::new("", operation, kind), subject), first: false }
    }

    pub(super) fn refused(operation: &str, why: &str) -> Self {
        let mut row = plan(operation, "nothing", || Ok(()));
        row.bench.row.refused = Some(why.to_owned());
        row.first()
    }

    pub(super) fn first(mut self) -> Self {
        self.first = true;
        self
    }

    pub(super) fn per_turn(mut self, operations: f64) -> Self {
        self.bench.row.per_turn = operations;
        self
    }

    pub(super) fn turns(mut self, (short, long): (u64, u64)) -> Self {
        (self.bench.row.short_turns, self.bench.row.long_turns) = (short, long);
        self
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<ParamValue>) -> Self {
        self.bench.row.params.insert(name.to_owned(), value.into());
        self
    }
}

/// A row that repeats `once`: see [`Repeated::returning`].
pub(super) fn plan<'a>(
    operation: &str,
    what: &'static str,
    once: impl FnMut() -> io::Result<()> + 'a,
) -> Planned<'a> {
    Planned::new(operation, Kind::Latency, Repeated::returning(what, once))
}

/// The same with something that has to be made first; refused with the reason where it cannot be.
pub(super) fn made<'a, T: 'a>(
    operation: &str,
    made: io::Result<T>,
    what: &'static str,
    mut once: impl FnMut(&mut T) -> io::Result<()> + 'a,
) -> Planned<'a> {
    match made {
        Ok(mut it) => plan(operation, what, move || once(&mut it)),
        Err(e) => Planned::refused(operation, &one_line(&e)),
    }
}

/// The rows there is time for: all of them if each can be visited often enough in `left_ns`, else those marked as first ones.
pub(super) fn affordable<T>(planned: Vec<(T, bool)>, visit_ns: u64, left_ns: u64) -> Vec<T> {
    let round_ns = planned.len() as u64 * visit_ns;
    let all = left_ns >= u64::from(Enough::QUICK.visits) * round_ns;
    planned.into_iter().filter(|(_, first)| all || *first).map(|(row, _)| row).collect()
}

/// Memory that holds `word` everywhere.
pub(super) fn filled(bytes: usize, word: u64) -> Result<Pages, String> {
    let pages = Pages::new(bytes, Backing::Unasked).map_err(|e| one_line(&e))?;
    pages.extent().atomics().iter().for_each(|w| w.store(word, Ordering::Relaxed));
    Ok(pages)
}

/// What loops say they did, and what a witness saw of it, over all visits.
pub(super) struct Tally {
    what: &'static str,
    /// Done since the witness was asked last.
    pub(super) due: u64,
    expected: u64,
    seen: u64,
}

impl Tally {
    pub(super) fn of(what: &'static str) -> Self {
        Self { what, due: 0, expected: 0, seen: 0 }
    }

    /// The witness found `found` of what is due.
    pub(super) fn settle(&mut self, found: u64) {
        let due = take(&mut self.due);
        self.add(due, found.min(due));
    }

    pub(super) fn add(&mut self, expected: u64, seen: u64) {
        self.expected += expected;
        self.seen += seen;
    }

    pub(super) fn proof(&self) -> Option<Proof> {
        Proof::of(self.what, self.expected, self.seen)
    }
}

pub(super) struct Repeated<'a> {
    batch: Box<dyn FnMut(u64) -> io::Result<()> + 'a>,
    /// Counts operations that happened, besides the loop.
    witness: Option<fn() -> u64>,
    tried: bool,
    tally: Tally,
}

impl<'a> Repeated<'a> {
    /// `once` is one operation, which compares what it gets with what it should get (`what` says what that is).
    pub(super) fn returning(what: &'static str, mut once: impl FnMut() -> io::Result<()> + 'a) -> Self {
        // The only place that calls `once`: a call and return after a system call cost 37 ns (AMD Zen 4).
        let batch = move |turns| {
            for _ in 0..turns {
                once()?;
            }
            Ok(())
        };
        Self { batch: Box::new(batch), witness: None, tried: false, tally: Tally::of(what) }
    }

    /// With a witness that is asked before and after each batch.
    pub(super) fn witnessed(self, count: fn() -> u64) -> Self {
        Self { witness: Some(count), ..self }
    }
}

impl Subject for Repeated<'_> {
    /// Does it once, so that what the system refuses is told with its cause.
    fn prepare(&mut self) -> Result<(), String> {
        if !self.tried {
            (self.batch)(1).map_err(|e| one_line(&e))?;
            self.tried = true;
        }
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let before = self.witness.map(|count| count());
        if (self.batch)(turns).is_err() {
            return false;
        }
        let after = self.witness.map(|count| count());
        let seen = after.zip(before).map_or(turns, |(after, before)| after.saturating_sub(before));
        self.tally.add(turns, seen);
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

pub(super) fn one_line(e: &io::Error) -> String {
    e.to_string().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_engine::cost::Cost;
    use machmeter_engine::experiment::sample_benches;
    use machmeter_engine::sampling::{Mark, Pace, Sampler, Timing};
    use machmeter_sys::clock::TickRate;
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Fake(Rc<Cell<u64>>);

    impl Timing for Fake {
        fn ticks(&mut self) -> u64 {
            self.0.get()
        }
        fn mark(&mut self) -> Mark {
            Mark::default()
        }
        fn now_ns(&self) -> u64 {
            self.0.get()
        }
    }

    fn cost_of(fake: &Fake, planned: Planned<'_>) -> (Cost, Row) {
        let mut sampler = Sampler::new(fake.clone(), TickRate::NANOSECONDS, 1);
        let (pace, rounds) = (Pace::of(10_000.0, 4), Enough::visits(5));
        let row = sample_benches(&mut sampler, vec![planned.bench], pace, rounds, u64::MAX).remove(0);
        (Cost::of(&row, 1.0, 1), row)
    }

    /// An operation of 50 ns on this clock.
    fn takes_time(fake: &Fake) -> impl FnMut() -> io::Result<()> + 'static {
        let clock = fake.clone();
        move || {
            clock.0.set(clock.0.get() + 50);
            Ok(())
        }
    }

    #[test]
    fn what_happens_is_priced_and_what_a_witness_misses_is_not() {
        let fake = Fake::default();
        let good = plan("good", "calls that returned 0", takes_time(&fake));
        let (cost, row) = cost_of(&fake, good);
        assert_eq!(cost.value_ns(), Some(50.0));
        assert_eq!(row.proof.as_ref().map(|p| p.seen == p.expected && p.seen > 100), Some(true));

        // The call says it worked, but nothing came of it.
        let idle = Repeated::returning("signals caught", takes_time(&fake)).witnessed(|| 7);
        let (cost, _) = cost_of(&fake, Planned::new("idle", Kind::Latency, idle));
        assert!(
            matches!(&cost, Cost::Unknown { why } if why.starts_with("signals caught: 0 seen")),
            "{cost:?}"
        );
    }

    #[test]
    fn what_fails_at_once_is_refused_with_its_cause_and_what_fails_later_is_counted() {
        let fake = Fake::default();
        let full = || Err(io::Error::from_raw_os_error(libc::ENOSPC));
        let (cost, row) = cost_of(&fake, plan("full", "x", full));
        assert!(row.refused.as_deref().is_some_and(|w| w.contains("No space left")), "{row:?}");
        assert!(matches!(cost, Cost::Unknown { .. }));
        let (mut once, mut left) = (takes_time(&fake), 5_000);
        let fading = move || {
            left -= 1;
            once().and_then(|()| if left > 0 { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) })
        };
        let (_, row) = cost_of(&fake, plan("fading", "x", fading));
        assert!(row.rejected.failed > 0 && row.pairs.len() + row.rejected.failed as usize == 20, "{row:?}");
    }

    #[test]
    fn short_time_keeps_the_first_rows() {
        for (left_ns, names) in [(u64::MAX, "abcd"), (1_000_000, "ac"), (0, "ac")] {
            let rows = vec![("a", true), ("b", false), ("c", true), ("d", false)];
            assert_eq!(affordable(rows, 1_000_000, left_ns).concat(), names);
        }
    }
}
