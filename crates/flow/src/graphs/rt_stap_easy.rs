//! Space-time adaptive processing of an airborne radar, 66 boxes in one static schedule. It is like the easy case of the benchmark
//! `RT_STAP` (Cain, Torres, Williams 1997), not it: sizes, data and weights are its own. An iteration is a coherent processing
//! interval. Ranges are in gates, angles in cycles an element, Doppler frequencies in cycles a pulse, powers in units of the noise
//! of one channel behind a Doppler filter.

use std::cell::{Cell, RefCell};
use std::f32::consts::{PI, TAU};
use std::rc::Rc;

use rustfft::FftDirection::{Forward, Inverse};
use rustfft::num_complex::Complex32;

use crate::boxes::Blocks;
use crate::boxes::adaptive::{
    ApplyWeights, CHANNELS, Cells, CompareTruth, CornerTurn, DEGREES, HALVES, METER_STEP, PLACES, Spot,
    average_references, compare_threshold, factor, list_detections, select_training, solve_steering, stagger,
    steering,
};
use crate::boxes::filter::{Demultiplex, decimate, demodulate, equalize, low_pass, multiply};
use crate::boxes::gauss::Gauss;
use crate::boxes::transform::{Transform, hann};
use crate::{Graph, In, Out, Outcome, Primitive, chain};

#[cfg(test)]
#[path = "rt_stap_easy_tests.rs"]
mod tests;

/// Frequencies of a bin's and a beam's width around clutter, cycles a pulse: no target is there, and clutter is not measured.
const RIDGE: f32 = 0.15;
/// Bandwidth of the chirp, of the rate after decimation.
const BANDWIDTH: f32 = 0.75;

/// Sizes of the radar and of its data.
#[derive(Debug, Clone)]
pub struct Parameters {
    pub intervals: u64,
    /// Different intervals that the source gives in turn.
    pub cubes: usize,
    /// Doppler bins; an interval has one pulse more.
    pub bins: usize,
    /// Samples of a pulse after decimation, a multiple of 4, and those of the chirp. The difference is the gates, and even.
    pub samples: usize,
    pub chirp: usize,
    /// Decimation, and the odd number of taps of its filter.
    pub decimation: usize,
    pub taps: usize,
    /// Training snapshots, at most half of the gates, and power added to each degree of freedom.
    pub training: usize,
    pub loading: f32,
    pub beams: usize,
    /// Targets of an interval, at least 1.
    pub targets: usize,
    /// Signal to noise of a target after all gains, and clutter to noise in one channel.
    pub target_db: f32,
    pub clutter_db: f32,
    /// Probability of a false alarm in a cell.
    pub false_alarm: f64,
    /// Cells of the mean, and cells between, on each side.
    pub reference: usize,
    pub guard: usize,
    pub seed: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            intervals: 100,
            cubes: 4,
            bins: 32,
            samples: 128,
            chirp: 16,
            decimation: 4,
            taps: 43,
            training: 48,
            loading: 0.3,
            beams: 3,
            targets: 4,
            target_db: 27.0,
            clutter_db: 40.0,
            false_alarm: 1e-4,
            reference: 12,
            guard: 3,
            seed: 1997,
        }
    }
}

impl Parameters {
    pub fn cells(&self) -> Cells {
        Cells { gates: self.samples - self.chirp, bins: self.bins, beams: self.beams }
    }
    /// Beams are 1/8 apart, as the zeros of a beam that is not adapted.
    fn angle(&self, beam: usize) -> f32 {
        (beam as f32 - (self.beams - 1) as f32 / 2.0) / CHANNELS as f32
    }
    /// Whether a bin is apart from the clutter that a beam looks at.
    fn is_clear(&self, bin: usize, beam: usize) -> bool {
        let apart = bin as f32 / self.bins as f32 - self.angle(beam);
        (apart - apart.round()).abs() > RIDGE
    }
    /// The chirp at a time in samples after decimation. It rises and falls in two: edges would reach the image of the carrier.
    fn chirp_at(&self, time: f32) -> Complex32 {
        let length = self.chirp as f32;
        let (t, edge) = (time / length - 0.5, time.min(length - time).min(2.0));
        Complex32::from_polar((PI / 4.0 * edge).sin().powi(2), PI * BANDWIDTH * length * t * t)
    }
    /// Spectrum of the matched filter, weighted in time by Hamming's window; noise keeps its power.
    fn replica(&self) -> Vec<Complex32> {
        let window = |i: usize| 0.54 - 0.46 * (TAU * (i as f32 + 0.5) / self.chirp as f32).cos();
        let mut replica: Vec<_> = (0..self.chirp).map(|i| self.chirp_at(i as f32) * window(i)).collect();
        let norm = replica.iter().map(Complex32::norm_sqr).sum::<f32>().sqrt();
        replica.resize(self.samples, Complex32::ZERO);
        Transform::new(self.samples, Forward).transform(&mut replica);
        replica.iter().map(|r| r.conj() / norm).collect()
    }
}

