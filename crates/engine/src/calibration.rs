//! How many turns of an operation make a batch of a wanted length. Pure: batches come from a closure.

const MOST_TURNS: u64 = 1 << 40;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    pub ns: f64,
    /// Whether no time is left for another.
    pub late: bool,
}

impl Tried {
    /// A batch of so many ns, after which more may come.
    pub const fn of(ns: f64) -> Self {
        Self { ns, late: false }
    }
}

/// Turns of which a batch takes about `wanted_ns`: doubled until it is long enough, then at most eight times as many.
/// The quicker of two counts, since one may be held up. Late: what is known. `None` when `batch` fails.
pub fn turns_for(wanted_ns: f64, mut batch: impl FnMut(u64) -> Option<Tried>) -> Option<u64> {
    let mut turns = 1;
    loop {
        let once = batch(turns)?;
        if once.ns >= wanted_ns / 4.0 || turns > MOST_TURNS || once.late {
            let again = batch(turns)?;
            let quick = once.ns.min(again.ns).max(f64::MIN_POSITIVE);
            if quick >= wanted_ns / 8.0 || turns > MOST_TURNS || again.late {
                let each_ns = quick / turns as f64;
                return Some(((wanted_ns / each_ns).round() as u64).clamp(1, turns.saturating_mul(8)));
            }
        }
        turns *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_make_a_batch_as_long_as_wanted() {
        for each_ns in [0.3, 7.0, 900.0, 60_000.0] {
            let turns = turns_for(100_000.0, |t| Some(Tried::of(50.0 + each_ns * t as f64))).unwrap();
            let ns = each_ns * turns as f64;
            assert!((50_000.0..150_000.0).contains(&ns), "{each_ns} ns: {turns} turns");
        }
        // Longer than wanted at the least.
        assert_eq!(turns_for(100_000.0, |t| Some(Tried::of(1e6 * t as f64))), Some(1));
        assert_eq!(turns_for(100_000.0, |t| Some(Tried::of(10.0 * t as f64))).map(|t| t / 100), Some(100));
    }

    #[test]
    fn a_batch_that_was_held_up_is_not_taken_for_the_operation() {
        for held in 1..12 {
            let mut n = 0;
            let turns = turns_for(100_000.0, |t| {
                n += 1;
                Some(Tried::of(if n == held { 4e6 } else { 40.0 * t as f64 }))
            });
            assert!((1_250..=5_000).contains(&turns.unwrap()), "batch {held}: {turns:?}");
        }
    }

    #[test]
    fn it_ends_when_late_or_when_the_operation_fails() {
        let late = |t: u64| Some(Tried { ns: t as f64, late: t >= 16 });
        assert_eq!(turns_for(100_000.0, late), Some(128));
        assert_eq!(turns_for(100_000.0, |t| (t < 8).then_some(Tried::of(1.0))), None);
        // A clock that stands still ends it too.
        assert!(turns_for(100_000.0, |_| Some(Tried::of(0.0))).is_some());
    }
}
