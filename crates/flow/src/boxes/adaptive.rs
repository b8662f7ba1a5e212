//! Space-time adaptive processing behind Doppler filters of two staggers (Ward 1994, section 5.3), and detection at a constant rate
//! of false alarms. Powers are in units of one channel's noise.

use std::cell::Cell;
use std::f32::consts::TAU;
use std::rc::Rc;

use rustfft::num_complex::Complex32;

use super::{ALL, Blocks, Stage, function};
use crate::{In, Many, Out, Outcome, Port, Primitive};

/// Receive channels: elements of a line array, half a wavelength apart.
pub const CHANNELS: usize = 8;
/// Degrees of freedom of the weights: each channel in two staggers.
pub const DEGREES: usize = 2 * CHANNELS;
/// What the channels of both staggers have of one range gate and Doppler bin.
pub type Snapshot = [Complex32; DEGREES];
const NO_SNAPSHOT: Snapshot = [Complex32::ZERO; DEGREES];
/// Halves of the range. Each is trained on the other, so that a target is not in its own training.
pub const HALVES: usize = 2;
/// Clutter is measured on one gate of so many.
pub const METER_STEP: usize = 8;
/// Range gate, Doppler bin, beam.
pub type Spot = [u32; 3];
/// Places of a list of detections, and one that is not used.
pub const PLACES: usize = 256;
const NO_SPOT: Spot = [u32::MAX; 3];
/// Neighbors of a detection on each side, in gates and bins: the width of an echo. All beams are neighbors.
const REACH: usize = 2;

#[derive(Debug, Clone, Copy)]
pub struct Cells {
    pub gates: usize,
    pub bins: usize,
    pub beams: usize,
}

impl Cells {
    pub fn count(&self) -> usize {
        self.gates * self.bins * self.beams
    }
    fn index(&self, bin: usize, beam: usize, gate: usize) -> usize {
        (bin * self.beams + beam) * self.gates + gate
    }
    /// Tokens of one stagger: gates of channels of bins.
    pub fn filtered(&self) -> usize {
        self.gates * CHANNELS * self.bins
    }
    fn snapshot(&self, staggers: [&[Complex32]; 2], bin: usize, gate: usize) -> Snapshot {
        let first = gate * CHANNELS * self.bins + bin;
        std::array::from_fn(|i| staggers[i / CHANNELS][first + i % CHANNELS * self.bins])
    }
}

/// Response to an angle (cycles an element) and a Doppler frequency (cycles a pulse); the second stagger is a pulse later.
pub fn steering(angle: f32, doppler: f32) -> Snapshot {
    let turns = |i: usize| angle * (i % CHANNELS) as f32 + doppler * (i / CHANNELS) as f32;
    std::array::from_fn(|i| Complex32::cis(TAU * turns(i)))
}

/// `w^H z`.
fn inner(w: &[Complex32], z: &[Complex32]) -> Complex32 {
    w.iter().zip(z).map(|(w, z)| w.conj() * z).sum()
}

/// From pulses of samples, a channel each, to gates of channels of pulses. Samples of a pulse behind the gates are not used.
pub fn corner_turn(
    [pulses, samples, gates]: [usize; 3],
) -> impl Primitive<Ports = (Vec<In<Complex32>>, Out<Complex32>)> {
    type Channels<'a> = (Many<'a, In<Complex32>>, &'a mut [Complex32]);
    function::<(Vec<In<Complex32>>, Out<Complex32>), _>(move |(mut channels, y): Channels<'_>| {
        for c in 0..CHANNELS {
            let intervals = channels.at(c).chunks_exact(pulses * samples);
            for (x, y) in intervals.zip(y.chunks_exact_mut(gates * CHANNELS * pulses)) {
                for (p, x) in x.chunks_exact(samples).enumerate() {
                    let y = y[c * pulses + p..].iter_mut().step_by(CHANNELS * pulses);
                    x.iter().zip(y).for_each(|(x, y)| *y = *x);
                }
            }
        }
        Outcome::Done
    })
}

