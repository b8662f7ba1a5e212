//! A modem of 19 boxes in 4 schedules: transmitter, channel and front end, timing recovery, carrier recovery and decoder.
//!
//! ```text
//! bits, code, interleaver, map, shape ─q1─> channel, AGC, matched filter, coarse frequency ─q2─>
//! interpolator, Gardner, loop filter, picker ─q3─> Costas, frames, demap, deinterleaver, Viterbi, errors
//! ```

use std::rc::Rc;

pub use rustfft::num_complex::Complex32;

use crate::Graph;
use crate::boxes::modem::recovery::{BLOCK, HALVES, STROBES};
use crate::boxes::modem::{OVERSAMPLING, SYNC_SYMBOLS, SharedReport, coding, front, recovery};
pub use crate::boxes::modem::{Report, front::Kept, front::Offsets};

/// Sizes and disturbances of the modem.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Frames with a sync word; others are sent before and behind them.
    pub frames: u64,
    /// Information bits a frame.
    pub bits: usize,
    /// Energy an information bit over noise density, sync words not counted; no noise if none.
    pub eb_n0_db: Option<f32>,
    pub offsets: Offsets,
    /// Frames that a queue has room for.
    pub queue_frames: u64,
    /// Heard instead of what the channel gives, 4 a symbol; see [`Parameters::over`].
    pub samples: Option<Rc<[Complex32]>>,
    /// Where what is heard is kept.
    pub heard: Option<Kept>,
}

impl Default for Parameters {
    fn default() -> Self {
        let offsets = Offsets { frequency: 0.01, timing: 0.3, clock_ppm: 50.0 };
        Self {
            frames: 100,
            bits: 506,
            eb_n0_db: Some(4.0),
            offsets,
            queue_frames: 8,
            samples: None,
            heard: None,
        }
    }
}

impl Parameters {
    fn frame(&self) -> usize {
        SYNC_SYMBOLS + self.bits + coding::TAIL
    }

    fn frame_samples(&self) -> u64 {
        (self.frame() * OVERSAMPLING) as u64
    }

    /// Samples by which clocks drift apart in so many frames.
    fn drift(&self, frames: u64) -> f64 {
        (frames * self.frame_samples()) as f64 * f64::from(self.offsets.clock_ppm).abs() * 1e-6
    }

    /// Frames before those with a sync word, and all that a run takes.
    fn preamble_and_all(&self, frames: u64) -> (u64, u64) {
        // Before and behind: the frames by which clocks drift apart, twice for those that this adds.
        let drift_frames = 2 * (self.drift(frames) / self.frame_samples() as f64) as u64 + 1;
        let preamble = (ACQUISITION_SAMPLES as u64).div_ceil(self.frame_samples()) + drift_frames;
        (preamble, preamble + frames + FLUSH_FRAMES + drift_frames)
    }

    /// Samples of the shortest run: loops lock, a frame is received, filters run empty.
    pub fn least_samples(&self) -> u64 {
        self.preamble_and_all(1).1 * self.frame_samples()
    }

    /// These parameters with samples in the place of the channel's, and as many frames as they have room for.
    /// Bits are compared with those that a run of so many frames sends. The last frame is filled up with zeros.
    /// Errors: [`Parameters::least_samples`], where there are fewer.
    pub fn over(self, samples: Rc<[Complex32]>) -> Result<Self, u64> {
        let room = (samples.len() as u64).div_ceil(self.frame_samples());
        let fits = |frames: &u64| self.preamble_and_all(*frames).1 <= room;
        if (samples.len() as u64) < self.least_samples() {
            return Err(self.least_samples());
        }
        let frames = (1..=room).rev().find(fits).ok_or_else(|| self.least_samples())?;
        Ok(Self { frames, samples: Some(samples), ..self })
    }
}

/// Rows of the interleaver: bits that a burst of up to so many hits are far apart in the code.
const ROWS: usize = 32;
/// Samples for loops to lock: the line search, as much as half of it longer in noise, then 1000 symbols and a margin.
const ACQUISITION_SAMPLES: usize = 2 * front::SEARCH_SAMPLES;
/// Of the bits' sequence and of noise.
const SEED: u64 = 1;
/// Samples that the channel and the front end take an iteration.
const FRONT_SAMPLES: u32 = 256;
/// Frames behind the last: less than one stays in filters, and less than one waits for its end in the last schedule.
const FLUSH_FRAMES: u64 = 2;

