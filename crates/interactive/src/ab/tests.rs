//! A/B runs on simulated machines: false verdicts, found changes, equivalence.

use machmeter_stats::random::Random;

use super::*;

/// A machine by what its segments show.
#[derive(Debug, Clone, Copy)]
struct MachineLaw {
    /// Standard deviation of the logarithm of a figure between segments.
    log_sd: f64,
    memory: f64,
    /// Probability of a burst per segment: lateness several times as large.
    bursts: f64,
    /// Growth of the logarithm over the whole run.
    drift: f64,
}

const STEADY: MachineLaw = MachineLaw { log_sd: 0.15, memory: 0.0, bursts: 0.0, drift: 0.0 };
const ROUGH: MachineLaw = MachineLaw { log_sd: 0.15, memory: 0.7, bursts: 0.06, drift: 0.6 };

#[derive(Debug, Clone, Copy, Default)]
struct Effect {
    log: f64,
    misses: f64,
}

/// Misses of a segment and their standard deviation between segments.
const MISSES: f64 = 0.05;
const JOBS: u64 = 180;

/// The series of one cell of `rounds` rounds.
fn cell(
    law: MachineLaw,
    effect: Effect,
    name: usize,
    rounds: usize,
    seed: u64,
    random: &mut Random,
) -> Vec<Series> {
    let figures = [Figure::Mean, Figure::P99, Figure::Misses, Figure::DesiredCpu];
    let mut series: Vec<Series> = figures
        .map(|figure| Series {
            task: format!("task{name}"),
            load: "burn".to_owned(),
            figure,
            rounds: Vec::new(),
        })
        .into();
    let mut state = random.normal();
    for r in 0..rounds {
        let mut arms = [[0.0; 2]; 4];
        for (i, setting) in order(r, seed).into_iter().enumerate() {
            state = law.memory * state + (1.0 - law.memory.powi(2)).sqrt() * random.normal();
            let time = (r as f64 + i as f64 / 4.0) / rounds as f64;
            let burst = if random.unit() < law.bursts { 2.0 * random.exponential() } else { 0.0 };
            let level = law.log_sd * state + law.drift * time + burst;
            let b = setting as f64;
            let own = |random: &mut Random| 0.3 * law.log_sd * random.normal();
            let misses = (MISSES * (level + own(random)).exp() + b * effect.misses).clamp(0.0, 1.0);
            let missed = (0..JOBS).filter(|_| random.unit() < misses).count() as f64 / JOBS as f64;
            let values = [
                13.0 + level + own(random) + b * effect.log,
                15.0 + level + own(random) + b * effect.log,
                missed,
                1.0 - missed / 2.0,
            ];
            for (arm, value) in arms.iter_mut().zip(values) {
                arm[setting] += value / 2.0;
            }
        }
        for (s, arm) in series.iter_mut().zip(arms) {
            s.rounds.push(Round { a: arm[0], b: arm[1], jobs: [2 * JOBS; 2] });
        }
    }
    series
}

/// All cells of a run; every other one has the second law.
fn run(laws: [MachineLaw; 2], effects: &[Effect], rounds: usize, seed: u64) -> Vec<Series> {
    let mut random = Random::new(seed ^ 0xABBA);
    effects
        .iter()
        .enumerate()
        .flat_map(|(i, e)| cell(laws[i % 2], *e, i, rounds, seed, &mut random))
        .collect()
}

/// The whole procedure: stops as soon as it may. What it says then, and after how many rounds.
fn sequential(series: &[Series], planned: usize, delta: f64) -> Judgment {
    for rounds in 1..=planned {
        let so_far: Vec<Series> =
            series.iter().map(|s| Series { rounds: s.rounds[..rounds].to_vec(), ..s.clone() }).collect();
        if may_stop(&so_far, planned, delta) {
            return judge(&so_far, planned, delta);
        }
    }
    judge(series, planned, delta)
}

fn changed(j: &Judgment) -> bool {
    j.rows.iter().any(|r| matches!(r.verdict, Verdict::Better | Verdict::Worse))
}

/// Runs with a change somewhere, of `n`.
fn false_verdicts(laws: [MachineLaw; 2], rounds: usize, n: u64) -> usize {
    let none = [Effect::default(); 6];
    (0..n).filter(|seed| changed(&sequential(&run(laws, &none, rounds, *seed), rounds, 0.1))).count()
}

const MOODY: MachineLaw = MachineLaw { log_sd: 0.4, memory: 0.9, bursts: 0.2, drift: -1.5 };

#[test]
fn no_change_is_found_between_a_setting_and_itself() {
    // 24 figures a run, up to five looks. At a true rate of 5 %, more than 10 of 200 are as likely as not; it is well below.
    let machines = [
        ("steady", [STEADY; 2], 9),
        ("rough", [ROUGH; 2], 9),
        ("moody", [MOODY; 2], 9),
        ("mixed", [STEADY, MOODY], 9),
        ("mixed", [STEADY, MOODY], 4),
    ];
    for (name, laws, rounds) in machines {
        let wrong = false_verdicts(laws, rounds, 200);
        println!("{name}, {rounds} rounds: {wrong} of 200");
        assert!(wrong <= 10, "{name}, {rounds} rounds: {wrong} of 200");
    }
}

