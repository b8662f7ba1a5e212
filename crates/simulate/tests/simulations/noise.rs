//! Noise whose cost is known, and runs that are the same wherever they are computed.

use std::sync::Arc;

use machmeter_simulate::goal::Schedule;
use machmeter_simulate::montecarlo::{Share, What, mean_of_runs};
use machmeter_simulate::noise::{Machine, Noise, OnMachines, Starts, Trace};
use machmeter_simulate::patterns::{Shape, Stepped, find};
use machmeter_simulate::{Dialect, Line, Params, run};
use machmeter_stats::random::Random;

use crate::schedules::{Costs, gaps_ns, hash, schedule};

const STEPS: u32 = 4;
const STEP_PS: u64 = 1_000_000;
const LOST_PS: u64 = 50_000;

/// Messages that cost nothing: a barrier waits for the last rank alone.
fn free_messages() -> Params {
    Params::simple(Line::default(), Line::default(), 0, u64::MAX, Dialect::Machmeter)
}

/// Takes `LOST_PS` from each calculation with a probability.
struct Lottery {
    random: Random,
    probability: f64,
}

impl Noise for Lottery {
    fn stolen_ps(&mut self, _: u32, _: u8, _: u64, work_ps: u64) -> u64 {
        if work_ps > 0 && self.random.unit() < self.probability { LOST_PS } else { 0 }
    }
}

/// P ranks that lose D with probability q per step cost D (1 - (1 - q)^P) per step.
#[test]
fn the_slowest_rank_of_each_step_counts() {
    let params = free_messages();
    for (ranks, probability) in [(16, 0.02), (64, 0.01), (5, 0.3)] {
        let pattern = (find("barrier").unwrap().make)(Shape::of(ranks, 1));
        let mut program = Stepped::new(pattern.as_ref(), ranks, STEPS, STEP_PS);
        let lost = LOST_PS as f64 * (1.0 - (1.0f64 - probability).powi(ranks as i32));
        let expected_ns = f64::from(STEPS) * (STEP_PS as f64 + lost) / 1000.0;
        let mut held = 0;
        for seed in 0..100u64 {
            let times: Vec<u64> = (0..60)
                .map(|number| {
                    let mut noise = Lottery { random: Random::new(seed * 1000 + number), probability };
                    run::<u64, _, _>(&mut program, &params, &mut noise, &|| false).unwrap().last().1
                })
                .collect();
            let interval = mean_of_runs(&times, 0).unwrap().interval.unwrap();
            held += u32::from(interval.low <= expected_ns && expected_ns <= interval.high);
        }
        assert!(held >= 90, "{held} of 100 intervals hold {expected_ns} at {ranks} ranks");
    }
}

/// The end of so many rounds of a calculation of `STEP_PS` and a barrier.
fn barriers(rounds: u32, ranks: u32, noise: (&Arc<Machine>, Starts)) -> u64 {
    let info = find("barrier").unwrap();
    let what = What::Pattern { info, shape: Shape::of(2, 1), rounds, calculation_ps: STEP_PS };
    what.simulate(ranks, &free_messages(), Some(noise), &|| false).unwrap()
}

/// The same by gaps at equal distances, of which each rank is somewhere: the calculation is short beside their distance.
#[test]
fn gaps_at_equal_distances_hit_with_their_share() {
    let (period_ps, lost_ps) = (100_000_000, 10_000);
    let machine = Arc::new(Machine::periodic(period_ps, lost_ps).unwrap());
    for ranks in [8, 64, 256] {
        let time = |number| barriers(1, ranks, (&machine, Starts::Apart(number))) - STEP_PS;
        let times: Vec<u64> = (0..400).map(time).collect();
        // A gap that is under way at the start takes its rest: at most another lost/period of the hits.
        let probability = STEP_PS as f64 / period_ps as f64;
        let expected_ns = lost_ps as f64 / 1000.0 * (1.0 - (1.0 - probability).powi(ranks as i32));
        let found = mean_of_runs(&times, 0).unwrap();
        let interval = found.interval.as_ref().unwrap();
        let slack = 0.01 * expected_ns;
        assert!(
            interval.low - slack <= expected_ns && expected_ns <= interval.high + slack,
            "{found:?} at {ranks} ranks, expected {expected_ns}"
        );
    }
}

#[test]
fn coincident_noise_costs_the_same_at_any_number_of_ranks() {
    let machine = Arc::new(Machine::random(3_000_000, 400_000, true).unwrap());
    for seed in 0..10 {
        let time = |ranks| barriers(20, ranks, (&machine, Starts::Together(seed)));
        let one = time(2);
        assert!(one > 20 * STEP_PS);
        assert!([3, 16, 100, 1024].map(time).iter().all(|t| *t == one));
        assert!(barriers(20, 1024, (&machine, Starts::Apart(seed))) > one);
    }
}

#[test]
fn shares_of_runs_are_the_runs() {
    for (all, of) in [(10, 3), (1, 4), (7, 7), (100, 1)] {
        let mut runs: Vec<u64> = (1..=of).flat_map(|part| Share { part, of }.runs(all)).collect();
        runs.sort_unstable();
        assert_eq!(runs, (0..all).collect::<Vec<u64>>());
    }
    for bad in ["4/3", "0/3", "1", "a/b", "1/0", "-1/3", "1/3/5"] {
        assert!(bad.parse::<Share>().is_err(), "{bad}");
    }
    assert_eq!("2/3".parse(), Ok(Share { part: 2, of: 3 }));
}

/// Rank i begins (500,000 + 1,000,003 i) ns after the start of the gaps, or all 500,000 ns. Gaps go on beyond the end of any schedule.
#[test]
fn noise_with_fixed_starts_is_that_of_the_reference() {
    let mut compared = 0;
    for line in
        include_str!("../../../../fixtures/simulate/noise.csv").lines().filter(|l| !l.starts_with('#'))
    {
        let fields: Vec<&str> = line.split(',').collect();
        let seed = fields[0].parse().unwrap();
        let step = if fields[1] == "apart" { 1_000_003_000 } else { 0 };
        let goal = schedule(seed);
        let gaps = gaps_ns().into_iter().map(|(start, duration)| (start * 1000, duration * 1000)).collect();
        let trace = Trace::new(gaps, 300_000_000_000).unwrap();
        let machine = Arc::new(Machine { cpus: vec![trace] });
        let mut noise =
            OnMachines::new(machine, goal.ranks(), Starts::Steps(500_000_000, step), Dialect::LogGopSim);
        let params = Costs::of_seed(seed).params(Dialect::LogGopSim);
        let done = run::<u64, _, _>(&mut Schedule::new(&goal), &params, &mut noise, &|| false).unwrap();
        assert_eq!(format!("{:016x}", hash(&done.ends)), fields[2], "seed {seed}");
        compared += 1;
    }
    assert!(compared >= 3);
}
