//! Do two CPUs stop together more often than chance would have it.
//!
//! One list is shifted around the circle of the observation time, which keeps its own rhythm and destroys only the relation
//! (Lotwick & Silverman 1982; the "shift predictor" of Perkel, Gerstein & Moore 1967).

use crate::random::Random;

/// One event: a detour on one CPU, on a clock shared by both CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    pub start_s: f64,
    /// End time in seconds, not before the start.
    pub end_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coincidence {
    /// Events of the first list that coincide with one of the second.
    pub observed: usize,
    /// The mean of the same count over the random shifts.
    pub expected: f64,
    /// Observed over expected; `None` if the shifts gave none at all.
    pub ratio: Option<f64>,
    /// One-sided probability of at least as many coincidences if the lists are unrelated.
    pub p: f64,
    /// Total time during which both lists have an event, in seconds.
    pub overlap_s: f64,
}

/// Coincidences of two event lists observed during `[0, span_s)`.
///
/// The smallest possible `p` is `1 / (shifts + 1)`. The lists need no order. `None` if there are no shifts, a list is empty, times
/// are not finite, not within the span or end before they start. Of two lists of one strict period `p` is no smaller than the
/// share of shifts that are multiples of it.
pub fn coincidence(a: &[Event], b: &[Event], span_s: f64, shifts: usize, seed: u64) -> Option<Coincidence> {
    let span_ok = span_s > 0.0 && span_s.is_finite();
    let valid = |e: &Event| 0.0 <= e.start_s && e.start_s <= e.end_s && e.end_s <= span_s;
    if !span_ok || shifts == 0 || a.is_empty() || b.is_empty() || !a.iter().chain(b).all(valid) {
        return None;
    }
    let reference = merged(b);
    let observed = hits(a, 0.0, &reference, span_s);
    let mut random = Random::new(seed);
    let shifted: Vec<usize> =
        (0..shifts).map(|_| hits(a, random.unit() * span_s, &reference, span_s)).collect();
    let reached = shifted.iter().filter(|n| **n >= observed).count();
    let expected = shifted.iter().sum::<usize>() as f64 / shifts as f64;
    Some(Coincidence {
        observed,
        expected,
        ratio: (expected > 0.0).then(|| observed as f64 / expected),
        p: (reached + 1) as f64 / (shifts + 1) as f64,
        overlap_s: common_time_s(&merged(a), &reference),
    })
}

/// The events in order, joined where they touch.
fn merged(events: &[Event]) -> Vec<Event> {
    let mut sorted = events.to_vec();
    sorted.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    let mut out: Vec<Event> = Vec::with_capacity(sorted.len());
    for event in sorted {
        match out.last_mut() {
            Some(last) if event.start_s <= last.end_s => last.end_s = last.end_s.max(event.end_s),
            _ => out.push(event),
        }
    }
    out
}

/// Number of events that, moved by `shift_s` around the circle, touch one of the reference intervals.
fn hits(events: &[Event], shift_s: f64, reference: &[Event], span_s: f64) -> usize {
    let touches = |start: f64, end: f64| {
        let next = reference.partition_point(|r| r.end_s < start);
        reference.get(next).is_some_and(|r| r.start_s <= end)
    };
    let hit = |e: &Event| {
        let moved = e.start_s + shift_s;
        let start = if moved >= span_s { moved - span_s } else { moved };
        let end = start + (e.end_s - e.start_s);
        // The copies one turn away cover events that reach over the ends.
        touches(start, end) || touches(start - span_s, end - span_s) || touches(start + span_s, end + span_s)
    };
    events.iter().filter(|e| hit(e)).count()
}

fn common_time_s(a: &[Event], b: &[Event]) -> f64 {
    let (mut i, mut j, mut total) = (0, 0, 0.0);
    while i < a.len() && j < b.len() {
        total += (a[i].end_s.min(b[j].end_s) - a[i].start_s.max(b[j].start_s)).max(0.0);
        if a[i].end_s <= b[j].end_s { i += 1 } else { j += 1 }
    }
    total
}
