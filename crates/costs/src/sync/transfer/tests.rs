//! Planted placements are found in simulated samples; the loops on the machine say what they did.

use machmeter_data::shape::Matrix;
use machmeter_data::{Dataset, Shape};
use machmeter_engine::cost::{Kind as Question, Pair, Row, Rows};
use machmeter_engine::disturbance::distance::{BATCHES, condense};
use machmeter_engine::disturbance::{Distance, Disturbance};
use machmeter_engine::team::sampler::{TeamSample, TeamVisit};
use machmeter_engine::team::simulated::SimulatedTeam;
use machmeter_loops::sync::transfer::Kind;
use machmeter_stats::random::Random;
use machmeter_sys::affinity;
use machmeter_sys::topology::{Cache, CacheKind, Cpu, CpuSet, Topology};

use super::analyze::{COUPLES_MAX, analyze};
use super::measure::{couples, take};
use super::show::MATRIX_CPUS;

use super::{ASYMMETRY, CLASSES, COUPLES, PART, SAMPLED};
use crate::sync::tests::{value, visit};
use crate::testing::{codes, params, seats};
use machmeter_engine::disturbance::placement::MOVES;

/// One-way latency of each kind where a compare-and-swap takes 1.
const RELATIVE: [f64; 5] = [1.0, 1.05, 2.0, 1.9, 1.6];

/// CPUs 0 and 1 placed by `level_ns(lap)`: both directions by turns, three laps a visit, the second costlier by `skew`.
fn recorded(laps: usize, skew: f64, seed: u64, level_ns: impl Fn(usize) -> f64) -> Rows {
    let mut random = Random::new(seed);
    let mut rows = Rows::in_nanoseconds(Vec::new());
    rows.facts.set(&COUPLES, 1);
    rows.facts.set(&CLASSES, vec![(0, 1, "same cache".to_owned())]);
    for (from, to) in [(0_usize, 1_usize), (1, 0)] {
        for kind in Kind::ALL {
            let mut row =
                Row::new(PART.name, kind.name(), Question::Latency).with("from", from).with("to", to);
            (row.long_turns, row.per_turn) = kind.batch();
            rows.rows.push(row);
        }
    }
    for lap in 0..laps {
        let direction = (lap / 3) % 2;
        let way_ns = level_ns(lap) * if direction == 1 { skew } else { 1.0 };
        let cas_ns = way_ns * (1.0 + 0.03 * random.normal());
        for (i, factor) in RELATIVE.iter().enumerate().take(Kind::ALL.len()) {
            let row = &mut rows.rows[direction * Kind::ALL.len() + i];
            let ns = if i == 0 { cas_ns } else { way_ns * factor * (1.0 + 0.03 * random.normal()) };
            row.pairs.push(Pair {
                at_ns: lap as f64 * 2e6,
                long_ticks: (ns * row.long_turns as f64 * row.per_turn) as u64,
                regime_ns: cas_ns,
                ..Pair::default()
            });
        }
    }
    rows
}

#[test]
fn planted_placements_are_found_with_their_costs_and_shares() {
    // 72 % of the time at 24 ns, 20 % at 105, 8 % at 9.5.
    let rows = recorded(600, 1.0, 3, |lap| match (lap / 12) % 25 {
        0 | 1 => 9.5,
        5..=9 => 105.0,
        _ => 24.0,
    });
    let a = analyze(&params(&[]), &rows, 1);
    let planted = [("near", 9.5, 0.08), ("level 2 of 3", 24.0, 0.72), ("far", 105.0, 0.2)];
    for (placement, level, share) in planted {
        for (kind, factor) in Kind::ALL.iter().zip(RELATIVE) {
            for (from, to) in [(0, 1), (1, 0)] {
                let kind = kind.name();
                let key =
                    format!("memory.core_to_core{{from={from},kind={kind},placement={placement},to={to}}}");
                let found = value(&a, &key);
                assert!((found / (level * factor) - 1.0).abs() < 0.05, "{key}: {found}");
            }
        }
        let key = format!("sync.regime_share{{from=0,placement={placement},to=1}}");
        assert!((value(&a, &key) - share).abs() < 0.02, "{key}");
    }
    // A share of time that a few stays carry may have none.
    let needs = |m: &&machmeter_data::Metric| m.id != "sync.regime_share";
    assert!(a.metrics.iter().filter(needs).all(|m| m.ci.is_some() && m.n >= 6), "every cost has an interval");
    assert_eq!(codes(&a), [MOVES.id]);
    let told = crate::testing::row_texts(&crate::sync::info::INFO, &a);
    let placement = told.iter().find(|t| t.starts_with("line placed level 2 of 3"));
    assert!(placement.is_some_and(|t| t.contains(": 2") && t.ends_with(" %")), "{told:?}");
    let matrices: Vec<&Dataset> = matrices(&a.datasets).map(|(d, _)| d).collect();
    assert_eq!(matrices.len(), 3, "of two CPUs one matrix for each placement: the table has the other kinds");
    for (d, (placement, _, share)) in matrices.iter().zip(planted) {
        let title = &d.title;
        assert!(
            title.contains(&format!(", {}", 100.0 * share)) && title.ends_with(" % of the time"),
            "{title}"
        );
        assert_eq!((&d.params["kind"], &d.params["placement"]), (&"cas".into(), &placement.into()));
    }
    let bytes = serde_json::to_vec(&a.datasets).unwrap().len();
    assert!(bytes < 20_000, "{bytes} bytes of datasets");
}

