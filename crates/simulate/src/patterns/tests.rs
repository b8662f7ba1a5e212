//! Closed forms, exact to the picosecond, and counts.

use crate::noise::Quiet;
use crate::{Dialect, Finished, Line, Params, Program as _, run};

use super::{PATTERNS, Shape, Stepped, doublings, find};

const O: u64 = 1_500_017;
const G: u64 = 1_000_003;
const L: u64 = 2_500_999;
/// Per further byte, 1/1024 ps.
const PER_BYTE: u64 = 40 * 1024 + 13;

fn params(dialect: Dialect) -> Params {
    let cpu = Line { first_ps: O, per_byte: 0 };
    Params::simple(cpu, Line { first_ps: G, per_byte: PER_BYTE }, L, 65_535, dialect)
}

fn simulate(name: &str, shape: Shape, params: &Params) -> Finished<u64> {
    let pattern = (find(name).unwrap().make)(shape);
    let mut program = Stepped::new(pattern.as_ref(), shape.ranks, 1, 0);
    let done = run::<u64, _, _>(&mut program, params, &mut Quiet, &|| false).unwrap();
    assert_eq!(done.events, 3 * pattern.messages(), "{name}");
    done
}

fn time(name: &str, ranks: u32, bytes: u64, params: &Params) -> u64 {
    simulate(name, Shape::of(ranks, bytes), params).last().1
}

/// Name, ranks, bytes, parameters, time.
type Form<'a> = (&'static str, &'a [u32], u64, &'a Params, fn(u32) -> u64);

/// With 2o + L a step, and the bytes once on its link. Of recursive doubling the reference with its unstable order deadlocks at 1,024 ranks.
#[test]
fn times_of_patterns_are_closed_forms() {
    const STEP: u64 = 2 * O + L;
    const WIRE: u64 = 999 * PER_BYTE / 1024;
    let fast = params(Dialect::Machmeter);
    let slow = fast.map(|s| s.gap.first_ps = 3 * O);
    let plain = params(Dialect::LogGopSim);
    let powers: Vec<u32> = (1..=20).map(|k| 1 << k).collect();
    let forms: [Form<'_>; 8] = [
        ("binomial", &powers, 1, &fast, |p| u64::from(p.ilog2()) * STEP),
        ("binomial", &powers, 1, &plain, |p| u64::from(p.ilog2()) * STEP),
        ("binomial", &powers[..10], 1000, &fast, |p| u64::from(p.ilog2()) * (STEP + WIRE)),
        ("dissemination", &[2, 3, 8, 50, 1000, 4096], 1, &fast, |p| u64::from(doublings(p)) * STEP),
        ("ring", &[2, 3, 17, 100], 1, &fast, |p| (u64::from(p) - 1) * STEP),
        ("scatter", &[2, 3, 17, 1000], 1, &fast, |p| (u64::from(p) - 2) * O + STEP),
        ("scatter", &[2, 3, 17, 1000], 1, &slow, |p| (u64::from(p) - 2) * 3 * O + STEP),
        ("allreduce", &[2, 16, 1024], 1, &fast, |p| u64::from(p.ilog2()) * STEP),
    ];
    for (name, all, bytes, params, planted) in forms {
        for ranks in all {
            let time = time(name, *ranks, bytes, params);
            assert_eq!(time, planted(*ranks), "{name} of {ranks}, {bytes} B, {:?}", params.dialect);
        }
    }
    // With 3, rank 1 handles both messages while it waits, sends to 2 from 3o + L on, and to 0 after that.
    assert_eq!(time("allreduce", 3, 1, &fast), 6 * O + 2 * L);
}

#[test]
fn a_chain_forwards_segments_while_others_come() {
    // A middle rank sends a segment, then handles the next one: 2 o per segment, as the last one does not wait longer.
    let params =
        params(Dialect::Machmeter).map(|s| (s.gap, s.way_per_byte) = (Line { first_ps: 0, per_byte: 0 }, 0));
    let one = time("pipelined", 5, 1, &params);
    assert_eq!(one, 4 * (2 * O + L));
    let many = time("pipelined", 5, 4096 * 7, &params);
    assert!(many < 7 * one / 2, "{many} against {one}");
}

/// A rendezvous takes a handshake: request and answer, then the bytes.
#[test]
fn a_large_message_takes_its_handshake() {
    let bytes = 100_000;
    let wire = (bytes - 1) * PER_BYTE / 1024;
    let one = simulate("scatter", Shape::of(2, bytes), &params(Dialect::Machmeter));
    assert_eq!(one.ends[1], O + 3 * L + wire + O);
    assert_eq!(one.ends[0], O + 2 * L + wire, "the sender is done when its bytes are out");
}

#[test]
fn all_patterns_end_at_any_number_of_ranks() {
    for info in PATTERNS {
        assert!(info.description.len() > 20);
        for ranks in [2, 3, 4, 7, 12, 30, 64] {
            for bytes in [0, 1, 8, 100_000] {
                for dialect in [Dialect::Machmeter, Dialect::LogGopSim] {
                    let done = simulate(info.name, Shape::of(ranks, bytes), &params(dialect));
                    assert_eq!(done.ends.len(), ranks as usize);
                }
            }
        }
    }
    let names: Vec<&str> = PATTERNS.iter().map(|p| p.name).collect();
    assert!(names.is_sorted());
}

#[test]
fn rounds_repeat_a_pattern_with_its_calculation() {
    let pattern = (find("barrier").unwrap().make)(Shape::of(8, 1));
    let mut program = Stepped::new(pattern.as_ref(), 8, 5, 77);
    let params = params(Dialect::Machmeter);
    for _ in 0..2 {
        let done = run::<u64, _, _>(&mut program, &params, &mut Quiet, &|| false).unwrap();
        assert_eq!(done.last().1, 5 * (77 + 3 * (2 * O + L)));
        assert_eq!(done.events, 5 * (8 + 3 * pattern.messages()));
    }
    assert_eq!(program.operations(), 5 * 8 * 7);
}
