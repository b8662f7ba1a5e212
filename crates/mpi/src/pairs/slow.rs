//! Which ranks and links are slower than the others by more than chance.
//!
//! Latencies are compared as logarithms, links on one machine with each other and those between machines with each other. A link differs
//! from the median by what links differ by anyway: a robust deviation, which fewer than half of the links cannot move. It is slow
//! where the lower end of its interval lies so many deviations above the median as one of all links and ranks together does by chance once
//! in a thousand runs (Bonferroni; quantiles of Student's law with the deviation's degrees of freedom). A rank is slow where
//! the median of its links does; what a slow rank explains makes no link slow.

use machmeter_stats::distribution::t_quantile;
use machmeter_stats::quantile::median_of;
use machmeter_stats::spread::robust_deviation;

use crate::analyze::FALSE_ALARMS;

/// Links of a kind, fewer of which have no spread worth the name: a slow rank of four makes half of six.
const FEWEST: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Link {
    pub(crate) ranks: [usize; 2],
    /// Half a round trip, and the lower end of its interval.
    pub(crate) ns: f64,
    pub(crate) low_ns: f64,
    /// From the first to the second and back, and by how much that may be off, since clocks are.
    pub(crate) ways_ns: [f64; 2],
    pub(crate) off_ns: f64,
    /// Whether both are on one machine.
    pub(crate) is_near: bool,
}

/// What is slow: a rank, or two that are a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slow {
    pub(crate) ranks: Vec<usize>,
    /// Beside the median of its kind.
    pub(crate) ratio: f64,
    /// Whether it is slow away from the (first) rank, and towards it, where the clocks tell.
    pub(crate) ways: [Option<bool>; 2],
}

/// What links of one kind differ by.
#[derive(Clone, Copy)]
struct Kind {
    median: f64,
    /// Logarithm of the least ratio that is named.
    reach: f64,
}

/// A link beside its kind, as logarithms.
struct Compared<'l> {
    link: &'l Link,
    ratio: f64,
    /// Of the lower end, in reaches.
    excess: f64,
    kind: Kind,
}

/// What is slow, the slowest first; `step_ns` is what a latency is known to at best. `None`: too few links to tell.
pub(crate) fn slow(links: &[Link], ranks: usize, step_ns: f64) -> Option<Vec<Slow>> {
    let tests = (links.len() + ranks) as f64;
    let kinds = [false, true].map(|near| kind(links, near, tests, step_ns));
    let compared: Vec<Compared<'_>> = links.iter().filter_map(|l| compare(l, &kinds)).collect();
    if compared.is_empty() {
        return None;
    }
    let mut found: Vec<Slow> = (0..ranks).filter_map(|rank| of_rank(&compared, rank)).collect();
    let explained = |rank: usize| {
        let of = found.iter().find(|s| s.ranks == [rank]);
        of.map_or(0.0, |s| s.ratio.ln())
    };
    let links = compared.iter().filter_map(|c| {
        let by_ranks: f64 = c.link.ranks.iter().map(|r| explained(*r)).sum();
        (c.excess - by_ranks / c.kind.reach > 1.0).then(|| Slow {
            ranks: c.link.ranks.to_vec(),
            ratio: c.ratio.exp(),
            ways: [0, 1].map(|way| is_slow(&[c], |_| way)),
        })
    });
    let links: Vec<Slow> = links.collect();
    found.extend(links);
    found.sort_by(|a, b| a.ranks.len().cmp(&b.ranks.len()).then(b.ratio.total_cmp(&a.ratio)));
    Some(found)
}

fn kind(links: &[Link], near: bool, tests: f64, step_ns: f64) -> Option<Kind> {
    let all: Vec<f64> = links.iter().filter(|l| l.is_near == near).map(|l| l.ns.ln()).collect();
    if all.len() < FEWEST {
        return None;
    }
    let (deviation, freedom) = robust_deviation(&all)?;
    let median = median_of(&all)?;
    let known_to = step_ns / median.exp();
    let reach = t_quantile(1.0 - FALSE_ALARMS / tests, freedom)? * deviation.max(known_to);
    (reach > 0.0 && reach.is_finite()).then_some(Kind { median, reach })
}

fn compare<'l>(link: &'l Link, kinds: &[Option<Kind>; 2]) -> Option<Compared<'l>> {
    let kind = kinds[usize::from(link.is_near)]?;
    let ratio = link.ns.ln() - kind.median;
    let excess = (link.low_ns.max(f64::MIN_POSITIVE).ln() - kind.median) / kind.reach;
    Some(Compared { link, ratio, excess, kind })
}

