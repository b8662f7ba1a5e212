//! Pairs that are not plain: zero, missing, one-sided, unlike, suspect, extreme.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their tables")]

#[allow(dead_code, reason = "shared by the tests of this folder, each of which uses a part")]
mod machines;

use machines::{cost, metric, record};
use machmeter_compare::{
    ChangeScale, Comparison, FailOn, Options, Row, Verdict, compare, csv, exit_code, markdown, text,
};
use machmeter_data::metric::Population;
use machmeter_data::{Better, Fact, Interval, Metric, Quality, Unit};
use machmeter_stats::random::Random;
use proptest::prelude::*;

fn blocks(level: f64, sd: f64, seed: u64) -> Vec<f64> {
    let mut r = Random::new(seed);
    (0..20).map(|_| level * (1.0 + sd * r.normal())).collect()
}

fn one(a: Metric, b: Metric) -> Comparison {
    compare(&record("a", vec![a]), &record("b", vec![b]), &Options::default())
}

fn row(a: Metric, b: Metric) -> Row {
    one(a, b).rows.remove(0)
}

fn why(a: Metric, b: Metric) -> String {
    match row(a, b).verdict {
        Verdict::Inconclusive { why } => why,
        other => panic!("expected an inconclusive row, found {other:?}"),
    }
}

fn rate(values: &[f64]) -> Metric {
    metric("noise.detour_rate", Unit::Hertz, Better::Lower, values.iter().sum::<f64>() / 20.0, "mean")
        .with_blocks(values.to_vec(), 5e7)
}

#[test]
fn figures_of_different_populations_are_not_judged() {
    let of = |level: f64, population| {
        metric("ops.cost", Unit::Nanoseconds, Better::Lower, level, "median of differences")
            .with_blocks(blocks(level, 0.01, level as u64), 1e6)
            .with_population(population)
    };
    let (alone, shared) = (Some(Population::Undisturbed), Some(Population::CoreShared));
    for (a, b, said) in [
        (alone, shared, "core shared in B"),
        (shared, alone, "core shared in A"),
        (None, shared, "core shared in B"),
        (None, alone, "nobody looked in A whether the core was shared"),
    ] {
        let c = one(of(100.0, a), of(150.0, b));
        assert_eq!(why(of(100.0, a), of(150.0, b)), said);
        assert_eq!((c.rows[0].a.population, c.rows[0].b.population), (a, b));
        let shown = text(&c, 100);
        assert!(["100 ns", "150 ns", "unclear", said].iter().all(|w| shown.contains(w)), "{shown}");
    }
    for both in [alone, shared, None] {
        assert_eq!(row(of(100.0, both), of(150.0, both)).verdict, Verdict::Worse);
    }
    // A record of before.
    let mut old = of(100.0, None);
    old.ci = Interval::new(0.95, 99.0, 101.0, "rank, alone on the core; 3 earlier runs");
    assert_eq!(row(old.clone(), of(150.0, alone)).verdict, Verdict::Worse);
    assert_eq!(why(old, of(150.0, shared)), "core shared in B");
}

#[test]
fn figures_of_cpus_at_different_places_are_not_judged() {
    let of = |level: f64, apart_ns| {
        metric("sync.cost", Unit::Nanoseconds, Better::Lower, level, "median of batches")
            .with_blocks(blocks(level, 0.01, level as u64), 1e6)
            .with_apart(apart_ns)
    };
    let said = why(of(52.0, Some(27.5)), of(330.0, Some(105.0)));
    assert_eq!(said, "the CPUs were 27.5 ns apart in A, 105 ns in B");
    for (a, b) in [(Some(27.5), Some(25.0)), (Some(27.5), None), (None, None)] {
        assert_eq!(row(of(52.0, a), of(330.0, b)).verdict, Verdict::Worse);
    }
}

#[test]
fn a_large_change_has_the_direction_of_the_metric() {
    let (low, high) = (blocks(100.0, 0.01, 1), blocks(150.0, 0.01, 2));
    let as_metric =
        |better, v: &[f64]| metric("x.y", Unit::Count, better, v[0], "median").with_blocks(v.to_vec(), 1e6);
    for (better, verdict) in [
        (Better::Lower, Verdict::Worse),
        (Better::Higher, Verdict::Better),
        (Better::Neither, Verdict::Changed),
    ] {
        assert!(row(as_metric(better, &high), as_metric(better, &low)).verdict.is_change());
        let up = row(as_metric(better, &low), as_metric(better, &high));
        assert_eq!(up.verdict, verdict);
        assert!((up.change.unwrap() - 0.5).abs() < 0.02);
        let ci = up.change_ci.unwrap();
        assert!(ci.low < 0.5 && 0.5 < ci.high);
    }
}

#[test]
fn rows_without_a_change_tell_what_would_have_been_seen() {
    let c = one(cost(&blocks(100.0, 0.01, 1)), cost(&blocks(100.0, 0.01, 2)));
    assert!(c.rows[0].detectable.unwrap() > c.rows[0].half_width.unwrap());
    assert_eq!((c.counts.rows, c.counts.same), (1, 1));
}

