//! What cannot be told is a bound, what cannot be is refused.

use super::*;

fn exactly(ns: f64) -> Measured {
    Measured { ns, sigma_ns: ns * 1e-3 }
}

/// A link of 100 ns and 0.1 ns per byte, latency 250 ns, overheads as given.
fn points(overheads: Option<(f64, f64)>) -> Vec<SizePoint> {
    let (send, recv) = overheads.unwrap_or((40.0, 60.0));
    let point = |s: u64| {
        let further = 0.1 * (s - 1) as f64;
        let one = 2.0 * (send + 250.0 + recv + further);
        let each = (100.0 + further).max(send).max(recv);
        let mut p = SizePoint::of_trains(s, exactly(one), exactly(one + f64::from(TRAIN - 1) * each));
        (p.overhead_send, p.overhead_recv) = overheads.map(|(s, r)| (exactly(s), exactly(r))).unzip();
        p
    };
    grid(1, 65_536, 20).into_iter().map(point).collect()
}

#[test]
fn one_line_has_its_parameters_and_predicts() {
    let table = fit(&points(Some((40.0, 60.0)))).unwrap();
    let [s] = &table.segments[..] else { panic!("{table:?}") };
    assert!((s.gap.at_first.ns - 100.0).abs() < 0.1 && (s.gap.per_byte.ns - 0.1).abs() < 1e-4, "{s:?}");
    assert!(matches!(s.latency, Latency::Known(l) if (l.ns - 250.0).abs() < 1.0), "{s:?}");
    assert_eq!((s.pace, s.begins, s.first_bytes, s.last_bytes), (Pace::Link, Begins::First, 1, 65_536));
    // 2 (40 + 250 + 60 + 99.9) + 3 (100 + 99.9).
    assert!((table.train_ns(4, 1000) - 1_499.5).abs() < 2.0, "{}", table.train_ns(4, 1000));
    // Beyond the largest size the last segment goes on.
    assert!((table.train_ns(1, 1 << 20) - 210_415.0).abs() < 300.0);
}

#[test]
fn what_can_not_be_told_is_a_bound() {
    let table = fit(&points(None)).unwrap();
    let s = &table.segments[0];
    assert!(s.pace == Pace::Unknown && matches!(s.latency, Latency::AtMost(ns) if (ns - 350.0).abs() < 1.0));
    // Lines that would be below zero at the first byte are forced through it; what is known of it is their error.
    let far = |p: &SizePoint| 2.0 * (p.size_bytes as f64 - 50_000.0);
    let at = |size_bytes| SizePoint { size_bytes, ..points(None)[0] };
    let mut steep: Vec<SizePoint> = grid(52_000, 65_536, 8).into_iter().map(at).collect();
    for p in &mut steep {
        (p.gap, p.round_trip) = (exactly(far(p)), exactly(far(p)));
    }
    let s = &fit(&steep).unwrap().segments[0];
    assert_eq!((s.gap.at_first.ns, s.one_way.at_first.ns), (0.0, 0.0), "{s:?}");
    assert!(s.gap.at_first.at_most_ns() > 1.0, "{s:?}");
    assert!(matches!(s.latency, Latency::AtMost(ns) if ns > 1.0), "{s:?}");
    // The sender sets the pace of small messages, and the link overtakes it at 2001 bytes.
    let table = fit(&points(Some((300.0, 60.0)))).unwrap();
    let [slow, wire] = &table.segments[..] else { panic!("{table:?}") };
    assert!(slow.pace == Pace::Overhead && (slow.gap.at_first.ns - 300.0).abs() < 1.0, "{slow:?}");
    assert!(wire.begins == Begins::Kink && wire.pace == Pace::Link, "{wire:?}");
    assert!((wire.gap.at_first.ns - 100.0).abs() < 3.0 && (wire.gap.per_byte.ns - 0.1).abs() < 1e-3);
    assert_eq!(table.jumps().count(), 0);
    assert!(propose(&points(Some((300.0, 60.0))), 9).is_empty(), "a kink is not bisected");
    // Overheads that fill half of the round trip leave no latency.
    let mut all = points(Some((40.0, 60.0)));
    for p in &mut all {
        p.overhead_send = Some(exactly(290.0));
    }
    let bound = fit(&all).unwrap().segments[0].latency;
    assert!(matches!(bound, Latency::AtMost(ns) if ns > 0.0 && ns < 2.0), "{bound:?}");
}

