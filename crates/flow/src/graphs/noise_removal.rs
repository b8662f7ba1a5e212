//! Speech enhancement in branches by class of frame: 55 boxes, 5 schedules, 5 queues.
//!
//! ```text
//! source - framing - classifier - distributor =3=> branch (16 boxes) => merge => overlap-add
//!                                                      |
//!                                      state of noise, lent to the branch that has the segment
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use rustfft::FftDirection;

use crate::boxes::Blocks;
use crate::boxes::noise::CLASSES;
use crate::boxes::noise::frames::{Classifier, Distributor, merge, overlap, overlap_add, source, weigh};
use crate::boxes::noise::gain::{
    NoiseState, Rule, TimeSmoothing, bound, limit_peaks, log_mmse, smooth_over_bins, subtract, wiener,
};
use crate::boxes::noise::signal::{add_noise, speech};
use crate::boxes::transform::{RealFft, hann, to_polar, to_rectangular};
use crate::{Edge, Graph, Lent, chain};

pub use crate::boxes::noise::signal::Report;

#[derive(Debug, Clone)]
pub struct Parameters {
    /// Samples of a frame: an even number, and two hops or more.
    pub frame: usize,
    /// Samples from a frame to the next.
    pub hop: usize,
    pub rate_hz: f64,
    /// Frames of the synthetic signal.
    pub frames: u64,
    /// Speech by white noise of the synthetic signal, over all of it.
    pub snr_db: f64,
    pub seed: u64,
    /// Frames of a segment at most.
    pub segment_frames: u64,
    /// Instead of the synthetic signal; the last hop is filled up with zeros.
    pub samples: Option<Vec<f32>>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            frame: 512,
            hop: 256,
            rate_hz: 16_000.0,
            frames: 500,
            snr_db: 0.0,
            seed: 1,
            segment_frames: 32,
            samples: None,
        }
    }
}

/// Gain rules of the branches, by class: pause, voiced, transient.
pub const RULES: [Rule; CLASSES] = [subtract, log_mmse, wiener];
/// Least gain, -20 dB.
pub const MIN_GAIN: f32 = 0.1;
/// Weight of the past gain.
pub const TIME_WEIGHT: f32 = 0.2;
/// Weight of each neighbor's gain: a harmonic is 3 bins wide or more.
pub const NEIGHBOR_WEIGHT: f32 = 0.05;
/// A bin's gain by that of its neighbors at most.
pub const PEAK_RATIO: f32 = 2.0;

impl Parameters {
    fn report(&self) -> Report {
        let (mut clean, mut noisy) = (Vec::new(), self.samples.clone().unwrap_or_default());
        if self.samples.is_none() {
            clean = speech(self.frames as usize * self.hop, self.rate_hz, self.seed);
            noisy = add_noise(&clean, self.snr_db, self.seed.wrapping_add(1));
        }
        noisy.resize(noisy.len().next_multiple_of(self.hop), 0.0);
        let enhanced = Vec::with_capacity(noisy.len());
        Report { clean, noisy, enhanced, ..Report::default() }
    }

    /// Square root of Hann's window: used twice, so that frames add up to the signal.
    pub fn window(&self) -> Vec<f32> {
        let scale = 2.0 * self.hop as f32 / self.frame as f32;
        hann(self.frame).into_iter().map(|w| (w * scale).sqrt()).collect()
    }
}

/// The graph, and the report that it fills. `g` is empty, and says whether boxes are fused.
pub fn graph(mut g: Graph, p: &Parameters) -> (Graph, Rc<RefCell<Report>>) {
    let is_whole = p.frame.is_multiple_of(2) && p.frame.is_multiple_of(p.hop) && p.frame >= 2 * p.hop;
    assert!(is_whole, "a frame has an even number of samples and is two hops or more");
    let report = p.report();
    let samples: Rc<[f32]> = report.noisy.as_slice().into();
    let report = Rc::new(RefCell::new(report));
    let (frame, hop, capacity) = (p.frame as u32, p.hop as u32, p.segment_frames * p.frame as u64);

    g.schedule("input");
    g.iterations((samples.len() / p.hop) as u64);
    let (raw, frames, classes) = (g.edge("samples"), g.edge("frames"), g.edge("classes"));
    g.control(classes);
    let inputs: Vec<Edge<f32>> = g.family("to branch", CLASSES, capacity);
    g.add("source", source(samples), raw.output(hop));
    let mut last = vec![0.0; p.frame];
    let framing = Blocks::one_to_one(p.hop, p.frame, move |x, y| overlap(&mut last, x, y));
    g.add("framing", framing, (raw.input(hop), frames.output(frame)));
    let mut classifier = Classifier::default();
    let classifier = Blocks::one_to_one(p.frame, 1, move |x, y| y[0] = classifier.classify(x) as u32);
    g.add("classifier", classifier, (frames.input(frame), classes.output(1)));
    let longest = p.segment_frames;
    let distributor =
        Distributor { frame: p.frame, longest, open: None, sent: 0, report: Rc::clone(&report) };
    let ports = inputs.iter().map(|q| q.writer(frame)).collect();
    g.add("distributor", distributor, (frames.input(frame), classes.input(1), ports));

    let outputs: Vec<_> = (0..CLASSES).map(|i| g.segmented(&format!("from branch {i}"), capacity)).collect();
    let branches: Vec<_> = inputs.into_iter().zip(outputs.iter().copied()).collect();
    let group = g.exclusive(&branches);
    let state = g.state(NoiseState::new(p.frame / 2 + 1));
    for (class, (x, y)) in branches.into_iter().enumerate() {
        g.schedule(&format!("branch {class}"));
        let states = [group.lend(&state, class), group.lend(&state, class)];
        branch(&mut g, p, class, states, &report, [x, y]);
    }

    g.schedule("output");
    let merged = g.queue("merged", capacity);
    let ports = outputs.iter().map(|q| q.reader(frame)).collect();
    g.add("merge", merge(p.frame), (ports, merged.writer(frame)));
    g.reading_any();
    g.add("overlap-add", overlap_add([p.frame, p.hop], Rc::clone(&report)), merged.reader(0));
    (g, report)
}