/// Gain and ripple of a channel: an echo after one sample.
fn mismatch(channel: usize) -> (Complex32, f32) {
    let c = channel as f32;
    (Complex32::from_polar(1.0 + 0.1 * (2.0 * c).sin(), 0.4 * (3.0 * c).cos()), 0.05 * (5.0 * c).sin())
}

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub intervals: u64,
    pub injected: u64,
    pub found: u64,
    pub false_alarms: u64,
    pub cells: u64,
    /// Clutter and noise over noise behind weights not adapted and adapted; means of intervals, apart from the ridge.
    pub before_db: f64,
    pub after_db: f64,
    /// The largest of all triangular factors, relative.
    pub qr_residual: f32,
}

/// An interval: samples of all channels at a carrier of a quarter of their rate, and the targets in them.
struct Cube(Vec<[f32; CHANNELS]>, Vec<Spot>);

impl Cube {
    fn new(p: &Parameters, number: usize) -> Self {
        let (mut gauss, pulses) = (Gauss::new(p.seed.wrapping_add(number as u64)), p.bins + 1);
        // For gates of pulses.
        let mut echoes = vec![[Complex32::ZERO; CHANNELS]; p.samples * pulses];
        let mut add = |gate: usize, angle: f32, doppler: f32, amplitude: Complex32| {
            let space: [_; CHANNELS] = std::array::from_fn(|c| Complex32::cis(TAU * angle * c as f32));
            for (pulse, echo) in echoes[gate * pulses..][..pulses].iter_mut().enumerate() {
                let time = amplitude * Complex32::cis(TAU * doppler * pulse as f32);
                echo.iter_mut().zip(space).for_each(|(e, s)| *e += time * s);
            }
        };
        // Clutter: more patches than frequencies that can be told apart, each with the cosine pattern of an element.
        let patches = 2 * (pulses + CHANNELS);
        let power = 1.5 * 10_f32.powf(p.clutter_db / 10.0) / (p.chirp * patches) as f32;
        for (gate, patch) in (0..p.samples).flat_map(|gate| (0..patches).map(move |patch| (gate, patch))) {
            let angle = (patch as f32 + 0.5) / patches as f32 - 0.5;
            let amplitude = (power * (1.0 - 4.0 * angle * angle)).sqrt();
            add(gate, angle, angle, gauss.complex() * amplitude);
        }
        // Targets: on gates where clutter is not measured, apart from the ridge, and in no cell's middle.
        let amplitude = (10_f32.powf(p.target_db / 10.0) / (p.chirp * p.bins * CHANNELS) as f32).sqrt();
        let slots = p.cells().gates / METER_STEP;
        let mut truth = Vec::new();
        for t in 0..p.targets {
            let beam = (t + number) % p.beams;
            let clear = (0..p.bins).filter(|bin| p.is_clear(*bin, beam));
            let bin = clear.cycle().nth(7 * t + 5 * number).unwrap_or(0);
            let gate = (t * (slots / p.targets) + 3 * number) % slots * METER_STEP + METER_STEP / 2;
            let side = if t % 2 == 0 { 1.0 } else { -1.0 };
            let doppler = (bin as f32 + 0.25 * side) / p.bins as f32;
            let phase = gauss.complex();
            add(gate, p.angle(beam) + 0.02 * side, doppler, phase / phase.norm() * amplitude);
            truth.push([gate, bin, beam].map(|i| i as u32));
        }
        Self(Self::transmit(p, &echoes, &mut gauss), truth)
    }

