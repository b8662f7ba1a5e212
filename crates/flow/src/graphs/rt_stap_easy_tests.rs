//! The radar graph against its simulated truth.

use super::*;
use crate::boxes::adaptive::{Snapshot, triangularize};
use crate::tests::choices;
use crate::{Choice, Ended, Program, Sampling};

fn run(p: &Parameters, is_fused: bool, choice: Choice) -> Report {
    let (g, report) = graph(Graph::new("rt_stap_easy").fused(is_fused), p);
    assert_eq!((g.box_count(), g.schedule_count(), g.queue_count()), (66, 1, 0));
    let sampling = if choice.granularity == 2 { Sampling::Always } else { Sampling::Never };
    assert_eq!(Program::new(g, choice).unwrap().run(sampling, 1_000_000, 1), Ended::Over);
    report.take()
}

#[test]
fn targets_are_found_among_few_false_alarms_and_clutter_is_suppressed() {
    for false_alarm in [1e-4, 1e-3] {
        let p = Parameters { intervals: 12, cubes: 12, false_alarm, ..Parameters::default() };
        let report = run(&p, false, Choice::FAST);
        assert_eq!((report.intervals, report.injected), (12, 48), "{report:?}");
        // Of 1,280 in ten other runs none was missed.
        assert!(report.found >= 47, "{report:?}");
        let ratio = report.false_alarms as f64 / (false_alarm * report.cells as f64);
        assert!((1.0 / 3.0..3.0).contains(&ratio), "{ratio}: {report:?}");
        assert!(report.before_db - report.after_db >= 20.0, "{report:?}");
        // The optimum leaves the noise; 48 snapshots lose 1.7 dB (Reed, Mallett, Brennan 1974), less with loading.
        assert!((0.0..2.0).contains(&report.after_db), "{report:?}");
        assert!(report.qr_residual > 0.0 && report.qr_residual < 1e-4, "{report:?}");
    }
}

#[test]
fn all_kernels_and_granularities_and_fusing_give_the_same_report() {
    let small = Parameters { bins: 16, samples: 96, training: 36, reference: 10, ..Parameters::default() };
    let p = Parameters { intervals: 5, cubes: 3, ..small };
    let truth = run(&p, false, Choice::FAST);
    assert_eq!((truth.intervals, truth.injected), (5, 20));
    for choice in [1, 2, 4].into_iter().flat_map(choices) {
        for is_fused in [false, true] {
            assert_eq!(run(&p, is_fused, choice), truth, "{choice:?} {is_fused}");
        }
    }
}

#[test]
fn reflections_give_a_triangle_with_the_same_normal_matrix() {
    let mut gauss = Gauss::new(3);
    // Columns of very different sizes, and one of zeros.
    let size = |column: usize| if column == 7 { 0.0 } else { 10_f32.powi(column as i32 % 4) };
    let a: Vec<_> = (0..40).map(|_| std::array::from_fn(|j| gauss.complex() * size(j))).collect();
    let mut r = a.clone();
    triangularize(&mut r, &mut [Complex32::ZERO; 40]);
    for (i, j) in (0..DEGREES).flat_map(|i| (0..DEGREES).map(move |j| (i, j))) {
        let normal = |m: &[Snapshot]| m.iter().map(|row| row[i].conj() * row[j]).sum::<Complex32>();
        assert!((normal(&a) - normal(&r)).norm() <= 1e-5 * 40.0 * size(i) * size(j), "{i} {j}");
        assert!(i <= j || r[i][j] == Complex32::ZERO, "{i} {j}");
    }
    assert!(r[DEGREES..].iter().all(|row| row.iter().all(|a| a.norm() == 0.0)));
}
