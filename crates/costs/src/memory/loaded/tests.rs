//! The analysis finds the planted curve, and says so when there is none.

use machmeter_data::shape::Shape;
use machmeter_engine::cost::{Cost, Estimator, Kind, Pair, Row, Rows};
use machmeter_engine::team::sampler::HostClock;

use machmeter_sys::pages::{Backing, Pages};

use super::analyze::analyze;
use super::measure::{Loaded, PointCell};
use super::plan::{Chase, Point, TRAFFIC_BYTES, points};
use super::{CHAIN_BYTES, CPUS, LAST_CACHE_BYTES, build};
use crate::memory::bandwidth::stream::{Buffer, Contents};
use crate::memory::bandwidth::together::Setting;
use crate::memory::bandwidth::widest;
use crate::testing::{metric, params, sampled, seats};

const CHASE: Chase = Chase { working_set_bytes: 128 << 20, pages: "huge" };

/// The rows of a point with this latency, ns, and rate, bytes per second, at a tick per ns.
fn planted(point: &Point, latency_ns: f64, rate: f64) -> Vec<Row> {
    let batch = 1_600.0 * latency_ns;
    let late = |i: u32| if i.is_multiple_of(6) { batch } else { f64::from(i % 4) };
    let pair = |i| ((batch + 50.0) as u64, (2.0 * batch + 50.0 + late(i)) as u64);
    let latency = point.latency(&CHASE).planted(100, (0..30).map(pair));
    let mut traffic = point.traffic(&CHASE);
    let ticks = |i| TRAFFIC_BYTES / rate * 1e9 * (1.0 + f64::from(i % 3) / 1_000.0);
    let window = |i| Pair { long_ticks: ticks(i) as u64, ..Pair::default() };
    traffic.pairs.extend((0..30).filter(|_| point.cpus > 0).map(window));
    vec![latency, traffic]
}

fn rows(rows: Vec<Row>, chain_bytes: usize) -> Rows {
    let mut rows = Rows::in_nanoseconds(rows);
    rows.facts.set(&CPUS, 2);
    rows.facts.set(&CHAIN_BYTES, chain_bytes);
    rows.facts.set(&LAST_CACHE_BYTES, 32 << 20);
    rows
}

#[test]
fn the_curve_of_latency_over_bandwidth_is_found() {
    let load = widest("read");
    let point = |cpus: usize, pause_ns: u64| Point { load: load.filter(|_| cpus > 0), cpus, pause_ns };
    let truth = [(0, 0, 140.0, 0.0), (1, 4_000, 145.0, 4e9), (1, 250, 165.0, 18e9), (1, 0, 260.0, 27e9)];
    let planted = truth.iter().flat_map(|(c, p, ns, rate)| planted(&point(*c, *p), *ns, *rate)).collect();
    let a = analyze(&params(&[]), &rows(planted, 64 << 20), 1);
    for (cpus, pause, ns, _) in truth {
        let (cpus, pause) = (cpus.to_string(), pause.to_string());
        let m = metric(&a, "memory.loaded_latency", &[("load_cpus", &cpus), ("pause_ns", &pause)]).unwrap();
        assert!((m.value.unwrap() / ns - 1.0).abs() < 0.01, "{m:?}");
        assert!(m.ci.is_some() && m.n == 30);
    }
    let traffic: Vec<f64> =
        a.metrics.iter().filter(|m| m.id == "memory.loaded_bandwidth").filter_map(|m| m.value).collect();
    assert!(traffic.len() == 1 && (traffic[0] / 27e9 - 1.0).abs() < 0.01, "{traffic:?}");
    let Shape::Curve(curve) = &a.datasets[0].shape else { panic!("no curve") };
    assert_eq!(curve.rows[0].x.len(), 4);
    assert!(curve.rows[0].x.windows(2).all(|w| w[0] < w[1]), "{:?}", curve.rows[0].x);
    assert_eq!(curve.rows[0].x[0], 0.0);
    let text = &a.findings[0].text;
    assert_eq!(a.findings[0].verdict, "rises");
    assert!(["140 ns", "260 ns", "1.86"].iter().all(|said| text.contains(said)), "{text}");
    assert!(a.warnings.is_empty(), "{:?}", a.warnings);
    let told = crate::testing::row_texts(&crate::memory::info::INFO, &a);
    assert_eq!(told, ["latency, alone | others busy: 140 ns | 260 ns"]);
}

