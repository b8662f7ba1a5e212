//! Rows of operations that `loops` can time, and which of them there is time for.

use machmeter_engine::cost::Row;
use machmeter_engine::experiment::Enough;
use machmeter_engine::sampling::Bench;
use machmeter_loops::ops::repeated::Planned;

/// The row and the subject of an operation; the part that prices it sets the row's part.
pub(super) fn bench<'a>(part: &str, planned: Planned<'a>) -> Bench<'a> {
    let Planned {
        operation, params, kind, estimator, is_core_clock, turns, per_turn, refused, subject, ..
    } = planned;
    let (short_turns, long_turns) = turns;
    let row = Row {
        params,
        estimator,
        is_core_clock,
        short_turns,
        long_turns,
        per_turn,
        refused,
        ..Row::new(part, &operation, kind)
    };
    Bench { row, subject }
}

/// Rows and subjects of all `planned`, each with its mark [`Planned::first`].
pub(super) fn benches<'a>(part: &str, planned: Vec<Planned<'a>>) -> Vec<(Bench<'a>, bool)> {
    let marked = |p: Planned<'a>| {
        let first = p.first;
        (bench(part, p), first)
    };
    planned.into_iter().map(marked).collect()
}

/// The rows there is time for: all of them if each can be visited often enough in `left_ns`, else those marked as first ones.
pub(super) fn affordable<T>(planned: Vec<(T, bool)>, visit_ns: u64, left_ns: u64) -> Vec<T> {
    let round_ns = planned.len() as u64 * visit_ns;
    let all = left_ns >= u64::from(Enough::QUICK.visits) * round_ns;
    planned.into_iter().filter(|(_, first)| all || *first).map(|(row, _)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    use machmeter_engine::cost::Cost;
    use machmeter_engine::cost::Kind;
    use machmeter_engine::experiment::sample_benches;
    use machmeter_engine::sampling::{Mark, Pace, Sampler, Timing};
    use machmeter_loops::ops::repeated::{Repeated, plan};
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
        let row = sample_benches(&mut sampler, vec![bench("", planned)], pace, rounds, u64::MAX).remove(0);
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
