//! The table of operations on planted parameters: closed forms, laws, and what errors of parameters become.

use machmeter_model::laws::table::Found;
use machmeter_model::laws::{Term, fit_shared};
use machmeter_simulate::machine::{Errors, OfLink};
use machmeter_simulate::table::{OPERATIONS, analyze, points, sizes};
use machmeter_simulate::{Dialect, Line, PER_PS, Params, Part};

/// ps.
const O: u64 = 100_000;
const G: u64 = 200_000;
const L: u64 = 500_000;
/// ps per byte.
const PER_BYTE: u64 = 500;

fn of_link() -> OfLink {
    let cpu = Line { first_ps: O, per_byte: 0 };
    let gap = Line { first_ps: G, per_byte: PER_BYTE * PER_PS };
    let mut relative = [0.0; machmeter_simulate::PARTS];
    relative[Part::Latency as usize] = 0.1;
    OfLink {
        name: "planted".to_owned(),
        params: Params::simple(cpu, gap, L, u64::MAX, Dialect::Machmeter),
        errors: vec![Errors { range: 0, relative }],
        assumptions: Vec::new(),
    }
}

fn table(names: &[&str], ranks: &[u32], range: (u64, u64)) -> Vec<Found> {
    let of = of_link();
    let place = |name: &&str| OPERATIONS.iter().position(|o| o.name == *name).unwrap();
    let chosen: Vec<usize> = names.iter().map(place).collect();
    let all = points(&chosen, ranks, &sizes(&of.params, range));
    let done: Vec<_> = all.into_iter().map(|p| (p, p.simulate(&of.params, &|| false).unwrap())).collect();
    analyze(&of, &done)
}

fn ladder(last: u32) -> Vec<u32> {
    (1..=last).map(|k| 1 << k).collect()
}

/// Coefficients of a law of one segment, in ns.
fn coefficients(found: &Found) -> Vec<(Term, f64)> {
    let [law] = &found.laws.as_ref().unwrap()[..] else { panic!("{:?}", found.laws) };
    let [segment] = &law.segments[..] else { panic!("{law:?}") };
    segment.chosen().terms.iter().map(|c| (c.term, 1e3 * c.value)).collect()
}

fn near(found: &[(Term, f64)], planted: &[(Term, f64)]) {
    assert_eq!(found.len(), planted.len(), "{found:?}, planted {planted:?}");
    for (f, p) in found.iter().zip(planted) {
        assert!(f.0 == p.0 && (f.1 / p.1 - 1.0).abs() < 1e-3, "{found:?}, planted {planted:?}");
    }
}

#[test]
fn isolated_times_are_closed_forms_and_a_broadcast_takes_2o_and_l_per_doubling() {
    let found = table(&["bcast", "barrier", "reduce"], &ladder(10), (1, 1 << 16));
    for f in &found {
        let name = f.name;
        for ((p, d), at) in &f.isolated {
            let further = PER_BYTE * d.saturating_sub(1);
            let planted = u64::from(p.ilog2()) * (2 * O + L + further);
            assert_eq!((1e3 * at.ns).round() as u64, planted, "{name}, {p} ranks, {d} B");
        }
        let points: Vec<_> = f.isolated.iter().map(|((p, d), at)| (*p, *d, at.ns)).collect();
        let laws = fit_shared(&points, &[]).unwrap();
        let terms = laws[0].segments[0].chosen();
        let log = terms.terms.iter().find(|c| c.term == Term::LogP).unwrap();
        let per_doubling = (2 * O + L) as f64 / 1e3 - if name == "barrier" { 0.0 } else { 0.5 };
        assert!((log.value / per_doubling - 1.0).abs() < 1e-9, "{name}: {}", terms.text());
    }
}

#[test]
fn laws_of_calls_one_after_the_other_have_the_terms_of_their_algorithms() {
    let names =
        ["send", "pingpong", "alltoall", "gather", "allreduce", "bcast", "barrier", "scatter", "scan"];
    let found = table(&names, &ladder(7), (1, 1 << 20));
    let of = |name: &str| {
        let found = found.iter().find(|f| f.name == name);
        coefficients(found.unwrap())
    };
    let (byte, way) = (0.5, (2 * O + L) as f64 / 1e3);
    let line = |one: f64| one - byte;
    let gap = G as f64 / 1e3;
    near(&of("send"), &[(Term::One, line(gap)), (Term::D, byte)]);
    near(&of("pingpong"), &[(Term::One, 2.0 * line(way)), (Term::D, 2.0 * byte)]);
    near(&of("allreduce"), &[(Term::LogP, line(way)), (Term::DLogP, byte)]);
    near(&of("barrier"), &[(Term::LogP, way)]);
    near(&of("bcast"), &[(Term::LogP, line(gap)), (Term::DLogP, byte)]);
    for rooted in ["scatter", "gather"] {
        near(&of(rooted), &[(Term::PMinusOne, line(gap)), (Term::PMinusOneD, byte)]);
    }
    near(&of("scan"), &[(Term::One, line(gap)), (Term::D, byte)]);
    // Its messages leave together, so that the interface sets the pace; each round begins when the last has arrived.
    let all = of("alltoall");
    let by_others = all.iter().find(|c| c.0 == Term::PMinusOneD || c.0 == Term::PD).unwrap();
    assert!((by_others.1 / byte - 1.0).abs() < 0.02, "{all:?}");
}

#[test]
fn intervals_are_errors_of_parameters_however_many_points_there_are() {
    let [barrier] = &table(&["barrier"], &ladder(8), (8, 8))[..] else { panic!("one operation") };
    for ((p, _), at) in &barrier.isolated {
        let half = 1.96 * 0.1 * f64::from(p.ilog2()) * L as f64 / 1e3;
        assert!(((at.high_ns - at.ns) / half - 1.0).abs() < 1e-3, "{p} ranks: {at:?}, planted {half}");
    }
    let law = &barrier.laws.as_ref().unwrap()[0].segments[0];
    let log = &law.chosen().terms[0];
    let half = 1e3 * (log.interval.high - log.value);
    assert!((half / (1.96 * 0.1 * L as f64 / 1e3) - 1.0).abs() < 0.01, "{half} ns of {log:?}");
    assert!(law.q.as_ref().is_err_and(|why| why.to_string().contains("simulated")), "{:?}", law.q);
}
