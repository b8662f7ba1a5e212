//! From Rayleigh lines to combs: fundamental search, removal, next comb.

use super::fold::{find_tooth, polish, thin};
use super::rayleigh::{climb, harmonic_power};
use super::scan::{Grid, ln_gamma_tail};
use super::{Log, check_band};
use crate::error::StatsError;

/// Largest chance that a log without rhythm yields any comb.
pub const FALSE_ALARM: f64 = 5e-4;
/// Numbers of harmonics summed by the search: few find broad teeth, many narrow ones. Powers of two need no division.
const HARMONIC_SUMS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Rounds of finding and removing; more than anyone reads.
const MAX_ROUNDS: usize = 12;
/// Fewest events beyond the background that make a comb.
const MIN_EVENTS: f64 = 5.0;

/// A periodic source among the events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comb {
    pub fundamental_hz: f64,
    /// Probability that a log without rhythm shows as much anywhere in the band (all trials counted).
    pub p: f64,
    /// Standard deviation of the event times about their cycles, in seconds.
    pub jitter_s: f64,
    /// Phase in cycles, in `[0, 1)`, at time zero of the caller's clock: events are due at
    /// `(phase + k) / fundamental_hz`.
    pub phase: f64,
}

/// Finds the periodic sources with fundamentals in `fmin_hz..=fmax_hz`, strongest evidence first.
///
/// Walks from the best sum over harmonics to the lowest frequency whose harmonics are all there, refines it on the exact times,
/// takes its events out by weight and starts again. A comb needs three cycles within the log; events that two share count for the
/// stronger. Logs without rhythm give none, all but [`FALSE_ALARM`] of the time. About a second for 10^5 events in 10 s.
/// Errors: fewer than 5 events, non-finite times, all at one time, or an empty band.
pub fn comb_search(times_s: &[f64], fmin_hz: f64, fmax_hz: f64) -> Result<Vec<Comb>, StatsError> {
    check_band(fmin_hz, fmax_hz)?;
    let log = Log::new(times_s)?;
    let mut weights = vec![1.0; log.times_s.len()];
    let mut combs: Vec<Comb> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let grid = Grid::new(&log, &weights, 2.0 * fmax_hz);
        // If a sum over harmonics does not stand up to the exact test, a plain line still may.
        let found = [&HARMONIC_SUMS[..], &HARMONIC_SUMS[..1]].iter().find_map(|sums| {
            let line = best_line(&grid, fmin_hz, fmax_hz, sums)?;
            let freq_hz = refine(&log, &weights, &grid, line.freq_hz, line.harmonics);
            let freq_hz = fundamental(&grid, freq_hz, line.harmonics)?;
            describe(&log, &mut weights, freq_hz, &line, fmax_hz)
        });
        let Some(comb) = found else { break };
        // Each cycle may hold several events: another tooth of a comb already found is none of its own.
        if !combs.iter().any(|c| (c.fundamental_hz - comb.fundamental_hz).abs() < 0.5 / log.span_s) {
            combs.push(comb);
        }
    }
    combs.retain(|c| (fmin_hz..=fmax_hz).contains(&c.fundamental_hz));
    Ok(combs)
}

/// The most significant sum over harmonics.
struct Line {
    freq_hz: f64,
    harmonics: usize,
    p: f64,
}

fn best_line(grid: &Grid, fmin_hz: f64, fmax_hz: f64, sums: &[usize]) -> Option<Line> {
    let lowest_hz = fmin_hz.max(grid.lowest_hz());
    let mut best: Option<(f64, f64, usize)> = None;
    let mut trials = 0_usize;
    for &harmonics in sums {
        // The grid of the top harmonic: its neighbors are one step apart, those of the fundamental closer.
        let first = (lowest_hz * harmonics as f64 / grid.step_hz).ceil() as usize;
        let last =
            ((fmax_hz * harmonics as f64 / grid.step_hz) as usize).min(grid.power.len().saturating_sub(1));
        let mut highest = (0.0, 0);
        let (shift, half) = (harmonics.trailing_zeros(), harmonics / 2);
        for top in first..=last {
            let sum: f64 = (1..=harmonics).map(|h| grid.power[(top * h + half) >> shift]).sum();
            if sum > highest.0 {
                highest = (sum, top);
            }
        }
        trials += (last + 1).saturating_sub(first);
        let ln_p = ln_gamma_tail((harmonics * grid.segments) as f64, highest.0);
        if highest.1 > 0 && best.is_none_or(|b| ln_p < b.0) {
            best = Some((ln_p, highest.1 as f64 * grid.step_hz / harmonics as f64, harmonics));
        }
    }
    let (ln_p, freq_hz, harmonics) = best?;
    // Both searches count, whichever finds.
    trials += if sums.len() == 1 { trials } else { 0 };
    let p = (ln_p + (trials as f64).ln()).exp().clamp(f64::MIN_POSITIVE, 1.0);
    (p <= FALSE_ALARM).then_some(Line { freq_hz, harmonics, p })
}

