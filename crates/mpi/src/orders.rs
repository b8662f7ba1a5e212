//! What rank 0 tells the others, over MPI itself: a row of numbers.

use crate::operations::{number_of, numbered};
use crate::pairing::Pairing;
use crate::stage::{Play, Windows};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Turns(Play, u64),
    /// Windows from an agreed moment on, ticks of rank 0's clock.
    Windows(Play, Windows, u64),
    /// Say whether you were disturbed.
    Report,
    End,
}

pub(crate) type Words = [i64; 11];

impl Order {
    pub(crate) fn to_words(self) -> Words {
        let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let words = |kind, p: &Play, turns, count: u32, period_ns, start| {
            let [pairing, of_pairing] = p.pairing.to_words();
            let operation = int(number_of(p.operation.name).unwrap_or(usize::MAX) as u64);
            let (bytes, ranks, beside) = (int(p.bytes), int(p.ranks as u64), int(p.beside_ns));
            let (count, period, start) = (i64::from(count), int(period_ns), int(start));
            [kind, operation, bytes, ranks, beside, int(turns), count, period, start, pairing, of_pairing]
        };
        match self {
            Self::End => [0; 11],
            Self::Turns(play, turns) => words(1, &play, turns, 0, 0, 0),
            Self::Windows(play, w, start) => words(2, &play, 1, w.count, w.period_ns, start),
            Self::Report => [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// What is no order ends the rank that got it.
    pub(crate) fn of_words(words: &Words) -> Self {
        let [kind, operation, bytes, ranks, beside_ns, turns, count, period_ns, start, ..] =
            words.map(|w| u64::try_from(w).unwrap_or(0));
        let pairing = Pairing::of_words([words[9], words[10]]);
        let Some(operation) = numbered(operation as usize) else {
            return Self::End;
        };
        let play = Play { operation, bytes, ranks: ranks as usize, beside_ns, pairing };
        match kind {
            1 => Self::Turns(play, turns),
            2 => Self::Windows(play, Windows { count: count as u32, period_ns }, start),
            3 => Self::Report,
            _ => Self::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OPERATIONS;

    #[test]
    fn orders_arrive_as_they_were() {
        let pairing = Pairing::Random { pairs: 3, seed: u32::MAX };
        let play =
            Play { operation: &OPERATIONS[7], bytes: 1 << 30, ranks: 64, beside_ns: 2_000_000, pairing };
        let windows = Windows { count: 32, period_ns: 20_000 };
        for order in
            [Order::Turns(play, 9), Order::Windows(play, windows, 1 << 62), Order::Report, Order::End]
        {
            assert_eq!(Order::of_words(&order.to_words()), order);
        }
        assert_eq!(Order::of_words(&[99; 11]), Order::End);
    }
}