fn of_rank(compared: &[Compared<'_>], rank: usize) -> Option<Slow> {
    let own: Vec<&Compared<'_>> = compared.iter().filter(|c| c.link.ranks.contains(&rank)).collect();
    let median = |of: fn(&Compared<'_>) -> f64| median_of(&own.iter().map(|c| of(c)).collect::<Vec<f64>>());
    // One link alone is no rank.
    if own.len() < 2 || median(|c| c.excess)? <= 1.0 {
        return None;
    }
    let away = |c: &Compared<'_>| usize::from(c.link.ranks[1] == rank);
    let ways = [is_slow(&own, away), is_slow(&own, |c| 1 - away(c))];
    Some(Slow { ranks: vec![rank], ratio: median(|c| c.ratio)?.exp(), ways })
}

/// Whether these links are slow in the direction that is told of each; `None` where that is within what the clocks leave open.
fn is_slow(links: &[&Compared<'_>], way: impl Fn(&Compared<'_>) -> usize) -> Option<bool> {
    let excess = |sign: f64| {
        let of = |c: &&Compared<'_>| {
            let ns = c.link.ways_ns[way(c)] + sign * c.link.off_ns;
            (ns.max(f64::MIN_POSITIVE).ln() - c.kind.median) / c.kind.reach
        };
        median_of(&links.iter().map(of).collect::<Vec<f64>>())
    };
    match (excess(-1.0)?, excess(1.0)?) {
        (least, _) if least > 1.0 => Some(true),
        (_, most) if most <= 1.0 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use machmeter_stats::random::Random;

    use super::*;

    /// What ranks and links differ by, relative.
    #[derive(Clone, Copy)]
    struct Spread {
        ranks: f64,
        links: f64,
    }

    /// All links of some ranks, of which `slower` says the factor of each way; the second half are on another machine, 3 times as far.
    fn links(ranks: usize, spread: Spread, seed: u64, slower: impl Fn(usize, usize) -> f64) -> Vec<Link> {
        let mut random = Random::new(seed);
        let own: Vec<f64> = (0..ranks).map(|_| spread.ranks * random.normal()).collect();
        let mut all = Vec::new();
        for from in 0..ranks {
            for to in from + 1..ranks {
                let is_near = (2 * from < ranks) == (2 * to < ranks);
                let far = if is_near { 1.0 } else { 3.0 };
                let way_ns = 500.0 * far * (own[from] + own[to] + spread.links * random.normal()).exp();
                let ways_ns = [way_ns * slower(from, to), way_ns * slower(to, from)];
                let ns = f64::midpoint(ways_ns[0], ways_ns[1]);
                all.push(Link { ranks: [from, to], ns, low_ns: 0.99 * ns, ways_ns, off_ns: 0.0, is_near });
            }
        }
        all
    }

    const SPREADS: [Spread; 3] = [
        Spread { ranks: 0.0, links: 0.03 },
        Spread { ranks: 0.03, links: 0.005 },
        Spread { ranks: 0.02, links: 0.02 },
    ];

    #[test]
    fn where_nothing_is_slow_nothing_is_named() {
        for (ranks, runs) in [(4, 2_000), (5, 2_000), (8, 2_000), (16, 500), (40, 100)] {
            for spread in SPREADS {
                let named = |seed: &u64| {
                    let exact = |l: Link| Link { low_ns: l.ns, ..l };
                    let all: Vec<Link> =
                        links(ranks, spread, *seed, |_, _| 1.0).into_iter().map(exact).collect();
                    slow(&all, ranks, 0.0).is_some_and(|found| !found.is_empty())
                };
                let named = (0..runs).filter(named).count();
                assert!(named as u64 * 200 <= runs, "{ranks} ranks: {named} of {runs}");
            }
        }
    }

    #[test]
    fn a_slow_rank_is_named_with_its_ratio_and_ways() {
        for spread in SPREADS {
            for seed in 0..100 {
                let by = |from, to| if from == 5 || to == 5 { 2.3 } else { 1.0 };
                let found = slow(&links(12, spread, seed, by), 12, 0.0).unwrap();
                assert_eq!(found.len(), 1, "{found:?}");
                assert_eq!((&found[0].ranks[..], found[0].ways), (&[5][..], [Some(true); 2]));
                assert!((found[0].ratio / 2.3 - 1.0).abs() < 0.1, "{found:?}");
                let sent = |from, _| if from == 5 { 4.0 } else { 1.0 };
                let found = slow(&links(12, spread, seed, sent), 12, 0.0).unwrap();
                assert_eq!((&found[0].ranks[..], found[0].ways), (&[5][..], [Some(true), Some(false)]));
            }
        }
    }

    #[test]
    fn a_slow_link_is_named_with_its_ratio_and_way() {
        for spread in SPREADS {
            for seed in 0..100 {
                let by = |from, to| if (from, to) == (7, 3) { 3.0 } else { 1.0 };
                let all = links(16, spread, seed, by);
                let found = slow(&all, 16, 0.0).unwrap();
                assert_eq!(found.len(), 1, "{found:?}");
                assert_eq!((&found[0].ranks[..], found[0].ways), (&[3, 7][..], [Some(false), Some(true)]));
                assert!((found[0].ratio / 2.0 - 1.0).abs() < 0.25, "{found:?}");
                // Clocks that may be as far off as the way takes tell no direction.
                let vague: Vec<Link> = all.iter().map(|l| Link { off_ns: 1_500.0, ..*l }).collect();
                let found = slow(&vague, 16, 0.0).unwrap();
                assert_eq!(found[0].ways, [None, None]);
            }
        }
    }

    #[test]
    fn few_links_and_equal_ones_say_so() {
        assert_eq!(slow(&links(3, SPREADS[0], 1, |_, _| 1.0), 3, 0.0), None);
        let equal: Vec<Link> = links(8, Spread { ranks: 0.0, links: 0.0 }, 1, |_, _| 1.0)
            .iter()
            .map(|l| Link { is_near: true, ns: 500.0, low_ns: 500.0, ..*l })
            .collect();
        assert_eq!(slow(&equal, 8, 10.0), Some(Vec::new()));
    }
}
