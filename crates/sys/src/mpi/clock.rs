//! Clocks of ranks against that of rank 0, from stamps carried by messages: hard bounds, whatever held a message up.

use super::{Comm, Error};
use crate::clock::{Exchange, OffsetEstimate, TickSource, offset_from_exchanges};
use crate::fs_root::FsRoot;
use crate::thread::{monotonic_ns, nanosleep_until};

const TAG: i32 = 32_001;
/// Exchanges of stamps in a look, and the step of the coarsest counter, ticks: 10 ns, of clocks up to 5 GHz.
const EXCHANGES: usize = 200;
const STEP_TICKS: u64 = 50;
/// From one look to the next, where there is time, ns.
pub const APART_NS: u64 = 20_000_000;

/// One look at a clock beside rank 0's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Middle of the exchanges, and half of the time they took; rank 0's ticks.
    pub at_ticks: u64,
    pub half_span_ticks: u64,
    pub offset: OffsetEstimate,
}

impl Look {
    /// `None` without a valid exchange. `step_ticks` is the step of the coarser clock.
    pub fn of(exchanges: &[Exchange], step_ticks: u64) -> Option<Self> {
        let offset = offset_from_exchanges(exchanges, step_ticks)?;
        let (first, last) = (exchanges.first()?.sent_ticks, exchanges.last()?.received_ticks);
        let half_span_ticks = last.saturating_sub(first).div_ceil(2);
        Some(Self { at_ticks: first + half_span_ticks, half_span_ticks, offset })
    }
}

/// The clock of a rank: rank 0's, an offset, and a drift that is taken as constant between and around two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankClock {
    first: Look,
    last: Look,
    /// What a look's bounds are wider by, since the clock drifted while it was taken, ticks.
    slack_ticks: f64,
    is_shared: bool,
}

impl RankClock {
    /// A rank on the machine of rank 0 whose looks allow no offset: both read one clock, which has neither offset nor drift.
    pub fn shared(first: Look, last: Look) -> Option<Self> {
        let apart = [first, last].iter().any(|l| l.offset.excludes_zero());
        (!apart).then_some(Self { first, last, slack_ticks: 0.0, is_shared: true })
    }

    /// Whether this rank reads the clock of rank 0 itself.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// From two looks, the second later; the wider apart they are, the narrower the drift is known.
    ///
    /// With offsets in [l, h] and looks of half spans s at a distance T, the drift is at most d = D / (T - s1 - s2), where D is the larger
    /// of |h2 - l1| and |l2 - h1| and each bound may be off by d s. `None` when the looks overlap.
    pub fn between(first: Look, last: Look) -> Option<Self> {
        let apart = last.at_ticks.checked_sub(first.at_ticks)?;
        let free = apart.checked_sub(first.half_span_ticks + last.half_span_ticks).filter(|f| *f > 0)?;
        let change = |late: i64, early: i64| (late - early).unsigned_abs();
        let (a, b) = (first.offset, last.offset);
        let most = change(b.high_ticks, a.low_ticks).max(change(b.low_ticks, a.high_ticks));
        let span = first.half_span_ticks.max(last.half_span_ticks);
        let slack_ticks = most as f64 / free as f64 * span as f64;
        Some(Self { first, last, slack_ticks, is_shared: false })
    }

    /// From the first look of one and the last of another, taken later: for moments in between. `None` as for [`Self::between`].
    pub fn spanning(early: &Self, late: &Self) -> Option<Self> {
        let is_shared = early.is_shared && late.is_shared;
        if is_shared { Self::shared(early.first, late.last) } else { Self::between(early.first, late.last) }
    }

    /// Least and largest offset (this rank's clock less rank 0's) at a moment of rank 0, ticks; zero for a shared clock.
    pub fn offset_at(&self, at_ticks: u64) -> (f64, f64) {
        if self.is_shared {
            return (0.0, 0.0);
        }
        let bounds = |l: Look| {
            let o = l.offset;
            (o.low_ticks as f64 - self.slack_ticks, o.high_ticks as f64 + self.slack_ticks)
        };
        let ((l1, h1), (l2, h2)) = (bounds(self.first), bounds(self.last));
        let apart = self.last.at_ticks.saturating_sub(self.first.at_ticks) as f64;
        let since = at_ticks.wrapping_sub(self.first.at_ticks) as i64 as f64 / apart;
        // Between the looks lines from bound to bound hold a line between them; outside, the steepest and flattest line.
        match since {
            s if s < 0.0 => (l1 + s * (h2 - l1), h1 + s * (l2 - h1)),
            s if s > 1.0 => (l2 + (s - 1.0) * (l2 - h1), h2 + (s - 1.0) * (h2 - l1)),
            s => (l1 + s * (l2 - l1), h1 + s * (h2 - h1)),
        }
    }

