//! Estimates of planted costs.

use super::*;
use crate::cost::{Kind, Proof, Rows};
use crate::disturbance::sibling::CoreLook;
use machmeter_stats::random::Random;

const RATE: MetricInfo = MetricInfo {
    id: "test.rate",
    params: &[],
    unit: Unit::BytesPerSecond,
    better: machmeter_data::Better::Higher,
    description: "A rate.",
    weakened_by: &[],
    may_be_negative: false,
};

fn row(ticks: impl Iterator<Item = (u64, u64)>) -> Row {
    Row::new("ladder", "chase", Kind::Latency).per_turn(16.0).planted(100, ticks)
}

#[test]
fn what_is_constant_cancels_and_what_disturbs_one_pair_in_five_does_not_show() {
    // 500 ticks of call and clock, 3 ticks per operation at 2 ns a tick.
    let pairs = (0..50).map(|i| {
        let disturbed = if i % 5 == 0 { 40_000 } else { 0 };
        (500 + 100 * 48 + i % 3, 500 + 200 * 48 + disturbed + i % 2)
    });
    let cost = Cost::of(&row(pairs), 2.0, 1);
    let k = cost.known().expect("known");
    assert!((k.value_ns - 6.0).abs() < 0.01, "{k:?}");
    assert!(k.low_ns <= 6.0 && 6.0 <= k.high_ns && k.max_ns > 10.0, "{k:?}");
}

#[test]
fn a_neighbour_during_half_of_the_batches_is_not_taken_from_the_quick_ones() {
    // 3 ns and a common part of 500. A neighbor who comes and goes makes it 5, in whole pairs or in one batch of a pair.
    let each = |i: u64, busy: [u64; 2]| if busy.contains(&(i % 10)) || i % 10 > 6 { 80 } else { 48 };
    let pair = |i: u64| (500 + 100 * each(i, [1, 2]) + i % 3, 500 + 200 * each(i, [3, 3]) + i % 2);
    let cost = Cost::of(&row((0..200).map(pair)), 1.0, 1);
    let k = cost.known().expect("known");
    assert!((k.fast_ns - 3.0).abs() < 0.02 && (k.slow_ns - 5.0).abs() < 0.02, "{k:?}");
}

#[test]
fn a_neighbour_on_the_core_shows_in_the_quantiles_alone() {
    // 3 ns while alone; three of four pairs with a neighbor, who makes it cost 4.
    let mut row = row((0..80).map(|i| {
        let each = if i % 4 == 0 { 48 } else { 64 };
        (500 + 100 * each + i % 3, 500 + 200 * each + i % 2)
    }));
    for (i, pair) in row.pairs.iter_mut().enumerate() {
        pair.visit = i as u32 / 8;
        pair.core.width = if i % 4 == 0 { 3.9 } else { 2.1 };
    }
    let rows = |row: &Row| {
        let mut rows = Rows::in_nanoseconds(vec![row.clone()]);
        rows.store_core();
        rows
    };
    let all = rows(&row);
    let cost = all.cost(&row);
    let k = cost.known().expect("known");
    assert!(
        k.population == Some(Population::Undisturbed) && k.n == 20 && (k.value_ns - 3.0).abs() < 0.01,
        "{k:?}"
    );
    assert!(
        k.high_ns < 3.1 && k.slow_ns > 3.9 && k.usual_ns > 3.9 && k.blocks_ns.iter().all(|b| *b < 3.1),
        "{k:?}"
    );
    assert_eq!(all.shared_core(), Some((0.75, 80)));
    // Alone during one visit only: all of them, marked. Without looks: all of them.
    for (i, pair) in row.pairs.iter_mut().enumerate() {
        pair.core.width = if i < 7 { 3.9 } else { 2.1 };
    }
    let unseen: Vec<Pair> = row.pairs.iter().map(|p| Pair { core: CoreLook::default(), ..*p }).collect();
    for (pairs, population) in [(row.pairs.clone(), Some(Population::CoreShared)), (unseen, None)] {
        let row = Row { pairs, ..row.clone() };
        let cost = rows(&row).cost(&row);
        let k = cost.known().expect("known");
        assert!(k.population == population && k.n == 80 && k.value_ns > 3.7, "{k:?}");
        assert_eq!(k.low_ns <= 2.0, population.is_some(), "{k:?}");
    }
}

