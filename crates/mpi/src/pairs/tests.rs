//! Slow ranks and links planted into simulated ranks are named, and nothing else.

use machmeter_data::{Metric, Shape};
use machmeter_engine::Analysis;
use machmeter_engine::cost::Rows;
use machmeter_stats::quantile::median_of;

use crate::launch::Plan;
use crate::run::MACHINES;
use crate::selftest::{NOISE, PLANTED, plan, rows};
use crate::simulated::{Planted, Simulated};
use crate::stage::Shared;
use crate::worker::About;

/// Half a round trip: what sends and receives take, and the way.
const TRULY_NS: f64 = 180.0 + 140.0 + 2.0 * 8.0 * 0.2 + 600.0;

fn measured(ranks: usize, seed: u64, seconds: u64, link: fn(usize, usize) -> f64) -> (Rows, Analysis) {
    let all = crate::plan::numbers_of_ranks(ranks);
    let plan = Plan { pairs: true, seed, ..plan(&[], &[0, 8, 65_536], &all, seconds) };
    let stage = Shared::new(Simulated::new(Planted { link, ..PLANTED }, NOISE, ranks, seed));
    let rows = rows(&stage, &plan).unwrap();
    let (analysis, _) = super::analyze(&rows, &[], "simulated").unwrap();
    (rows, analysis)
}

fn named(analysis: &Analysis) -> Vec<String> {
    analysis.findings[0].evidence.clone()
}

/// One line, without its ratio, which has to be right.
fn only(analysis: &Analysis, ratio: f64) -> String {
    let [line] = &named(analysis)[..] else { panic!("{:?}", analysis.findings) };
    let (who, rest) = line.split_once(": ").unwrap();
    let (found, way) = rest.split_once(" times the median, ").unwrap();
    assert!((found.parse::<f64>().unwrap() / ratio - 1.0).abs() < 0.05, "{line}, true {ratio}");
    format!("{who} {way}")
}

#[test]
fn where_nothing_is_slow_nothing_is_named() {
    for seed in 0..100 {
        let found = measured(6 + seed as usize % 7, seed, 60, |_, _| 1.0).1;
        assert_eq!((named(&found), &*found.findings[0].verdict), (Vec::new(), "none_seen"), "seed {seed}");
        assert!(found.warnings.is_empty());
    }
}

#[test]
fn a_slow_rank_and_a_slow_link_are_named() {
    for seed in 0..10 {
        let found = measured(12, seed, 60, |from, to| if from == 7 || to == 7 { 4.0 } else { 1.0 }).1;
        // The way alone is four times as long.
        let ratio = (TRULY_NS + 3.0 * 600.0) / TRULY_NS;
        assert_eq!(only(&found, ratio), "rank 7 in both directions");
        assert_eq!(found.warnings[0].code, "W514");
        let found = measured(12, seed, 60, |from, to| if (from, to) == (9, 2) { 4.0 } else { 1.0 }).1;
        let ratio = (TRULY_NS + 1.5 * 600.0) / TRULY_NS;
        assert_eq!(only(&found, ratio), "rank 2 and rank 9 from rank 9 to rank 2");
    }
}

#[test]
fn machines_are_named_as_long_as_their_names_are_kept() {
    let (mut rows, _) = measured(12, 1, 60, |from, to| if from == 7 || to == 7 { 4.0 } else { 1.0 });
    let about = About {
        library: "simulated".to_owned(),
        ranks: 12,
        machines: (0..12).map(|rank| rank / 6).collect(),
        ..About::default()
    };
    let line = |rows: &Rows| {
        let (analysis, _) = super::analyze(rows, std::slice::from_ref(&about), "simulated").unwrap();
        let [line] = &named(&analysis)[..] else { panic!("{:?}", analysis.findings) };
        line.clone()
    };
    assert!(line(&rows).starts_with("rank 7 (machine 1): "), "{}", line(&rows));
    rows.facts.set(&MACHINES, vec!["c03".to_owned(), "c04".to_owned()]);
    assert!(line(&rows).starts_with("rank 7 (c04): "), "{}", line(&rows));
}

#[test]
fn planted_latency_and_bandwidth_are_found_for_any_number_at_once() {
    let found = measured(8, 3, 60, |_, _| 1.0).1;
    let of = |id: &str| -> Vec<&Metric> { found.metrics.iter().filter(|m| m.id == id).collect() };
    let near = |m: &Metric, truth: f64| {
        let ci = m.ci.as_ref().unwrap();
        let value = m.value.unwrap();
        assert!((value / truth - 1.0).abs() < 0.02 || (ci.low..=ci.high).contains(&truth), "{m:?} {truth}");
    };
    assert_eq!(of("mpi.pair_latency").len(), 3);
    for m in of("mpi.pair_latency") {
        near(m, TRULY_NS);
    }
    near(of("mpi.link_latency")[0], TRULY_NS);
    // Sixteen sends, the last message's way and receive, and the answer.
    let took_ns = 16.0 * (180.0 + 0.2 * 65_536.0) + 600.0 + 140.0 + 0.2 * 65_536.0 + 180.0 + 600.0 + 140.0;
    for m in of("mpi.pair_bandwidth") {
        let pairs: f64 = m.params["pairs"].to_string().parse().unwrap();
        near(m, pairs * 16.0 * 65_536.0 / took_ns * 1e9);
    }
}

#[test]
fn what_was_not_reached_is_told() {
    let (rows, found) = measured(60, 1, 0, |_, _| 1.0);
    let reached =
        rows.rows.iter().filter(|r| r.text("mode") == super::LINK && rows.cost(r).known().is_some());
    assert_eq!(reached.count(), 0);
    assert!(found.findings[0].text.starts_with("0 of 1770 pairs (1770 without"), "{:?}", found.findings);
    let (_, found) = measured(5, 1, 60, |_, _| 1.0);
    let matrix = found.datasets.iter().find(|d| d.id == "mpi.links").unwrap();
    let Shape::Matrix(matrix) = &matrix.shape else { panic!("no matrix") };
    let all: Vec<f64> = matrix.values.iter().flatten().copied().flatten().collect();
    assert_eq!((all.len(), matrix.values[3][3]), (20, None));
    assert!((median_of(&all).unwrap() / TRULY_NS - 1.0).abs() < 0.02);
}