    /// Chirps from all echoes at the carrier, as channels with gains and ripples of their own receive them, and noise.
    fn transmit(p: &Parameters, echoes: &[[Complex32; CHANNELS]], gauss: &mut Gauss) -> Vec<[f32; CHANNELS]> {
        let (by, pulses, raw) = (p.decimation, p.bins + 1, p.samples * p.decimation);
        let chirp: Vec<_> = (0..p.chirp * by).map(|i| p.chirp_at(i as f32 / by as f32)).collect();
        let noise = (by as f32).sqrt() / 2.0;
        let mut samples = vec![[0.0; CHANNELS]; pulses * raw];
        for (i, samples) in samples.chunks_exact_mut(raw).enumerate() {
            for c in 0..CHANNELS {
                let (gain, ripple) = mismatch(c);
                let (mut envelope, mut last) = (vec![Complex32::ZERO; raw], Complex32::ZERO);
                for (gate, echoes) in echoes.chunks_exact(pulses).enumerate() {
                    let amplitude = gain * (echoes[i][c] + last * ripple);
                    last = echoes[i][c];
                    envelope[gate * by..].iter_mut().zip(&chirp).for_each(|(z, s)| *z += amplitude * s);
                }
                for (n, (z, y)) in envelope.iter().zip(&mut *samples).enumerate() {
                    y[c] = [z.re, -z.im, -z.re, z.im][n % 4] + noise * gain.norm() * gauss.next();
                }
            }
        }
        samples
    }
}

/// Gives intervals made beforehand in turn: only a copy is timed.
struct Source(Vec<Cube>);

impl Primitive for Source {
    type Ports = (Out<[f32; CHANNELS]>, Out<Spot>);
    fn apply(&mut self, (y, truth): (&mut [[f32; CHANNELS]], &mut [Spot])) -> Outcome {
        let (n, targets) = (self.0[0].0.len(), self.0[0].1.len());
        for (y, truth) in y.chunks_exact_mut(n).zip(truth.chunks_exact_mut(targets)) {
            y.copy_from_slice(&self.0[0].0);
            truth.copy_from_slice(&self.0[0].1);
            self.0.rotate_left(1);
        }
        Outcome::Done
    }
}

/// Adds up the results of intervals: the report, the residual that goes into it, cells of an interval.
struct Sink(Rc<RefCell<Report>>, Rc<Cell<f32>>, u64);

impl Primitive for Sink {
    type Ports = (In<[u32; 3]>, In<[f32; 2]>);
    fn apply(&mut self, (scores, powers): (&[[u32; 3]], &[[f32; 2]])) -> Outcome {
        let r = &mut *self.0.borrow_mut();
        for (score, powers) in scores.iter().zip(powers) {
            r.intervals += 1;
            r.cells += self.2;
            let counts = [&mut r.injected, &mut r.found, &mut r.false_alarms];
            counts.into_iter().zip(score).for_each(|(sum, n)| *sum += u64::from(*n));
            for (mean, power) in [&mut r.before_db, &mut r.after_db].into_iter().zip(powers) {
                *mean += (10.0 * f64::from(*power).log10() - *mean) / r.intervals as f64;
            }
        }
        r.qr_residual = self.1.get();
        Outcome::Done
    }
}

