//! One rhythm: found in a stretch of events, followed through all of them, kept if it holds in both halves of the run.

use machmeter_stats::distribution::{binomial_cdf, t_quantile};
use machmeter_stats::events::{FALSE_ALARM, comb_search};

/// Fewer events than this are not searched for a rhythm, and half as many must lie in each half of the run.
const MIN_EVENTS: usize = 20;
/// Events of the first half that are searched: the search costs time in proportion, and a rhythm shows in some hundreds.
const SEARCHED: usize = 1_500;
/// Fastest rhythm that is searched in events with holes, Hz. A source without holes is searched up to its own rate.
const MAX_HZ: f64 = 5_000.0;
/// A rhythm with an event in fewer than one of so many cycles is not searched: the fastest is so many times the rate.
const CYCLES_PER_EVENT: f64 = 4.0;
/// Stretches of the run, at most, whose own frequencies tell how far it wanders.
const STRETCHES: usize = 8;
#[derive(Debug, Clone, PartialEq)]
pub struct Rhythm {
    pub hz: f64,
    /// Half of its 95 % interval, without the clock's own error; `None` where too few stretches tell it.
    pub half_hz: Option<f64>,
    pub times_s: Vec<f64>,
    /// Chance of as much in events without rhythm, all frequencies tried counted.
    pub p: f64,
}

/// The rhythms in ascending event times of a recording of `wall_s`, strongest evidence first.
pub fn rhythms(times_s: &[f64], wall_s: f64) -> Vec<Rhythm> {
    let middle = times_s.partition_point(|t| *t < wall_s / 2.0);
    if wall_s <= 0.0 || middle.min(times_s.len() - middle) < MIN_EVENTS / 2 {
        return Vec::new();
    }
    let from = (middle - middle.min(SEARCHED)) / 2;
    let stretch = &times_s[from..from + middle.min(SEARCHED)];
    let mut left = times_s.to_vec();
    let mut out: Vec<Rhythm> = Vec::new();
    for trial in trials(stretch, wall_s) {
        let Some(rhythm) = hold(&left, &trial, wall_s) else { continue };
        left.retain(|t| rhythm.times_s.binary_search_by(|x| x.total_cmp(t)).is_err());
        match out.iter_mut().find_map(|r| Some((one_of_two(r, &rhythm, wall_s)?, r))) {
            Some((one, of)) => *of = one,
            None => out.push(rhythm),
        }
    }
    out
}

/// Frequencies nearer to each other than this are one, and are not told from each other by a wandering source.
pub(super) const SAME: f64 = 1e-3;

impl Rhythm {
    /// Whether two rhythms cannot be told from each other by their frequencies.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        alike((self.hz, self.half_hz), (other.hz, other.half_hz))
    }
}

/// Whether two frequencies, each with half of its interval, may be one.
pub(super) fn alike(a: (f64, Option<f64>), b: (f64, Option<f64>)) -> bool {
    (a.0 - b.0).abs() <= (a.1.unwrap_or(0.0) + b.1.unwrap_or(0.0)).max(SAME * a.0)
}

/// The rhythm that two of one source are together: cycles left out, so that the slower is a part of the faster one's.
fn one_of_two(a: &Rhythm, b: &Rhythm, wall_s: f64) -> Option<Rhythm> {
    /// Share of the events of both that the faster one must take in.
    const NEARLY_ALL: f64 = 0.9;
    let (slow, fast) = if a.hz < b.hz { (a, b) } else { (b, a) };
    let mut times_s = [&a.times_s[..], &b.times_s[..]].concat();
    times_s.sort_by(f64::total_cmp);
    if slow.is_like(fast) {
        let known = if a.times_s.len() >= b.times_s.len() { a } else { b };
        return Some(Rhythm { times_s, ..known.clone() });
    }
    let part = (fast.hz / slow.hz).round();
    let width_hz = fast.half_hz.unwrap_or(0.0) + part * slow.half_hz.unwrap_or(0.0);
    if part < 2.0 || (part * slow.hz - fast.hz).abs() > width_hz.max(SAME * fast.hz) {
        return None;
    }
    let tooth_s = fast.times_s[fast.times_s.len() / 2];
    let both = hold(&times_s, &Trial { hz: fast.hz, tooth_s, jitter: 0.0, p: a.p.min(b.p) }, wall_s)?;
    (both.times_s.len() as f64 >= NEARLY_ALL * times_s.len() as f64).then_some(both)
}

