//! What a first look decides: from which length detours are listed, and which pause ends a cluster of micro-stalls.

use super::samples::Lengths;
use machmeter_loops::noise::measure::Gap;

/// The shortest of these lengths from which on a look showed at most `room` detours on any CPU; without one the shortest.
pub(super) fn listing_ticks<const N: usize>(lengths: [u64; N], room: u64, looked: &[&Lengths]) -> u64 {
    let most = |ticks: u64| {
        let on = |l: &&Lengths| l.buckets.iter().filter(|b| b.high >= ticks).map(|b| b.count).sum::<u64>();
        looked.iter().map(on).max().unwrap_or(0)
    };
    lengths.into_iter().find(|t| most(*t) <= room).unwrap_or(lengths[N - 1])
}

/// Two clusters that have nothing to do with each other are taken for one in this share of cases.
const JOINED: f64 = 0.05;
/// Steps towards the pause; each is longer than the one before, and few are needed.
const STEPS: usize = 50;

/// The pause after which the next micro-stall in a list of all gaps begins a cluster of its own, ticks.
///
/// Independent clusters, `r` a second, follow within a pause `p` with probability `1 - exp(-r p)`: [`JOINED`] here. As `r`
/// counts the clusters that the pause makes, it is found from below, step by step.
pub(super) fn pause_ticks(gaps: &[Gap], stall_ticks: u64) -> Option<u64> {
    let stalls: Vec<&Gap> = gaps.iter().filter(|g| g.ticks() < stall_ticks).collect();
    let span = stalls.last()?.end_ticks.saturating_sub(stalls[0].start_ticks);
    if stalls.len() < 2 || span == 0 {
        return None;
    }
    let apart: Vec<u64> =
        stalls.windows(2).map(|w| w[1].start_ticks.saturating_sub(w[0].end_ticks)).collect();
    let mut pause = 0;
    for _ in 0..STEPS {
        let clusters = 1 + apart.iter().filter(|a| **a > pause).count();
        let next = (-(1.0 - JOINED).ln() * span as f64 / clusters as f64) as u64;
        if next <= pause {
            break;
        }
        pause = next;
    }
    Some(pause.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_stats::random::Random;

    /// Clusters per second that a pause makes of stalls, and how many stalls there are. One tick is 1 ns.
    fn clusters(gaps: &[Gap], pause: u64) -> f64 {
        let later = gaps.windows(2).filter(|w| w[1].start_ticks - w[0].end_ticks > pause).count();
        (later + 1) as f64 / (gaps[gaps.len() - 1].end_ticks as f64 / 1e9)
    }

    #[test]
    fn clusters_are_counted_whatever_they_are_made_of() {
        let mut random = Random::new(3);
        // (clusters per second, stalls in each, time between them)
        for (rate, size, apart) in
            [(1_000.0, 12, 2_500), (50.0, 20, 5_000), (5_000.0, 1, 1), (20.0, 200, 1_200)]
        {
            let mut gaps = Vec::new();
            let (mut at, mut planted) = (0.0, 0.0);
            while at < 4e9 {
                at += random.exponential() * 1e9 / rate;
                planted += 0.25;
                for k in 0..size {
                    let start_ticks = at as u64 + k * apart;
                    gaps.push(Gap { start_ticks, end_ticks: start_ticks + 150 });
                }
            }
            gaps.sort_by_key(|g| g.start_ticks);
            gaps.dedup_by(|b, a| b.start_ticks < a.end_ticks + 10);
            let pause = pause_ticks(&gaps, 500).unwrap();
            let found = clusters(&gaps, pause);
            let lasts = size as f64 * apart as f64 / 1e9;
            // Clusters that overlap are one, whatever the pause.
            let truth = planted * (-rate * lasts).exp();
            assert!(
                (found / truth - 1.0).abs() < 0.25,
                "{rate} of {size}: {found} for {truth}, pause {pause}"
            );
        }
    }

    #[test]
    fn the_list_takes_what_leaves_half_of_it_free() {
        let gap = |start_ticks: u64, ticks: u64| Gap { start_ticks, end_ticks: start_ticks + ticks };
        let gaps: Vec<Gap> =
            (0..100).map(|i| gap(i * 100_000, if i % 10 == 0 { 20_000 } else { 2_000 })).collect();
        let lengths = Lengths::of_gaps(&gaps);
        let chosen = |room| listing_ticks([500, 1_000, 10_000, 100_000], room, &[&lengths]);
        assert_eq!((chosen(100), chosen(99), chosen(10), chosen(3)), (500, 10_000, 10_000, 100_000));
    }
}