/// Adds the boxes to a graph that has none, and tells where the report will be.
pub fn graph(mut g: Graph, p: &Parameters) -> (Graph, Rc<RefCell<Report>>) {
    let (report, residual) = (Rc::<RefCell<Report>>::default(), Rc::<Cell<f32>>::default());
    let cells = p.cells();
    let (pulses, raw, rows) = (p.bins + 1, p.samples * p.decimation, p.training + DEGREES);
    // Tokens of an interval, for boxes that take or give all of it at once.
    let [received, compressed, turned] =
        [raw, p.samples, cells.gates * CHANNELS].map(|n| (n * pulses) as u32);
    let [filtered, count] = [cells.filtered(), cells.count()].map(|n| n as u32);
    // Tokens of a firing.
    let [raw_rate, samples, row, bins, matrix] = [raw, p.samples, pulses, p.bins, rows].map(|n| n as u32);
    let [beams, gates, degrees, targets] = [p.beams, cells.gates, DEGREES, p.targets].map(|n| n as u32);

    g.schedule("interval");
    g.iterations(p.intervals);
    let (cube, truth) = (g.edge("cube"), g.edge("truth"));
    let cubes = (0..p.cubes).map(|number| Cube::new(p, number)).collect();
    g.add("source", Source(cubes), (cube.output(received), truth.output(targets)));
    let channels: [_; CHANNELS] = std::array::from_fn(|_| g.edge("channel"));
    let outputs = channels.iter().map(|channel| channel.output(raw_rate)).collect();
    g.add("demux", Demultiplex, (cube.input(raw_rate), outputs));
    let window = hann(p.bins);
    let power = window.iter().map(|w| w * w).sum::<f32>();
    let correlation = window.iter().zip(&window[1..]).map(|(a, b)| a * b).sum::<f32>() / power;
    // The half of a carrier that its image takes comes back, and noise has power 1 behind the window.
    let low_pass = low_pass(p.taps, 0.5 / p.decimation as f32, 2.0 / power.sqrt());
    let replica = p.replica();
    let ranges: [_; CHANNELS] = std::array::from_fn(|c| {
        let (range, (gain, ripple)) = (g.edge("range"), mismatch(c));
        let taps = [1.0, -ripple, ripple * ripple].map(|tap| tap / gain);
        chain!(g, channels[c]; raw_rate =>
            "I/Q" demodulate(); raw_rate,
            "decimate" decimate(&low_pass, p.decimation, raw); samples,
            "equalize" equalize(taps, p.samples); samples,
            "range FFT" Transform::new(p.samples, Forward); samples,
            "replica" multiply(replica.clone()); samples,
            "inverse FFT" Transform::new(p.samples, Inverse); samples
            => range, Complex32::default());
        range
    });
    let (cube, staggers) = (g.edge("turned"), [g.edge("first pulses"), g.edge("last pulses")]);
    let turn = CornerTurn([pulses, p.samples, cells.gates]);
    g.add("corner turn", turn, (ranges.iter().map(|r| r.input(compressed)).collect(), cube.output(turned)));
    let ports = (cube.input(row), staggers[0].output(bins), staggers[1].output(bins));
    g.add("stagger", stagger(pulses), ports);

    let [a, b] = staggers.map(|stagger| {
        let spectrum = g.edge("spectrum");
        chain!(g, stagger; bins =>
            "window" multiply(window.clone()); bins,
            "Doppler FFT" Transform::new(p.bins, Forward); bins
            => spectrum, Complex32::default());
        spectrum
    });
    let looks = (0..p.bins).flat_map(|bin| (0..p.beams).map(move |beam| (bin, beam)));
    let look = |(bin, beam)| steering(p.angle(beam), bin as f32 / p.bins as f32);
    let steering: Rc<[_]> = looks.clone().map(look).collect();
    let is_metered = looks.map(|(bin, beam)| p.is_clear(bin, beam)).collect();
    let (training, weights, output, powers) =
        (g.edge("training"), g.edge("weights"), g.edge("beams"), g.edge("powers"));
    let select = select_training(cells, p.training, p.loading);
    let matrices = (p.bins * HALVES) as u32;
    g.add(
        "training select",
        select,
        (a.input(filtered), b.input(filtered), training.output(matrices * matrix)),
    );
    chain!(g, training; matrix =>
            "QR" factor(rows, Rc::clone(&residual)); degrees,
            "steering solve" solve_steering(Rc::clone(&steering), p.beams, p.training); beams
            => weights, Default::default());
    let (a, b, weights) = (a.input(filtered), b.input(filtered), weights.input(matrices * beams));
    let apply = ApplyWeights { cells, steering, is_metered, correlation };
    g.add("apply weights", apply, (a, b, weights, output.output(count), powers.output(1)));
    // The matched filter correlates the noise of neighboring gates: fewer cells are independent.
    let width = replica.iter().map(|r| r.norm_sqr().powi(2)).sum::<f32>() / p.samples as f32;
    let independent = 2.0 * p.reference as f64 / f64::from(width);
    let (hits, list, score) = (g.edge("hits"), g.edge("list"), g.edge("score"));
    let square = |x: &[Complex32], y: &mut [f32]| x.iter().zip(y).for_each(|(x, y)| *y = x.norm_sqr());
    chain!(g, output; gates =>
            "power" Blocks::one_to_one(cells.gates, cells.gates, square); gates,
            "CFAR mean" average_references(cells.gates, p.reference, p.guard); gates,
            "threshold" compare_threshold(p.false_alarm, independent); gates
            => hits, Default::default());
    g.add("detection list", list_detections(cells), (hits.input(count), list.output(PLACES as u32)));
    let compare = CompareTruth { bins: p.bins, targets: p.targets };
    g.add("truth compare", compare, (list.input(PLACES as u32), truth.input(targets), score.output(1)));
    g.add("sink", Sink(Rc::clone(&report), residual, u64::from(count)), (score.input(1), powers.input(1)));
    (g, report)
}