    /// Least and largest drift, ticks per tick.
    pub fn drift(&self) -> (f64, f64) {
        if self.is_shared {
            return (0.0, 0.0);
        }
        let apart = self.last.at_ticks.saturating_sub(self.first.at_ticks) as f64;
        let (a, b) = (self.first.offset, self.last.offset);
        let slack = 2.0 * self.slack_ticks;
        let least = (b.low_ticks - a.high_ticks) as f64 - slack;
        (least / apart, ((b.high_ticks - a.low_ticks) as f64 + slack) / apart)
    }

    /// A moment of rank 0 on this rank's clock, and by how much it may be off, ticks.
    pub fn here(&self, at_ticks: u64) -> (u64, f64) {
        let (low, high) = self.offset_at(at_ticks);
        (at_ticks.wrapping_add_signed(self.middle_at(at_ticks)), (high - low) / 2.0 + 0.5)
    }

    /// A moment of this rank on the clock of rank 0, ticks.
    pub fn there(&self, own_ticks: u64) -> u64 {
        // Each step is off by the drift of the step before: 10^16 ticks (a month) times 10^-4 to the power of 5 are below a tick.
        (0..5).fold(own_ticks, |at, _| own_ticks.wrapping_add_signed(-self.middle_at(at)))
    }

    fn middle_at(&self, at_ticks: u64) -> i64 {
        let (low, high) = self.offset_at(at_ticks);
        f64::midpoint(low, high).round() as i64
    }

    /// Half of the bounds of the better look, ticks: how closely the clock was looked at.
    pub fn within_ticks(&self) -> f64 {
        let width = |l: Look| (l.offset.high_ticks - l.offset.low_ticks) as f64 / 2.0;
        width(self.first).min(width(self.last))
    }

    /// Whether neither look contradicts itself: no clock jumped.
    pub fn is_consistent(&self) -> bool {
        self.first.offset.consistent && self.last.offset.consistent
    }
}

/// Looks at every rank's clock beside rank 0's; collective, all get all looks. Use an ordered source.
/// Errors: of the calls; none of a rank's exchanges was valid.
fn look<S: TickSource>(comm: &Comm) -> Result<Vec<Look>, Error> {
    let (mut trip, mut exchanges) = ([0_i64; 1], Vec::with_capacity(EXCHANGES));
    // [at, half span, low, high, consistent] of each rank.
    let mut all = vec![0_i64; 5 * comm.size()];
    if comm.rank() == 0 {
        for (rank, words) in all.chunks_exact_mut(5).enumerate() {
            exchanges.clear();
            for _ in 0..EXCHANGES {
                let sent_ticks = S::now();
                if rank > 0 {
                    comm.send(&trip, rank, TAG)?;
                    comm.recv(&mut trip, rank, TAG)?;
                }
                let received_ticks = S::now();
                let answered_ticks = if rank > 0 { trip[0] as u64 } else { received_ticks };
                exchanges.push(Exchange { sent_ticks, answered_ticks, received_ticks });
            }
            let look = Look::of(&exchanges, STEP_TICKS)
                .ok_or_else(|| Error::Argument(format!("no valid exchange of stamps with rank {rank}")))?;
            let o = look.offset;
            let times = [look.at_ticks as i64, look.half_span_ticks as i64];
            words.copy_from_slice(&[times[0], times[1], o.low_ticks, o.high_ticks, i64::from(o.consistent)]);
        }
    } else {
        for _ in 0..EXCHANGES {
            comm.recv(&mut trip, 0, TAG)?;
            comm.send(&[S::now() as i64], 0, TAG)?;
        }
    }
    comm.bcast(&mut all, 0)?;
    let look = |w: &[i64]| Look {
        at_ticks: w[0] as u64,
        half_span_ticks: w[1] as u64,
        offset: OffsetEstimate { low_ticks: w[2], high_ticks: w[3], consistent: w[4] != 0 },
    };
    Ok(all.chunks_exact(5).map(look).collect())
}

