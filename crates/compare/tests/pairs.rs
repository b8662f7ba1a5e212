//! Tests of special pairs: zero, missing, on one side only, different, suspect, extreme.
#![allow(clippy::unwrap_used, reason = "tests fail on surprises")]

mod machines;

use std::slice::from_ref;

use machines::{Machine, QUIET, known, metric, record, share};
use machmeter_compare::{
    Comparison, FailOn, Options, Row, Scale, SpreadFrom, Verdict, compare, csv, exit_code, markdown, text,
};
use machmeter_data::metric::Population;
use machmeter_data::{Better, Fact, Interval, Metric, Quality, Record, Unit};
use machmeter_stats::random::Random;
use proptest::prelude::*;

fn one(a: Metric, b: Metric) -> Comparison {
    compare(&[record("a", vec![a])], &[record("b", vec![b])], &Options::default())
}

fn row(a: Metric, b: Metric) -> Row {
    one(a, b).rows.remove(0)
}

fn not_comparable(a: Metric, b: Metric) -> String {
    let verdict = row(a, b).verdict;
    assert_eq!(verdict.name(), "not_comparable");
    verdict.why().unwrap().to_owned()
}

fn cost(value: f64) -> Metric {
    known("ops.cost", Unit::Nanoseconds, Better::Lower, value).with_population(Some(Population::Undisturbed))
}

#[test]
fn figures_of_different_populations_are_not_comparable() {
    let of = |level: f64, population| cost(level).with_population(population);
    let (alone, shared) = (Some(Population::Undisturbed), Some(Population::CoreShared));
    for (a, b, said) in [
        (alone, shared, "core shared in B"),
        (shared, alone, "core shared in A"),
        (None, shared, "core shared in B"),
        (None, alone, "A has no observation of the core"),
    ] {
        assert_eq!(not_comparable(of(100.0, a), of(150.0, b)), said);
        let c = one(of(100.0, a), of(150.0, b));
        assert!(text(&c, 100, false).contains(said) && c.counts.not_comparable == 1);
    }
    assert_eq!(row(of(100.0, alone), of(150.0, alone)).population, alone);
}

#[test]
fn of_groups_the_runs_of_one_population_count() {
    let of = |values: &[(f64, Population)]| -> Vec<Record> {
        let run = |(i, (v, p)): (usize, &(f64, Population))| {
            record(&format!("{v}{i}"), vec![cost(*v).with_population(Some(*p))])
        };
        values.iter().enumerate().map(run).collect()
    };
    let (u, s) = (Population::Undisturbed, Population::CoreShared);
    let a = of(&[(100.0, u), (100.2, u), (170.0, s), (99.9, u)]);
    let b = of(&[(100.1, u), (171.0, s), (172.0, s), (100.3, u)]);
    let c = compare(&a, &b, &Options::default());
    let r = &c.rows[0];
    assert_eq!((r.population, r.a.runs, r.b.runs, r.verdict.name()), (Some(u), 3, 2, "same"));
    assert_eq!(
        r.reasons,
        ["1 of 4 runs of A left out: not undisturbed", "2 of 4 runs of B left out: not undisturbed"]
    );
}

#[test]
fn figures_of_other_things_are_not_comparable() {
    let apart = |level: f64, ns| known("sync.cost", Unit::Nanoseconds, Better::Lower, level).with_apart(ns);
    let said = not_comparable(apart(52.0, Some(27.5)), apart(330.0, Some(105.0)));
    assert_eq!(said, "the CPUs were 27.5 ns apart in A, 105 ns in B");
    let rhythm = |hz: f64| known("noise.period", Unit::Hertz, Better::Neither, hz);
    assert_eq!(not_comparable(rhythm(100.0), rhythm(250.0)), "another one: 100 Hz in A, 250 Hz in B");
    let mode = |ns: f64| known("sync.mode", Unit::Nanoseconds, Better::Lower, ns);
    assert_eq!(not_comparable(mode(10.0), mode(180.0)), "another one: 10.0 ns in A, 180 ns in B");
    let figure = |unit, estimator| metric("x.y", unit, Better::Lower, 3.0, estimator);
    let median = || figure(Unit::Count, "median");
    assert!(not_comparable(median(), figure(Unit::Hertz, "median")).contains("units differ"));
    assert!(not_comparable(median(), figure(Unit::Count, "mean")).contains("computed differently"));
    let mut rejected = median();
    (rejected.value, rejected.quality, rejected.why) = (None, Quality::Rejected, Some("negative".to_owned()));
    assert!(not_comparable(median(), rejected).contains("rejected in B: negative"));
    let longest = |v| {
        let ci = Interval::new(0.95, 0.9 * v, 1.1 * v, "rank");
        metric("noise.longest", Unit::Nanoseconds, Better::Lower, v, "maximum").with_ci(ci)
    };
    assert!(not_comparable(longest(1e3), longest(9e6)).contains("does not repeat"));
}