/// A frequency to follow, where a tooth lies, how far its events scatter about it in cycles, and its p.
struct Trial {
    hz: f64,
    tooth_s: f64,
    jitter: f64,
    p: f64,
}

/// What may be a rhythm in a stretch: combs, and the usual time from event to event where most have that.
fn trials(stretch: &[f64], wall_s: f64) -> Vec<Trial> {
    let span_s = stretch[stretch.len() - 1] - stretch[0];
    let rate_hz = if span_s > 0.0 { (stretch.len() - 1) as f64 / span_s } else { 0.0 };
    // The search takes time in proportion to the frequencies: bursts must not ask for more than their events can support.
    let most_hz = MAX_HZ.max(CYCLES_PER_EVENT * rate_hz);
    let fastest_hz = fastest_hz(stretch).min(most_hz);
    let near = stretch[stretch.len() / 2];
    let comb = |c: machmeter_stats::events::Comb| Trial {
        hz: c.fundamental_hz,
        tooth_s: (c.phase + (near * c.fundamental_hz - c.phase).round()) / c.fundamental_hz,
        jitter: c.jitter_s * c.fundamental_hz,
        p: c.p,
    };
    let mut out: Vec<Trial> = Vec::new();
    let mut between: Vec<f64> = stretch.windows(2).map(|w| w[1] - w[0]).collect();
    between.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| between.get((between.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    let usual_s = at(0.5);
    // A source that sleeps from one time to the next has no comb, but hardly differing pauses.
    if usual_s > 0.0
        && at(0.75) - at(0.25) < REGULAR * usual_s
        && (2.0 / wall_s..most_hz).contains(&(1.0 / usual_s))
    {
        out.push(Trial {
            hz: 1.0 / usual_s,
            tooth_s: near,
            // The quartiles of a normal law are 1.349 standard deviations apart.
            jitter: (at(0.75) - at(0.25)) / 1.349 / usual_s,
            p: FALSE_ALARM,
        });
    }
    out.extend(comb_search(stretch, 2.0 / wall_s, fastest_hz).unwrap_or_default().into_iter().map(comb));
    out
}

/// Interquartile range of the pauses of a regular source in units of their median; that of independent events is 1.6.
const REGULAR: f64 = 0.3;

/// The fastest rhythm worth searching, Hz. Events may come in bursts with holes: by the quarter that follow soonest.
fn fastest_hz(times_s: &[f64]) -> f64 {
    let mut between: Vec<f64> = times_s.windows(2).map(|w| w[1] - w[0]).collect();
    if between.is_empty() {
        return 0.0;
    }
    let quarter = between.len() / 4;
    let soon_s = *between.select_nth_unstable_by(quarter, f64::total_cmp).1;
    if soon_s > 0.0 { CYCLES_PER_EVENT / soon_s } else { MAX_HZ }
}

/// Widest gate, cycles: a quarter to either side leaves as much to chance as to the rhythm.
const WIDEST: f64 = 0.25;

/// Follows a trial through all events and keeps it if it holds in both halves of the run.
fn hold(times_s: &[f64], trial: &Trial, wall_s: f64) -> Option<Rhythm> {
    // Four standard deviations about the tooth.
    let gate = (4.0 * trial.jitter).clamp(0.03, WIDEST);
    let mut hz = trial.hz;
    let (mut followed, mut mean_gate) = follow(times_s, hz, trial.tooth_s, gate);
    for _ in 0..2 {
        hz = frequency(&followed)?;
        (followed, mean_gate) = follow(times_s, hz, trial.tooth_s, gate);
    }
    let chance = [0.0, wall_s / 2.0].map(|from_s| {
        let half = |t: &f64| (from_s..from_s + wall_s / 2.0).contains(t);
        by_chance(times_s.iter().copied().filter(half), &followed, hz, mean_gate)
    });
    let holds = followed.len() >= MIN_EVENTS && chance.iter().all(|p| *p < FALSE_ALARM);
    let hz = frequency(&followed)?;
    holds.then(|| Rhythm {
        hz,
        half_hz: half_width(&followed, wall_s),
        times_s: followed.iter().map(|f| f.1).collect(),
        p: trial.p.min(chance[0]).max(f64::MIN_POSITIVE),
    })
}

/// Events within `gate` cycles of where one is due, with cycle numbers, ascending, and the mean gate. The next due time
/// shifts by half of what the event was off: it follows a walking phase. Unseen cycles widen the gate by their root.
fn follow(times_s: &[f64], hz: f64, tooth_s: f64, gate: f64) -> (Vec<(f64, f64)>, f64) {
    const GAIN: f64 = 0.5;
    let start = times_s.partition_point(|t| *t < tooth_s);
    let mut gates = 0.0;
    let mut walk = |times: &mut dyn Iterator<Item = &f64>| {
        let (mut due_s, mut cycle) = (tooth_s, 0.0);
        let mut out = Vec::new();
        for t in times {
            let since = (t - due_s) * hz;
            let off = since - since.round();
            let wide = (gate * since.abs().max(1.0).sqrt()).min(WIDEST);
            gates += wide;
            // One event per cycle: the next one in the same cycle is another's.
            if off.abs() <= wide && (since.round().abs() > 0.0 || out.is_empty()) {
                cycle += since.round();
                due_s += (since.round() + GAIN * off) / hz;
                out.push((cycle, *t));
            }
        }
        out
    };
    let mut out = walk(&mut times_s[..start].iter().rev());
    out.reverse();
    let later = walk(&mut times_s[start..].iter());
    let again = out.last().zip(later.first()).is_some_and(|(a, b)| a.0 >= b.0);
    out.extend(later.into_iter().skip(usize::from(again)));
    (out, gates / times_s.len().max(1) as f64)
}

/// Frequency of events with cycle numbers: least squares.
fn frequency(followed: &[(f64, f64)]) -> Option<f64> {
    let n = followed.len() as f64;
    if followed.len() < 3 {
        return None;
    }
    let (mean_k, mean_t) =
        (followed.iter().map(|f| f.0).sum::<f64>() / n, followed.iter().map(|f| f.1).sum::<f64>() / n);
    let spread: f64 = followed.iter().map(|f| (f.0 - mean_k).powi(2)).sum();
    let period_s = followed.iter().map(|f| (f.0 - mean_k) * (f.1 - mean_t)).sum::<f64>() / spread;
    (period_s > 0.0 && period_s.is_finite()).then(|| 1.0 / period_s)
}

/// Half of the frequency's 95 % interval, by how separate stretches differ: walk and drift show there, as jitter does.
fn half_width(followed: &[(f64, f64)], wall_s: f64) -> Option<f64> {
    let stretches = (followed.len() / 6).clamp(4, STRETCHES);
    let own: Vec<f64> = (0..stretches)
        .filter_map(|s| {
            let edge = |k: usize| wall_s * k as f64 / stretches as f64;
            let from = followed.partition_point(|f| f.1 < edge(s));
            let to = followed.partition_point(|f| f.1 < edge(s + 1));
            if to - from < 4 { None } else { frequency(&followed[from..to]) }
        })
        .collect();
    if own.len() < 4 {
        return None;
    }
    let n = own.len() as f64;
    let mean = own.iter().sum::<f64>() / n;
    let variance = own.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t_quantile(0.975, n - 1.0)? * (variance / n).sqrt())
}

/// Chance that as many of these events fall where one is due, if they came at any time. Events of one burst are one.
fn by_chance(times_s: impl Iterator<Item = f64>, followed: &[(f64, f64)], hz: f64, gate: f64) -> f64 {
    let (mut tried, mut met, mut last_s) = (0_u64, 0_u64, f64::NEG_INFINITY);
    for t in times_s {
        let belongs = followed.binary_search_by(|f| f.1.total_cmp(&t)).is_ok();
        if (t - last_s) * hz < 0.5 && !belongs {
            continue;
        }
        (tried, met, last_s) = (tried + 1, met + u64::from(belongs), t);
    }
    if tried < MIN_EVENTS as u64 / 2 || met == 0 {
        return 1.0;
    }
    // What was followed draws the next due time towards events, by a tenth more than chance at most.
    1.0 - binomial_cdf(met - 1, tried, (2.0 * gate * 1.1).min(0.99)).unwrap_or(0.0)
}