/// Share of runs in which row `row` of the first cell has `verdict`, and the mean number of rounds until then.
fn share(
    law: MachineLaw,
    effect: Effect,
    cells: usize,
    rounds: usize,
    n: u64,
    row: usize,
    verdict: Verdict,
) -> (f64, f64) {
    let mut effects = vec![Effect::default(); cells];
    effects[0] = effect;
    let (mut found, mut used) = (0_usize, 0_usize);
    for seed in 0..n {
        let j = sequential(&run([law; 2], &effects, rounds, seed), rounds, 0.1);
        found += usize::from(j.rows[row].verdict == verdict);
        used += j.rounds;
    }
    (found as f64 / n as f64, used as f64 / n as f64)
}

const P99: usize = 1;
const MISSED: usize = 2;

#[test]
fn a_change_is_found_within_five_minutes() {
    // Segments of 3 s: 100 of them, 25 rounds of one cell or 12 of two.
    let slower = Effect { log: 1.3_f64.ln(), misses: 0.0 };
    let missing = Effect { log: 0.0, misses: 0.03 };
    for (cells, rounds) in [(1, 25), (2, 12)] {
        for (effect, row) in [(slower, P99), (missing, MISSED)] {
            let (found, used) = share(STEADY, effect, cells, rounds, 120, row, Verdict::Worse);
            println!("{cells} cells, {effect:?}: {found} in {used} rounds");
            assert!(found >= 0.9, "{cells} cells, {effect:?}: {found}");
        }
    }
}

#[test]
fn equivalence_is_declared_only_inside_of_delta() {
    // At delta itself, where the error is largest.
    let (at_delta, _) =
        share(STEADY, Effect { log: 0.1_f64.ln_1p(), misses: 0.0 }, 1, 60, 200, P99, Verdict::Equivalent);
    assert!(at_delta <= 0.05 + 0.03, "{at_delta}");
    let (points, _) =
        share(STEADY, Effect { log: 0.0, misses: 0.01 }, 1, 60, 200, MISSED, Verdict::Equivalent);
    assert!(points <= 0.05 + 0.03, "{points}");
    let (outside, _) =
        share(STEADY, Effect { log: 0.2_f64.ln_1p(), misses: 0.0 }, 1, 60, 200, P99, Verdict::Equivalent);
    assert_eq!(outside, 0.0);
    let (same, used) = share(STEADY, Effect::default(), 1, 100, 60, P99, Verdict::Equivalent);
    println!("equivalent: at delta {at_delta} and {points}, without effect {same} in {used} rounds");
    assert!(same >= 0.9, "{same}");
}

#[test]
fn intervals_hold_the_truth_and_detectable_changes_are_detected() {
    let truth = 0.2;
    let effect = Effect { log: truth, misses: 0.0 };
    let mut inside = 0;
    let mut detectable = 0.0;
    for seed in 0..200 {
        let row = &sequential(&run([ROUGH; 2], &[effect; 2], 12, seed), 12, 0.1).rows[P99];
        inside += usize::from(row.interval.unwrap().contains(truth));
        detectable += row.detectable.unwrap() / 200.0;
    }
    assert!(inside >= 185, "{inside} of 200");
    let (found, _) =
        share(ROUGH, Effect { log: 1.5 * detectable, misses: 0.0 }, 2, 12, 100, P99, Verdict::Worse);
    assert!(found >= 0.85, "{found} at 1.5 x {detectable}");
}

#[test]
fn shares_that_never_vary_are_bounded_by_how_often_they_were_seen() {
    let of = |jobs: u64, b: f64| {
        let rounds = vec![Round { a: 0.0, b, jobs: [jobs; 2] }; 10];
        let s = Series { task: "video".to_owned(), load: "none".to_owned(), figure: Figure::Misses, rounds };
        judge(&[s], 10, 0.1).rows.remove(0)
    };
    assert_eq!(of(1000, 0.0).verdict, Verdict::Equivalent);
    let few = of(3, 0.0);
    assert_eq!(few.verdict, Verdict::Undecided, "30 jobs without a miss say little about 1 %");
    assert!(few.interval.unwrap().high > 0.03);
    assert_eq!(of(1000, 1.0).verdict, Verdict::Worse);
}

#[test]
fn too_few_rounds_give_no_verdict_and_no_interval() {
    let j = judge(&run([STEADY; 2], &[Effect { log: 3.0, misses: 0.5 }], 3, 1), 3, 0.1);
    assert!(j.rows.iter().all(|r| r.verdict == Verdict::Undecided && r.interval.is_none()));
    let nothing = judge(&[], 10, 0.1);
    assert!(nothing.rows.is_empty() && !may_stop(&[], 10, 0.1));
}

#[test]
#[ignore = "prints the table of the documentation"]
fn survey() {
    for (cells, rounds) in [(1, 25), (2, 12), (3, 8), (4, 6), (6, 4), (6, 12)] {
        let slower = Effect { log: 1.3_f64.ln(), misses: 0.0 };
        let missing = Effect { log: 0.0, misses: 0.03 };
        for (effect, row) in [(slower, P99), (missing, MISSED)] {
            let (found, used) = share(STEADY, effect, cells, rounds, 300, row, Verdict::Worse);
            println!("{cells} cells, {rounds} rounds, {effect:?}: {found:.2} in {used:.1} rounds");
        }
    }
    for (name, laws) in
        [("steady", [STEADY; 2]), ("rough", [ROUGH; 2]), ("moody", [MOODY; 2]), ("mixed", [STEADY, MOODY])]
    {
        for rounds in [4, 6, 12, 25] {
            println!("{name}, {rounds} rounds: {} of 1000 A/A", false_verdicts(laws, rounds, 1000));
        }
    }
}