/// Splits a row of so many pulses in two: without the last, and without the first.
pub fn stagger(pulses: usize) -> impl Primitive<Ports = (In<Complex32>, Out<Complex32>, Out<Complex32>)> {
    let n = pulses - 1;
    Blocks::one_to_two(pulses, n, move |x: &[Complex32], a: &mut [Complex32], b: &mut [Complex32]| {
        a.copy_from_slice(&x[..n]);
        b.copy_from_slice(&x[1..]);
    })
}

/// Gives a matrix for each bin and half: snapshots of the other half at even distances, and rows that load the diagonal.
/// `snapshots`: at most half of the gates. `loading`: power added to each degree of freedom.
pub fn select_training(
    cells: Cells,
    snapshots: usize,
    loading: f32,
) -> impl Primitive<Ports = (In<Complex32>, In<Complex32>, Out<Snapshot>)> {
    let (half, rows) = (cells.gates / HALVES, snapshots + DEGREES);
    let diagonal = Complex32::from((snapshots as f32 * loading).sqrt());
    let select = move |a: &[Complex32], b: &[Complex32], y: &mut [Snapshot]| {
        for (i, matrix) in y.chunks_exact_mut(rows).enumerate() {
            let first = (HALVES - 1 - i % HALVES) * half;
            let (training, loading) = matrix.split_at_mut(snapshots);
            for (k, row) in training.iter_mut().enumerate() {
                let gate = first + k * half / snapshots;
                // Conjugate: `A^H A` is the sum of `z z^H`.
                *row = cells.snapshot([a, b], i / HALVES, gate).map(|z| z.conj());
            }
            loading.fill(NO_SNAPSHOT);
            (0..DEGREES).for_each(|k| loading[k][k] = diagonal);
        }
    };
    Blocks::two_to_one(cells.filtered(), cells.bins * HALVES * rows, select)
}

/// Makes a matrix upper triangular by Householder's reflections (Golub and Van Loan, section 5.2). `v` has room for a column.
pub fn triangularize(a: &mut [Snapshot], v: &mut [Complex32]) {
    for k in 0..DEGREES {
        let norm = a[k..].iter().map(|row| row[k].norm_sqr()).sum::<f32>().sqrt();
        if norm == 0.0 {
            continue;
        }
        let (head, size) = (a[k][k], a[k][k].norm());
        // The sign that adds: no digits are lost.
        let phase = Complex32::cis(head.arg());
        v.iter_mut().zip(&*a).for_each(|(v, row)| *v = row[k]);
        v[k] = head + phase * norm;
        let scale = 1.0 / (norm * (norm + size));
        let mut sums = NO_SNAPSHOT;
        for (v, row) in v.iter().zip(&*a).skip(k) {
            let v = v.conj();
            sums[k + 1..].iter_mut().zip(&row[k + 1..]).for_each(|(s, a)| *s += v * a);
        }
        for (v, row) in v.iter().zip(&mut *a).skip(k) {
            let v = *v * scale;
            row[k + 1..].iter_mut().zip(&sums[k + 1..]).for_each(|(a, s)| *a -= v * s);
            row[k] = Complex32::ZERO;
        }
        a[k][k] = -phase * norm;
    }
}

/// `A^H A x` with `x` of ones.
fn normal_product(a: &[Snapshot]) -> Snapshot {
    let mut product = NO_SNAPSHOT;
    for row in a {
        let sum: Complex32 = row.iter().sum();
        product.iter_mut().zip(row).for_each(|(p, a)| *p += a.conj() * sum);
    }
    product
}

/// Finds triangular factors. `worst` becomes the largest of `|A^H A x - R^H R x| / |A^H A x|` so far.
pub fn factor(rows: usize, worst: Rc<Cell<f32>>) -> impl Stage<Snapshot, Snapshot> {
    let (mut work, mut column) = (vec![NO_SNAPSHOT; rows], vec![Complex32::ZERO; rows]);
    Blocks::one_to_one(rows, DEGREES, move |a: &[Snapshot], r: &mut [Snapshot]| {
        work.copy_from_slice(a);
        triangularize(&mut work, &mut column);
        r.copy_from_slice(&work[..DEGREES]);
        let (truth, mut error) = (normal_product(a), normal_product(r));
        error.iter_mut().zip(&truth).for_each(|(e, t)| *e -= t);
        let residual = (inner(&error, &error).re / inner(&truth, &truth).re).sqrt();
        worst.set(worst.get().max(residual));
    })
}