/// Climbs on the exact times over ever longer coherent stretches, each step starting well inside the main lobe of the next.
fn refine(log: &Log, weights: &[f64], grid: &Grid, freq_hz: f64, harmonics: usize) -> f64 {
    let step = |freq_hz: f64, segments: usize| {
        let reach = 0.3 * segments as f64 / (log.span_s * harmonics as f64);
        climb(freq_hz, reach, |f| harmonic_power(&log.times_s, weights, log.span_s, segments, f, harmonics))
    };
    let halved = |segments: &usize| (*segments > 1).then(|| segments.div_ceil(2));
    std::iter::successors(Some(grid.segments), halved).fold(freq_hz, step)
}

/// How strict a test of missing harmonics is, as a natural logarithm of its chance level.
const DESCEND_LN_P: f64 = -11.5;
const KEEP_LN_P: f64 = -6.9;
/// Least power of the harmonics in between, relative to the others: one tooth gives 1, two combs an octave apart 0.2.
const SHARE: f64 = 0.3;

/// The lowest frequency of which `freq_hz` is a multiple and whose harmonics are all present.
///
/// Down where harmonics that are not multiples of `q` are there, too; up where they are not.
fn fundamental(grid: &Grid, mut freq_hz: f64, mut harmonics: usize) -> Option<f64> {
    for q in [2, 3, 5, 7] {
        while harmonics >= q && !between_present(grid, freq_hz, q, harmonics, KEEP_LN_P, false) {
            freq_hz *= q as f64;
            harmonics /= q;
        }
    }
    let lowest_hz = grid.lowest_hz();
    let mut q = 2;
    while freq_hz / q as f64 >= lowest_hz {
        if is_prime(q) && between_present(grid, freq_hz / q as f64, q, harmonics * q, DESCEND_LN_P, true) {
            freq_hz /= q as f64;
            harmonics *= q;
        } else {
            q += 1;
        }
    }
    freq_hz.is_finite().then_some(freq_hz)
}

/// Whether harmonics up to `last` that are not multiples of `q` carry power like those that are; with `all`, as regularly.
fn between_present(grid: &Grid, freq_hz: f64, q: usize, last: usize, ln_p: f64, all: bool) -> bool {
    let background = grid.segments as f64;
    let (mut on, mut between) = (Vec::new(), Vec::new());
    for h in 1..=last {
        let Some(power) = grid.at(h as f64 * freq_hz) else { break };
        if h % q == 0 { on.push(power) } else { between.push(power) }
    }
    if between.is_empty() || on.is_empty() {
        return false;
    }
    let sum: f64 = between.iter().sum();
    let level = (on.iter().sum::<f64>() / on.len() as f64 - background).max(0.0);
    let single = background + (1.5 * background.sqrt()).max(0.15 * level);
    let present = |powers: &[f64]| powers.iter().filter(|p| **p > single).count();
    // Other combs can supply some of the harmonics, hence the share; weak ones come and go, hence not all.
    let regular = present(&between) * on.len() * 4 >= present(&on) * between.len() * 3;
    let significant = ln_gamma_tail(between.len() as f64 * background, sum) < ln_p;
    significant && sum / between.len() as f64 - background > SHARE * level && (regular || !all)
}

fn is_prime(q: usize) -> bool {
    (2..=q.isqrt()).all(|d| !q.is_multiple_of(d))
}

/// Measures the comb at `freq_hz` and takes it out of the weights; `None` if it is too small, or fails the exact test.
fn describe(log: &Log, weights: &mut [f64], mut freq_hz: f64, line: &Line, fmax_hz: f64) -> Option<Comb> {
    let mut tooth = find_tooth(&log.times_s, weights, freq_hz);
    let mut fit = None;
    for _ in 0..2 {
        if let Some(better) = polish(&log.times_s, &tooth, freq_hz) {
            // The tooth turns with the frequency: look for it again.
            freq_hz = better.0;
            tooth = find_tooth(&log.times_s, weights, freq_hz);
            fit = Some(better);
        }
    }
    let (_, center, jitter) = fit?;
    let p = if line.harmonics > 1 { line.p.max(tooth.chance(log.span_s * fmax_hz)) } else { line.p };
    if tooth.excess < MIN_EVENTS || p > FALSE_ALARM {
        return None;
    }
    thin(&log.times_s, weights, freq_hz, &tooth);
    Some(Comb {
        fundamental_hz: freq_hz,
        p,
        jitter_s: jitter / freq_hz,
        phase: (center + freq_hz * log.origin_s).rem_euclid(1.0),
    })
}
