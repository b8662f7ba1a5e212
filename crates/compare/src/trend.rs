//! Change points of a figure over the runs of a machine: where the runs before and after differ by their ranks.

use machmeter_stats::quantile::median_of;
use machmeter_stats::rank::mann_whitney;

/// Runs on either side of a change point at least: with fewer, ranks cannot tell it among so many places.
const LEAST: usize = 5;
/// Bound on the probability of a false change point in each part that is searched, over its places (Bonferroni).
const ERROR: f64 = 0.01;

/// A part of the history in which a figure did not change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Index of its first run.
    pub from: usize,
    /// Median of its runs, in the unit of the values.
    pub median: f64,
}

/// The levels of finite `values` in order of time: each part is split where the ranks of both halves differ most, until nothing is
/// found (binary segmentation: Scott, Knott, Biometrics 30, 1974).
pub fn levels(values: &[f64]) -> Vec<Level> {
    let mut ends = vec![0, values.len()];
    let mut open = Vec::from([(0, values.len())]);
    while let Some((start, end)) = open.pop() {
        let places = start + LEAST..(end + 1).saturating_sub(LEAST);
        let count = places.len() as f64;
        let of = |at: usize| Some((mann_whitney(&values[start..at], &values[at..end])?, at));
        let best = places.filter_map(of).min_by(|x, y| x.0.total_cmp(&y.0));
        if let Some((p, at)) = best
            && p * count <= ERROR
        {
            ends.push(at);
            open.extend([(start, at), (at, end)]);
        }
    }
    ends.sort_unstable();
    let level = |w: &[usize]| Some(Level { from: w[0], median: median_of(&values[w[0]..w[1]])? });
    ends.windows(2).filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_stats::random::Random;

    #[test]
    fn planted_changes_are_found_where_they_are_and_none_elsewhere() {
        let mut r = Random::new(5);
        let (mut wrong, mut found) = (0, 0);
        for _ in 0..100 {
            let mut run = |level: f64| level * (1.0 + 0.01 * r.normal());
            let flat: Vec<f64> = (0..40).map(|_| run(100.0)).collect();
            wrong += usize::from(levels(&flat).len() > 1);
            let steps: Vec<f64> = (0..45).map(|i| run([100.0, 110.0, 104.0][i / 15])).collect();
            let told: Vec<usize> = levels(&steps).iter().skip(1).map(|l| l.from).collect();
            found += usize::from(matches!(told[..], [a, b] if a.abs_diff(15) <= 1 && b.abs_diff(30) <= 1));
        }
        assert!(wrong <= 3 && found >= 90, "{wrong} {found}");
        assert_eq!(levels(&[]).len(), 0);
        assert_eq!(levels(&[1.0; 4]), [Level { from: 0, median: 1.0 }]);
    }
}
