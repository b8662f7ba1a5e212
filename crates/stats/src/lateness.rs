//! Who comes last: what ranks that wait for each other lose by the latest.

/// One operation that ends for nobody before all have begun it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// From the median begin to the last end, in the unit of the stamps: what it costs those that are in time.
    pub cost: f64,
    /// From the median begin to the last one.
    pub delay: f64,
    /// Who began last.
    pub last: usize,
}

/// What a rank cost the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    pub rank: usize,
    /// How often it began last.
    pub times: usize,
    /// Sum of the delays when it did.
    pub delay: f64,
    /// Its share of all delays, 0 to 1.
    pub share: f64,
}

/// A turn from when each rank began and ended, on one clock. The median of an even number is the lower one, so that of two ranks
/// the later waits for nobody. `None` without ranks, and for stamps that are not finite.
pub fn turn(begins: &[f64], ends: &[f64]) -> Option<Turn> {
    let finite = begins.iter().chain(ends).all(|t| t.is_finite());
    let last = (0..begins.len()).max_by(|a, b| begins[*a].total_cmp(&begins[*b])).filter(|_| finite)?;
    let mut sorted = begins.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[(sorted.len() - 1) / 2];
    let end = ends.iter().copied().max_by(f64::total_cmp)?;
    Some(Turn { cost: end - middle, delay: begins[last] - middle, last })
}

/// What each of `ranks` cost, the most first. Empty when nobody was ever late.
pub fn by_rank(turns: &[Turn], ranks: usize) -> Vec<Lateness> {
    let mut all: Vec<Lateness> =
        (0..ranks).map(|rank| Lateness { rank, times: 0, delay: 0.0, share: 0.0 }).collect();
    for t in turns {
        if let Some(of) = all.get_mut(t.last) {
            of.times += 1;
            of.delay += t.delay;
        }
    }
    let total: f64 = all.iter().map(|l| l.delay).sum();
    if total <= 0.0 {
        return Vec::new();
    }
    for late in &mut all {
        late.share = late.delay / total;
    }
    all.sort_by(|a, b| b.delay.total_cmp(&a.delay));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_turn_is_charged_to_the_last() {
        let three = turn(&[10.0, 14.0, 11.0], &[16.0, 17.0, 15.0]).unwrap();
        assert_eq!(three, Turn { cost: 6.0, delay: 3.0, last: 1 });
        let two = turn(&[10.0, 12.0], &[13.0, 13.5]).unwrap();
        assert_eq!(two, Turn { cost: 3.5, delay: 2.0, last: 1 });
        assert_eq!(turn(&[], &[]), None);
        assert_eq!(turn(&[f64::NAN], &[1.0]), None);
        assert!(by_rank(&[turn(&[1.0, 1.0], &[2.0, 2.0]).unwrap()], 2).is_empty());
    }

    /// Eight ranks with jitter of up to 2 us; one is held up 200 us before every tenth operation, another 30 us before every
    /// seventh.
    #[test]
    fn planted_delays_are_charged_within_a_tenth() {
        let mut random = Random::new(11);
        let turns: Vec<Turn> = (0..5_000)
            .map(|i| {
                let held = |rank| match rank {
                    3 if i % 10 == 0 => 200.0,
                    6 if i % 7 == 0 => 30.0,
                    _ => 0.0,
                };
                let begins: Vec<f64> = (0..8).map(|r| 2.0 * random.unit() + held(r)).collect();
                let end = begins.iter().copied().fold(0.0, f64::max) + 1.5;
                turn(&begins, &[end; 8]).unwrap()
            })
            .collect();
        let found = by_rank(&turns, 8);
        assert_eq!((found[0].rank, found[1].rank), (3, 6));
        let planted = 500.0 * 200.0;
        assert!((found[0].delay / planted - 1.0).abs() < 0.1, "{found:?}");
        let all: f64 = turns.iter().map(|t| t.delay).sum();
        assert!((found[0].share - planted / all).abs() < 0.1 * planted / all, "{found:?}");
    }
}