/// Pairs of `truth_ns`; all but `undisturbed` take `costlier` times as long, and `passing` of them are not seen to.
fn mixture(random: &mut Random, truth_ns: f64, undisturbed: f64, costlier: f64, passing: f64) -> Row {
    let turns = (50_000.0 / truth_ns) as u64;
    let mut row = Row::new("test", "planted", Kind::Latency);
    (row.short_turns, row.long_turns) = (turns, 2 * turns);
    let mut pair = |i: u32| {
        let is_shared = random.unit() >= undisturbed;
        let core = CoreLook {
            width: if is_shared && random.unit() >= passing { 2.1 } else { 3.9 },
            addition_ticks: 1.0,
        };
        let each_ns = truth_ns * if is_shared { costlier } else { 1.0 };
        let mut ticks = |turns: u64| 40 + (turns as f64 * each_ns * (1.0 + 0.01 * random.normal())) as u64;
        let (short_ticks, long_ticks) = (ticks(turns), ticks(2 * turns));
        Pair { visit: i / 8 + 1, short_ticks, long_ticks, core, ..Pair::default() }
    };
    row.pairs = (0..240).map(&mut pair).collect();
    row
}

const FILTER: sibling::Filter = sibling::Filter { whole: 3.9, leak: 0.02 };

#[test]
fn a_figure_is_of_undisturbed_samples_or_it_is_marked_and_reaches_to_them() {
    let mut random = Random::new(11);
    for truth_ns in [3.0, 300.0] {
        for undisturbed in [0.0, 0.02, 0.04, 0.15, 0.5, 0.97] {
            for costlier in [1.1, 1.3, 1.9] {
                let (mut held, mut marked) = (0, 0);
                for _ in 0..50 {
                    let row = mixture(&mut random, truth_ns, undisturbed, costlier, 0.02).of_batches();
                    let cost = Cost::by_population(&row, &row.pairs, FILTER, 1.0, 1);
                    let k = cost.known().expect("known");
                    marked += usize::from(k.is_shared());
                    held += usize::from(if k.is_shared() {
                        (k.low_ns..=k.high_ns).contains(&truth_ns)
                    } else {
                        (k.value_ns / truth_ns - 1.0).abs() < 0.02
                    });
                }
                let what =
                    format!("{truth_ns} ns, {undisturbed} undisturbed, {costlier}: {held}, {marked} marked");
                assert!(held >= 45, "{what}");
                let expected = if undisturbed == 0.0 { 50..=50 } else { 0..=10 };
                assert!(expected.contains(&marked), "{what}");
            }
        }
    }
}

/// A run of 40 rows of 12 visits and 4 pairs on a core of width 4, whose neighbor is at work during a `busy` share of the pairs: four of
/// five of these from end to end, the others for the same part of each look and for another part of the batches. It makes operations of
/// 30 ns cost up to `costlier` times as much.
fn run_beside(random: &mut Random, busy: f64, costlier: f64) -> Rows {
    let mut row = || {
        let mut row = Row::new("test", "planted", Kind::Latency).of_batches();
        (row.short_turns, row.long_turns) = (1_000, 2_000);
        let mut pair = |i: u32| {
            let [seen, slowed] = match (random.unit() < busy, random.unit() < 0.8) {
                (false, _) => [0.0; 2],
                (true, true) => [1.0; 2],
                (true, false) => [random.unit(), random.unit()],
            };
            let looks = (0..3).map(|_| (4.0 - 1.6 * seen) * (1.0 + 0.005 * random.normal()));
            let core = CoreLook { width: looks.fold(f64::INFINITY, f64::min), addition_ticks: 1.0 };
            let each = 30.0 * (1.0 + (costlier - 1.0) * slowed) * (1.0 + 0.003 * random.normal());
            let ticks = |turns: f64| 40 + (turns * each) as u64;
            Pair { visit: i / 4, short_ticks: ticks(1e3), long_ticks: ticks(2e3), core, ..Pair::default() }
        };
        row.pairs = (0..48).map(&mut pair).collect();
        row
    };
    let mut run = Rows::in_nanoseconds((0..40).map(|_| row()).collect());
    run.restore_core(Some(0.25));
    run.store_core();
    run
}

