//! Tests of [`include_earlier`]: the widened intervals, and the choice of earlier runs.
#![allow(clippy::unwrap_used, reason = "tests panic on surprises")]

mod machines;

use machines::{metric, record};
use machmeter_compare::{Options, compare, include_earlier};
use machmeter_data::metric::Population;
use machmeter_data::{Better, Interval, Metric, Record, Unit};

/// A cost with a half-width of 0.1.
fn cost(value: f64) -> Metric {
    metric("ops.cost", Unit::Nanoseconds, Better::Lower, value, "lower quartile of batches")
        .with_ci(Interval::new(0.95, value - 0.1, value + 0.1, "rank"))
}

fn run(id: &str, m: Metric) -> Record {
    record(id, vec![m])
}

fn earlier(values: &[f64]) -> Vec<Record> {
    values.iter().enumerate().map(|(i, v)| run(&format!("past{i}"), cost(*v))).collect()
}

/// Half-width of the first figure's interval, and of the run's own interval if it is stored separately.
fn widths(r: &Record) -> (f64, Option<f64>) {
    let half = |ci: &Interval| (ci.high - ci.low) / 2.0;
    (half(r.metrics[0].ci.as_ref().unwrap()), r.metrics[0].earlier.as_ref().map(|e| half(&e.own_ci)))
}

#[test]
fn what_runs_differ_by_widens_the_interval_and_its_own_is_kept() {
    let mut this = run("this", cost(100.0));
    assert_eq!(include_earlier(&mut this, &earlier(&[99.0, 101.0, 102.0, 98.0]), |_| true), 1);
    let (wide, own) = widths(&this);
    assert!((wide - 4.4).abs() < 0.3 && (own.unwrap() - 0.1).abs() < 1e-9, "{wide} {own:?}");
    assert_eq!(this.metrics[0].ci.as_ref().unwrap().method, "rank; 4 earlier runs");
    assert_eq!(this.metrics[0].value, Some(100.0));
    // A widened interval is not widened again; in later runs, the run's own interval counts.
    assert_eq!(include_earlier(&mut this, &earlier(&[50.0; 5]), |_| true), 0);
    let mut past = earlier(&[99.0, 101.0, 102.0]);
    past.push(this);
    let mut next = run("next", cost(100.0));
    assert_eq!(include_earlier(&mut next, &past, |_| true), 1);
    assert_eq!(next.metrics[0].ci.as_ref().unwrap().method, "rank; 4 earlier runs");
}

#[test]
fn only_like_figures_of_like_runs_are_asked() {
    let alone = |value: f64| cost(value).with_population(Some(Population::Undisturbed));
    let shared = |value: f64| cost(value).with_population(Some(Population::CoreShared));
    let doubtful = |value: f64| {
        let mut m = cost(value);
        m.flag("E105");
        m
    };
    let means = |value: f64| metric("ops.cost", Unit::Nanoseconds, Better::Lower, value, "mean");
    let past = earlier(&[99.0, 101.0, 98.0, 102.0]);
    let asked = |mut past: Vec<Record>, more: Record| {
        past.truncate(3);
        past.push(more);
        let mut this = run("this", cost(100.0));
        include_earlier(&mut this, &past, |_| true)
    };
    assert_eq!(asked(past.clone(), past[3].clone()), 1);
    assert_eq!(asked(past.clone(), run("past9", doubtful(102.0))), 1, "doubts come and go");
    for unlike in [alone(102.0), shared(102.0), means(102.0)] {
        assert_eq!(asked(past.clone(), run("past9", unlike.clone())), 0, "{unlike:?}");
    }
    let at = |ghz: f64, value: f64| cost(value).with_core_hz(Some(1e9 * ghz));
    let at_clock = |ghz: f64| {
        let mut past: Vec<Record> = [99.0, 101.0, 98.0].map(|v| run(&format!("past{v}"), at(3.0, v))).into();
        past.push(run("past9", at(ghz, 102.0)));
        include_earlier(&mut run("this", at(3.0, 100.0)), &past, |_| true)
    };
    assert_eq!([3.01, 2.7].map(at_clock), [1, 0], "a cost at another clock is another cost");
    let mut newer = past[3].clone();
    newer.tool.version = "9.0.0".to_owned();
    assert_eq!(asked(past.clone(), newer), 0, "another version may measure otherwise");
    assert_eq!(asked(past.clone(), run("this", cost(102.0))), 0, "itself");
    let mut this = run("this", cost(100.0));
    assert_eq!(include_earlier(&mut this, &past, |_| false), 0, "what happened meanwhile");
}

#[test]
fn a_comparison_counts_what_runs_differ_by_once() {
    let mut wide = run("b", cost(130.0));
    include_earlier(&mut wide, &earlier(&[99.0, 101.0, 160.0, 70.0]), |_| true);
    assert!(widths(&wide).0 > 20.0);
    let row = |b: &Record| {
        let b = std::slice::from_ref(b);
        compare(&[run("a", cost(100.0))], b, &Options::default()).rows.remove(0)
    };
    let (of_wide, of_own) = (row(&wide), row(&run("b", cost(130.0))));
    assert_eq!((of_wide.change_ci, of_wide.b.ci), (of_own.change_ci, of_own.b.ci));
}