/// Solves `R^H R w = t` forward and back. The power of what the weights were trained on becomes 1: the adaptive matched filter.
fn solve(r: &[Snapshot], t: &Snapshot, snapshots: f32) -> Snapshot {
    let mut w = *t;
    for i in 0..DEGREES {
        let sum: Complex32 = (0..i).map(|j| r[j][i].conj() * w[j]).sum();
        w[i] = (w[i] - sum) / r[i][i].conj();
    }
    let scale = (snapshots / inner(&w, &w).re).sqrt();
    for i in (0..DEGREES).rev() {
        let sum: Complex32 = (i + 1..DEGREES).map(|j| r[i][j] * w[j]).sum();
        w[i] = (w[i] - sum) / r[i][i];
    }
    w.map(|w| w * scale)
}

/// Finds the weights of all beams from each factor of `n` training snapshots. `steering` has bins of beams.
pub fn solve_steering(steering: Rc<[Snapshot]>, beams: usize, n: usize) -> impl Stage<Snapshot, Snapshot> {
    // Factors come in bins of halves.
    let mut bins = (0..steering.len()).step_by(beams).flat_map(|first| [first; HALVES]).cycle();
    Blocks::one_to_one(DEGREES, beams, move |r: &[Snapshot], w: &mut [Snapshot]| {
        let first = bins.next().unwrap_or(0);
        w.iter_mut().zip(&steering[first..]).for_each(|(w, t)| *w = solve(r, t, n as f32));
    })
}

/// Forms beams, and measures mean powers of clutter and noise: with weights not adapted, and adapted, for a noise gain of 1.
pub struct ApplyWeights {
    pub cells: Cells,
    pub steering: Rc<[Snapshot]>,
    /// For bins of beams: whether the power is measured there.
    pub is_metered: Vec<bool>,
    /// Of a channel's noise in both staggers, turned to the same phase.
    pub correlation: f32,
}

impl ApplyWeights {
    /// Power of noise behind weights for a bin whose steering vector is `t`.
    fn noise(&self, w: &Snapshot, t: &Snapshot) -> f32 {
        let (first, second) = w.split_at(CHANNELS);
        inner(w, w).re + 2.0 * self.correlation * (inner(second, first) * t[CHANNELS]).re
    }
}

impl Primitive for ApplyWeights {
    type Ports = (In<Complex32>, In<Complex32>, In<Snapshot>, Out<Complex32>, Out<[f32; 2]>);
    fn apply(&mut self, (a, b, weights, y, powers): <Self::Ports as Port>::View<'_>) -> Outcome {
        let (Cells { gates, bins, beams }, n) = (self.cells, self.cells.filtered());
        let staggers = a.chunks_exact(n).zip(b.chunks_exact(n));
        let outputs = y.chunks_exact_mut(self.cells.count()).zip(powers);
        let intervals = staggers.zip(weights.chunks_exact(bins * HALVES * beams)).zip(outputs);
        for (((a, b), weights), (y, powers)) in intervals {
            let (mut sums, mut measured) = ([0.0; 2], 0.0);
            for (bin, gate) in (0..bins).flat_map(|bin| (0..gates).map(move |gate| (bin, gate))) {
                let z = self.cells.snapshot([a, b], bin, gate);
                let weights = &weights[(bin * HALVES + gate * HALVES / gates) * beams..][..beams];
                for (beam, w) in weights.iter().enumerate() {
                    let output = inner(w, &z);
                    y[self.cells.index(bin, beam, gate)] = output;
                    if gate % METER_STEP == 0 && self.is_metered[bin * beams + beam] {
                        let t = &self.steering[bin * beams + beam];
                        sums[0] += inner(t, &z).norm_sqr() / self.noise(t, t);
                        sums[1] += output.norm_sqr() / self.noise(w, t);
                        measured += 1.0;
                    }
                }
            }
            *powers = sums.map(|sum| sum / measured);
        }
        Outcome::Done
    }
}

