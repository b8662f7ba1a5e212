//! Space-time adaptive processing of an airborne radar, 66 boxes in one static schedule. It is like the easy case of the benchmark
//! `RT_STAP` (Cain, Torres, Williams 1997), not it: sizes, data and weights are its own. An iteration is a coherent processing
//! interval. Ranges are in gates, angles in cycles an element, Doppler frequencies in cycles a pulse, powers in units of the noise
//! of one channel behind a Doppler filter.

use std::cell::{Cell, RefCell};
use std::f32::consts::{PI, TAU};
use std::rc::Rc;

use rustfft::FftDirection::{Forward, Inverse};
use rustfft::num_complex::Complex32;

use crate::boxes::adaptive::{
    ApplyWeights, CHANNELS, Cells, DEGREES, HALVES, METER_STEP, PLACES, Spot, average_references,
    compare_threshold, compare_truth, corner_turn, factor, list_detections, select_training, solve_steering,
    stagger, steering,
};
use crate::boxes::filter::{decimate, demodulate, demultiplex, equalize, low_pass, multiply};
use crate::boxes::transform::{Transform, hann};
use crate::boxes::{Blocks, Gauss, function};
use crate::{Graph, In, Out, Outcome, Primitive, chain};

#[cfg(test)]
#[path = "rt_stap_easy_tests.rs"]
mod tests;

/// Frequencies of a bin's and a beam's width around clutter, cycles a pulse: no target is there, and clutter is not measured.
const RIDGE: f32 = 0.15;
/// Bandwidth of the chirp, of the rate after decimation.
const BANDWIDTH: f32 = 0.75;

/// Samples of the chirp after decimation, a multiple of 4, and the decimation.
const CHIRP: usize = 16;
const DECIMATION: usize = 4;
/// Taps of the filter that decimates: an odd number.
const TAPS: usize = 43;
/// Power added to each degree of freedom.
const LOADING: f32 = 0.3;
const BEAMS: usize = 3;
const TARGETS: usize = 4;
/// Signal to noise of a target after all gains, and clutter to noise in one channel.
const TARGET_DB: f32 = 27.0;
const CLUTTER_DB: f32 = 40.0;
/// Cells between a cell and those of its mean, on each side.
const GUARD: usize = 3;
const SEED: u64 = 1997;

#[derive(Debug, Clone)]
pub struct Parameters {
    pub intervals: u64,
    /// Different intervals that the source gives in turn.
    pub cubes: usize,
    /// Doppler bins; an interval has one pulse more.
    pub bins: usize,
    /// Samples of a pulse after decimation, a multiple of 4. Without those of the chirp they are the gates, an even number.
    pub samples: usize,
    /// Training snapshots, at most half of the gates.
    pub training: usize,
    /// Probability of a false alarm in a cell.
    pub false_alarm: f64,
    /// Cells of the mean on each side.
    pub reference: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            intervals: 100,
            cubes: 4,
            bins: 32,
            samples: 128,
            training: 48,
            false_alarm: 1e-4,
            reference: 12,
        }
    }
}

impl Parameters {
    pub fn cells(&self) -> Cells {
        Cells { gates: self.samples - CHIRP, bins: self.bins, beams: BEAMS }
    }
    /// Whether a bin is apart from the clutter that a beam looks at.
    fn is_clear(&self, bin: usize, beam: usize) -> bool {
        let apart = bin as f32 / self.bins as f32 - angle(beam);
        (apart - apart.round()).abs() > RIDGE
    }
    /// Spectrum of the matched filter, weighted in time by Hamming's window; noise keeps its power.
    fn replica(&self) -> Vec<Complex32> {
        let window = |i: usize| 0.54 - 0.46 * (TAU * (i as f32 + 0.5) / CHIRP as f32).cos();
        let mut replica: Vec<_> = (0..CHIRP).map(|i| chirp_at(i as f32) * window(i)).collect();
        let norm = replica.iter().map(Complex32::norm_sqr).sum::<f32>().sqrt();
        replica.resize(self.samples, Complex32::ZERO);
        Transform::new(self.samples, Forward).transform(&mut replica);
        replica.iter().map(|r| r.conj() / norm).collect()
    }
}

/// Beams are 1/8 apart, as the zeros of a beam that is not adapted.
fn angle(beam: usize) -> f32 {
    (beam as f32 - (BEAMS - 1) as f32 / 2.0) / CHANNELS as f32
}