/// The graph, and the report that its run fills.
pub fn graph(mut g: Graph, p: &Parameters) -> (Graph, SharedReport) {
    let report = SharedReport::default();
    let to_report = || Rc::clone(&report);
    let data_symbols = p.bits + coding::TAIL;
    let coded_bits = 2 * data_symbols;
    let [bits, symbols, coded] = [p.bits, data_symbols, coded_bits].map(|n| n as u32);
    let (frame, up) = (p.frame() as u32, OVERSAMPLING as u32);
    let (preamble, mut all_frames) = p.preamble_and_all(p.frames);
    if let Some(samples) = &p.samples {
        // A further frame may have no room for its margins; nothing of what is given goes unheard.
        all_frames = (samples.len() as u64).div_ceil(p.frame_samples());
    }
    let room = p.queue_frames * u64::from(frame);

    g.schedule("transmitter");
    g.iterations(all_frames);
    let q1 = g.queue("q1", room * OVERSAMPLING as u64);
    let (raw, code, mixed, points) = (g.edge("bits"), g.edge("code"), g.edge("mixed"), g.edge("points"));
    let order = coding::interleaver_order(coded_bits, ROWS);
    let inverse = coding::invert_order(&order);
    let mut reference = coding::Prbs::new(SEED);
    g.add("bits", reference.clone(), raw.output(bits));
    g.add("code", coding::encode(p.bits), (raw.input(bits), code.output(coded)));
    g.add("interleaver", coding::permute(order), (code.input(coded), mixed.output(coded)));
    let map = front::map_frames(coded_bits, preamble..preamble + p.frames, to_report());
    g.add("map", map, (mixed.input(coded), points.output(frame)));
    g.add("shape", front::filter_pulse::<OVERSAMPLING>(), (points.input(1), q1.output(up)));

    g.schedule("front");
    let q2 = g.queue("q2", room * OVERSAMPLING as u64);
    let heard = g.edge("heard");
    // A symbol of energy 1 carries one information bit, and the matched filter leaves the noise of a sample as it is.
    let noise_power = p.eb_n0_db.map_or(0.0, |db| 10_f32.powf(-db / 10.0));
    let ports = (q1.input(FRONT_SAMPLES), heard.output(FRONT_SAMPLES));
    if let Some(samples) = &p.samples {
        g.add("channel", front::overhear(front::replay(Rc::clone(samples)), p.heard.clone()), ports);
    } else {
        let room = p.drift(all_frames) as usize + 1;
        let channel = front::disturb(p.offsets, noise_power, SEED, room);
        g.add("channel", front::overhear(channel, p.heard.clone()), ports);
    }
    // A filter moves its history for each block: none of these is worth it by single samples.
    crate::chain!(g, heard; 1 => "agc" front::control_gain(); 1, "matched filter" front::filter_pulse::<1>(); 1,
        "coarse frequency" front::correct_frequency(to_report()); 1 => q2, Complex32::ZERO);

    g.schedule("timing");
    let q3 = g.queue("q3", room);
    let (values, error, phase) = (g.edge("values"), g.edge("error"), g.delayed("phase", &[0.0_f32]));
    g.control(phase);
    let (block, halves) = (BLOCK as u32, HALVES as u32);
    let interpolated = (q2.input(block), phase.input(1), values.output(halves));
    g.add("interpolator", recovery::interpolate(), interpolated);
    g.add("gardner", recovery::detect_error(), (values.input(halves), error.output(1)));
    g.add("loop filter", recovery::filter_error(to_report()), (error.input(1), phase.output(1)));
    let picked = (values.input(halves), phase.input(1), q3.writer(STROBES as u32));
    g.add("picker", recovery::pick(), picked);

    g.schedule("decoder");
    let (locked, data, valid) = (g.edge("locked"), g.edge("data"), g.edge("valid"));
    let (soft, ordered, decoded) = (g.edge("soft"), g.edge("ordered"), g.edge("decoded"));
    g.add("costas", recovery::recover_carrier(to_report()), (q3.input(1), locked.output(1)));
    let sync = recovery::FrameSync::new(front::sync_word(false), data_symbols, to_report());
    g.add("frames", sync, (locked.input(frame), data.output(symbols), valid.output(1)));
    g.add("demap", recovery::demap(), (data.input(1), soft.output(2)));
    g.add("deinterleaver", coding::permute(inverse), (soft.input(coded), ordered.output(coded)));
    let viterbi = coding::Viterbi::new(p.bits);
    g.add("viterbi", viterbi, (ordered.input(coded), valid.input(1), decoded.output(bits)));
    (0..preamble * u64::from(bits)).for_each(|_| _ = reference.bit());
    let errors = coding::count_errors(p.bits, reference, to_report());
    g.add("errors", errors, (decoded.input(bits), valid.input(1)));
    (g, report)
}

#[cfg(test)]
#[path = "e_comm_tests.rs"]
mod tests;