#[test]
fn a_large_change_has_the_direction_of_the_metric() {
    for (better, verdict) in [
        (Better::Lower, Verdict::Worse),
        (Better::Higher, Verdict::Better),
        (Better::Neither, Verdict::Changed),
    ] {
        let of = |v| Metric { better, ..cost(v) };
        assert!(row(of(150.0), of(100.0)).verdict.is_change());
        let up = row(of(100.0), of(150.0));
        assert_eq!(up.verdict, verdict);
        let ci = up.change_ci.unwrap();
        assert!((up.change.unwrap() - 0.5).abs() < 1e-9 && ci.low > 0.4 && ci.high < 0.6, "{ci:?}");
        assert_eq!(up.spread.unwrap().from, SpreadFrom::Assumed);
    }
}

#[test]
fn a_figure_without_earlier_ones_takes_what_alike_figures_differ_by() {
    // Runs differ by 3 %, which their intervals do not cover; this is twice the assumed spread.
    let machine = Machine { own_sd: 0.001, between_sd: 0.03, ..QUIET };
    let mut random = Random::new(11);
    let mut run = |at: usize| machine.run(at, 12, 0, 1.0, &mut random);
    let mut history: Vec<Record> = (0..6).map(&mut run).collect();
    let (a, b) = (run(6), run(7));
    let last = a.metrics[11].key();
    for r in &mut history {
        r.metrics.truncate(11);
    }
    let of_last = |history: &[Record]| {
        let options = Options { history, ..Options::default() };
        let c = compare(from_ref(&a), from_ref(&b), &options);
        c.rows.into_iter().find(|r| r.key == last).unwrap().spread.unwrap()
    };
    let (lent, assumed) = (of_last(&history), of_last(&[]));
    assert_eq!([lent.from, assumed.from], [SpreadFrom::Earlier, SpreadFrom::Assumed]);
    assert!((0.02..0.05).contains(&lent.sd) && lent.dof <= 3.0, "{lent:?}");
    assert!(assumed.sd < 0.018, "{assumed:?}");
}

#[test]
fn a_shared_core_hides_no_change_behind_what_nobody_disturbs() {
    let mut r = Random::new(8);
    let mut run = |at: usize, factor: f64| {
        let mut run = QUIET.run(at, 1, 1, factor, &mut r);
        let m = &mut run.metrics[0];
        let value = m.value.unwrap();
        m.ci = Interval::new(0.95, value / 2.0, 1.004 * value, "rank, down to undisturbed");
        m.population = Some(Population::CoreShared);
        run
    };
    let earlier: Vec<Record> = (0..8).map(|at| run(at, 1.0)).collect();
    let (a, b) = ([run(8, 1.0)], [run(9, 1.1)]);
    let c = compare(&a, &b, &Options { history: &earlier, ..Options::default() });
    assert_eq!(c.rows[0].verdict, Verdict::Worse, "{:?}", c.rows[0]);
    // The variation of neighbors between runs is unknown here, and the interval covers both cases.
    let c = compare(&a, &b, &Options::default());
    assert_eq!(c.rows[0].verdict.name(), "unclear", "{:?}", c.rows[0]);
}

#[test]
fn shares_are_compared_in_points() {
    let share = |v: f64, half: f64| {
        let ci = Interval::new(0.95, (v - half).max(0.0), v + half, "serial");
        metric("noise.stolen_fraction", Unit::One, Better::Lower, v, "time-share").with_ci(ci)
    };
    let hog = row(share(0.023, 0.003), share(0.12, 0.025));
    assert_eq!((hog.scale, hog.verdict.name()), (Scale::Absolute, "worse"));
    assert!((hog.change.unwrap() - 0.097).abs() < 1e-9);
    // A tenth of 2 % in points: 0.2.
    assert_eq!(row(share(0.02, 0.0003), share(0.0205, 0.0003)).verdict, Verdict::Same);
    assert_eq!(row(share(0.0, 0.0001), share(0.0, 0.0001)).verdict, Verdict::Same);
    let shown = text(&one(share(0.023, 0.003), share(0.12, 0.025)), 120, false);
    assert!(shown.contains("+9.70 points"), "{shown}");
}

