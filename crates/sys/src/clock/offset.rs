//! How far the counters of two CPUs are apart, from stamps exchanged through memory (Mills, RFC 5905, section 8, with
//! hard bounds from causality in place of the filter).

/// One round trip: CPU A stamps and writes, CPU B sees it, stamps and answers, A sees the answer and stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// A's counter before it wrote.
    pub sent_ticks: u64,
    /// B's counter between seeing A's word and answering.
    pub answered_ticks: u64,
    /// A's counter after it saw the answer.
    pub received_ticks: u64,
}

/// Where the offset `counter of B - counter of A` can lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEstimate {
    pub low_ticks: i64,
    pub high_ticks: i64,
    /// False if exchanges contradict each other (a counter jumped): the interval is the shortest trip's.
    pub consistent: bool,
}

impl OffsetEstimate {
    /// The largest amount the two counters can be apart.
    pub fn bound_ticks(&self) -> u64 {
        self.low_ticks.unsigned_abs().max(self.high_ticks.unsigned_abs())
    }

    /// Whether the two counters certainly differ.
    pub fn excludes_zero(&self) -> bool {
        self.low_ticks > 0 || self.high_ticks < 0
    }
}

/// Bounds the offset: B stamped between A's two stamps, so the true one lies in the intersection of all intervals,
/// however long a thread was held up. Stamps may be `step_ticks` old. `None` without a valid exchange.
pub fn offset_from_exchanges(exchanges: &[Exchange], step_ticks: u64) -> Option<OffsetEstimate> {
    let slack = i64::try_from(step_ticks.saturating_sub(1)).unwrap_or(i64::MAX);
    let interval = |e: &Exchange| {
        let low = e.answered_ticks.wrapping_sub(e.received_ticks) as i64;
        let high = e.answered_ticks.wrapping_sub(e.sent_ticks) as i64;
        (low.saturating_sub(slack), high.saturating_add(slack))
    };
    let valid: Vec<&Exchange> = exchanges.iter().filter(|e| e.sent_ticks <= e.received_ticks).collect();
    let shortest = valid.iter().min_by_key(|e| e.received_ticks - e.sent_ticks)?;
    let (low, high) = valid
        .iter()
        .map(|e| interval(e))
        .fold((i64::MIN, i64::MAX), |(low, high), (l, h)| (low.max(l), high.min(h)));
    let consistent = low <= high;
    let (low_ticks, high_ticks) = if consistent { (low, high) } else { interval(shortest) };
    Some(OffsetEstimate { low_ticks, high_ticks, consistent })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pages::mix;

    /// Exchanges of two counters, B `offset` ahead; flights of 60 to 160 ns, every seventh held up.
    fn exchanges(offset: i64, step: u64, seed: u64, held_up_ns: u64) -> Vec<Exchange> {
        let floor = |t: u64| t / step * step;
        let mut t = 1_u64 << 40;
        let flight = |i: u64| 60 + mix(seed, i) % 100 + if i.is_multiple_of(7) { held_up_ns } else { 0 };
        (0..200)
            .map(|i| {
                let sent_ticks = floor(t);
                t += flight(2 * i);
                let answered_ticks = floor(t.wrapping_add_signed(offset));
                t += flight(2 * i + 1);
                let received_ticks = floor(t);
                t += 13;
                Exchange { sent_ticks, answered_ticks, received_ticks }
            })
            .collect()
    }

    proptest! {
        #[test]
        fn interval_always_holds_the_planted_offset(
            offset in -1_000_000_i64..1_000_000,
            step in prop_oneof![Just(1_u64), Just(26), Just(40)],
            seed in 1_u64..1 << 40,
            held_up_ns in 0_u64..5_000_000,
        ) {
            let estimate = offset_from_exchanges(&exchanges(offset, step, seed, held_up_ns), step).unwrap();
            prop_assert!(estimate.consistent);
            prop_assert!(estimate.low_ticks <= offset && offset <= estimate.high_ticks, "{estimate:?} {offset}");
            prop_assert!(estimate.high_ticks - estimate.low_ticks < 260 + 2 * step as i64);
            prop_assert!(estimate.bound_ticks() >= offset.unsigned_abs());
        }
    }

    #[test]
    fn equal_counters_do_not_exclude_zero_and_shifted_ones_do() {
        assert!(!offset_from_exchanges(&exchanges(0, 26, 9, 0), 26).unwrap().excludes_zero());
        assert!(offset_from_exchanges(&exchanges(900, 26, 9, 0), 26).unwrap().excludes_zero());
        assert!(offset_from_exchanges(&exchanges(-900, 26, 9, 0), 26).unwrap().excludes_zero());
    }

    #[test]
    fn a_jump_while_exchanging_is_called_inconsistent() {
        let mut all = exchanges(0, 1, 5, 0);
        for e in &mut all[100..] {
            e.answered_ticks += 10_000;
        }
        assert!(!offset_from_exchanges(&all, 1).unwrap().consistent);
    }

    #[test]
    fn no_valid_exchange_gives_nothing() {
        assert_eq!(offset_from_exchanges(&[], 1), None);
        let backward = Exchange { sent_ticks: 10, answered_ticks: 5, received_ticks: 9 };
        assert_eq!(offset_from_exchanges(&[backward], 1), None);
    }
}
