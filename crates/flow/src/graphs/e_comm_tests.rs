//! The modem: shape, error-free without noise, the curve of the code, the same on all kernels.

use machmeter_stats::distribution::normal_sf;

use super::*;
use crate::boxes::modem::coding::{encode, interleaver_order, invert_order, permute};
use crate::tests::choices;
use crate::{Choice, Ended, Primitive, Program, Sampling};

fn run(p: &Parameters, choice: Choice, is_fused: bool, sampling: Sampling) -> Report {
    let (g, report) = graph(Graph::new("e_comm").fused(is_fused), p);
    assert_eq!((g.box_count(), g.schedule_count(), g.queue_count()), (19, 4, 3));
    assert_eq!(Program::new(g, choice).unwrap().run(sampling, u64::MAX, 1), Ended::Over);
    report.take()
}

fn run_fast(p: &Parameters) -> Report {
    run(p, Choice { granularity: 8, ..Choice::FAST }, true, Sampling::Never)
}

#[test]
fn the_coder_answers_one_bit_with_its_generators() {
    let mut code = [2; 14];
    encode(1).apply((&[1], &mut code));
    // 171 and 133 octal in turn, the newest bit first.
    assert_eq!(code, [1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
}

#[test]
fn the_interleaver_is_inverted_and_keeps_neighbors_apart() {
    for (length, rows) in [(1024, 32), (1000, 32), (7, 3), (5, 8)] {
        let order = interleaver_order(length, rows);
        let x: Vec<u32> = (0..length as u32).collect();
        let (mut y, mut z) = (vec![0; length], vec![0; length]);
        permute(order.clone()).apply((&x, &mut y));
        permute(invert_order(&order)).apply((&y, &mut z));
        assert_eq!(x, z);
        assert!(length < 1000 || y.windows(2).all(|y| y[0].abs_diff(y[1]) >= 31), "{y:?}");
    }
}

#[test]
fn without_noise_there_is_no_error() {
    for (frequency, timing, clock_ppm, bits) in
        [(0.0, 0.0, 0.0, 506), (0.01, 0.3, 50.0, 506), (-0.02, 0.5, -100.0, 300), (0.0037, 0.9, 300.0, 1001)]
    {
        let offsets = Offsets { frequency, timing, clock_ppm };
        let r = run_fast(&Parameters { bits, eb_n0_db: None, offsets, ..Default::default() });
        assert_eq!((r.frames_sent, r.frames_received, r.slips), (100, 100, 0), "{r:?}");
        assert_eq!((r.bits, r.bit_errors), (100 * bits as u64, 0), "{r:?}");
        assert!((r.coarse_frequency + r.residual_frequency - frequency).abs() < 2e-5, "{r:?}");
        assert!((r.clock_ppm - clock_ppm).abs() < 30.0, "{r:?}");
    }
}

#[test]
fn what_was_heard_is_received_alike_again() {
    for (frames, bits) in [(1, 506), (40, 506), (9, 300)] {
        let kept = Kept::default();
        let p = Parameters { frames, bits, eb_n0_db: Some(3.0), ..Default::default() };
        let truth = run_fast(&Parameters { heard: Some(Rc::clone(&kept)), ..p.clone() });
        let heard: Rc<[Complex32]> = kept.take().into();
        assert!(heard.len() as u64 >= p.least_samples());
        // Another channel, whose samples nobody hears.
        let over = Parameters { eb_n0_db: Some(-20.0), ..p }.over(Rc::clone(&heard)).unwrap();
        let again = run_fast(&Parameters { heard: Some(Rc::clone(&kept)), ..over });
        assert_eq!(again, truth, "{frames} frames of {bits} bits");
        assert_eq!(kept.take()[..heard.len()], *heard);
    }
}

#[test]
fn samples_are_heard_to_the_last_and_too_few_are_refused() {
    let p = Parameters::default();
    let least = p.least_samples() as usize;
    let noise = |n: usize| -> Rc<[Complex32]> {
        let mut gauss = crate::boxes::Gauss::new(7);
        (0..n).map(|_| gauss.complex()).collect()
    };
    assert_eq!(p.clone().over(noise(least - 1)).unwrap_err(), least as u64);
    for n in [least, least + 1, least + 5000] {
        let (kept, samples) = (Kept::default(), noise(n));
        let over = p.clone().over(Rc::clone(&samples)).unwrap();
        let r = run_fast(&Parameters { heard: Some(Rc::clone(&kept)), ..over });
        let kept = kept.take();
        assert_eq!(kept[..n], *samples);
        assert!(kept.len() < n + p.frame_samples() as usize);
        assert!(kept[n..].iter().all(|x| *x == Complex32::ZERO));
        assert_eq!((r.frames_received, r.bits), (0, 0), "{r:?}");
    }
}

/// Bit error rate of the code by the first terms of the union bound: sum of c Q(sqrt(2 d R Eb/N0)) over distances d.
fn curve(eb_n0_db: f64) -> f64 {
    let ratio = 10_f64.powf(eb_n0_db / 10.0);
    let terms = [(10.0, 36.0), (12.0, 211.0), (14.0, 1404.0), (16.0, 11_633.0)];
    terms.iter().map(|(d, c)| c * normal_sf(f64::sqrt(d * ratio)).unwrap()).sum()
}

/// Measures the rate; it is that of the curve at an Eb/N0 that differs by less than the loss.
fn check_point(eb_n0_db: f32, frames: u64, max_loss_db: f64) {
    let r = run_fast(&Parameters { frames, eb_n0_db: Some(eb_n0_db), ..Default::default() });
    let db = f64::from(eb_n0_db);
    let (best, truth, worst) = (curve(db + max_loss_db), curve(db), curve(db - max_loss_db));
    println!("{db} dB: {:.3e} of {} bits, curve {truth:.3e}; {r:?}", r.ber(), r.bits);
    assert_eq!((r.frames_received, r.slips), (frames, 0), "{r:?}");
    assert!(r.bit_errors > 40 && r.ber() > best && r.ber() < worst, "{best:.2e} to {worst:.2e}: {r:?}");
}

#[test]
fn bit_errors_are_within_a_decibel_of_the_curve() {
    // The known figure for soft decisions: 1e-5 at 4.2 dB.
    assert!((curve(4.2) / 1e-5).log10().abs() < 0.1, "{:e}", curve(4.2));
    check_point(2.5, 300, 1.0);
    check_point(3.5, 1_000, 1.0);
}

#[test]
#[ignore = "28 million bits, 10 s in release: bench/flow runs it"]
fn bit_errors_are_within_half_a_decibel_of_the_curve() {
    for (eb_n0_db, frames) in [(2.5, 2_000), (3.0, 4_000), (3.5, 10_000), (4.0, 40_000)] {
        check_point(eb_n0_db, frames, 0.5);
    }
}

#[test]
fn all_kernels_give_the_same_report() {
    let p = Parameters { frames: 8, eb_n0_db: Some(2.5), ..Default::default() };
    let truth = run(&p, Choice::FAST, false, Sampling::Never);
    assert!(truth.bit_errors > 0, "{truth:?}");
    for choice in [1, 2, 8].into_iter().flat_map(choices) {
        assert_eq!(run(&p, choice, false, Sampling::Never), truth, "{choice:?}");
        assert_eq!(run(&p, choice, true, Sampling::OneOf(3)), truth, "{choice:?}, fused");
    }
}
