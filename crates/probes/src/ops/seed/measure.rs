//! Measures the rows of the table.

use std::ffi::CString;
use std::path::Path;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_sys::call::file::{PrivateDirectory, c_path};
use machmeter_sys::kernel::{self, Ready};
use machmeter_sys::pages::{Backing, Fill, Pages};

use super::subjects::{Closes, Opens, Prints, STREAM_TURNS, Threads, Walks};
use super::{PART, Params};
use crate::ops::daxpy::Daxpy;
use crate::part::At;

/// Words that a row of memory reads or writes per turn.
const WORDS: u64 = 8_000;
/// Bytes from one word to the next: a cache line, the seed's `blk_size`.
const STEP_BYTES: u64 = 64;
/// Memory for the rows of main memory at most.
const MAIN_BYTES: u64 = 256 << 20;
/// Memory for the rows of the cache: half of the smallest first cache in use.
const CACHE_BYTES: usize = 16 << 10;

pub(super) fn measure(at: &mut At<'_, '_>, params: &Params) -> Result<Vec<Row>, ProbeError> {
    let parent = params.directory.clone().map_or_else(std::env::temp_dir, std::path::PathBuf::from);
    let folder = PrivateDirectory::create(&parent).map_err(|e| format!("{}: {e}", parent.display()));
    if let (Some(_), Err(why)) = (&params.directory, &folder) {
        return Err(ProbeError::Usage(why.clone()));
    }
    let path = folder.as_ref().map_err(Clone::clone).and_then(|f| file(f.path()));
    let main = Pages::new(main_bytes(at) as usize, Backing::Unasked).map_err(|e| e.to_string());
    let cache = Pages::new(CACHE_BYTES, Backing::Unasked).map_err(|e| e.to_string());
    for pages in [&main, &cache].into_iter().flatten() {
        // Zeros, because the walks add what they read.
        pages.extent().fill(Fill::Zeros);
    }
    let mut benches = Vec::new();
    for (id, _) in super::OPERATIONS {
        let kind = if matches!(id, "fopen" | "fclose" | "printf" | "thr_create") {
            Kind::Latency
        } else {
            Kind::Throughput
        };
        let row = Row::new(PART.name, id, kind);
        benches.push(bench(row, path.clone(), main.as_ref(), cache.as_ref()));
    }
    let pace = Pace { batch_ns: Pace::BATCH_NS, pairs_per_visit: 4, rounds: 150, until_ns: at.until_ns };
    at.sampler.interleave(&mut benches, &pace);
    Ok(benches.into_iter().map(|b| b.row).collect())
}

fn file(folder: &Path) -> Result<CString, String> {
    c_path(&folder.join("stream")).map_err(|e| e.to_string())
}

/// Four times the largest cache that the system claims, within bounds.
fn main_bytes(at: &At<'_, '_>) -> u64 {
    let claimed = at.host.topology.caches.iter().filter_map(|c| c.size_bytes).max().unwrap_or(0);
    (4 * claimed).clamp(64 << 20, MAIN_BYTES)
}

/// The bench of a row; what it needs and cannot have becomes the reason for which the row is refused.
fn bench<'a>(
    mut row: Row,
    path: Result<CString, String>,
    main: Result<&'a Pages, &String>,
    cache: Result<&'a Pages, &String>,
) -> Bench<'a> {
    let id = row.operation.clone();
    let streams = |row: &mut Row| (row.short_turns, row.long_turns) = STREAM_TURNS;
    let made: Result<Bench<'a>, String> = match id.as_str() {
        "fopen" => path.map(|p| {
            streams(&mut row);
            Bench::new(row.clone(), Opens::new(p))
        }),
        "fclose" => path.map(|p| {
            streams(&mut row);
            Bench::new(row.clone(), Closes::new(p))
        }),
        "fprintf" => path.map(|p| Bench::new(row.clone(), Prints::new(p, false))),
        "printf" => path.map(|p| Bench::new(row.clone(), Prints::new(p, true))),
        "thr_create" => Ok(Bench::new(row.clone(), Threads)),
        "daxpy100" => Ok(Bench::new(row.clone(), Daxpy::new(100))),
        "daxpy1000" => Ok(Bench::new(row.clone(), Daxpy::new(1_000))),
        "daxpy10000" => Ok(Bench::new(row.clone(), Daxpy::new(10_000))),
        _ => {
            let (kernel, pages) = match id.as_str() {
                "read_main_8000" => ("read.strided8", main),
                "write_main_8000" => ("write.strided8", main),
                "read_cache_8000" => ("read.strided8", cache),
                _ => ("write.strided8", cache),
            };
            pages.map_err(Clone::clone).and_then(|p| areas(kernel, p)).map(|(areas, words)| {
                row = row.clone().per_turn(words as f64).with("stride_bytes", STEP_BYTES as i64);
                Bench::new(row.clone(), Walks::new(areas))
            })
        }
    };
    made.unwrap_or_else(|why| {
        row.refused = Some(why);
        Bench::new(row, Threads)
    })
}

/// The areas of a buffer, each as long as 8,000 words need or the whole buffer if it is shorter, and words per area.
fn areas<'a>(kernel: &str, pages: &'a Pages) -> Result<(Vec<Ready<'a>>, u64), String> {
    let kernel = kernel::named(kernel).ok_or_else(|| format!("no kernel {kernel} on this processor"))?;
    let whole = pages.extent();
    let words = WORDS.min(whole.bytes() as u64 / STEP_BYTES);
    let bytes = (words * STEP_BYTES) as usize;
    let mut areas = Vec::new();
    let mut offset = 0;
    while let Some(area) = whole.part(offset, bytes) {
        areas.push(kernel.ready(words / 8, [area; 3], STEP_BYTES).map_err(|e| e.to_string())?);
        offset += bytes;
    }
    Ok((areas, words))
}
