//! Which ranks play together: those of the script, or partners in rounds of a tournament, or drawn at random.

use machmeter_stats::random::Random;

/// Who plays with whom; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pairing {
    /// As the script says: ranks 0 and 1, or all.
    #[default]
    Script,
    /// A round of a tournament in which each meets each once.
    Round(u32),
    /// The first so many pairs of all ranks in a random order.
    Random { pairs: u32, seed: u32 },
}

/// Rounds until each of so many ranks has met each other.
pub(crate) fn rounds(ranks: usize) -> usize {
    ranks.next_multiple_of(2).saturating_sub(1)
}

impl Pairing {
    /// Pairs among `ranks`: who begins, and the other.
    pub(crate) fn pairs(self, ranks: usize) -> Vec<[usize; 2]> {
        match self {
            Self::Script => vec![[0, 1]],
            // One stays, the others move on around a circle; of an odd number the one that stays is nobody.
            Self::Round(round) => {
                let circle = rounds(ranks).max(1);
                let at = |i: usize| (round as usize + i) % circle;
                let facing = (1..=circle / 2).map(|i| [at(i), at(circle - i)]);
                let all = std::iter::once([at(0), circle]).chain(facing);
                let sorted = all.map(|[a, b]| [a.min(b), a.max(b)]);
                sorted.filter(|pair| pair[1] < ranks).collect()
            }
            Self::Random { pairs, seed } => {
                let mut order: Vec<usize> = (0..ranks).collect();
                Random::new(u64::from(seed)).shuffle(&mut order);
                order.chunks_exact(2).take(pairs as usize).map(|pair| [pair[0], pair[1]]).collect()
            }
        }
    }

    /// The part of the script that a rank plays, as [`Operation::script`](crate::operations::Operation::script) has it, and its partner.
    pub(crate) fn seat(self, rank: usize, ranks: usize) -> (usize, usize) {
        if self == Self::Script {
            return (rank, 1 - rank.min(1));
        }
        let of = |pair: &[usize; 2]| Some((pair.iter().position(|r| *r == rank)?, *pair));
        let found = self.pairs(ranks).iter().find_map(of);
        found.map_or((usize::MAX, rank), |(seat, pair)| (seat, pair[1 - seat]))
    }

    pub(crate) fn to_words(self) -> [i64; 2] {
        match self {
            Self::Script => [0, 0],
            Self::Round(round) => [-1, i64::from(round)],
            Self::Random { pairs, seed } => [i64::from(pairs.max(1)), i64::from(seed)],
        }
    }

    pub(crate) fn of_words([kind, value]: [i64; 2]) -> Self {
        let value = value as u32;
        match kind {
            0 => Self::Script,
            ..0 => Self::Round(value),
            _ => Self::Random { pairs: kind as u32, seed: value },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_meets_each_once_and_nobody_plays_twice_in_a_round() {
        for ranks in 2..40 {
            let mut met = BTreeSet::new();
            for round in 0..rounds(ranks) {
                let pairs = Pairing::Round(round as u32).pairs(ranks);
                let players: BTreeSet<usize> = pairs.iter().flatten().copied().collect();
                assert_eq!((pairs.len(), players.len()), (ranks / 2, ranks / 2 * 2));
                assert!(pairs.iter().all(|p| p[0] < p[1] && met.insert(*p)));
            }
            assert_eq!(met.len(), ranks * (ranks - 1) / 2, "{ranks}");
        }
    }

    #[test]
    fn all_ranks_see_the_same_pairs() {
        for pairing in [Pairing::Round(3), Pairing::Random { pairs: 2, seed: 9 }, Pairing::Script] {
            assert_eq!(Pairing::of_words(pairing.to_words()), pairing);
            let pairs = pairing.pairs(7);
            for [a, b] in &pairs {
                assert_eq!((pairing.seat(*a, 7), pairing.seat(*b, 7)), ((0, *b), (1, *a)));
            }
        }
        let idle = |rank: &usize| Pairing::Random { pairs: 2, seed: 9 }.seat(*rank, 7).0 == usize::MAX;
        assert_eq!((0..7).filter(idle).count(), 3);
        let halves = |seed| Pairing::Random { pairs: 4, seed }.pairs(8);
        assert!(halves(1) != halves(2) && halves(1) == halves(1));
    }
}