#[test]
fn a_flat_curve_and_a_small_chain_are_said() {
    let busy = Point { load: widest("read"), cpus: 1, pause_ns: 0 };
    let both = [planted(&Point::IDLE, 140.0, 0.0), planted(&busy, 142.0, 9e9)].concat();
    let a = analyze(&params(&[]), &rows(both, 16 << 20), 1);
    assert_eq!(a.findings[0].verdict, "flat");
    assert!(a.warnings.len() == 1 && a.warnings[0].code == "W412", "{:?}", a.warnings);
}

#[test]
fn one_cpu_gives_a_reason_and_one_warning() {
    let row = Row::new("loaded", "chase", Kind::Latency).refused("needs two CPUs, has 1");
    let mut rows = Rows::in_nanoseconds(vec![row]);
    rows.facts.set(&CPUS, 1);
    let a = analyze(&params(&[]), &rows, 1);
    assert!(a.metrics.len() == 1 && a.metrics[0].value.is_none());
    assert!(a.metrics[0].why.as_ref().unwrap().contains("needs two CPUs"));
    assert!(a.warnings.len() == 1 && a.warnings[0].code == "W409", "{:?}", a.warnings);
    assert!(a.datasets.is_empty() && a.findings.is_empty());
}

#[test]
fn points_keep_their_estimator() {
    for point in points(10_000_000_000, 1) {
        for row in [point.latency(&CHASE), point.traffic(&CHASE)] {
            crate::testing::assert_keeps(&row, Estimator::Batches);
        }
    }
}

#[test]
fn points_begin_idle_and_grow_with_time() {
    for (left_ns, at_least) in [(300_000_000, 3), (1_100_000_000, 5), (10_000_000_000, 20)] {
        let all = points(left_ns, 1);
        assert!(all[0].load.is_none() && all[1..].iter().all(|p| p.load.is_some() && p.cpus == 1));
        assert!(all.len() >= at_least, "{left_ns}: {}", all.len());
    }
    assert!(points(10_000_000_000, 7).iter().any(|p| p.cpus == 4));
}

#[test]
fn a_chase_beside_a_load_tells_both_and_ends_in_time() {
    let Some((_lock, cpus)) = crate::testing::lock_several() else { return };
    let bytes = 16 << 20;
    let pages = Pages::new(bytes, Backing::Small).unwrap();
    let chain = build(&pages, bytes, 3).unwrap();
    let points = [
        Point::IDLE,
        Point { load: widest("read"), cpus: 1, pause_ns: 0 },
        Point { load: widest("read"), cpus: 1, pause_ns: 20_000 },
    ];
    let buffer = Buffer::new(bytes, Backing::Small, Contents::Random).unwrap();
    let setting =
        Setting { seats: seats(&cpus[..2]), buffers: vec![&buffer], clock: HostClock::MONOTONIC, seed: 1 };
    let loaded = Loaded::new(&setting, chain).unwrap();
    let cells = points.iter().map(|point| PointCell::new(&loaded, point, &CHASE).unwrap());
    let measured = sampled(cells.collect(), 1_500_000_000);
    let tried = |r: &Row| r.pairs.len() as u64 + r.rejected.total();
    assert!(measured.iter().map(tried).sum::<u64>() > 0, "{measured:?}");
    let rate = |pause_ns: i64| {
        let row = measured.iter().find(|r| r.operation == "traffic" && r.int("pause_ns") == Some(pause_ns));
        row.and_then(|r| Cost::of(r, 1.0, 1).value_ns()).map(|ns| 1e9 / ns)
    };
    if let (Some(full), Some(paused)) = (rate(0).filter(|_| tried(&measured[2]) > 0), rate(20_000)) {
        assert!(full > 1.5 * paused, "{full} without and {paused} bytes per second with pauses");
    }
}
