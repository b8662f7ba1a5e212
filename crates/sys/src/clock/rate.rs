//! From ticks to ns: the conversion, and the rate estimated from brackets of tick reads around kernel clock reads.

use crate::Refused;

/// How fast a tick source runs. Take differences of stamps first: an `f64` may not hold stamps exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickRate {
    hz: f64,
}

impl TickRate {
    /// One tick per ns, as [`super::MonotonicRaw`] has it.
    pub const NANOSECONDS: Self = Self { hz: 1e9 };

    /// A rate in ticks per second. Errors: `hz` is not finite and positive.
    pub fn from_hz(hz: f64) -> Result<Self, Refused> {
        if hz.is_finite() && hz > 0.0 {
            Ok(Self { hz })
        } else {
            Err(no_rate(&format!("{hz} Hz is not a positive number")))
        }
    }

    pub fn hz(self) -> f64 {
        self.hz
    }

    pub fn ns_per_tick(self) -> f64 {
        1e9 / self.hz
    }

    /// A duration of `ticks` in ns; relative error at most 2^-51.
    pub fn ns(self, ticks: u64) -> f64 {
        ticks as f64 * 1e9 / self.hz
    }

    /// The number of ticks nearest to `ns`; 0 for negative or NaN, `u64::MAX` where it would not fit.
    pub fn ticks(self, ns: f64) -> u64 {
        (ns * self.hz / 1e9).round() as u64
    }
}

fn no_rate(why: &str) -> Refused {
    Refused(format!("clock rate is unknown: {why}"))
}

/// One kernel clock read between two tick reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bracket {
    pub before_ticks: u64,
    /// `CLOCK_MONOTONIC_RAW`, ns.
    pub kernel_ns: u64,
    pub after_ticks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateEstimate {
    /// Ticks per second of the kernel's unadjusted clock.
    pub rate_hz: f64,
    /// Hard bound of the error, parts per million, from the widths of the brackets.
    pub error_ppm: f64,
}

/// The offset `ticks - kernel time` at one end, as far as the brackets of that end pin it down.
struct End {
    /// Ticks and ns all values of this end are relative to.
    origin: (u64, u64),
    low_ticks: f64,
    high_ticks: f64,
}

/// Estimates the rate from two groups of brackets some time apart.
///
/// Each bracket says only that the kernel read its clock somewhere between the two tick reads. Within one end (some
/// microseconds) the offset of the two clocks is constant, so the brackets' intervals are intersected: an interrupted
/// bracket is wide and drops out by itself, and the varying phase of many narrow ones pins the offset down further
/// than the best single one. `slack_ticks` widens every bracket at its end: the counter's step where the kernel's
/// clock is not made from the same counter, else 0.
/// Errors: a group has no valid bracket (`before <= after`), or time did not advance.
pub fn rate_from_brackets(
    start: &[Bracket],
    end: &[Bracket],
    slack_ticks: u64,
) -> Result<RateEstimate, Refused> {
    let first = narrowest(start).ok_or_else(|| no_rate("no valid bracket at the start"))?;
    let last = narrowest(end).ok_or_else(|| no_rate("no valid bracket at the end"))?;
    if last.kernel_ns <= first.kernel_ns {
        return Err(no_rate("the kernel clock did not advance between the two ends"));
    }
    if last.before_ticks <= first.before_ticks {
        return Err(no_rate("the counter did not advance between the two ends"));
    }
    let span_ns = last.kernel_ns - first.kernel_ns;
    // Good to some ppm, which over the microseconds of one end is far below a tick.
    let rough_ticks_per_ns = (last.before_ticks - first.before_ticks) as f64 / span_ns as f64;
    let start_end = intersect(start, first, rough_ticks_per_ns, slack_ticks);
    let last_end = intersect(end, last, rough_ticks_per_ns, slack_ticks);
    let middle = |e: &End| f64::midpoint(e.low_ticks, e.high_ticks);
    let ticks = (last_end.origin.0 - start_end.origin.0) as f64 + middle(&last_end) - middle(&start_end);
    let half_widths =
        (last_end.high_ticks - last_end.low_ticks + start_end.high_ticks - start_end.low_ticks) / 2.0;
    let rate_hz = ticks / span_ns as f64 * 1e9;
    TickRate::from_hz(rate_hz)?;
    Ok(RateEstimate { rate_hz, error_ppm: half_widths / ticks * 1e6 })
}