/// The clocks of all ranks from two looks `apart_ns` from each other, by an ordered source; collective. Ranks on the machine of rank 0
/// share its clock where their looks allow it ([`RankClock::shared`]).
pub fn align<S: TickSource>(comm: &Comm, apart_ns: u64) -> Result<Vec<RankClock>, Error> {
    let first = look::<S>(comm)?;
    nanosleep_until(monotonic_ns() + apart_ns);
    let last = look::<S>(comm)?;
    let boots = boots(comm)?;
    let clock = |(rank, (first, last)): (usize, (Look, Look))| {
        let shared = RankClock::shared(first, last).filter(|_| boots[rank] == boots[0]);
        let failed = || Error::Argument(format!("two looks at the clock of rank {rank} overlap"));
        shared.or_else(|| RankClock::between(first, last)).ok_or_else(failed)
    };
    first.into_iter().zip(last).enumerate().map(clock).collect()
}

/// A number for each rank's machine since it was started: equal numbers read one clock.
fn boots(comm: &Comm) -> Result<Vec<i64>, Error> {
    let id = FsRoot::host().text("proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    // A machine that does not say it shares its clock with nobody.
    let own = u64::from_str_radix(&digits, 16).map_or(-1 - comm.rank() as i64, |n| n as i64);
    let mut all = vec![0; comm.size()];
    comm.allgather(&[own], &mut all)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64 (Marsaglia 2003).
    fn next(x: &mut u64) -> u64 {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        *x
    }

    /// A clock of this offset and drift, looked at from `at` on: flights of 300 to 800 ticks, one in seven held up by a millisecond.
    fn look_at(clock: impl Fn(u64) -> u64, at: u64, x: &mut u64) -> Look {
        let mut t = at;
        let mut fly = |t: &mut u64| {
            *t += 300 + next(x) % 500 + if next(x).is_multiple_of(7) { 1_000_000 } else { 0 };
            *t
        };
        let exchanges: Vec<Exchange> = (0..100)
            .map(|_| Exchange {
                sent_ticks: t,
                answered_ticks: clock(fly(&mut t)),
                received_ticks: fly(&mut t),
            })
            .collect();
        Look::of(&exchanges, 1).unwrap()
    }

    #[test]
    fn planted_offsets_and_drifts_lie_inside_their_bounds() {
        let (mut x, mut held, mut all, mut widest) = (99, 0, 0, 0.0_f64);
        for _ in 0..500 {
            let start = 1_u64 << 40;
            let offset = next(&mut x) as i64 >> 20;
            let drift = (next(&mut x) % 200) as f64 * 1e-6 - 1e-4;
            let clock = |t: u64| {
                let drifted = ((t - start) as f64 * drift).round() as i64;
                t.wrapping_add_signed(offset + drifted)
            };
            let first = look_at(clock, start, &mut x);
            let last = look_at(clock, start + 2_000_000_000, &mut x);
            let known = RankClock::between(first, last).unwrap();
            let (least, most) = known.drift();
            held += u32::from(least <= drift && drift <= most);
            for at in [500_000_000, 1_999_999_999, 4_000_000_000].map(|t| start + t) {
                let (here, within) = known.here(at);
                assert!((known.there(here) as i64 - at as i64).abs() <= 1);
                held += u32::from((here as i64 - clock(at) as i64).unsigned_abs() as f64 <= within);
                all += 1;
                widest = widest.max(within);
            }
            all += 1;
            assert!(known.within_ticks() < 600.0 && !known.is_shared(), "{known:?}");
        }
        assert!(held * 100 >= all * 99, "{held} of {all}");
        assert!(widest < 60_000.0, "bounds that say nothing: {widest}");
    }

    #[test]
    fn a_shared_clock_has_no_offset_and_looks_that_overlap_say_nothing() {
        let mut x = 5;
        let (a, b) = (look_at(|t| t, 1 << 40, &mut x), look_at(|t| t, 1 << 41, &mut x));
        let shared = RankClock::shared(a, b).unwrap();
        assert_eq!((shared.here(12_345), shared.drift()), ((12_345, 0.5), (0.0, 0.0)));
        assert!(shared.within_ticks() > 0.0 && RankClock::between(a, a).is_none());
        assert!(RankClock::spanning(&shared, &shared).unwrap().is_shared());
        let ahead = look_at(|t| t + 5_000, 1 << 41, &mut x);
        assert!(RankClock::shared(a, ahead).is_none());
    }
}