/// Puts the mean of `reference` cells on each side beside each power of a row, `guard` cells away; at an end more on the other side.
pub fn average_references(row: usize, reference: usize, guard: usize) -> impl Stage<f32, [f32; 2]> {
    let all = 2 * reference;
    Blocks::one_to_one(row, row, move |x: &[f32], y: &mut [[f32; 2]]| {
        for (i, y) in y.iter_mut().enumerate() {
            let (before, behind) = (i.saturating_sub(guard), (i + guard + 1).min(row));
            let right = (all - reference.min(before)).min(row - behind);
            let left = all - right;
            let sum: f32 = x[before - left..before].iter().chain(&x[behind..behind + right]).sum();
            *y = [x[i], sum / all as f32];
        }
    })
}

/// Gives the ratio of a power to the mean of `n` where a false alarm has at most this probability, otherwise 0.
pub fn compare_threshold(probability: f64, n: f64) -> impl Stage<[f32; 2], f32> {
    let factor = (n * (probability.powf(-1.0 / n) - 1.0)) as f32;
    Blocks::one_to_one(ALL, ALL, move |x: &[[f32; 2]], y: &mut [f32]| {
        for ([power, mean], y) in x.iter().zip(y) {
            *y = if *power > factor * mean { power / mean } else { 0.0 };
        }
    })
}

/// Whether no neighbor has a larger ratio.
fn is_largest(cells: Cells, x: &[f32], bin: usize, gate: usize, ratio: f32) -> bool {
    let gates = gate.saturating_sub(REACH)..(gate + REACH + 1).min(cells.gates);
    (0..(2 * REACH + 1) * cells.beams).all(|i| {
        let bin = (bin + cells.bins + i / cells.beams - REACH) % cells.bins;
        let row = &x[cells.index(bin, i % cells.beams, 0)..];
        row[gates.clone()].iter().all(|other| *other <= ratio)
    })
}

/// Lists cells that are above the threshold and the largest among their neighbors. Those that have no place are lost.
pub fn list_detections(cells: Cells) -> impl Stage<f32, Spot> {
    let Cells { gates, beams, .. } = cells;
    Blocks::one_to_one(cells.count(), PLACES, move |x: &[f32], y: &mut [Spot]| {
        y.fill(NO_SPOT);
        let mut places = y.iter_mut();
        for (i, ratio) in x.iter().enumerate().filter(|(_, ratio)| **ratio > 0.0) {
            let (bin, beam, gate) = (i / gates / beams, i / gates % beams, i % gates);
            if is_largest(cells, x, bin, gate, *ratio)
                && let Some(place) = places.next()
            {
                *place = [gate, bin, beam].map(|i| i as u32);
            }
        }
    })
}

/// Targets injected, targets found, false alarms. Spots are the same at most one gate, bin and beam apart.
pub fn compare_truth(
    bins: usize,
    targets: usize,
) -> impl Primitive<Ports = (In<Spot>, In<Spot>, Out<[u32; 3]>)> {
    type Ports = (In<Spot>, In<Spot>, Out<[u32; 3]>);
    let is_same = move |a: &Spot, b: &Spot| {
        let [gates, doppler, beams]: Spot = std::array::from_fn(|i| a[i].abs_diff(b[i]));
        gates <= 1 && doppler.min(bins as u32 - doppler) <= 1 && beams <= 1
    };
    let count = move |spots: &[Spot], others: &[Spot]| {
        spots.iter().filter(|a| others.iter().any(|b| is_same(a, b))).count() as u32
    };
    function::<Ports, _>(move |(list, truth, y): (&[Spot], &[Spot], &mut [[u32; 3]])| {
        let intervals = list.chunks_exact(PLACES).zip(truth.chunks_exact(targets));
        for ((list, truth), y) in intervals.zip(y) {
            let list = list.split(|spot| *spot == NO_SPOT).next().unwrap_or(list);
            let false_alarms = list.len() as u32 - count(list, truth);
            *y = [truth.len() as u32, count(truth, list), false_alarms];
        }
        Outcome::Done
    })
}
