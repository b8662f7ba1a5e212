//! An operation that is repeated in a loop and counts, while it is timed, how often it did what it should.

use std::io;

use machmeter_data::metric::ParamValue;
use machmeter_engine::cost::{Kind, Proof, Row};
use machmeter_engine::experiment::Enough;
use machmeter_engine::sampling::{Bench, Subject};

/// A row to measure, and whether it belongs to the few that come first when time is short.
pub(super) struct Planned<'a> {
    pub(super) bench: Bench<'a>,
    pub(super) first: bool,
}

impl<'a> Planned<'a> {
    /// A row of `part` that repeats `subject`.
    pub(super) fn new(part: &str, operation: &str, subject: impl Subject + 'a) -> Self {
        Self::of(Row::new(part, operation, Kind::Latency), subject)
    }

    pub(super) fn of(row: Row, subject: impl Subject + 'a) -> Self {
        Self { bench: Bench::new(row, subject), first: false }
    }

    /// A row that repeats what it does with something that has to be made first; refused with the reason where it cannot be.
    pub(super) fn with_made<T: 'a>(
        part: &str,
        operation: &str,
        made: io::Result<T>,
        what: &'static str,
        mut once: impl FnMut(&mut T) -> io::Result<()> + 'a,
    ) -> Self {
        match made {
            Ok(mut it) => Self::new(part, operation, Repeated::returning(what, move || once(&mut it))),
            Err(e) => Self::refused(part, operation, &one_line(&e)),
        }
    }

    /// A row that cannot be measured, with the reason.
    pub(super) fn refused(part: &str, operation: &str, why: &str) -> Self {
        let row = Row::new(part, operation, Kind::Latency).refused(why);
        Self::of(row, Repeated::nothing()).first()
    }

    /// Belongs to the first.
    pub(super) fn first(mut self) -> Self {
        self.first = true;
        self
    }

    pub(super) fn per_turn(mut self, operations: f64) -> Self {
        self.bench.row.per_turn = operations;
        self
    }

    /// In batches of so many turns.
    pub(super) fn turns(mut self, (short, long): (u64, u64)) -> Self {
        (self.bench.row.short_turns, self.bench.row.long_turns) = (short, long);
        self
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<ParamValue>) -> Self {
        self.bench.row.params.insert(name.to_owned(), value.into());
        self
    }
}

/// The rows there is time for: all of them if each can be visited often enough in `left_ns`, else the first ones.
pub(super) fn affordable<T>(
    planned: Vec<T>,
    is_first: fn(&T) -> bool,
    visit_ns: u64,
    left_ns: u64,
) -> Vec<T> {
    let round_ns = planned.len() as u64 * visit_ns;
    let all = left_ns >= u64::from(Enough::QUICK.visits) * round_ns;
    planned.into_iter().filter(|p| all || is_first(p)).collect()
}

pub(super) struct Repeated<'a> {
    /// Does the operation so often.
    batch: Box<dyn FnMut(u64) -> io::Result<()> + 'a>,
    what: &'static str,
    /// Counts operations that happened, besides the loop.
    witness: Option<fn() -> u64>,
    tried: bool,
    expected: u64,
    seen: u64,
}

impl<'a> Repeated<'a> {
    /// `once` is one operation, which compares what it gets with what it should get (`what` says what that is).
    pub(super) fn returning(what: &'static str, mut once: impl FnMut() -> io::Result<()> + 'a) -> Self {
        // The only place that calls the operation, which so stands in the loop itself: a call and its return would cost 37 ns after a
        // system call (AMD Zen 4, which forgets in the kernel where returns go).
        let batch = move |turns| {
            for _ in 0..turns {
                once()?;
            }
            Ok(())
        };
        Self { batch: Box::new(batch), what, witness: None, tried: false, expected: 0, seen: 0 }
    }

    /// For rows that are refused.
    pub(super) fn nothing() -> Self {
        Self::returning("nothing", || Ok(()))
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
        self.expected += turns;
        self.seen += after.zip(before).map_or(turns, |(after, before)| after.saturating_sub(before));
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        Proof::of(self.what, self.expected, self.seen)
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

    fn takes(fake: &Fake, ns: u64) {
        fake.0.set(fake.0.get() + ns);
    }

    #[test]
    fn what_happens_is_priced_and_what_a_witness_misses_is_not() {
        let fake = Fake::default();
        let clock = fake.clone();
        let good = Repeated::returning("calls that returned 0", move || {
            takes(&clock, 50);
            Ok(())
        });
        let (cost, row) = cost_of(&fake, Planned::new("calls", "good", good));
        assert_eq!(cost.value_ns(), Some(50.0));
        assert_eq!(row.proof.as_ref().map(|p| p.seen == p.expected && p.seen > 100), Some(true));

        // The call says it worked, but nothing came of it.
        let clock = fake.clone();
        let idle = Repeated::returning("signals caught", move || {
            takes(&clock, 50);
            Ok(())
        });
        let (cost, _) = cost_of(&fake, Planned::new("calls", "idle", idle.witnessed(|| 7)));
        assert!(
            matches!(&cost, Cost::Unknown { why } if why.starts_with("signals caught: 0 seen")),
            "{cost:?}"
        );
    }

    #[test]
    fn what_fails_at_once_is_refused_with_its_cause_and_what_fails_later_is_counted() {
        let fake = Fake::default();
        let refused = Repeated::returning("x", || Err(io::Error::from_raw_os_error(libc::ENOSPC)));
        let (cost, row) = cost_of(&fake, Planned::new("calls", "full", refused));
        assert!(row.refused.as_deref().is_some_and(|w| w.contains("No space left")), "{row:?}");
        assert!(matches!(cost, Cost::Unknown { .. }));
        let clock = fake.clone();
        let mut left = 5_000;
        let fading = Repeated::returning("x", move || {
            takes(&clock, 50);
            left -= 1;
            if left > 0 { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
        });
        let (_, row) = cost_of(&fake, Planned::new("calls", "fading", fading));
        assert!(row.rejected.failed > 0 && row.pairs.len() + row.rejected.failed as usize == 20, "{row:?}");
    }

    #[test]
    fn short_time_keeps_the_first_rows() {
        let planned = || {
            let row = |name: &str| Planned::new("calls", name, Repeated::nothing());
            vec![row("a").first(), row("b"), row("c").first(), row("d")]
        };
        for (left_ns, names) in [(u64::MAX, "abcd"), (1_000_000, "ac"), (0, "ac")] {
            let kept = affordable(planned(), |p| p.first, 1_000_000, left_ns);
            assert_eq!(kept.into_iter().map(|p| p.bench.row.operation).collect::<String>(), names);
        }
    }
}