#[test]
fn keys_do_not_depend_on_which_placement_is_more_frequent() {
    // Three quarters of the time at one placement, a quarter at the other, and the other way round.
    let found = |often_ns: f64, seldom_ns: f64| {
        let rows = recorded(600, 1.0, 3, |lap| if (lap / 12) % 4 == 0 { seldom_ns } else { often_ns });
        let a = analyze(&params(&[]), &rows, 1);
        let of = |m: &machmeter_data::Metric| (m.key(), m.apart_ns.map(|ns| ns.round() as i64));
        let mut keys: Vec<(String, Option<i64>)> = a.metrics.iter().map(of).collect();
        keys.sort();
        (keys, value(&a, "memory.core_to_core{from=0,kind=cas,placement=near,to=1}"))
    };
    let ((a, near_a), (b, near_b)) = (found(24.0, 105.0), found(105.0, 24.0));
    let names = |all: &[(String, Option<i64>)]| all.iter().map(|k| k.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b));
    assert_eq!(a.len(), 2 * (2 * Kind::ALL.len() + 1));
    assert!((near_a / near_b - 1.0).abs() < 0.02, "{near_a} and {near_b}");
    assert!(a.iter().zip(&b).all(|(a, b)| a.1.is_some_and(|ns| (ns - b.1.unwrap_or(0)).abs() < 5)), "{a:?}");
}

fn matrices(datasets: &[Dataset]) -> impl Iterator<Item = (&Dataset, &Matrix)> {
    datasets.iter().filter_map(|d| match &d.shape {
        Shape::Matrix(m) => Some((d, m)),
        _ => None,
    })
}

/// All couples of so many CPUs; each couple's moves begin elsewhere, so that each has its own shares.
fn machine(cpus: usize, laps: usize, level_ns: impl Fn(usize, usize) -> f64) -> Rows {
    let mut all = Rows::in_nanoseconds(Vec::new());
    let mut classes = Vec::new();
    for (low, high) in (0..cpus).flat_map(|low| (low + 1..cpus).map(move |high| (low, high))) {
        let n = classes.len();
        let of = recorded(laps, 1.0, n as u64, |lap| level_ns(n, lap));
        all.rows.extend(of.rows.into_iter().map(|row| {
            let end = |name: &str| if row.int(name) == Some(0) { low } else { high };
            let (from, to) = (end("from"), end("to"));
            row.with("from", from).with("to", to)
        }));
        let class = if (low, high) == (0, 1) { "same core" } else { "same package" };
        classes.push((low, high, class.to_owned()));
    }
    all.facts.set(&COUPLES, classes.len());
    all.facts.set(&CLASSES, classes);
    all
}

#[test]
fn every_kind_has_a_matrix_on_every_level_with_the_median_share() {
    // The second and the third of three couples move: a fifth and two fifths of the time at four times the cost.
    let rows = machine(3, 600, |couple, lap| if (lap / 12) % 10 < 2 * couple { 96.0 } else { 24.0 });
    let a = analyze(&params(&[]), &rows, 1);
    let all: Vec<(&Dataset, &Matrix)> = matrices(&a.datasets).collect();
    assert_eq!(all.len(), 2 * Kind::ALL.len());
    for (i, kind) in Kind::ALL.iter().enumerate() {
        for (placement, share, level, cells) in [
            ("near", "80 % of the time (median of 3 of 3 pairs)", 24.0, 6),
            ("far", "30 % of the time (median of 2 of 3 pairs)", 96.0, 4),
        ] {
            let (d, m) = all[usize::from(placement == "far") * Kind::ALL.len() + i];
            assert_eq!((&d.params["kind"], &d.params["placement"]), (&kind.name().into(), &placement.into()));
            assert!(d.title.ends_with(share), "{}", d.title);
            let found: Vec<f64> = m.values.iter().flatten().flatten().copied().collect();
            assert_eq!(found.len(), cells, "{}", d.title);
            let is_near = |ns: &f64| (ns / (level * RELATIVE[i]) - 1.0).abs() < 0.05;
            assert!(found.iter().all(is_near), "{}: {found:?}", d.title);
        }
    }
    // A time line for each neighborhood: of the couples in one package that which moved first.
    let lines: Vec<String> =
        a.datasets.iter().filter(|d| d.id == "sync.regimes").map(|d| d.title.clone()).collect();
    assert_eq!(lines, ["CPU 0 and 1 over time", "CPU 0 and 2 over time"]);
}

