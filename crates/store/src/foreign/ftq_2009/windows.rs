//! Finds the length of windows, and adds the windows that were never written.

use super::Thread;
use crate::foreign::Imported;
use crate::foreign::codes::{BACKWARD_TIME, MISSING_WINDOWS, warn};

/// Most missing windows that are added; further ones are only counted. No real run lost this many, and memory is finite.
const MOST_INSERTED: i64 = 8 << 20;

pub(super) struct Windows {
    pub(super) starts: Vec<i64>,
    pub(super) counts: Vec<i32>,
    pub(super) uniform: bool,
}

/// The power of two that is the most frequent distance of starts; the program allows 2^3 to 2^30.
pub(super) fn length_ticks(threads: &[Thread]) -> Option<i64> {
    let steps = threads.iter().flat_map(|t| t.times.windows(2)).map(|w| w[1].saturating_sub(w[0]));
    let steps: Vec<i64> = steps.filter(|d| *d > 0).collect();
    let near = |length: i64| steps.iter().filter(|d| d.abs_diff(length) <= (length / 8) as u64).count();
    let (found, length) = (3..=30).map(|bits| (near(1 << bits), 1_i64 << bits)).max()?;
    (found >= 2 && found * 5 >= steps.len()).then_some(length)
}

/// The windows of a thread, with missing ones added as windows without work, which they were.
pub(super) fn complete(
    thread: &Thread,
    counts: &[i32],
    length: Option<i64>,
    tick_hz: Option<f64>,
    out: &mut Imported,
) -> Windows {
    let as_read = || Windows { starts: thread.times.clone(), counts: counts.to_vec(), uniform: false };
    if let Some(i) = (1..thread.times.len()).find(|i| thread.times[*i] < thread.times[i - 1]) {
        let (number, sample) = (thread.number, i + 1);
        let text = format!("thread {number}: the time of sample {sample} is before the previous one");
        warn(out, BACKWARD_TIME, text);
        return as_read();
    }
    let Some(length) = length else { return as_read() };
    let missing: Vec<i64> =
        thread.times.windows(2).map(|w| (w[1] / length - w[0] / length - 1).max(0)).chain([0]).collect();
    let total = missing.iter().fold(0_i64, |sum, m| sum.saturating_add(*m));
    if total > 0 {
        warn(out, MISSING_WINDOWS, text(thread, &missing, total, length, tick_hz));
    }
    if total > MOST_INSERTED {
        return as_read();
    }
    let with_missing = |((start, count), gone): ((&i64, &i32), i64)| {
        let (start, count) = (*start, *count);
        let put_back = (1..=gone).map(move |k| ((start / length + k) * length, 0));
        std::iter::once((start, count)).chain(put_back)
    };
    let (starts, counts) = thread.times.iter().zip(counts).zip(missing).flat_map(with_missing).unzip();
    Windows { starts, counts, uniform: true }
}

fn text(thread: &Thread, missing: &[i64], total: i64, length: i64, tick_hz: Option<f64>) -> String {
    let places = missing.iter().filter(|m| **m > 0).count();
    let run = thread.times.len() as f64 + total as f64;
    let hidden = match tick_hz {
        Some(hz) => format!("{:.3} ms", total as f64 * length as f64 / hz * 1e3),
        None => format!("{} ticks", total.saturating_mul(length)),
    };
    let (number, percent) = (thread.number, 100.0 * total as f64 / run);
    let in_places = if places == 1 { "in 1 place".to_owned() } else { format!("in {places} places") };
    let what = format!("{total} windows are missing {in_places}");
    format!("thread {number}: {what}, which hide {hidden}, {percent:.2} % of the run")
}
