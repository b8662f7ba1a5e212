//! Tests of metrics: impossible values, keys, populations, intervals.

use super::*;

const INFO: MetricInfo = MetricInfo::of("noise.turn", Unit::Nanoseconds);

#[test]
fn impossible_values_are_rejected_with_a_reason() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-9] {
        let m = Metric::new(&INFO, Params::new(), bad, "median", 10)
            .with_ci(Interval::new(0.95, 0.0, 1.0, "rank"));
        assert_eq!(m.value, None);
        assert_eq!(m.ci, None);
        assert_eq!(m.quality, Quality::Rejected);
        assert!(m.why.is_some());
    }
}

#[test]
fn the_key_names_parameters_in_order() {
    let p = params([("quantum", 31_i64.into()), ("cpu", "all".into())]);
    assert_eq!(Metric::new(&INFO, p, 9.5, "median", 3).key(), "noise.turn{cpu=all,quantum=31}");
}

#[test]
fn the_population_is_read_where_it_is_and_not_missed_in_older_records() {
    let m = Metric::new(&INFO, Params::new(), 9.5, "median", 3);
    let old = serde_json::to_string(&m).unwrap();
    assert!(!old.contains("population"));
    assert_eq!(serde_json::from_str::<Metric>(&old).unwrap(), m);
    let shared = m.with_population(Some(Population::CoreShared));
    let text = serde_json::to_string(&shared).unwrap();
    assert!(text.contains("\"population\":\"core_shared\""));
    assert!(serde_json::from_str::<Metric>(&text).unwrap().is_shared());
    let parts = [None, Some(Population::Undisturbed), shared.population];
    assert_eq!(Population::of_all(parts), shared.population);
    assert_eq!(Population::of_all([None, None]), None);
}

#[test]
fn an_interval_must_be_finite_and_ordered() {
    assert!(Interval::new(0.95, 2.0, 1.0, "x").is_none());
    assert!(Interval::new(0.95, f64::NAN, 1.0, "x").is_none());
    assert!(Interval::new(1.0, 0.0, 1.0, "x").is_none());
}

#[test]
fn ends_of_intervals_are_rounded_outward() {
    let of = |low, high| Interval::new(0.95, low, high, "").map(|ci| (ci.low, ci.high)).unwrap();
    assert_eq!(of(1.000_000_05, 1.000_000_05), (1.0, 1.000_001));
    assert_eq!(of(-9.999_999_9, 9.999_999_9), (-10.0, 10.0));
    assert_eq!(of(0.0, 1.1), (0.0, 1.1));
    for x in (1..2000).map(|i| f64::from(i).powf(7.7)) {
        let (low, high) = of(x, x);
        assert!(low <= x && x <= high && high - low <= 1.1e-6 * x, "{x}: {low} {high}");
    }
}