/// Sixteen boxes from queue to queue.
fn branch(
    g: &mut Graph,
    p: &Parameters,
    class: usize,
    [update, snr]: [Lent<NoiseState>; 2],
    report: &Rc<RefCell<Report>>,
    [x, y]: [Edge<f32>; 2],
) {
    let (n, b) = (p.frame, p.frame / 2 + 1);
    let (frame, bins) = (n as u32, b as u32);
    let (spectrum, enhanced) = (g.edge("spectrum"), g.edge("enhanced spectrum"));
    let [magnitude, phase, power, noise] = ["magnitude", "phase", "power", "noise"].map(|name| g.edge(name));
    let [post, prior] = ["a-posteriori SNR", "a-priori SNR"].map(|name| g.edge(name));
    let [raw, gain, product] = ["raw gain", "gain", "enhanced magnitude"].map(|name| g.edge(name));
    let (window, synthesis) = (p.window(), p.window());
    let mut forward = RealFft::new(n, FftDirection::Forward);
    let mut inverse = RealFft::new(n, FftDirection::Inverse);
    let report = Rc::clone(report);

    chain!(g, x; frame =>
        "window" Blocks::one_to_one(n, n, move |x, y| weigh(&window, x, y)); frame,
        "real FFT" Blocks::one_to_one(n, b, move |x, y| forward.forward(x, y)); bins
        => spectrum, 0.0_f32);
    let polar = Blocks::one_to_two(b, b, to_polar);
    g.add("to polar", polar, (spectrum.input(bins), magnitude.output(bins), phase.output(bins)));
    let square = Blocks::two_to_one(b, b, weigh);
    g.add("PSD", square, (magnitude.input(bins), magnitude.input(bins), power.output(bins)));
    let update = Blocks::one_to_one(b, b, move |x, y| update.borrow().update_noise(x, y));
    g.add("noise update", update, (power.input(bins), noise.output(bins)));
    let snr = Blocks::two_to_two(b, b, move |x, n, post, prior| snr.borrow().estimate_snr(x, n, post, prior));
    let ports = (power.input(bins), noise.input(bins), post.output(bins), prior.output(bins));
    g.add("a-priori SNR", snr, ports);
    let rule = Blocks::two_to_one(b, b, RULES[class]);
    g.add("gain rule", rule, (post.input(bins), prior.input(bins), raw.output(bins)));
    chain!(g, raw; bins =>
        "floor" Blocks::one_to_one(b, b, |x, y| bound(MIN_GAIN, x, y)); bins,
        "smoothing in time" TimeSmoothing { weight: TIME_WEIGHT, last: vec![0.0; b], is_first: true }; bins,
        "smoothing in frequency" Blocks::one_to_one(b, b, |x, y| smooth_over_bins(NEIGHBOR_WEIGHT, x, y)); bins,
        "peak limiter" Blocks::one_to_one(b, b, |x, y| limit_peaks(PEAK_RATIO, x, y)); bins
        => gain, 0.0_f32);
    let apply = Blocks::two_to_one(b, b, weigh);
    g.add("apply gain", apply, (gain.input(bins), magnitude.input(bins), product.output(bins)));
    let rectangular = Blocks::two_to_one(b, b, to_rectangular);
    g.add("to rectangular", rectangular, (product.input(bins), phase.input(bins), enhanced.output(bins)));
    chain!(g, enhanced; bins =>
        "inverse real FFT" Blocks::one_to_one(b, n, move |x, y| inverse.inverse(x, y)); frame,
        "synthesis window" Blocks::one_to_one(n, n, move |x, y| weigh(&synthesis, x, y)); frame,
        "level meter" Blocks::one_to_one(n, n, move |x, y| report.borrow_mut().meter(class, x, y)); frame
        => y, 0.0_f32);
}

#[cfg(test)]
#[path = "noise_removal_tests.rs"]
mod tests;
