//! Measures the rows of the table.

use std::ffi::CString;
use std::path::PathBuf;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::experiment::{BenchCell, CellList};
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_sys::call::file::{PrivateDirectory, c_path};
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::kernel;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::pages::Pages;

use super::{PART, Params, elsewhere};
use crate::ops::{prices, processes};
use machmeter_engine::part::PartContext;
use machmeter_loops::ops::daxpy::Daxpy;
use machmeter_loops::ops::decades::{Area, Closes, Opens, Prints, Reads, STEP_BYTES, STREAM_TURNS, Writes};
use machmeter_loops::ops::repeated::{Repeated, filled};

/// Words that a row of memory reads or writes per turn.
const WORDS: usize = 8_000;
/// Where in its line the word lies that is read, and the one that is written: rows that share memory must not see each other's.
const READ_AT: usize = 0;
const WRITTEN_AT: usize = 8;
/// Memory for the rows of main memory: at least this much where there is enough, and at most.
const MAIN_BYTES: (u64, u64) = (64 << 20, 256 << 20);
/// Fewest bytes that are still called main memory.
const MAIN_FEWEST_BYTES: u64 = 16 << 20;
/// Share of what is left to this process that they take at most, as one part in so many.
const MEMORY_SHARE: u64 = 2;
/// Areas that a batch reads or writes in main memory: one takes more or less by over half.
const MAIN_TURNS: (u64, u64) = (8, 16);
/// Memory for the rows of the cache: half of the smallest first cache in use.
const CACHE_BYTES: usize = 16 << 10;
/// Rows of main memory: it would have to be filled anew for each process that prices.
const IN_MAIN: [&str; 2] = ["read_main_8000", "write_main_8000"];
/// As in the part `arithmetic`.
const PAIRS_PER_VISIT: usize = 6;
const PACE: Pace = Pace { settle_ns: Pace::SETTLE_NS, ..Pace::of(Pace::BATCH_NS, PAIRS_PER_VISIT) };

/// All rows but those of main memory, in the process that prices them.
pub(in crate::ops) fn with_all<T>(
    folder: &Result<PathBuf, String>,
    work: impl FnOnce(Vec<(Bench<'_>, bool)>) -> T,
) -> T {
    let path = file(folder);
    let cache = ones(CACHE_BYTES);
    let ids = super::OPERATIONS.iter().map(|o| o.0).filter(|id| !IN_MAIN.contains(id));
    work(ids.map(|id| (bench(id, &path, &cache), true)).collect())
}

pub(super) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let parent = params.files_in();
    let folder = PrivateDirectory::create(&parent).map_err(|e| format!("{}: {e}", parent.display()));
    if let (Some(_), Err(why)) = (&params.directory, &folder) {
        return Err(ProbeError::Usage(why.clone()));
    }
    at.host.begin()?;
    let path = folder.as_ref().map(|f| f.path().to_owned()).map_err(Clone::clone);
    let claimed = at.host.topology.caches.iter().filter_map(|c| c.size_bytes).max().unwrap_or(0);
    let left = MemoryLeft::of_this_process(&FsRoot::host());
    let main = left.and_then(|left| main_bytes(claimed, left.available_bytes)).and_then(ones);
    let files = prices::Files { own: path.clone(), in_memory: None };
    let cells = prices::cells(PART.name, at, params, files, PACE)?;
    let here = |id: &str| elsewhere(id).is_none_or(|(part, _)| !params.measures(part));
    let ids = super::OPERATIONS.iter().map(|o| o.0).filter(|id| !IN_MAIN.contains(id));
    let mut here: CellList<'_> = ids.zip(cells).filter(|(id, _)| here(id)).map(|(_, cell)| cell).collect();
    for id in IN_MAIN {
        here.push(BenchCell { bench: bench(id, &file(&path), &main), pace: PACE });
    }
    at.run(here);
    Ok(())
}

fn file(folder: &Result<PathBuf, String>) -> Result<CString, String> {
    let folder = folder.as_ref().map_err(Clone::clone)?;
    c_path(&folder.join("stream")).map_err(|e| e.to_string())
}

/// Four times the largest claimed cache, within bounds; less where little memory is left, at least twice that cache.
fn main_bytes(claimed_bytes: u64, left_bytes: u64) -> Result<usize, String> {
    let (least, most) = MAIN_BYTES;
    let wanted = claimed_bytes.saturating_mul(4).clamp(least, most);
    let fewest = claimed_bytes.saturating_mul(2).clamp(MAIN_FEWEST_BYTES, most);
    let bytes = wanted.min(left_bytes / MEMORY_SHARE);
    if bytes < fewest {
        return Err(format!(
            "too little memory: more than the caches takes {fewest} bytes, but only half of the free {left_bytes} may be used"
        ));
    }
    usize::try_from(bytes).map_err(|_| format!("{bytes} bytes are more than this processor has addresses"))
}

/// Memory of ones, so that a sum of words is a count.
fn ones(bytes: usize) -> Result<Pages, String> {
    filled(bytes, 1)
}

fn boxed<'a>(subject: impl Subject + 'a) -> Box<dyn Subject + 'a> {
    Box::new(subject)
}

