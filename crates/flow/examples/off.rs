//! A loop of one's own whose timers can be switched off, and the same loop without timers: nothing is left of timers that are off.
//!
//! `cargo xtask asm` compares the machine code of both. They begin with different numbers, lest the compiler makes one of the two.

use std::hint::black_box;

use machmeter_flow::timer::{Log, Off, Timer};

const PASS: u8 = 0;
const MIX: u8 = 1;
/// Of the hash FNV-1a: what each word is multiplied with.
const PRIME: u64 = 0x0100_0000_01b3;

/// Work that no compiler leaves out or does before the loop.
#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(PRIME)
}

#[inline(never)]
fn plain(words: &[u64]) -> u64 {
    let mut hash = 1;
    for word in words {
        hash = mix(hash, *word);
    }
    hash
}

#[inline(never)]
fn timed<T: Timer>(words: &[u64], log: &Log) -> u64 {
    let mut hash = 2;
    T::enter(log, PASS);
    for word in words {
        T::enter(log, MIX);
        hash = mix(hash, *word);
        T::turn(log, PASS);
    }
    T::leave(log);
    hash
}

fn main() {
    let words: Vec<u64> = black_box((0..1000).collect());
    let log = Log::new(&["pass", "mix"]);
    black_box((plain(&words), timed::<Off>(&words, &log)));
    assert_eq!(log.sums().of(MIX).called, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_flow::timer::On;

    #[test]
    fn timers_that_are_on_count_what_those_that_are_off_do_not() {
        let log = Log::new(&["pass", "mix"]).calibrated();
        log.start();
        timed::<Off>(&[1; 10], &log);
        timed::<On>(&[1; 10], &log);
        log.stop();
        assert_eq!(log.sums().of(MIX).called, 10);
        main();
    }
}