fn narrowest(brackets: &[Bracket]) -> Option<Bracket> {
    brackets
        .iter()
        .filter(|b| b.after_ticks >= b.before_ticks)
        .min_by_key(|b| b.after_ticks - b.before_ticks)
        .copied()
}

/// Ticks at the kernel time of `best`, relative to its first read, as an interval.
fn intersect(brackets: &[Bracket], best: Bracket, ticks_per_ns: f64, slack_ticks: u64) -> End {
    let origin = (best.before_ticks, best.kernel_ns);
    let interval = |b: &Bracket| {
        let from_origin = |ticks: u64| ticks.wrapping_sub(origin.0) as i64 as f64;
        let elapsed_ticks = b.kernel_ns.wrapping_sub(origin.1) as i64 as f64 * ticks_per_ns;
        // The kernel cuts its clock off to whole ns, so the moment it was read lies up to 1 ns later than it says.
        let low = from_origin(b.before_ticks) - elapsed_ticks - ticks_per_ns;
        (low, from_origin(b.after_ticks) + slack_ticks as f64 - elapsed_ticks)
    };
    let valid = brackets.iter().filter(|b| b.after_ticks >= b.before_ticks);
    let (highest, lowest) =
        valid.map(interval).fold((interval(&best), interval(&best)), |(highest, lowest), i| {
            (if i.0 > highest.0 { i } else { highest }, if i.1 < lowest.1 { i } else { lowest })
        });
    if highest.0 <= lowest.1 {
        return End { origin, low_ticks: highest.0, high_ticks: lowest.1 };
    }
    // The brackets contradict each other (the counter jumped, or the thread moved to a CPU with another offset): the two that
    // are furthest apart hold the offsets before and after.
    End { origin, low_ticks: lowest.0, high_ticks: highest.1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pages::mix;

    /// A made-up machine: a counter of `hz` advancing in `step` ticks, and a kernel clock cut off to whole ns.
    struct Machine {
        hz: f64,
        step: u64,
        boot_ticks: u64,
    }

    impl Machine {
        fn ticks_at(&self, t_ns: f64) -> u64 {
            let raw = (t_ns * self.hz / 1e9) as u64;
            self.boot_ticks + raw / self.step * self.step
        }

        /// `n` brackets, reads 5 to 40 ns apart; `pause(i)` comes before (even) or after (odd) the kernel read.
        fn brackets(&self, mut t_ns: f64, n: usize, seed: u64, pause: impl Fn(usize) -> f64) -> Vec<Bracket> {
            let mut apart_ns = (0..).map(|i| 5.0 + (mix(seed, i) % 3500) as f64 / 100.0);
            let mut next_ns = || apart_ns.next().unwrap();
            let bracket = |i| {
                let before_ticks = self.ticks_at(t_ns);
                t_ns += next_ns() + if i % 2 == 0 { pause(i) } else { 0.0 };
                let kernel_ns = t_ns as u64;
                t_ns += next_ns() + if i % 2 == 1 { pause(i) } else { 0.0 };
                let after_ticks = self.ticks_at(t_ns);
                t_ns += next_ns();
                Bracket { before_ticks, kernel_ns, after_ticks }
            };
            (0..n).map(bracket).collect()
        }

        fn error_ppm(&self, estimate: &RateEstimate) -> f64 {
            (estimate.rate_hz / self.hz - 1.0).abs() * 1e6
        }
    }

    proptest! {
        #[test]
        fn true_rate_lies_within_the_stated_bound_whatever_pauses(
            hz in 1e7_f64..5e9,
            step in prop_oneof![Just(1_u64), Just(2), Just(26), Just(40)],
            boot in 0_u64..u64::MAX / 4,
            seed in 1_u64..1 << 40,
            pause_ns in 0.0_f64..3e6,
            every in 2_usize..9,
        ) {
            let machine = Machine { hz, step, boot_ticks: boot };
            let pause = |i: usize| if i.is_multiple_of(every) { pause_ns } else { 0.0 };
            let start = machine.brackets(1e9, 48, seed, pause);
            let end = machine.brackets(1.6e9, 48, seed ^ 0x5555, pause);
            let estimate = rate_from_brackets(&start, &end, step).unwrap();
            let error_ppm = machine.error_ppm(&estimate);
            prop_assert!(error_ppm <= estimate.error_ppm + 1e-3, "{error_ppm} against {}", estimate.error_ppm);
        }
    }

    #[test]
    fn forty_milliseconds_give_one_ppm_on_steps_of_1_and_26_ticks_despite_pauses() {
        for (hz, step) in [(2.599_996e9, 26), (3e9, 1), (2.1e9, 2)] {
            let machine = Machine { hz, step, boot_ticks: 1 << 50 };
            let pause = |i: usize| if i.is_multiple_of(3) { 2.0e6 } else { 0.0 };
            let start = machine.brackets(5e9, 64, 7, pause);
            let last_ns = start.last().unwrap().kernel_ns as f64;
            let end = machine.brackets(last_ns + 40e6, 64, 11, |_| 0.0);
            let estimate = rate_from_brackets(&start, &end, step).unwrap();
            assert!(machine.error_ppm(&estimate) < 1.0, "{hz} {step}: {estimate:?}");
            assert!(estimate.error_ppm < 1.0, "{estimate:?}");
        }
    }

    #[test]
    fn a_forty_ns_counter_is_bounded_by_its_step() {
        let machine = Machine { hz: 25e6, step: 1, boot_ticks: 99 };
        let start = machine.brackets(1e6, 64, 3, |_| 0.0);
        let end = machine.brackets(41e6, 64, 5, |_| 0.0);
        let estimate = rate_from_brackets(&start, &end, 1).unwrap();
        assert!(machine.error_ppm(&estimate) <= estimate.error_ppm);
        assert!(estimate.error_ppm < 3.0, "{estimate:?}");
    }

    #[test]
    fn a_counter_that_jumps_back_widens_the_bound_or_is_refused() {
        let machine = Machine { hz: 1e9, step: 1, boot_ticks: 1 << 30 };
        for seed in 0..200 {
            let start = machine.brackets(1e9, 32, seed, |_| 0.0);
            let mut end = machine.brackets(1.04e9, 32, seed + 1_000, |_| 0.0);
            let good = rate_from_brackets(&start, &end, 1).unwrap();
            for b in &mut end[16..] {
                b.before_ticks -= 5_000;
                b.after_ticks -= 5_000;
            }
            let jumped = rate_from_brackets(&start, &end, 1).unwrap();
            assert!(jumped.error_ppm > 10.0 * good.error_ppm, "{jumped:?} {good:?}");
            assert!(machine.error_ppm(&jumped) <= jumped.error_ppm, "{seed}: {jumped:?}");
            for b in &mut end {
                (b.before_ticks, b.after_ticks) = (5, 6);
            }
            let e = rate_from_brackets(&start, &end, 1).unwrap_err().to_string();
            assert!(e.contains("counter did not advance"), "{e}");
        }
    }

    #[test]
    fn empty_and_upside_down_groups_are_refused() {
        let machine = Machine { hz: 1e9, step: 1, boot_ticks: 0 };
        let good = machine.brackets(1e9, 4, 3, |_| 0.0);
        assert!(rate_from_brackets(&[], &good, 0).is_err());
        let down = [Bracket { before_ticks: 9, kernel_ns: 1, after_ticks: 3 }];
        assert!(rate_from_brackets(&good, &down, 0).is_err());
        assert!(rate_from_brackets(&good, &good, 0).is_err());
    }

    #[test]
    fn conversion_keeps_precision_and_saturates() {
        let rate = TickRate::from_hz(2.599_996e9).unwrap();
        let year_ticks = 82_000_000_000_000_000_u64;
        assert!((rate.ns(year_ticks) / (year_ticks as f64 / 2.599_996) - 1.0).abs() < 1e-15);
        assert_eq!(rate.ticks(-5.0), 0);
        assert_eq!(rate.ticks(f64::NAN), 0);
        assert_eq!(rate.ticks(1e30), u64::MAX);
        assert!(TickRate::from_hz(0.0).is_err() && TickRate::from_hz(f64::INFINITY).is_err());
        for ticks in [0, 1, 26, 1_000_003, 1 << 44] {
            assert_eq!(rate.ticks(rate.ns(ticks)), ticks);
        }
    }
}