/// The bench of a row; what it needs and cannot have becomes the reason for which the row is refused.
fn bench<'a>(id: &str, path: &Result<CString, String>, pages: &'a Result<Pages, String>) -> Bench<'a> {
    let kind = if matches!(id, "fopen" | "fclose" | "printf") { Kind::Latency } else { Kind::Throughput };
    let mut row = elsewhere(id).map_or_else(|| Row::new(PART.name, id, kind), |(_, row)| row).of_batches();
    (row.short_turns, row.long_turns) = match id {
        "fopen" | "fclose" => STREAM_TURNS,
        id if IN_MAIN.contains(&id) => MAIN_TURNS,
        _ => (0, 0),
    };
    let path = || path.clone();
    let subject = match id {
        "fopen" => path().map(|path| boxed(Opens::new(path))),
        "fclose" => path().map(|path| boxed(Closes::new(path))),
        "fprintf" | "printf" => path().map(|path| boxed(Prints::new(path, id == "printf"))),
        "thr_create" => Ok(processes::threads(false).subject),
        _ if row.operation == "daxpy" => Daxpy::new(row.int("elements").unwrap_or(0) as usize).map(boxed),
        _ => {
            let reads = id.starts_with("read");
            row = row.with("stride_bytes", STEP_BYTES);
            pages.as_ref().map_err(Clone::clone).and_then(|p| areas(reads, p)).map(|(areas, words)| {
                row.per_turn = words as f64;
                if reads { boxed(Reads::new(areas)) } else { boxed(Writes::new(areas)) }
            })
        }
    };
    match subject {
        Ok(subject) => Bench { row, subject },
        Err(why) => Bench::new(row.refused(why), Repeated::returning("nothing", || Ok(()))),
    }
}

/// The areas of a buffer, each as long as 8,000 words need or as the whole buffer if it is shorter, and words per area.
fn areas(reads: bool, pages: &Pages) -> Result<(Vec<Area<'_>>, usize), String> {
    let (name, at) = if reads { ("read.strided8", READ_AT) } else { ("write.strided8", WRITTEN_AT) };
    let kernel = kernel::named(name).ok_or_else(|| format!("no kernel {name} on this processor"))?;
    let whole = pages.extent();
    // Eight words a turn of the kernel.
    let turns = WORDS.min((whole.bytes() - at) / STEP_BYTES) / 8;
    let bytes = turns * 8 * STEP_BYTES;
    let mut areas = Vec::new();
    let mut offset = at;
    while let Some(area) = whole.part(offset, bytes) {
        let ready = kernel.ready(turns as u64, [area; 3], STEP_BYTES as u64).map_err(|e| e.to_string())?;
        areas.push(Area { ready, memory: area.atomics() });
        offset += bytes;
    }
    Ok((areas, turns * 8))
}

#[cfg(test)]
mod tests {
    use super::super::ON_FILES;
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn main_memory_is_what_is_left_to_the_process_and_larger_than_caches_or_refused() {
        let bytes = |claimed, left| main_bytes(claimed * MIB, left * MIB).map(|b| b as u64 / MIB);
        assert_eq!(bytes(32, 8_192), Ok(128));
        assert_eq!(bytes(0, 8_192), Ok(64));
        assert_eq!(bytes(260, 8_192), Ok(256));
        assert_eq!(bytes(32, 200), Ok(100), "half of what a small group has");
        assert_eq!(bytes(8, 40), Ok(20));
        for (claimed, left) in [(32, 120), (8, 30), (260, 500), (0, 0)] {
            let why = bytes(claimed, left).unwrap_err();
            assert!(
                why.contains(&format!("half of the free {} may", left * MIB)) && !why.contains('\n'),
                "{why}"
            );
        }
    }

    #[test]
    fn every_row_has_its_subject_and_its_key_whether_it_can_be_had_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let main = ones(2 << 20);
        let cache = ones(CACHE_BYTES);
        let path = file(&Ok(folder.path().to_owned()));
        let no_path: Result<CString, String> = Err("no such thing".to_owned());
        let no_main: Result<Pages, String> = Err("no such thing".to_owned());
        for (id, _) in super::super::OPERATIONS {
            let had = bench(id, &path, if IN_MAIN.contains(&id) { &main } else { &cache }).row;
            let refused = bench(id, &no_path, &no_main).row;
            assert_eq!((had.refused, &had.params, had.kind), (None, &refused.params, refused.kind), "{id}");
            let needs = ON_FILES.contains(&id) || id.ends_with("_8000");
            assert_eq!(refused.refused.as_deref(), needs.then_some("no such thing"), "{id}");
        }
        for (pages, words, count) in [(&main, [8_000, 8_000], 4), (&cache, [256, 248], 1)] {
            for (reads, words) in [true, false].into_iter().zip(words) {
                let (found, each) = areas(reads, pages.as_ref().unwrap()).unwrap();
                assert_eq!((found.len(), each), (count, words));
            }
        }
    }
}