#[test]
fn a_figure_that_the_leak_explains_is_marked() {
    let mut random = Random::new(21);
    for busy in [0.5, 0.9, 0.98, 1.0] {
        for costlier in [1.1, 1.4, 1.9] {
            let [mut marked, mut reached, mut own, mut right] = [0; 4];
            let mut leaks = Vec::new();
            for _ in 0..10 {
                let run = run_beside(&mut random, busy, costlier);
                leaks.push(run.filter().unwrap().leak);
                for k in run.rows.iter().filter_map(|row| run.cost(row).known().cloned()) {
                    if k.is_shared() {
                        marked += 1;
                        reached += usize::from((k.low_ns..=k.high_ns).contains(&30.0));
                    } else {
                        own += 1;
                        right += usize::from((k.value_ns / 30.0 - 1.0).abs() < 0.05);
                    }
                }
            }
            let what = format!(
                "{busy} busy, {costlier}: {marked} marked, {reached} reach the truth; {right} of {own} right"
            );
            assert!(leaks.iter().all(|l| (0.005..0.06).contains(l)), "{leaks:?}");
            assert!(
                if busy < 0.6 {
                    marked == 0
                } else if busy < 0.95 {
                    marked < 80
                } else {
                    marked > 300
                },
                "{what}"
            );
            assert!(reached >= marked * 97 / 100 && own - right <= 12, "{what}");
        }
    }
}

#[test]
fn batches_that_are_held_up_move_neither_differences_nor_whole_batches() {
    // Every sixteenth short batch is held up by as much as it takes, every seventh long one as well.
    let planted = |each: u64| {
        let pair = |i: u64| {
            let late = |n: u64| if i.is_multiple_of(n) { 100 * 16 * each } else { 0 };
            (50 + 100 * 16 * each + late(16), 50 + 200 * 16 * each + late(7))
        };
        row((0..96).map(pair))
    };
    let each = 40;
    for estimator in Estimator::ALL.iter().copied() {
        let cost = Cost::of(&Row { estimator, ..planted(each) }, 1.0, 1);
        let k = cost.known().expect("known");
        assert_eq!(k.estimator, estimator);
        assert!((k.value_ns / each as f64 - 1.0).abs() < 0.001, "{k:?}");
        // A sample is never less than what the operations took.
        assert!(k.fast_ns > 0.999 * each as f64 && k.slow_ns > 1.2 * each as f64, "{k:?}");
        let m = cost.metric(&RATE, Params::new());
        assert_eq!(m.estimator, estimator.name());
    }
    // 900 ns a fork and 400 for each of 100 or 300 turns.
    let mut added = row((0..40).map(|_| (900 + 100 * 16 * 400, 900 + 300 * 16 * 400)));
    added.long_turns = 300;
    let cost = Cost::of(&added, 1.0, 1);
    assert!(cost.known().is_some_and(|k| k.estimator == Estimator::Differences && k.value_ns == 400.0));
}

#[test]
fn few_visits_alone_do_not_take_away_what_all_pairs_say() {
    // 48 visits, three of them alone; in one of these the short batches were held up.
    let alone = |i: u64| matches!(i / 10, 3 | 9 | 15);
    let planted = |each: u64| {
        let mut row = row((0..480).map(|i| {
            let held_up = if each > 0 && i / 10 == 9 { 20_000 } else { 0 };
            let busy = if alone(i) || i / 10 % 2 == 0 { 0 } else { 800 };
            (500 + 100 * each + held_up + i % 3, 500 + 200 * each + busy + i % 2)
        }));
        for (i, pair) in row.pairs.iter_mut().enumerate() {
            pair.visit = (i / 10 + 1) as u32;
            pair.core.width = if alone(i as u64) { 3.9 } else { 2.1 };
        }
        row
    };
    let sure = planted(48);
    let cost = Cost::by_population(&sure, &sure.pairs, FILTER, 1.0, 1);
    assert!(cost.known().is_some_and(|k| k.is_shared() && k.n == 480), "{cost:?}");
    // What costs nothing alone does not cost what a neighbor makes of it.
    let nothing = planted(0);
    let cost = Cost::by_population(&nothing, &nothing.pairs, FILTER, 1.0, 1);
    assert!(matches!(cost, Cost::Below { bound_ns, .. } if bound_ns < 0.1), "{cost:?}");
}

