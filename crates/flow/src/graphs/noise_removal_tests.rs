use rustfft::num_complex::Complex32;

use super::*;
use crate::tests::choices;
use crate::{Choice, Ended, Name, Outcome, Primitive, Program, Queues, Ready, Sampling};

fn run(p: &Parameters, is_fused: bool, choice: Choice, sampling: Sampling) -> (Report, Program) {
    let (g, report) = graph(Graph::new("noise_removal").fused(is_fused), p);
    assert_eq!((g.box_count(), g.schedule_count(), g.queue_count()), (55, 5, 5));
    let mut program = Program::new(g, choice).unwrap();
    assert_eq!(program.run(sampling, u64::MAX, 1), Ended::Over);
    assert!(program.queues().all(|(_, _, left, discarded)| left + discarded == 0), "{choice:?}");
    let report = report.borrow().clone();
    (report, program)
}

/// The same functions in a plain loop: one branch, whose rule changes with the class. Enhanced samples, and segments by class.
fn reference(p: &Parameters, samples: &[f32]) -> (Vec<f32>, [u64; CLASSES]) {
    let (n, bins, window) = (p.frame, p.frame / 2 + 1, p.window());
    let (mut classifier, mut state) = (Classifier::default(), NoiseState::new(bins));
    let [mut fft, mut inverse] = [FftDirection::Forward, FftDirection::Inverse].map(|d| RealFft::new(n, d));
    let mut smoothing = TimeSmoothing { weight: TIME_WEIGHT, last: vec![0.0; bins], is_first: true };
    let [mut last, mut frame, mut x, mut sum] = std::array::from_fn(|_| vec![0.0; n]);
    let [mut magnitude, mut phase, mut power, mut noise] = std::array::from_fn(|_| vec![0.0; bins]);
    let [mut post, mut prior, mut one, mut other] = std::array::from_fn(|_| vec![0.0; bins]);
    let (mut spectrum, mut y) = (vec![Complex32::ZERO; bins], Vec::new());
    let (mut segment, mut segments) = ((CLASSES, 0), [0; CLASSES]);
    for hop in samples.chunks_exact(p.hop) {
        overlap(&mut last, hop, &mut frame);
        let class = classifier.classify(&frame);
        if segment.0 != class || segment.1 == p.segment_frames {
            segment = (class, 0);
            segments[class] += 1;
            smoothing.is_first = true;
        }
        segment.1 += 1;
        weigh(&window, &frame, &mut x);
        fft.forward(&x, &mut spectrum);
        to_polar(&spectrum, &mut magnitude, &mut phase);
        weigh(&magnitude, &magnitude, &mut power);
        state.update_noise(&power, &mut noise);
        state.estimate_snr(&power, &noise, &mut post, &mut prior);
        RULES[class](&post, &prior, &mut one);
        bound(MIN_GAIN, &one, &mut other);
        assert_eq!(smoothing.apply((&other, &mut one)), Outcome::Done);
        smooth_over_bins(NEIGHBOR_WEIGHT, &one, &mut other);
        limit_peaks(PEAK_RATIO, &other, &mut one);
        weigh(&one, &magnitude, &mut other);
        to_rectangular(&other, &phase, &mut spectrum);
        inverse.inverse(&spectrum, &mut x);
        weigh(&window, &x, &mut frame);
        sum.iter_mut().zip(&frame).for_each(|(sum, x)| *sum += x);
        y.extend_from_slice(&sum[..p.hop]);
        sum.copy_within(p.hop.., 0);
        sum[n - p.hop..].fill(0.0);
    }
    // The first samples lie before the signal.
    (y.split_off(n - p.hop), segments)
}

#[test]
fn noise_falls_and_speech_stays() {
    let cases = [(0.0, 1, 256, 5.0), (0.0, 2, 170, 5.0), (-5.0, 3, 256, 5.0), (10.0, 1, 256, 2.5)];
    for (snr_db, seed, hop, least_gain_db) in cases {
        let p = Parameters { frame: 512 / hop * hop, hop, snr_db, seed, ..Parameters::default() };
        let (report, _) = run(&p, true, Choice::FAST, Sampling::Never);
        let (before, after) = report.snr_db(p.rate_hz).unwrap();
        assert!(after - before > least_gain_db, "{snr_db} dB: {before} dB, then {after} dB");
        assert_eq!(report.frames, p.frames);
        assert!(report.segments.iter().all(|n| *n > 0), "{:?}", report.segments);
    }
}

#[test]
fn all_kernels_do_what_a_plain_loop_does() {
    for (frame, hop, segment_frames) in [(512, 256, 32), (192, 64, 5)] {
        let mut p = Parameters { frame, hop, segment_frames, frames: 400, ..Parameters::default() };
        let (first, _) = run(&p, false, Choice::FAST, Sampling::Never);
        let (enhanced, segments) = reference(&p, &first.noisy);
        let bits: Vec<u32> = enhanced.iter().map(|x| x.to_bits()).collect();
        p.samples = Some(first.noisy);
        for choice in [1, 2, 8].into_iter().flat_map(choices) {
            for is_fused in [false, true] {
                let (report, program) = run(&p, is_fused, choice, Sampling::Never);
                assert!(report.enhanced.iter().map(|x| x.to_bits()).eq(bits.iter().copied()), "{choice:?}");
                assert_eq!((report.segments, report.peaks), (segments, first.peaks), "{choice:?}");
                assert_eq!(program.copied_bytes() == 0, choice.queues == Queues::Mirrored, "{choice:?}");
            }
        }
    }
}

#[test]
fn a_frame_takes_three_runs_as_published_and_is_consumed_three_times() {
    let p = Parameters::default();
    let classic = Choice { queues: Queues::Copying, ready: Ready::Heap, granularity: 1 };
    for choice in [Choice::FAST, classic] {
        let (report, program) = run(&p, false, choice, Sampling::Always);
        let sums = program.log().sums();
        let called = |n: Name| sums.of(n as u8).called;
        let (frames, segments) = (p.frames, report.segments.iter().sum::<u64>());
        // An end of a segment wakes the output once more; a change of the branch makes the distributor wait and go on.
        let refused = called(Name::SegmentBegin) - 2 * segments;
        assert_eq!(called(Name::RunSchedule), 3 * frames + segments + refused, "{choice:?}");
        assert_eq!(called(Name::Apply), 22 * frames + 2 * segments + refused, "{choice:?}");
        // Three ends poll in vain, which the published kernel counts as two consumes a frame.
        assert_eq!((called(Name::Consume), called(Name::ReadDq)), (3 * frames, frames), "{choice:?}");
        // Copied queues look again where their ring goes round.
        assert!(called(Name::ReadAmount) >= 4 * frames + 5 * segments, "{choice:?}");
        assert_eq!((called(Name::Produce), called(Name::WriteDq)), (2 * frames, frames), "{choice:?}");
        drop(sums);
        assert_eq!(program.broken_laws(), [""; 0]);
    }
}