/// The chirp at a time in samples after decimation. It rises and falls in two: edges would reach the image of the carrier.
fn chirp_at(time: f32) -> Complex32 {
    let length = CHIRP as f32;
    let (t, edge) = (time / length - 0.5, time.min(length - time).min(2.0));
    Complex32::from_polar((PI / 4.0 * edge).sin().powi(2), PI * BANDWIDTH * length * t * t)
}

/// Gain and ripple of a channel: an echo after one sample.
fn mismatch(channel: usize) -> (Complex32, f32) {
    let c = channel as f32;
    (Complex32::from_polar(1.0 + 0.1 * (2.0 * c).sin(), 0.4 * (3.0 * c).cos()), 0.05 * (5.0 * c).sin())
}

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
        let (mut gauss, pulses) = (Gauss::new(SEED.wrapping_add(number as u64)), p.bins + 1);
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
        let power = 1.5 * 10_f32.powf(CLUTTER_DB / 10.0) / (CHIRP * patches) as f32;
        for (gate, patch) in (0..p.samples).flat_map(|gate| (0..patches).map(move |patch| (gate, patch))) {
            let angle = (patch as f32 + 0.5) / patches as f32 - 0.5;
            let amplitude = (power * (1.0 - 4.0 * angle * angle)).sqrt();
            add(gate, angle, angle, gauss.complex() * amplitude);
        }
        // Targets: on gates where clutter is not measured, apart from the ridge, and in no cell's middle.
        let amplitude = (10_f32.powf(TARGET_DB / 10.0) / (CHIRP * p.bins * CHANNELS) as f32).sqrt();
        let slots = p.cells().gates / METER_STEP;
        let mut truth = Vec::new();
        for t in 0..TARGETS {
            let beam = (t + number) % BEAMS;
            let clear = (0..p.bins).filter(|bin| p.is_clear(*bin, beam));
            let bin = clear.cycle().nth(7 * t + 5 * number).unwrap_or(0);
            let gate = (t * (slots / TARGETS) + 3 * number) % slots * METER_STEP + METER_STEP / 2;
            let side = if t % 2 == 0 { 1.0 } else { -1.0 };
            let doppler = (bin as f32 + 0.25 * side) / p.bins as f32;
            let phase = gauss.complex();
            add(gate, angle(beam) + 0.02 * side, doppler, phase / phase.norm() * amplitude);
            truth.push([gate, bin, beam].map(|i| i as u32));
        }
        Self(Self::transmit(p, &echoes, &mut gauss), truth)
    }

    /// Chirps from all echoes at the carrier, as channels with gains and ripples of their own receive them, and noise.
    fn transmit(p: &Parameters, echoes: &[[Complex32; CHANNELS]], gauss: &mut Gauss) -> Vec<[f32; CHANNELS]> {
        let (by, pulses, raw) = (DECIMATION, p.bins + 1, p.samples * DECIMATION);
        let chirp: Vec<_> = (0..CHIRP * by).map(|i| chirp_at(i as f32 / by as f32)).collect();
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
fn source(mut cubes: Vec<Cube>) -> impl Primitive<Ports = (Out<[f32; CHANNELS]>, Out<Spot>)> {
    type Ports = (Out<[f32; CHANNELS]>, Out<Spot>);
    function::<Ports, _>(move |(y, truth): (&mut [[f32; CHANNELS]], &mut [Spot])| {
        let (n, targets) = (cubes[0].0.len(), cubes[0].1.len());
        for (y, truth) in y.chunks_exact_mut(n).zip(truth.chunks_exact_mut(targets)) {
            y.copy_from_slice(&cubes[0].0);
            truth.copy_from_slice(&cubes[0].1);
            cubes.rotate_left(1);
        }
        Outcome::Done
    })
}

/// Adds up the results of intervals of so many cells, and the residual that goes into the report.
fn sink(
    report: Rc<RefCell<Report>>,
    residual: Rc<Cell<f32>>,
    cells: u64,
) -> impl Primitive<Ports = (In<[u32; 3]>, In<[f32; 2]>)> {
    function::<(In<[u32; 3]>, In<[f32; 2]>), _>(move |(scores, powers): (&[[u32; 3]], &[[f32; 2]])| {
        let r = &mut *report.borrow_mut();
        for (score, powers) in scores.iter().zip(powers) {
            r.intervals += 1;
            r.cells += cells;
            let counts = [&mut r.injected, &mut r.found, &mut r.false_alarms];
            counts.into_iter().zip(score).for_each(|(sum, n)| *sum += u64::from(*n));
            for (mean, power) in [&mut r.before_db, &mut r.after_db].into_iter().zip(powers) {
                *mean += (10.0 * f64::from(*power).log10() - *mean) / r.intervals as f64;
            }
        }
        r.qr_residual = residual.get();
        Outcome::Done
    })
}

/// Adds the boxes to a graph that has none, and tells where the report will be.
pub fn graph(mut g: Graph, p: &Parameters) -> (Graph, Rc<RefCell<Report>>) {
    let (report, residual) = (Rc::<RefCell<Report>>::default(), Rc::<Cell<f32>>::default());
    let cells = p.cells();
    let (pulses, raw, rows) = (p.bins + 1, p.samples * DECIMATION, p.training + DEGREES);
    // Tokens of an interval, for boxes that take or give all of it at once.
    let [received, compressed, turned] =
        [raw, p.samples, cells.gates * CHANNELS].map(|n| (n * pulses) as u32);
    let [filtered, count] = [cells.filtered(), cells.count()].map(|n| n as u32);
    // Tokens of a firing.
    let [raw_rate, samples, row, bins, matrix] = [raw, p.samples, pulses, p.bins, rows].map(|n| n as u32);
    let [beams, gates, degrees, targets] = [BEAMS, cells.gates, DEGREES, TARGETS].map(|n| n as u32);

    g.schedule("interval");
    g.iterations(p.intervals);
    let (cube, truth) = (g.edge("cube"), g.edge("truth"));
    let cubes = (0..p.cubes).map(|number| Cube::new(p, number)).collect();
    g.add("source", source(cubes), (cube.output(received), truth.output(targets)));
    let channels: [_; CHANNELS] = std::array::from_fn(|_| g.edge("channel"));
    let outputs = channels.iter().map(|channel| channel.output(raw_rate)).collect();
    g.add("demux", demultiplex(), (cube.input(raw_rate), outputs));
    let window = hann(p.bins);
    let power = window.iter().map(|w| w * w).sum::<f32>();
    let correlation = window.iter().zip(&window[1..]).map(|(a, b)| a * b).sum::<f32>() / power;
    // The half of a carrier that its image takes comes back, and noise has power 1 behind the window.
    let low_pass = low_pass(TAPS, 0.5 / DECIMATION as f32, 2.0 / power.sqrt());
    let replica = p.replica();
    let ranges: [_; CHANNELS] = std::array::from_fn(|c| {
        let (range, (gain, ripple)) = (g.edge("range"), mismatch(c));
        let taps = [1.0, -ripple, ripple * ripple].map(|tap| tap / gain);
        chain!(g, channels[c]; raw_rate =>
            "I/Q" demodulate(); raw_rate,
            "decimate" decimate(&low_pass, DECIMATION, raw); samples,
            "equalize" equalize(taps, p.samples); samples,
            "range FFT" Transform::new(p.samples, Forward); samples,
            "replica" multiply(replica.clone()); samples,
            "inverse FFT" Transform::new(p.samples, Inverse); samples
            => range, Complex32::default());
        range
    });
    let (cube, staggers) = (g.edge("turned"), [g.edge("first pulses"), g.edge("last pulses")]);
    let turn = corner_turn([pulses, p.samples, cells.gates]);
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
    let looks = (0..p.bins).flat_map(|bin| (0..BEAMS).map(move |beam| (bin, beam)));
    let look = |(bin, beam)| steering(angle(beam), bin as f32 / p.bins as f32);
    let steering: Rc<[_]> = looks.clone().map(look).collect();
    let is_metered = looks.map(|(bin, beam)| p.is_clear(bin, beam)).collect();
    let (training, weights, output, powers) =
        (g.edge("training"), g.edge("weights"), g.edge("beams"), g.edge("powers"));
    let matrices = (p.bins * HALVES) as u32;
    let ports = (a.input(filtered), b.input(filtered), training.output(matrices * matrix));
    g.add("training select", select_training(cells, p.training, LOADING), ports);
    chain!(g, training; matrix =>
            "QR" factor(rows, Rc::clone(&residual)); degrees,
            "steering solve" solve_steering(Rc::clone(&steering), BEAMS, p.training); beams
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
            "CFAR mean" average_references(cells.gates, p.reference, GUARD); gates,
            "threshold" compare_threshold(p.false_alarm, independent); gates
            => hits, Default::default());
    g.add("detection list", list_detections(cells), (hits.input(count), list.output(PLACES as u32)));
    let compare = compare_truth(p.bins, TARGETS);
    g.add("truth compare", compare, (list.input(PLACES as u32), truth.input(targets), score.output(1)));
    g.add("sink", sink(Rc::clone(&report), residual, u64::from(count)), (score.input(1), powers.input(1)));
    (g, report)
}