#[test]
fn what_is_cut_off_is_said() {
    let small = analyze(&params(&[]), &machine(4, 24, |_, _| 24.0), 1);
    assert!(!small.datasets.iter().any(|d| d.caption.contains("The first")), "nothing is cut off of 6 pairs");
    let rows = machine(34, 24, |_, _| 24.0);
    let a = analyze(&params(&[]), &rows, 1);
    let (d, m) = matrices(&a.datasets).next().expect("a matrix");
    assert_eq!(m.rows.len(), MATRIX_CPUS);
    assert!(d.caption.contains("The first 32 of 34 CPUs"), "{}", d.caption);
    let told = &a.datasets.iter().find(|d| d.id == "sync.transfer").expect("the table").caption;
    assert!(told.contains("16 of 561 pairs") && told.contains("first 64 pairs have metrics"), "{told}");
    let couples = a.metrics.iter().filter(|m| m.id == "sync.regime_share").count();
    assert_eq!(couples, COUPLES_MAX);
}

#[test]
fn a_machine_that_stands_still_has_one_regime_and_no_warning() {
    for seed in 0..20 {
        let a = analyze(&params(&[]), &recorded(300, 1.0, seed, |_| 24.0), 1);
        assert!(a.warnings.is_empty() && a.findings.is_empty(), "seed {seed}: {:?}", a.warnings);
        assert!(a.metrics.iter().all(|m| m.params["placement"].to_string() == "near"), "seed {seed}");
    }
}

#[test]
fn a_costlier_direction_is_named() {
    let a = analyze(&params(&[]), &recorded(300, 1.4, 5, |_| 60.0), 1);
    assert_eq!(codes(&a), [ASYMMETRY.id]);
    assert!(a.warnings[0].text.contains("from CPU 1 to 0"), "{}", a.warnings[0].text);
    assert_eq!(a.findings[0].evidence.len(), Kind::ALL.len());
}

#[test]
fn couples_that_were_not_reached_are_told_and_null() {
    let mut rows = recorded(60, 1.0, 1, |_| 24.0);
    rows.facts.set(&COUPLES, 6);
    let a = analyze(&params(&[]), &rows, 1);
    assert_eq!(a.warnings[0].code, SAMPLED.id);
    let (_, m) = matrices(&a.datasets).next().expect("a matrix");
    assert_eq!((m.values[0][0], m.values[0][1].is_some()), (None, true));
}

fn batch(ticks: f64, disturbance: Option<Disturbance>) -> TeamSample {
    TeamSample { long_ticks: ticks as u64, disturbance, ..TeamSample::default() }
}

/// Busy neighbors: batches that were interrupted without a switch (the host took the CPU, an interrupt) by any length.
#[test]
fn foreign_load_moves_a_lap_by_less_than_15_percent() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut laps: Vec<f64> = (0..40)
            .filter_map(|_| {
                let batches: Vec<TeamSample> = (0..BATCHES)
                    .map(|_| {
                        let quiet = 4_800.0 * (1.0 + 0.02 * random.normal());
                        match random.below(10) {
                            0 | 1 => batch(0.0, Some(Disturbance::Preempted)),
                            2..=4 => batch(quiet * (1.0 + 30.0 * random.exponential()), None),
                            _ => batch(quiet, None),
                        }
                    })
                    .collect();
                condense(batches.iter()).0.map(|t| t as f64)
            })
            .collect();
        laps.sort_by(f64::total_cmp);
        let middle = laps[laps.len() / 2];
        assert!((middle / 4_800.0 - 1.0).abs() < 0.15, "seed {seed}: {middle}");
    }
    let switched = batch(0.0, Some(Disturbance::Preempted));
    let (none, rejected) = condense([switched, switched, batch(5_000.0, None)].iter());
    assert_eq!((none, rejected.preempted), (None, 2), "one clean batch is no sample");
}