#[test]
fn a_core_that_was_never_whole_is_known_from_before() {
    let rows = |widths: &[f64], before| {
        let mut row = row((0..400).map(|i| (500 + 100 * 48 + i % 3, 500 + 200 * 48 + i % 2)));
        for (pair, width) in row.pairs.iter_mut().zip(widths.iter().cycle()) {
            pair.core.width = *width;
        }
        let mut rows = Rows::in_nanoseconds(vec![row]);
        rows.restore_core(before);
        rows.store_core();
        rows
    };
    let whole = rows(&[3.7, 3.7, 2.1], None);
    let inverse_width = whole.inverse_width().expect("sure");
    assert!((inverse_width * 3.7 - 1.0).abs() < 0.01, "{inverse_width}");
    let shared = |rows: &Rows| rows.shared_core().expect("looked").0;
    let never = [3.0, 3.0, 2.1];
    assert!(shared(&rows(&never, None)) < 0.4, "taken for whole");
    let known = rows(&never, Some(inverse_width));
    assert!((shared(&known) - 1.0).abs() < 1e-9 && known.inverse_width().is_none());
    // What was less before, or is no figure, changes nothing.
    for before in [Some(1.0 / 3.0), Some(0.0), Some(f64::NAN), Some(-1.0)] {
        assert!((shared(&rows(&[3.7, 3.7, 2.1], before)) - 1.0 / 3.0).abs() < 0.01, "{before:?}");
    }
    // Four of 400 pairs are no proof.
    let mut rare = vec![2.1; 99];
    rare.push(3.7);
    assert!(rows(&rare, None).inverse_width().is_none_or(|n| n * 2.1 > 0.9));
}

#[test]
fn a_disturbed_short_batch_makes_no_quantile_less_than_the_cost() {
    let pairs = (0..60).map(|i| {
        let disturbed = if i % 5 == 0 { 2_400 } else { 0 };
        (500 + 100 * 48 + disturbed, 500 + 200 * 48 + i % 2)
    });
    let cost = Cost::of(&row(pairs), 2.0, 1);
    let k = cost.known().expect("known");
    for ns in [k.value_ns, k.fast_ns, k.usual_ns, k.slow_ns] {
        assert!((ns - 6.0).abs() < 0.01, "{k:?}");
    }
}

#[test]
fn quantiles_of_a_rate_ascend() {
    let pairs = (0..60).map(|i| (500 + 100 * 48 + i % 5, 500 + 200 * 48 + (i * 7) % 90));
    let m = Cost::of(&row(pairs), 2.0, 1).metric_as(&RATE, Params::new(), |ns| 1e9 / ns);
    let (low, high) = (m.quantiles["0.05"], m.quantiles["0.95"]);
    assert!(low < high && low < m.value.unwrap() * 1.01 && high > m.value.unwrap() * 0.99, "{m:?}");
}

#[test]
fn what_the_meter_takes_by_itself_is_no_part_of_a_batch_alone() {
    let batches = |own: u64| {
        let row = Row::new("costs", "wait", Kind::Latency).planted(0, (0..50).map(|i| (own, 65 + i % 3)));
        Cost::of(&Row { long_turns: 1, ..row }, 1.0, 10)
    };
    let of = |own| batches(own).known().map(|k| (k.value_ns, k.usual_ns, k.high_ns - k.low_ns)).unwrap();
    assert_eq!([of(0), of(26)], [(65.0, 66.0, 21.0), (39.0, 40.0, 41.0)]);
    assert!(matches!(batches(60), Cost::Below { bound_ns, n: 50 } if bound_ns == 26.0), "{:?}", batches(60));
}

#[test]
fn an_interval_is_no_narrower_than_the_clock_steps() {
    // All pairs alike, on a clock that steps by 25 ticks: 4,800 ticks may be 4,850.
    let cost = |step| Cost::of(&row((0..40).map(|_| (500 + 100 * 48, 500 + 200 * 48))), 2.0, step);
    let half = |step| cost(step).known().map(|k| (k.high_ns - k.low_ns) / 2.0 / k.value_ns).unwrap();
    assert!((half(25) - 50.0 / 4_800.0).abs() < 1e-9 && half(1) < 0.001, "{} {}", half(25), half(1));
    // Less than a step is nothing.
    assert!(matches!(cost(2_401), Cost::Below { .. }));
}

