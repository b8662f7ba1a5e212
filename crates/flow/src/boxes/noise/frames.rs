//! Samples, frames and segments: the input and the output of speech enhancement.

use std::cell::RefCell;
use std::rc::Rc;

use super::signal::Report;
use super::{PAUSE, TRANSIENT, VOICED};
use crate::boxes::function;
use crate::{In, Many, Out, Outcome, Primitive, ReadPort, Reader, WritePort, Writer};

/// Samples that are there, in order. The schedule's iterations end it.
pub fn source(samples: Rc<[f32]>) -> impl Primitive<Ports = Out<f32>> {
    let mut next = 0;
    function::<Out<f32>, _>(move |y: &mut [f32]| {
        y.copy_from_slice(&samples[next..next + y.len()]);
        next += y.len();
        Outcome::Done
    })
}

/// A frame is the last one, moved by a hop.
pub fn overlap(last: &mut [f32], hop: &[f32], y: &mut [f32]) {
    last.copy_within(hop.len().., 0);
    last[y.len() - hop.len()..].copy_from_slice(hop);
    y.copy_from_slice(last);
}

pub fn weigh(weights: &[f32], x: &[f32], y: &mut [f32]) {
    for ((x, y), w) in x.iter().zip(y).zip(weights) {
        *y = x * w;
    }
}

/// Energy by the noise floor above which a frame is no pause. The floor is near the least of noise, which spreads by 6 % in 512 samples.
const MIN_ENERGY_RATIO: f32 = 1.4;
/// The noise floor follows the least energy, and rises by this factor a frame: 6 dB in 280 frames.
const FLOOR_RISE: f32 = 1.005;
/// Autocorrelation of voiced frames at a lag of one sample at least: white noise has 0, vowels 0.9.
const MIN_VOICED_CORRELATION: f32 = 0.25;

/// Classes of frames by energy and first autocorrelation.
/// Source: Atal and Rabiner, "A Pattern Recognition Approach to Voiced-Unvoiced-Silence Classification", 1976.
#[derive(Debug, Default)]
pub struct Classifier {
    floor: Option<f32>,
    class: usize,
    /// Of the last frame alone.
    last: usize,
}

impl Classifier {
    pub fn classify(&mut self, x: &[f32]) -> usize {
        let energy: f32 = x.iter().map(|x| x * x).sum();
        let lagged: f32 = x.iter().zip(&x[1..]).map(|(x, y)| x * y).sum();
        let floor = self.floor.map_or(energy, |floor| energy.min(floor * FLOOR_RISE));
        self.floor = Some(floor);
        let class = if energy <= MIN_ENERGY_RATIO * floor {
            PAUSE
        } else if lagged > MIN_VOICED_CORRELATION * energy {
            VOICED
        } else {
            TRANSIENT
        };
        // Two frames in a row make a new class.
        self.class = if class == self.last { class } else { self.class };
        self.last = class;
        self.class
    }
}

/// Sends frames to the branch of their class: a segment is a stretch of one class, of `longest` frames at most.
pub struct Distributor {
    pub frame: usize,
    pub longest: u64,
    /// Branch that has the segment, and frames in it.
    pub open: Option<(usize, u64)>,
    /// Frames of this apply that are sent: it may wait amid them.
    pub sent: usize,
    pub report: Rc<RefCell<Report>>,
}

impl Primitive for Distributor {
    type Ports = (In<f32>, In<u32>, Vec<WritePort<f32>>);
    fn apply(&mut self, view: (&[f32], &[u32], Many<'_, WritePort<f32>>)) -> Outcome {
        let (x, classes, mut branches) = view;
        while let Some(class) = classes.get(self.sent) {
            let class = *class as usize;
            if let Some((branch, _)) = self.open.take_if(|o| o.0 != class || o.1 == self.longest) {
                branches.at(branch).segment_end();
            }
            let mut y = branches.at(class);
            if self.open.is_none() {
                if !y.segment_begin() {
                    return Outcome::Wait;
                }
                self.report.borrow_mut().segments[class] += 1;
            }
            let (_, frames) = self.open.get_or_insert((class, 0));
            let Some(room) = y.write(self.frame) else { return Outcome::Wait };
            room.copy_from_slice(&x[self.sent * self.frame..][..self.frame]);
            y.produce(self.frame);
            *frames += 1;
            self.sent += 1;
        }
        self.sent = 0;
        Outcome::Done
    }
    fn eos(&mut self, (_, _, mut branches): (&[f32], &[u32], Many<'_, WritePort<f32>>)) {
        if let Some((branch, _)) = self.open.take() {
            branches.at(branch).segment_end();
        }
    }
}

/// Hands frames of so many samples of whichever branch has the segment on, in order.
pub fn merge(frame: usize) -> impl Primitive<Ports = (Vec<ReadPort<f32>>, WritePort<f32>)> {
    type Ends<'a> = (Many<'a, ReadPort<f32>>, Writer<'a, f32>);
    function::<(Vec<ReadPort<f32>>, WritePort<f32>), _>(move |(mut branches, mut y): Ends<'_>| {
        for i in 0..branches.len() {
            let mut x = branches.at(i);
            let n = x.available().min(y.room()) / frame * frame;
            // Branches without frames are polled too, as in the published kernel.
            if let Some(tokens) = x.read(n)
                && n > 0
                && let Some(room) = y.write(n)
            {
                room.copy_from_slice(tokens);
                y.produce(n);
            }
            x.consume(n);
            if x.in_segment() && x.is_ended() {
                x.next_segment();
            }
        }
        Outcome::Done
    })
}

/// Sums frames that overlap, a hop apart, to samples, and keeps them in the report: the sink.
pub fn overlap_add(
    [frame, hop]: [usize; 2],
    report: Rc<RefCell<Report>>,
) -> impl Primitive<Ports = ReadPort<f32>> {
    let mut sum = vec![0.0; frame];
    function::<ReadPort<f32>, _>(move |mut x: Reader<'_, f32>| {
        let mut report = report.borrow_mut();
        for _ in 0..x.available() / frame {
            let Some(tokens) = x.read(frame) else { break };
            sum.iter_mut().zip(tokens).for_each(|(sum, x)| *sum += x);
            x.consume(frame);
            report.frames += 1;
            // The first hops lie before the first sample.
            if report.frames as usize >= frame / hop {
                report.enhanced.extend_from_slice(&sum[..hop]);
            }
            sum.copy_within(hop.., 0);
            sum[frame - hop..].fill(0.0);
        }
        Outcome::Done
    })
}
