//! Repairs samples under the wrong thread (W702).
//!
//! The program records thread k at numbers 2nk.. of one array of (time, count) pairs, n samples each, but writes from nk. So
//! file k holds numbers nk..nk+2n: the files overlap by half and together hold the first (files+1)/2 threads.

use super::Thread;
use crate::foreign::Imported;
use crate::foreign::codes::{THREAD_STRIDE, warn};

/// Returns threads with their own samples. Samples of other threads are moved to them, or left out if there is only one file.
pub(super) fn repair(threads: Vec<Thread>, out: &mut Imported) -> Vec<Thread> {
    if let Some(whole) = rebuilt(&threads) {
        let (files, n) = (threads.len(), threads.first().map_or(0, |t| t.times.len()));
        let kept: usize = whole.iter().map(|t| t.times.len()).sum();
        let (all, last) = (files * n, whole.len() - 1);
        let found = format!("{kept} of {all} samples exist and were moved back to threads 0 to {last}");
        let halves = "the second half of each thread's file equals the first half of the next";
        warn(out, THREAD_STRIDE, format!("{halves}: {found}"));
        return whole;
    }
    threads.into_iter().map(|t| alone(t, out)).collect()
}

/// The recording, if all overlaps of the files agree.
fn rebuilt(threads: &[Thread]) -> Option<Vec<Thread>> {
    let n = threads.first()?.times.len();
    let numbered = threads.iter().zip(0..).all(|(t, k)| t.number == k && t.times.len() == n);
    if threads.len() < 2 || n < 4 || !numbered {
        return None;
    }
    let mut array: Vec<Option<i64>> = vec![None; n * (threads.len() + 1)];
    for (k, t) in threads.iter().enumerate() {
        let written = t.times.iter().zip(&t.counts).flat_map(|(a, b)| [*a, *b]);
        for (place, value) in array[n * k..].iter_mut().zip(written) {
            if place.is_some_and(|v| v != value) {
                return None;
            }
            *place = Some(value);
        }
    }
    let numbers: Vec<i64> = array.into_iter().collect::<Option<_>>()?;
    let whole = numbers.chunks(2 * n).zip(0..).map(|(part, number)| Thread {
        number,
        times: part.iter().copied().step_by(2).take(part.len() / 2).collect(),
        counts: part.iter().copied().skip(1).step_by(2).collect(),
    });
    Some(whole.filter(|t| !t.counts.is_empty()).collect())
}

/// Repairs a single file. The defect shows as counts in place of times, or as one jump back in its middle.
fn alone(thread: Thread, out: &mut Imported) -> Thread {
    if thread.number == 0 {
        return thread;
    }
    let n = thread.times.len();
    let number = thread.number;
    let is_odd = n % 2 == 1 && number % 2 == 1;
    let (times, counts) = if is_odd && mostly_rising(&thread.counts) && !mostly_rising(&thread.times) {
        (thread.counts[..n - 1].to_vec(), thread.times[1..].to_vec())
    } else {
        (thread.times, thread.counts)
    };
    let backward: Vec<usize> = (1..times.len()).filter(|i| times[*i] < times[i - 1]).collect();
    match backward.as_slice() {
        [at] if at.abs_diff(n / 2) <= 1 => {
            let why = "its first half belongs to another thread and was left out";
            let text = format!("time jumps back in the middle of thread {number}'s file: {why}");
            warn(out, THREAD_STRIDE, text);
            Thread { number, times: times[*at..].to_vec(), counts: counts[*at..].to_vec() }
        }
        _ => Thread { number, times, counts },
    }
}

fn mostly_rising(v: &[i64]) -> bool {
    v.windows(2).filter(|w| w[1] > w[0]).count() * 10 >= v.len().saturating_sub(1) * 9
}