#[test]
fn nothing_is_a_bound_and_never_negative() {
    let cost = Cost::of(&row((0..40).map(|i| (1000 + i % 7, 1000 + (i * 3) % 7))), 1.0, 1);
    let Cost::Below { bound_ns, .. } = cost else { panic!("{cost:?}") };
    assert!(bound_ns > 0.0 && bound_ns < 0.01, "{bound_ns}");
    let always_less = Cost::of(&row((0..40).map(|_| (1000, 990))), 1.0, 1);
    assert!(matches!(always_less, Cost::Below { bound_ns, .. } if bound_ns > 0.0), "{always_less:?}");
}

#[test]
fn too_few_and_unproven_samples_have_no_cost_but_a_reason() {
    let few = Cost::of(&row((0..2).map(|_| (10, 2000))), 1.0, 1);
    assert!(matches!(&few, Cost::Unknown { why } if why.contains("2 undisturbed samples of 2")), "{few:?}");
    let mut r = row((0..50).map(|_| (10, 2000)));
    r.proof = Some(Proof::new("children that exited with 0", 50, 0));
    assert!(matches!(Cost::of(&r, 1.0, 1), Cost::Unknown { why } if why.contains("0 seen, 50 expected")));
}

#[test]
fn a_metric_keeps_the_samples_that_its_figure_is_of_visit_by_visit() {
    let mut row = row((0..48).map(|i| (500 + 100 * 48 + i % 3, 500 + 200 * 48 + i * 40 % 90))).of_batches();
    for (i, pair) in row.pairs.iter_mut().enumerate() {
        pair.visit = i as u32 / 4 + 1;
        pair.core.width = if i % 4 == 3 { 2.1 } else { 3.9 };
    }
    let cost = Cost::by_population(&row, &row.pairs, FILTER, 1.0, 1);
    let (ns, rate) = (cost.metric(&RATE, Params::new()), cost.metric_as(&RATE, Params::new(), |ns| 1e9 / ns));
    for (m, p) in [(&ns, 0.25), (&rate, 0.75)] {
        let visits = m.visits.as_ref().expect("samples");
        let samples = sorted(&visits.all().collect::<Vec<f64>>()).unwrap();
        assert_eq!((visits.quantile, visits.values.len(), samples.len(), m.n), (p, 12, 36, 36));
        assert!((quantile(&samples, p).unwrap() / m.value.unwrap() - 1.0).abs() < 1e-3, "{m:?}");
    }
    // Fewer than eight visits are named with the interval; a figure of all pairs keeps all.
    assert_eq!(ns.ci.map(|ci| ci.method), Some("rank".to_owned()));
    let few = &row.pairs[..8];
    let m = Cost::by_population(&row, few, FILTER, 1.0, 1).metric(&RATE, Params::new());
    assert_eq!(m.ci.map(|ci| ci.method), Some("rank, 2 visits".to_owned()));
    assert_eq!(m.visits.map(|v| v.all().count()), Some(6));
    row.pairs[8..].iter_mut().for_each(|p| p.core.width = 2.1);
    let m = Cost::by_population(&row, &row.pairs, FILTER, 1.0, 1).metric(&RATE, Params::new());
    assert_eq!(
        m.ci.map(|ci| ci.method),
        Some("rank, down to undisturbed".to_owned()),
        "two visits of twelve"
    );
    assert_eq!(m.visits.map(|v| v.all().count()), Some(48));
}

#[test]
fn what_no_neighbor_can_slow_is_never_marked() {
    let mut row = row((0..48).map(|i| (500 + 100 * 48 + i % 3, 500 + 200 * 48 + i % 2))).core_clock();
    for (i, pair) in row.pairs.iter_mut().enumerate() {
        pair.visit = i as u32 / 4;
        pair.core.width = 2.1;
    }
    let known = |row: &Row| Cost::by_population(row, &row.pairs, FILTER, 1.0, 1).known().cloned().unwrap();
    let clock = known(&row);
    assert!(!clock.is_shared() && clock.n == 48 && clock.low_ns > 2.99, "{clock:?}");
    row.is_core_clock = false;
    let other = known(&row);
    assert!(other.is_shared() && other.low_ns < 1.51, "{other:?}");
}