fn topology(cpus: usize) -> Topology {
    let set = |range: std::ops::Range<usize>| range.collect::<CpuSet>();
    let cpu = |cpu: usize| Cpu {
        cpu,
        package: Some(cpu / 8),
        die: None,
        core: Some(cpu / 2),
        node: None,
        siblings: set(cpu / 2 * 2..cpu / 2 * 2 + 2),
        max_hz: None,
        capacity: None,
    };
    let cache = |first: usize| Cache {
        level: 3,
        kind: CacheKind::Unified,
        size_bytes: None,
        line_bytes: None,
        ways: None,
        cpus: set(first..first + 4),
    };
    Topology {
        online: set(0..cpus),
        present: set(0..cpus),
        isolated: CpuSet::default(),
        cpus: (0..cpus).map(cpu).collect(),
        nodes: Vec::new(),
        caches: (0..cpus).step_by(4).map(cache).collect(),
    }
}

#[test]
fn one_couple_of_each_neighborhood_comes_first() {
    let t = topology(16);
    let cpus: Vec<usize> = (0..16).collect();
    for seed in 0..5 {
        let all = couples(&t, &cpus, seed);
        assert_eq!(all.len(), 120);
        let first: Vec<Distance> = all[..4].iter().map(|c| c.distance).collect();
        assert_eq!(first, Distance::ALL);
        for (distance, n) in Distance::ALL.iter().zip([8, 16, 32, 64]) {
            assert_eq!(all.iter().filter(|c| c.distance == *distance).count(), n, "{distance:?}");
        }
    }
    assert_eq!(Distance::shown(&t, 2, 3), Distance::SameCore);
    assert_eq!(Distance::shown(&t, 0, 9), Distance::OtherPackage);
}

/// On this machine: laps of all kinds come back with plausible times, on threads; the words went the right ways.
#[test]
fn two_cpus_exchange_lines_in_every_kind() {
    let Some((_lock, cpus)) = crate::testing::lock_several() else { return };
    let seats = seats(&cpus[..2]);
    // In ns, so that the bounds below hold for any clock; the batch is long enough for it.
    let laps =
        take(&TeamVisit { laps: 50, laps_ns: 2_000_000_000, ..visit(&seats, 3_000_000_000, 1) }).unwrap();
    assert!(!laps.is_empty());
    for (i, kind) in Kind::ALL.iter().enumerate() {
        let (turns, ways) = kind.batch();
        let best = laps.iter().filter_map(|l| l.kinds[i].0).min().map(|t| t as f64 / (turns as f64 * ways));
        let best = best.unwrap_or_else(|| panic!("{}: no clean lap", kind.name()));
        println!("{}: {best:.1} ns", kind.name());
        assert!(best > 1.0 && best < 20_000.0, "{}: {best} ns", kind.name());
    }
}

#[test]
fn a_partner_that_never_comes_costs_the_limit_and_gives_nothing() {
    let _cpus = crate::testing::lock_cpus();
    let cpus = affinity::mask().unwrap().to_vec();
    let (missing, one) = (seats(&[cpus[0], 4_000]), seats(&[cpus[0]; 2]));
    assert!(take(&visit(&missing, 10_000_000, 1)).is_err());
    // Both on one CPU: each turn of the line takes a change of threads, and the limit ends it.
    let begin_ns = machmeter_sys::thread::monotonic_ns();
    let laps = take(&visit(&one, 10_000_000, 1)).unwrap();
    assert!(machmeter_sys::thread::monotonic_ns() - begin_ns < 5_000_000_000);
    assert!(laps.iter().all(|l| l.kinds.iter().all(|(ticks, _)| ticks.is_none())), "{laps:?}");
}

/// Every kind with clocks that only waiting moves: the words go the right ways, lap after lap.
#[test]
fn laps_run_unchanged_on_a_simulated_team() {
    let team = SimulatedTeam::default();
    let seats = seats(&[0, 1]);
    let once = TeamVisit::new(&team, &seats, &team, 0, 2_000_000_000, 1);
    let laps = take(&TeamVisit { laps: 2, ..once }).unwrap();
    assert_eq!(laps.len(), 2);
    for (ticks, rejected) in laps.iter().flat_map(|lap| &lap.kinds) {
        assert!(ticks.is_some() && rejected.total() == 0, "{laps:?}");
    }
}