#[test]
fn a_change_below_the_smallest_effect_is_the_same() {
    let options = Options { run_to_run: Some(0.0), ..Options::default() };
    let (a, b) = (cost(&blocks(1000.0, 0.0005, 1)), cost(&blocks(1012.0, 0.0005, 2)));
    let c = compare(&record("a", vec![a]), &record("b", vec![b]), &options);
    assert!(c.rows[0].p_adjusted.unwrap() < 0.01);
    assert_eq!(c.rows[0].verdict, Verdict::Same);
    assert!(c.rows[0].reasons.iter().any(|r| r.contains("below the smallest effect")));
    assert!(c.rows[0].detectable.unwrap() >= 0.02);
}

#[test]
fn zeros_are_compared_in_the_unit() {
    let zeros = [0.0; 20];
    let nothing = row(rate(&zeros), rate(&zeros));
    assert_eq!((nothing.verdict, nothing.detectable), (Verdict::Same, None));

    let slower = row(rate(&zeros), rate(&blocks(40.0, 0.1, 3)));
    assert_eq!((slower.scale, slower.verdict), (ChangeScale::Absolute, Verdict::Worse));
    assert!((slower.change.unwrap() - 40.0).abs() < 4.0);

    let mut rare = zeros;
    rare[4] = 3.0;
    assert_eq!(row(rate(&zeros), rate(&rare)).verdict, Verdict::Same);
    assert_eq!(row(rate(&blocks(40.0, 0.1, 3)), rate(&zeros)).verdict, Verdict::Better);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let figure = |unit, estimator| metric("x.y", unit, Better::Lower, 3.0, estimator);
    let median = || figure(Unit::Count, "median");
    assert!(why(median(), figure(Unit::Hertz, "median")).contains("units differ"));
    assert!(why(median(), figure(Unit::Count, "mean")).contains("computed differently"));
    let mut rejected = median();
    (rejected.value, rejected.quality, rejected.why) = (None, Quality::Rejected, Some("negative".to_owned()));
    assert!(why(median(), rejected).contains("negative"));
    let mut foreign = cost(&blocks(9.0, 0.1, 1));
    foreign.blocks[3] = f64::NAN;
    assert!(why(cost(&blocks(9.0, 0.1, 1)), foreign).contains("not finite"));
}

#[test]
fn single_figures_are_equal_or_unclear() {
    let size = |v| metric("memory.cache_size", Unit::Bytes, Better::Neither, v, "detected");
    assert_eq!(row(size(32768.0), size(32768.0)).verdict, Verdict::Same);
    assert!(why(size(32768.0), size(49152.0)).contains("without interval or blocks"));
    assert_eq!(exit_code(&one(size(32768.0), size(49152.0)), FailOn::Worse), 3);
}

fn within_a_hundredth(v: f64) -> Option<Interval> {
    Interval::new(0.95, 0.99 * v, 1.01 * v, "rank")
}

#[test]
fn intervals_stand_in_for_blocks() {
    let figure =
        |v: f64| metric("x.y", Unit::Nanoseconds, Better::Lower, v, "median").with_ci(within_a_hundredth(v));
    assert_eq!(row(figure(100.0), figure(103.0)).verdict, Verdict::Same);
    let slower = row(figure(100.0), figure(200.0));
    assert_eq!(slower.verdict, Verdict::Worse);
    assert!(slower.reasons.iter().any(|r| r.contains("intervals")));
}

#[test]
fn a_maximum_gets_no_verdict_unless_every_block_has_one() {
    let longest = |v: f64| {
        metric("noise.longest", Unit::Nanoseconds, Better::Lower, v, "maximum").with_ci(within_a_hundredth(v))
    };
    assert!(why(longest(1e3), longest(9e6)).contains("does not repeat"));
    let per_block = |level| longest(level).with_blocks(blocks(level, 0.05, 7), 1e6);
    assert_eq!(row(per_block(1e3), per_block(9e6)).verdict, Verdict::Worse);
}

#[test]
fn levels_that_differ_while_blocks_overlap_are_unclear() {
    // Declared free of run-to-run spread, a burst-free but alternating series fools the t law, not the ranks.
    let a: Vec<f64> = (0..20).map(|i| if i < 12 { 100.0 } else { 100.5 }).collect();
    let b: Vec<f64> = (0..20).map(|i| if i < 10 { 100.0 } else { 100.5 }).collect();
    assert!(!row(cost(&a), cost(&b)).verdict.is_change());
}

#[test]
fn doubts_widen_the_resolution_and_are_named() {
    let (a, b) = (blocks(100.0, 0.01, 1), blocks(103.0, 0.01, 2));
    let mut suspect = cost(&b);
    suspect.flag("E104");
    let (plain, flagged) = (row(cost(&a), cost(&b)), row(cost(&a), suspect));
    assert!(flagged.half_width.unwrap() > 1.5 * plain.half_width.unwrap());
    assert_eq!(flagged.flags, ["E104"]);
}

