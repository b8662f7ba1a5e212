//! Write: streaming writes to a device (interbench's load of the same name, which filled the page cache with zeros).

use std::io;
use std::path::Path;

use machmeter_data::quantity::Unit;
use machmeter_engine::load::{LoadError, LoadInfo, LoadRequest};
use machmeter_stats::random::Random;
use machmeter_sys::disk::{self, AlignedBytes, BlockFile, DeviceTraffic};

use crate::work::{LoadEntry, Work, usage};

/// Bytes of one write where the budget allows: large, as of a program that copies a file.
const BLOCK_BYTES: usize = 1 << 20;

/// Blocks that are written in turn: more than any file system compresses at once, so that no repetition is seen.
const POOL_BLOCKS: usize = 4;

/// Every block of this size is unlike every other, so that nothing can be stored once for several.
const STAMP_EVERY_BYTES: usize = 4_096;

/// Of the free space, no more than one part in this many is used.
const FREE_PARTS: u64 = 20;

/// With less than this the load would be about one block, and not about a device.
const LEAST_FILE_BYTES: u64 = 64 << 10;

pub(crate) static WRITE: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "write",
        description: "Streaming writes of incompressible data to a file, with direct I/O if possible.",
        work: "bytes",
        unit: Unit::BytesPerSecond,
        ..LoadEntry::USUAL.info
    },
    check: |request| check_budget(request, LEAST_FILE_BYTES),
    run: Some(|work| {
        let directory = work.directory()?;
        let file_bytes = file_bytes(&work.request.directory, work.request.disk_bytes)?;
        work.threads("mm-write", 1, |lane| {
            let count = work.count(lane);
            let mut writer = Writer::create(directory, file_bytes, work.request.seed)?;
            let traffic = DeviceTraffic::of_current_thread();
            count.add(writer.write_next()?);
            say_how(work, &writer.file, "written", traffic, |t| t.written_bytes);
            work.ready();
            while !work.stopped() {
                count.add(writer.write_next()?);
            }
            Ok(())
        })
    }),
};

pub(crate) fn check_budget(request: &LoadRequest, least_bytes: u64) -> Result<(), LoadError> {
    let bytes = request.disk_bytes;
    if bytes >= least_bytes {
        return Ok(());
    }
    let why = format!("a budget of {bytes} bytes of files is too small: give at least {least_bytes}");
    Err(usage(request, why))
}

/// Bytes that files in `directory` may take: the budget, and no more than 5 % of what is free there.
pub(crate) fn allowed_bytes(directory: &Path, budget_bytes: u64) -> Result<u64, LoadError> {
    let free_bytes = disk::free_bytes(directory).map_err(|e| cannot(directory, &e))?;
    Ok(budget_bytes.min(free_bytes / FREE_PARTS))
}

/// Size of a single file in `directory` that keeps to [`allowed_bytes`].
pub(crate) fn file_bytes(directory: &Path, budget_bytes: u64) -> Result<u64, LoadError> {
    let allowed_bytes = allowed_bytes(directory, budget_bytes)?;
    if allowed_bytes >= LEAST_FILE_BYTES {
        return Ok(allowed_bytes);
    }
    Err(LoadError::Cannot(format!(
        "{}: 5 % of the free space is {allowed_bytes} bytes, but {LEAST_FILE_BYTES} are needed: \
         choose another directory",
        directory.display()
    )))
}

/// What the system says about a file in `directory`, in one line.
pub(crate) fn cannot(directory: &Path, e: &io::Error) -> LoadError {
    LoadError::Cannot(format!("a file in {}: {e}", directory.display()))
}

/// Says what weakens a load of `file`, which since `before` was read or written at least once.
pub(crate) fn say_how(
    work: &Work,
    file: &BlockFile,
    done: &str,
    before: Option<DeviceTraffic>,
    part: fn(&DeviceTraffic) -> u64,
) {
    if let Some(why) = file.why_buffered() {
        work.caveat(format!("files are {done} through the page cache, then dropped from it: {why}"));
    }
    let after = DeviceTraffic::of_current_thread();
    if let (Some(before), Some(after)) = (before, after)
        && part(&after.since(&before)) == 0
    {
        work.caveat(format!(
            "no device was active when files were {done}: the directory may be in memory or on another machine"
        ));
    }
}

/// Data that can be neither compressed nor found to be there already.
#[derive(Debug)]
pub(crate) struct Incompressible {
    pool: AlignedBytes,
    block_bytes: usize,
    next: usize,
    random: Random,
}

impl Incompressible {
    /// Blocks of `block_bytes`, determined by `seed`, at multiples of `align_bytes`.
    pub(crate) fn new(seed: u64, block_bytes: usize, align_bytes: usize) -> Self {
        let mut random = Random::new(seed);
        let mut pool = AlignedBytes::new(POOL_BLOCKS * block_bytes, align_bytes);
        for bytes in pool.as_mut_slice().chunks_mut(8) {
            bytes.copy_from_slice(&random.bits().to_le_bytes()[..bytes.len()]);
        }
        Self { pool, block_bytes, next: 0, random }
    }