#[test]
fn rows_without_a_change_say_whether_one_is_excluded() {
    let c = one(cost(100.0), cost(100.1));
    assert!(c.rows[0].detectable.unwrap() > c.rows[0].change_ci.as_ref().unwrap().high);
    assert_eq!(c.counts.unclear, 1, "two single runs do not exclude 2 %");
    let wide = Options { at_least: 0.1, ..Options::default() };
    let c = compare(&[record("a", vec![cost(100.0)])], &[record("b", vec![cost(100.1)])], &wide);
    assert_eq!((c.counts.same, c.advice), (1, None));
}

#[test]
fn single_figures_are_equal_or_unclear() {
    let size = |v| metric("memory.cache_size", Unit::Bytes, Better::Neither, v, "detected");
    assert_eq!(row(size(32768.0), size(32768.0)).verdict, Verdict::Same);
    assert!(row(size(32768.0), size(40960.0)).verdict.why().unwrap().contains("without interval"));
    assert_eq!(exit_code(&one(size(32768.0), size(40960.0)), FailOn::Worse), 3);
}

#[test]
fn one_run_in_another_state_is_no_change() {
    // One outlier among the runs of B: it moves the mean and the spread, not the shift.
    let side = |values: [f64; 5]| -> Vec<Record> {
        values.iter().enumerate().map(|(i, v)| record(&format!("{i}{v}"), vec![cost(*v)])).collect()
    };
    let a = side([100.0, 101.0, 100.5, 100.2, 100.8]);
    let of = |b: [f64; 5]| compare(&a, &side(b), &Options::default()).rows.remove(0);
    let same = of([100.1, 100.9, 160.0, 100.4, 100.6]);
    assert!(!same.verdict.is_change() && same.p_rank.unwrap() > 0.01, "{same:?}");
    assert_eq!(of([106.1, 105.9, 106.2, 106.4, 105.6]).verdict, Verdict::Worse);
    // The same change with such a run: its size is right, but it is not certain.
    let hidden = of([106.1, 105.9, 160.0, 106.4, 105.6]);
    assert!(matches!(hidden.verdict, Verdict::Unclear { .. }) && hidden.change.unwrap() < 0.07, "{hidden:?}");
}

#[test]
fn a_source_that_one_side_does_not_name_took_no_more_there_than_its_rest() {
    let tick = || share("timer tick", "tick", 0.003, 0.0005);
    let hog = || share("hog", "thread", 0.08, 0.01);
    let verdict = |a: Vec<Metric>, b: Vec<Metric>| {
        let c = compare(&[record("a", a)], &[record("b", b)], &Options::default());
        let of_hog = |r: &&Row| r.key.contains("hog");
        c.rows.iter().find(of_hog).map(|r| (r.verdict.name(), r.a.value.unwrap(), r.b.value.unwrap()))
    };
    assert_eq!(verdict(vec![tick()], vec![tick(), hog()]), Some(("worse", 0.0, 0.08)));
    assert_eq!(verdict(vec![tick(), hog()], vec![tick()]), Some(("better", 0.08, 0.0)));
    assert_eq!(
        verdict(vec![tick()], vec![tick(), share("hog", "thread", 0.0001, 0.0001)]).unwrap().0,
        "same"
    );
    // The rest of the threads may include the hog; time of unknown cause may have any source; a run without figures gives no bound.
    for may_be in [share("other thread", "thread", 0.07, 0.01), share("unknown", "unknown", 0.07, 0.01)] {
        assert_eq!(verdict(vec![tick(), may_be], vec![tick(), hog()]).unwrap().0, "unclear");
    }
    assert_eq!(verdict(vec![], vec![tick(), hog()]), None);
}

#[test]
fn history_is_of_the_first_sides_state_and_before_it() {
    let run = |id: &str, at: u32, v: f64, kernel: &str| {
        let mut r = record(id, vec![cost(v)]);
        r.run.started = format!("2026-01-01T00:00:{at:02}Z");
        r.machine.before.set("kernel.release", Fact::known(kernel, "uname"));
        r
    };
    let (a, b) = (run("a", 30, 100.0, "6.1"), run("b", 40, 104.0, "6.1"));
    let from = |history: &[Record]| {
        let c = compare(from_ref(&a), from_ref(&b), &Options { history, ..Options::default() });
        c.rows[0].spread.as_ref().unwrap().from
    };
    let same: Vec<Record> = (1..6).map(|i| run(&format!("e{i}"), i, 100.0 + f64::from(i), "6.1")).collect();
    assert_eq!(from(&same), SpreadFrom::Earlier);
    let later: Vec<Record> = (41..46).map(|i| run(&format!("e{i}"), i, 100.0, "6.1")).collect();
    assert_eq!(from(&later), SpreadFrom::Assumed, "runs of the second side's time");
    let other: Vec<Record> = (1..6).map(|i| run(&format!("e{i}"), i, 100.0, "5.4")).collect();
    assert_eq!(from(&other), SpreadFrom::Assumed, "another kernel");
    assert_eq!(from(&vec![a.clone(); 5]), SpreadFrom::Assumed, "itself");
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
    let c = compare(&[a], &[b], &Options::default());
    assert_eq!(c.environment, ["kernel.release: 6.17.9 -> 6.18.44", "load.avg1: 0.1 -> 0.9"]);
    assert!(c.notes.iter().any(|n| n.contains("compares machines")));
    assert_eq!(exit_code(&c, FailOn::Worse), 3);
    assert_eq!(exit_code(&c, FailOn::None), 0);
}