#[test]
fn a_line_says_nothing_above_its_sizes_and_errs_more_away_from_them() {
    // Another protocol from 4 KiB on, and overheads of small messages alone.
    let mut all = points(Some((40.0, 60.0)));
    for p in all.iter_mut().filter(|p| p.size_bytes > 4_096) {
        p.gap.ns *= 2.0;
        (p.overhead_send, p.overhead_recv) = (None, None);
    }
    let table = fit(&all).unwrap();
    let [small, large] = &table.segments[..] else { panic!("{table:?}") };
    assert!(small.overhead_send.is_some() && small.pace == Pace::Link, "{small:?}");
    assert!(large.overhead_send.is_none() && large.pace == Pace::Unknown, "{large:?}");
    let center = small.gap.center as u64 + 1;
    let error = |bytes: u64| small.gap.measured_at(bytes).sigma_ns;
    assert!(error(center) < error(1) && error(1) < error(1 << 20), "{small:?}");
    let at_first = small.gap.at_first.sigma_ns;
    assert!((error(1) / at_first - 1.0).abs() < 1e-9, "{} {at_first}", error(1));
}

#[test]
fn nothing_is_below_zero_and_what_can_not_be_is_refused() {
    let mut falling = points(None);
    for (i, p) in falling.iter_mut().enumerate() {
        p.gap = exactly(500.0 - 2.0 * i as f64);
    }
    let table = fit(&falling).unwrap();
    assert!(table.segments.iter().all(|s| s.gap.per_byte.ns >= 0.0 && s.gap.at_first.ns >= 0.0), "{table:?}");
    assert_eq!(fit(&falling[..2]), Err(FitError::TooFew(2)));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut all = points(None);
        all[3].gap.ns = wrong;
        let size_bytes = all[3].size_bytes;
        assert_eq!(fit(&all), Err(FitError::Impossible { size_bytes }), "{wrong}");
        assert!(propose(&all, 0).is_empty());
    }
}

#[test]
fn a_byte_that_gets_cheaper_is_a_bend_with_lines_of_its_own() {
    // 0.4 ns per byte up to 4 KiB, then 0.1, both of the train and of a message alone.
    let further = |s: u64| 0.4 * s.min(4_096) as f64 + 0.1 * s.saturating_sub(4_096) as f64;
    let mut all = points(None);
    for p in &mut all {
        p.gap = exactly(100.0 + further(p.size_bytes));
        p.round_trip = exactly(2.0 * (300.0 + further(p.size_bytes)));
    }
    let table = fit(&all).unwrap();
    assert_eq!(table.segments.iter().map(|s| s.begins).collect::<Vec<_>>(), [Begins::First, Begins::Bend]);
    for p in &all {
        let predicted = table.train_ns(4, p.size_bytes);
        let truth = 600.0 + 2.0 * further(p.size_bytes) + 3.0 * (100.0 + further(p.size_bytes));
        assert!((predicted / truth - 1.0).abs() < 0.05, "{}: {predicted} {truth}", p.size_bytes);
    }
}

#[test]
fn grids_have_their_ends_and_no_size_twice() {
    assert_eq!(grid(1, 8, 30), [1, 2, 3, 4, 5, 6, 7, 8]);
    let all = grid(1, 1 << 20, 30);
    assert!(all[0] == 1 && all[all.len() - 1] == 1 << 20 && all.windows(2).all(|w| w[0] < w[1]));
    assert_eq!(grid(0, 0, 0), [1]);
}