#[test]
fn the_environment_lists_what_a_reader_would_blame() {
    let (mut a, mut b) = (record("a", vec![]), record("b", vec![]));
    for (path, x, y) in [
        ("kernel.release", "6.17.9", "6.18.44"),
        ("cpu.microcode", "0xa1", "0xa1"),
        ("memory.free", "1", "2"),
    ] {
        a.machine.before.set(path, Fact::known(x, "test"));
        b.machine.before.set(path, Fact::known(y, "test"));
    }
    a.machine.before.set("load.avg1", Fact::known(0.1, "/proc/loadavg"));
    b.machine.before.set("load.avg1", Fact::known(0.9, "/proc/loadavg"));
    a.machine.fingerprint = Some("x".to_owned());
    b.machine.fingerprint = Some("y".to_owned());
    let c = compare(&a, &b, &Options::default());
    assert_eq!(c.environment, ["kernel.release: 6.17.9 -> 6.18.44", "load.avg1: 0.100 -> 0.900"]);
    assert!(c.notes.iter().any(|n| n.contains("two machines")));
    assert_eq!(exit_code(&c, FailOn::Worse), 3);
    assert_eq!(exit_code(&c, FailOn::None), 0);
}

#[test]
fn the_join_reports_what_only_one_side_has_and_obeys_the_glob() {
    let named = |id| metric(id, Unit::Count, Better::Lower, 1.0, "median");
    let a = record("a", vec![named("p.one"), named("p.two"), named("q.three"), named("p.one")]);
    let b = record("b", vec![named("p.one"), named("q.four")]);
    let c = compare(&a, &b, &Options::default());
    assert_eq!(
        (c.rows.len(), c.only_a.clone(), c.only_b.clone()),
        (1, vec!["p.two".into(), "q.three".into()], vec!["q.four".into()])
    );
    assert!(c.notes.iter().any(|n| n.contains("more than once")));
    let globbed = compare(&a, &b, &Options { metric_glob: Some("q.*".to_owned()), ..Options::default() });
    assert_eq!((globbed.rows.len(), globbed.only_a.len(), globbed.only_b.len()), (0, 1, 1));
}

#[test]
fn history_of_the_pair_itself_is_not_counted() {
    let (a, b) =
        (record("a", vec![cost(&blocks(100.0, 0.01, 1))]), record("b", vec![cost(&blocks(100.0, 0.01, 2))]));
    let history = vec![&a; 20];
    let c = compare(&a, &b, &Options { history: &history, ..Options::default() });
    assert!(c.rows[0].reasons.iter().any(|r| r.contains("0 of 6")), "{:?}", c.rows[0].reasons);
}

#[test]
fn exit_codes_follow_the_findings() {
    let (low, high) = (cost(&blocks(100.0, 0.01, 1)), cost(&blocks(200.0, 0.01, 2)));
    let pairs = [one(low.clone(), high.clone()), one(high, low.clone()), one(low.clone(), low)];
    let codes = |f| pairs.each_ref().map(|c| exit_code(c, f));
    assert_eq!(codes(FailOn::Worse), [1, 0, 0]);
    assert_eq!(codes(FailOn::Any), [1, 1, 0]);
    assert_eq!(codes(FailOn::None), [0, 0, 0]);
}

#[test]
fn the_geomean_counts_costs_of_matched_rows_only() {
    let kinds = [("p.cost", Better::Lower), ("p.rate", Better::Higher), ("p.size", Better::Neither)];
    let of = |name, values: [f64; 3]| {
        let figure =
            |((id, better), v)| metric(id, Unit::Count, better, v, "median").with_blocks(vec![v; 6], 1e6);
        record(name, kinds.into_iter().zip(values).map(figure).collect())
    };
    let c = compare(&of("a", [1.0, 1.0, 1.0]), &of("b", [2.0, 0.5, 9.0]), &Options::default());
    assert!((c.geomean.unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(c.geomean_rows, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever two finite series hold, every number of the result is finite and every view can show it.
    #[test]
    fn no_impossible_number_comes_out(
        a in proptest::collection::vec(prop_oneof![Just(0.0), Just(1.0), -1e12..1e12_f64, 1e-300..1e-290_f64], 0..40),
        b in proptest::collection::vec(prop_oneof![Just(0.0), Just(1.0), -1e12..1e12_f64, 1e290..1e300_f64], 0..40),
    ) {
        let m = |v: &[f64]| metric("x.y", Unit::Hertz, Better::Lower, v.first().copied().unwrap_or(1.0), "median").with_blocks(v.to_vec(), 1e6);
        let c = one(m(&a), m(&b));
        for row in &c.rows {
            for v in [row.change, row.half_width, row.detectable, row.p, row.p_adjusted, row.p_rank].into_iter().flatten() {
                prop_assert!(v.is_finite());
            }
        }
        prop_assert!(text(&c, 80).lines().all(|l| l.len() <= 80));
        prop_assert!(!csv(&c).contains("NaN") && !markdown(&c).contains("NaN"));
    }
}