#[test]
fn the_join_reports_what_only_one_side_has_and_obeys_the_glob() {
    let named = |id| metric(id, Unit::Count, Better::Lower, 1.0, "median");
    let a = [record("a", vec![named("p.one"), named("p.two"), named("q.three"), named("p.one")])];
    let b = [record("b", vec![named("p.one"), named("q.four")])];
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
fn exit_codes_follow_the_findings() {
    let size = |v| metric("memory.cache_size", Unit::Bytes, Better::Neither, v, "detected");
    let pairs = [one(cost(100.0), cost(200.0)), one(cost(200.0), cost(100.0)), one(size(1.0), size(1.0))];
    let codes = |f| pairs.each_ref().map(|c| exit_code(c, f));
    assert_eq!(codes(FailOn::Worse), [1, 0, 0]);
    assert_eq!(codes(FailOn::Any), [1, 1, 0]);
    assert_eq!(codes(FailOn::None), [0, 0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any finite figures of the sides, every number of the result is finite and every view can show it.
    #[test]
    fn no_impossible_number_comes_out(
        a in proptest::collection::vec((prop_oneof![Just(0.0), Just(1.0), -1e12..1e12_f64, 1e-300..1e-290_f64], 0.0..1e3_f64), 1..8),
        b in proptest::collection::vec((prop_oneof![Just(0.0), Just(1.0), -1e12..1e12_f64, 1e290..1e300_f64], 0.0..1e3_f64), 1..8),
    ) {
        let side = |v: &[(f64, f64)]| -> Vec<Record> {
            let m = |(x, half): &(f64, f64)| metric("x.y", Unit::Hertz, Better::Lower, *x, "median").with_ci(Interval::new(0.95, x - half, x + half, "rank"));
            v.iter().enumerate().map(|(i, f)| record(&i.to_string(), vec![m(f)])).collect()
        };
        let c = compare(&side(&a), &side(&b), &Options::default());
        for row in &c.rows {
            for v in [row.change, row.detectable, row.p, row.p_adjusted, row.p_rank].into_iter().flatten() {
                prop_assert!(v.is_finite());
            }
        }
        prop_assert!(text(&c, 80, true).lines().all(|l| l.len() <= 80));
        prop_assert!(!csv(&c).contains("NaN") && !markdown(&c).contains("NaN"));
    }
}

/// One of the two runs per side is marked in this row; the remaining two differ by 10 %. Runs of the other rows agree within 0.4 %, but give no information
/// on the state of this row.
#[test]
fn a_single_run_left_on_a_side_is_judged_as_a_lone_run() {
    let mut r = Random::new(3);
    let mut runs: Vec<Record> = (0..4).map(|i| QUIET.run(i, 60, 0, 1.0, &mut r)).collect();
    for (run, factor, is_marked) in [(0, 1.0, false), (1, 1.3, true), (2, 1.1, false), (3, 1.3, true)] {
        let m = &mut runs[run].metrics[0];
        m.value = Some(100.0 * factor);
        m.ci = Interval::new(0.95, 99.6 * factor, 100.4 * factor, "rank");
        m.population = Some(if is_marked { Population::CoreShared } else { Population::Undisturbed });
    }
    let (a, b) = runs.split_at(2);
    let row = |c: &Comparison| c.rows.iter().find(|r| r.key.contains("made_0}")).cloned().unwrap();
    let left = row(&compare(a, b, &Options::default()));
    assert!(!left.verdict.is_change(), "{left:?}");
    assert_eq!(left.spread.unwrap().from, SpreadFrom::Assumed);
    // Two runs per side reveal such a change.
    for (run, value) in runs.iter_mut().zip([100.0, 100.2, 130.0, 130.2]) {
        let m = &mut run.metrics[0];
        m.value = Some(value);
        m.ci = Interval::new(0.95, 0.996 * value, 1.004 * value, "rank");
        m.population = Some(Population::Undisturbed);
    }
    let (a, b) = runs.split_at(2);
    assert!(row(&compare(a, b, &Options::default())).verdict.is_change());
}
