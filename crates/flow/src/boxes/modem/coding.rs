//! Bits: test sequence, convolutional code, interleaver, Viterbi decoder, error counter. A bit is a token of 0 or 1.

use super::SharedReport;
use crate::boxes::{Blocks, Stage, function};
use crate::{In, Out, Outcome, Primitive, Token};

/// Bits that the code remembers, and zeros at the end of a frame that bring it back to state 0.
pub const TAIL: usize = 6;
/// Of constraint length 7, the newest bit first (CCSDS 131.0-B).
const GENERATORS: [u32; 2] = [0o171, 0o133];
const STATES: usize = 1 << TAIL;

/// The sequence of ITU-T O.150 of length 2^23 - 1, x^23 + x^18 + 1, by its last 23 bits.
#[derive(Debug, Clone)]
pub struct Prbs(u32);

impl Prbs {
    const LENGTH: usize = 23;
    /// Starts at a place of the sequence that the seed chooses.
    pub fn new(seed: u64) -> Self {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self((mixed >> (64 - Self::LENGTH)) as u32 | 1)
    }
    pub fn bit(&mut self) -> u8 {
        let bit = ((self.0 >> 22) ^ (self.0 >> 17)) as u8 & 1;
        self.load(bit);
        bit
    }
    fn load(&mut self, bit: u8) {
        self.0 = ((self.0 << 1) | u32::from(bit)) & ((1 << Self::LENGTH) - 1);
    }
}

impl Primitive for Prbs {
    type Ports = Out<u8>;
    fn apply(&mut self, y: &mut [u8]) -> Outcome {
        y.fill_with(|| self.bit());
        Outcome::Done
    }
}

/// Output of the code for a register with the newest bit at the top.
fn encode_bit(register: u32) -> [u8; 2] {
    GENERATORS.map(|g| ((register & g).count_ones() & 1) as u8)
}

/// Convolutional coder of rate 1/2: frames of so many bits to frames of two bits for each, tail included.
pub fn encode(bits: usize) -> impl Stage<u8, u8> {
    Blocks::one_to_one(bits, 2 * (bits + TAIL), |x: &[u8], y: &mut [u8]| {
        let mut state = 0;
        for (bit, y) in x.iter().copied().chain([0; TAIL]).zip(y.chunks_exact_mut(2)) {
            let register = (u32::from(bit) << TAIL) | state;
            y.copy_from_slice(&encode_bit(register));
            state = register >> 1;
        }
    })
}

/// Order of a block interleaver, written by rows and read by columns; the last row may be incomplete.
pub fn interleaver_order(length: usize, rows: usize) -> Vec<usize> {
    let columns = length.div_ceil(rows);
    let places = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
    places.filter(|i| *i < length).collect()
}

pub fn invert_order(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, from)| inverse[*from] = i);
    inverse
}

/// Interleaver: puts the tokens of each block into an order, which says where each comes from.
pub fn permute<T: Token>(order: Vec<usize>) -> impl Stage<T, T> {
    Blocks::one_to_one(order.len(), order.len(), move |x: &[T], y: &mut [T]| {
        y.iter_mut().zip(&order).for_each(|(y, from)| *y = x[*from]);
    })
}

/// Viterbi decoder of frames with a tail. Soft values are positive for 0, on any scale. It leaves out frames that are not valid.
pub struct Viterbi {
    bits: usize,
    /// Signs of both outputs for bit 0 in even states: the odd state after it and bit 1 have the opposite ones.
    signs: [[f32; STATES / 2]; 2],
    /// Of each step and state: whether the odd predecessor was better.
    choices: Vec<u64>,
}

impl Viterbi {
    pub fn new(bits: usize) -> Self {
        let sign = |output: usize, j: usize| 1.0 - 2.0 * f32::from(encode_bit(2 * j as u32)[output]);
        let signs = [0, 1].map(|output| std::array::from_fn(|j| sign(output, j)));
        Self { bits, signs, choices: vec![0; bits + TAIL] }
    }

    pub fn decode(&mut self, soft: &[f32], bits: &mut [u8]) {
        // Far below any path that begins in state 0.
        let mut old = [-1e30_f32; STATES];
        old[0] = 0.0;
        for (soft, choices) in soft.chunks_exact(2).zip(&mut self.choices) {
            let mut new = [0.0; STATES];
            *choices = 0;
            for j in 0..STATES / 2 {
                let gain = self.signs[0][j] * soft[0] + self.signs[1][j] * soft[1];
                // Bit 0 leads to state j, bit 1 to that state and the bit at the top.
                for (to, gain) in [(j, gain), (j + STATES / 2, -gain)] {
                    let (even, odd) = (old[2 * j] + gain, old[2 * j + 1] - gain);
                    new[to] = if odd > even { odd } else { even };
                    *choices |= u64::from(odd > even) << to;
                }
            }
            old = new;
        }
        let mut state = 0;
        for (step, choices) in self.choices.iter().enumerate().rev() {
            if let Some(bit) = bits.get_mut(step) {
                *bit = (state >> (TAIL - 1)) as u8;
            }
            state = ((2 * state) % STATES) | ((choices >> state) & 1) as usize;
        }
    }
}

impl Primitive for Viterbi {
    type Ports = (In<f32>, In<u8>, Out<u8>);
    fn apply(&mut self, (x, valid, y): (&[f32], &[u8], &mut [u8])) -> Outcome {
        let frames = x.chunks_exact(2 * (self.bits + TAIL)).zip(y.chunks_exact_mut(self.bits));
        frames.zip(valid).filter(|f| *f.1 > 0).for_each(|((x, y), _)| self.decode(x, y));
        Outcome::Done
    }
}

/// Compares frames of so many bits with the sequence that was sent.
pub fn count_errors(
    bits: usize,
    mut reference: Prbs,
    report: SharedReport,
) -> impl Primitive<Ports = (In<u8>, In<u8>)> {
    function::<(In<u8>, In<u8>), _>(move |(x, valid): (&[u8], &[u8])| {
        let mut report = report.borrow_mut();
        for (x, _) in x.chunks_exact(bits).zip(valid).filter(|f| *f.1 > 0) {
            let errors = x.iter().filter(|x| **x != reference.bit()).count();
            // More than a fifth: loss of synchronization, as in ITU-T O.150. The bits received set the reference anew.
            if 5 * errors > bits {
                report.slips += 1;
                x[bits.saturating_sub(Prbs::LENGTH)..].iter().for_each(|x| reference.load(*x));
            } else {
                report.bits += bits as u64;
                report.bit_errors += errors as u64;
            }
        }
        Outcome::Done
    })
}