    pub(crate) fn block(&mut self) -> &[u8] {
        let start = self.next * self.block_bytes;
        self.next = (self.next + 1) % POOL_BLOCKS;
        let block = &mut self.pool.as_mut_slice()[start..start + self.block_bytes];
        for part in block.chunks_mut(STAMP_EVERY_BYTES) {
            let stamp = self.random.bits().to_le_bytes();
            let n = part.len().min(stamp.len());
            part[..n].copy_from_slice(&stamp[..n]);
        }
        block
    }
}

/// A file that is written block by block, again from the front when it has its size.
#[derive(Debug)]
pub(crate) struct Writer<'d> {
    directory: &'d Path,
    pub(crate) file: BlockFile,
    data: Incompressible,
    /// Of the file when it has its size.
    pub(crate) blocks: u64,
    next: u64,
}

impl<'d> Writer<'d> {
    /// A new file without a name in `directory` that will have `file_bytes` at most.
    pub(crate) fn create(directory: &'d Path, file_bytes: u64, seed: u64) -> Result<Self, LoadError> {
        let file = BlockFile::create(directory).map_err(|e| cannot(directory, &e))?;
        let align_bytes = file.align_bytes();
        let most_bytes = usize::try_from(file_bytes).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let block_bytes = (most_bytes / align_bytes * align_bytes).max(align_bytes);
        let data = Incompressible::new(seed, block_bytes, align_bytes);
        Ok(Self { directory, file, data, blocks: (file_bytes / block_bytes as u64).max(1), next: 0 })
    }

    pub(crate) fn write_next(&mut self) -> Result<u64, LoadError> {
        let block_bytes = self.block_bytes() as u64;
        let written = self.file.write_at(self.data.block(), self.next * block_bytes);
        written.map_err(|e| cannot(self.directory, &e))?;
        self.next = (self.next + 1) % self.blocks;
        Ok(block_bytes)
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.data.block_bytes
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Asserts that the device did since `before` what was counted, and little more.
    pub(crate) fn assert_at_the_device(
        before: Option<DeviceTraffic>,
        part: fn(&DeviceTraffic) -> u64,
        counted: u64,
    ) {
        let Some((after, before)) = DeviceTraffic::of_current_thread().zip(before) else { return };
        match part(&after.since(&before)) {
            0 => println!("skipped: no real disk"),
            bytes => assert!((counted..counted + (2 << 20)).contains(&bytes), "{bytes} of {counted}"),
        }
    }

    #[test]
    fn the_data_has_full_entropy_and_no_two_equal_parts() {
        let mut data = Incompressible::new(7, 64 << 10, 4_096);
        let mut seen = HashSet::new();
        let mut counts = [0_u64; 256];
        for _ in 0..3 * POOL_BLOCKS {
            for part in data.block().chunks(STAMP_EVERY_BYTES) {
                assert!(seen.insert(part.to_vec()), "a part came twice");
                for byte in part {
                    counts[usize::from(*byte)] += 1;
                }
            }
        }
        let total: u64 = counts.iter().sum();
        let share = |c: &u64| *c as f64 / total as f64;
        let entropy: f64 = -counts.iter().map(|c| share(c) * share(c).log2()).sum::<f64>();
        assert!(entropy > 7.99, "{entropy} bits a byte");
        let mut again = Incompressible::new(7, 64 << 10, 4_096);
        assert!(seen.contains(&again.block()[..STAMP_EVERY_BYTES]), "the seed determines the data");
        let mut other = Incompressible::new(8, 64 << 10, 4_096);
        assert!(!seen.contains(&other.block()[..STAMP_EVERY_BYTES]));
    }

    #[test]
    fn the_file_wraps_round_at_its_size_and_the_count_is_what_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let size_bytes = 5 * 64 * 1024 + 100;
        let writer = Writer::create(directory.path(), size_bytes, 1).unwrap();
        assert_eq!((writer.block_bytes() as u64) * writer.blocks, size_bytes / 4_096 * 4_096);
        let mut writer = Writer::create(directory.path(), 5 << 20, 1).unwrap();
        assert_eq!((writer.blocks, writer.block_bytes()), (5, BLOCK_BYTES));
        let before = DeviceTraffic::of_current_thread();
        let counted: u64 = (0..12).map(|_| writer.write_next().unwrap()).sum();
        assert_eq!(counted, 12 << 20);
        let mut last = AlignedBytes::new(BLOCK_BYTES, 4_096);
        writer.file.read_at(last.as_mut_slice(), 4 << 20).unwrap();
        let e = writer.file.read_at(last.as_mut_slice(), 5 << 20).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
        assert_at_the_device(before, |t| t.written_bytes, counted);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn budgets_keep_to_the_free_space_and_say_what_is_too_small() {
        let directory = tempfile::tempdir().unwrap();
        let free_bytes = disk::free_bytes(directory.path()).unwrap();
        let all = allowed_bytes(directory.path(), u64::MAX).unwrap();
        // Others write at the same time.
        assert!(all > free_bytes / 40 && all < free_bytes / 10, "{all} of {free_bytes}");
        assert_eq!(allowed_bytes(directory.path(), 1 << 20).unwrap(), 1 << 20);
        let e = file_bytes(directory.path(), 1_000).unwrap_err().to_string();
        assert!(e.contains("1000 bytes") && e.contains(directory.path().to_str().unwrap()), "{e}");
        let e = Writer::create(&directory.path().join("absent"), 1 << 20, 1).unwrap_err().to_string();
        assert!(e.contains("absent") && !e.contains('\n'), "{e}");
    }
}
