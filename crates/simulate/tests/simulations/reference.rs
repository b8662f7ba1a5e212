//! Results equal to the reference simulator's, and sensitivities equal to finite differences.

use machmeter_simulate::goal::{Schedule, read, write_binary, write_text};
use machmeter_simulate::{Dialect, Params, Part, Protocol, Time as _, Traced};

use crate::quiet;
use crate::schedules::{Costs, gaps_ns, hash, schedule};

const FIXTURES: &str = include_str!("../../../../fixtures/simulate/loggopsim.csv");

fn ends(seed: u64, params: &Params) -> Vec<u64> {
    let goal = schedule(seed);
    let done = quiet::<u64>(&mut Schedule::new(&goal), params);
    assert_eq!(done.events, goal.operations() + goal.messages());
    done.ends
}

/// The hash is of the ends of all ranks.
#[test]
fn all_ranks_end_when_the_reference_says() {
    let mut schedules = 0;
    for line in FIXTURES.lines().filter(|l| !l.starts_with('#')) {
        let (seed, expected) = line.split_once(',').unwrap();
        let seed = seed.parse().unwrap();
        let found = hash(&ends(seed, &Costs::of_seed(seed).params(Dialect::LogGopSim)));
        assert_eq!(format!("{found:016x}"), expected, "seed {seed}");
        schedules += 1;
    }
    assert!(schedules >= 100);
    assert!(gaps_ns().is_sorted(), "those of the comparisons with noise");
}

#[test]
fn random_schedules_survive_text_and_binary() {
    for seed in 1..=100 {
        let goal = schedule(seed);
        let (mut first, mut text, mut second) = (Vec::new(), Vec::new(), Vec::new());
        write_binary(&goal, &mut first).unwrap();
        let from_binary = read(&first).unwrap();
        write_text(&from_binary, &mut text).unwrap();
        let from_text = read(&text).unwrap();
        assert_eq!(from_text, goal);
        write_binary(&from_text, &mut second).unwrap();
        assert_eq!(first, second);
    }
}

/// Time with its gradient is the plain time, its parts add up to it, and a unit more of each parameter changes it by the
/// count, where no other path overtakes: costs differ so little that none does but where paths tie.
#[test]
fn sensitivities_are_finite_differences() {
    let (mut compared, mut ties) = (0, 0);
    for seed in 1001..=1200 {
        let base = Costs::of_seed(seed).params(Dialect::Machmeter);
        // Costs in odd ps, so that different sums differ.
        let base = base.map(|s| {
            s.send.first_ps += 104_729;
            s.receive.first_ps = s.send.first_ps;
            s.latency_ps += 1_299_709;
            s.gap.first_ps += 15_485;
            s.protocol = match s.protocol {
                Protocol::Eager => s.protocol,
                Protocol::Rendezvous { .. } => Protocol::Rendezvous { handshake_ps: s.latency_ps },
            };
        });
        let goal = schedule(seed);
        let mut program = Schedule::new(&goal);
        let traced = quiet::<Traced>(&mut program, &base);
        let plain = quiet::<u64>(&mut program, &base);
        let (rank, end) = traced.last();
        assert_eq!(plain.last(), (rank, end.ps()));
        assert!(traced.ends.iter().zip(&plain.ends).all(|(t, p)| t.ps() == *p));
        assert_eq!(end.spent_ps.iter().sum::<i64>(), end.ps() as i64, "seed {seed}");
        for part in [Part::Overhead, Part::Latency, Part::Gap, Part::GapBytes] {
            let changed = |up: bool| {
                let shift = |x: u64, by: u64| if up { x + by } else { x.saturating_sub(by) };
                base.map(|s| match part {
                    Part::Overhead => {
                        s.send.first_ps = shift(s.send.first_ps, 1);
                        s.receive.first_ps = shift(s.receive.first_ps, 1);
                    }
                    Part::Latency => {
                        s.latency_ps = shift(s.latency_ps, 1);
                        if let Protocol::Rendezvous { handshake_ps } = &mut s.protocol {
                            *handshake_ps = shift(*handshake_ps, 1);
                        }
                    }
                    Part::Gap => s.gap.first_ps = shift(s.gap.first_ps, 1),
                    _ => {
                        s.gap.per_byte = shift(s.gap.per_byte, 1024);
                        s.way_per_byte = s.gap.per_byte;
                    }
                })
            };
            if part == Part::GapBytes && base.segments()[0].gap.per_byte == 0 {
                continue;
            }
            let time = |params: &Params| quiet::<u64>(&mut program.clone(), params).last().1 as i64;
            let (up, down) = (time(&changed(true)), time(&changed(false)));
            let (above, below) = (up - end.ps() as i64, end.ps() as i64 - down);
            if above == below {
                assert_eq!(above, end.count(part), "seed {seed}, {part:?}");
                compared += 1;
            } else {
                ties += 1;
            }
        }
    }
    assert!(compared > 600 && ties * 20 < compared, "{compared} compared, {ties} at ties");
}
