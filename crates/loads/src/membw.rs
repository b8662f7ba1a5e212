//! Membw: every CPU streams through arrays that no cache can hold, so that memory bandwidth is what is scarce.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use machmeter_data::quantity::Unit;
use machmeter_engine::load::LoadInfo;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::topology::Topology;

use crate::work::{LoadEntry, Work};

/// STREAM's rule: the arrays together are at least four times the caches (run rules of the STREAM benchmark).
const TIMES_CACHE: u64 = 4;
/// All arrays of all threads: at least, and at most, bytes.
const TOTAL_MIN_BYTES: u64 = 192 << 20;
const TOTAL_MAX_BYTES: u64 = 1 << 30;
/// Of what is available, at most one in so many bytes.
const OF_AVAILABLE: u64 = 8;
/// Elements between two looks at the stop flag.
const CHUNK: usize = 32 * 1024;
/// Arrays of a triad, `a = b + s * c`.
const ARRAYS: u64 = 3;
const ELEMENT_BYTES: u64 = size_of::<f64>() as u64;

pub(crate) static MEMBW: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "membw",
        description: "Streams through memory on every CPU, in arrays far larger than the last cache.",
        work: "bytes read and written",
        unit: Unit::BytesPerSecond,
        classic: false,
        ..LoadEntry::USUAL.info
    },
    run: Some(stream_through_memory),
    ..LoadEntry::USUAL
};

fn stream_through_memory(work: &Work) -> Result<(), machmeter_engine::load::LoadError> {
    let threads = work.threads_or_one_per_cpu()?;
    let length = array_length(work, threads);
    let touched = AtomicUsize::new(0);
    work.threads("mm-membw", threads, |lane| {
        // Not zero, so that every page is one of its own.
        let (mut a, b, c) = (vec![0.5_f64; length], vec![1.5_f64; length], vec![2.5_f64; length]);
        if touched.fetch_add(1, Ordering::Relaxed) + 1 == threads {
            work.ready();
        }
        let count = work.count(lane);
        while !work.stopped() {
            let chunks = a.chunks_mut(CHUNK).zip(b.chunks(CHUNK)).zip(c.chunks(CHUNK));
            for ((a, b), c) in chunks {
                triad(a, b, c);
                count.add(a.len() as u64 * ARRAYS * ELEMENT_BYTES);
                if work.stopped() {
                    break;
                }
            }
            black_box(&mut a);
        }
        Ok(())
    })
}

#[inline(never)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 3.0 * c;
    }
}

/// Elements of one array of one thread.
fn array_length(work: &Work, threads: usize) -> usize {
    let cache_bytes = last_caches_bytes(work);
    let available_bytes = MemoryLeft::of_this_process(&FsRoot::host()).ok().map(|left| left.available_bytes);
    let most_bytes = work.request.memory_bytes.unwrap_or(TOTAL_MAX_BYTES);
    let total_bytes = total_bytes(cache_bytes, available_bytes, most_bytes);
    if total_bytes < TIMES_CACHE * cache_bytes {
        work.caveat(format!(
            "arrays of {} MiB in total are smaller than the last caches ({} MiB) times {TIMES_CACHE}: some of the \
             traffic may stay in the caches",
            total_bytes >> 20,
            cache_bytes >> 20
        ));
    }
    ((total_bytes / (ARRAYS * ELEMENT_BYTES * threads as u64)) as usize).max(CHUNK)
}

fn total_bytes(cache_bytes: u64, available_bytes: Option<u64>, most_bytes: u64) -> u64 {
    let wanted = (TIMES_CACHE * cache_bytes).max(TOTAL_MIN_BYTES).min(most_bytes);
    available_bytes.map_or(wanted, |a| wanted.min(a / OF_AVAILABLE))
}

/// Sum of the distinct last caches of the CPUs in use; a virtual machine may be told of more than it gets.
fn last_caches_bytes(work: &Work) -> u64 {
    let (Ok(topology), Ok(cpus)) = (Topology::host(), work.cpus()) else { return 0 };
    let mut caches = Vec::new();
    for cpu in cpus {
        let last = (1..=4).rev().find_map(|level| topology.cache(cpu, level));
        if let Some(cache) = last.filter(|c| !caches.contains(c)) {
            caches.push(cache);
        }
    }
    caches.iter().filter_map(|c| c.size_bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_exceed_the_caches_but_not_the_memory() {
        assert_eq!(total_bytes(8 << 20, Some(64 << 30), TOTAL_MAX_BYTES), TOTAL_MIN_BYTES);
        assert_eq!(total_bytes(96 << 20, Some(64 << 30), TOTAL_MAX_BYTES), 384 << 20);
        assert_eq!(total_bytes(1 << 30, Some(64 << 30), TOTAL_MAX_BYTES), TOTAL_MAX_BYTES);
        assert_eq!(total_bytes(96 << 20, Some(1 << 30), TOTAL_MAX_BYTES), 128 << 20);
        assert_eq!(total_bytes(96 << 20, None, 16 << 20), 16 << 20);
    }
}
