//! Read: reads of a file from a device (interbench's load of the same name, which read a file out of the page cache).

use std::path::Path;

use machmeter_data::quantity::Unit;
use machmeter_engine::load::{LoadError, LoadInfo};
use machmeter_stats::random::Random;
use machmeter_sys::disk::{AlignedBytes, BlockFile, DeviceTraffic};
use machmeter_sys::thread::monotonic_ns;

use crate::work::LoadEntry;
use crate::write::{Writer, cannot, check_budget, file_bytes, say_how};

/// What making the file may take, ns; a slow device gets a smaller file.
const PREPARE_WITHIN_NS: u64 = 800_000_000;

/// Blocks to have in the file however slow the device is, so that there is something to seek in.
const LEAST_BLOCKS: u64 = 2;

const LEAST_BUDGET_BYTES: u64 = 64 << 10;

pub(crate) static READ: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "read",
        description: "Reads a whole file repeatedly, with direct I/O if possible.",
        work: "bytes",
        unit: Unit::BytesPerSecond,
        ..LoadEntry::USUAL.info
    },
    check: |request| check_budget(request, LEAST_BUDGET_BYTES),
    run: Some(|work| {
        let directory = work.directory()?;
        let file_bytes = file_bytes(&work.request.directory, work.request.disk_bytes)?;
        work.threads("mm-read", 1, |lane| {
            let count = work.count(lane);
            let stopped = || work.stopped();
            let reader =
                Reader::prepare(directory, file_bytes, work.request.seed, Order::Sequential, &stopped)?;
            // Stopped before there was a file.
            let Some(mut reader) = reader else { return Ok(()) };
            let traffic = DeviceTraffic::of_current_thread();
            count.add(reader.read_next()?);
            say_how(work, &reader.file, "read", traffic, |t| t.read_bytes);
            work.ready();
            while !work.stopped() {
                count.add(reader.read_next()?);
            }
            Ok(())
        })
    }),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Sequential,
    /// Any, in another order every time round; each once.
    Random,
}
pub(crate) struct Reader<'d> {
    directory: &'d Path,
    pub(crate) file: BlockFile,
    buffer: AlignedBytes,
    order: Order,
    random: Random,
    round: Vec<u32>,
    next: usize,
}

impl<'d> Reader<'d> {
    /// Makes a file without a name, of `file_bytes` or what can be written within 0.8 s. `None` when `stopped` before.
    pub(crate) fn prepare(
        directory: &'d Path,
        file_bytes: u64,
        seed: u64,
        order: Order,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, LoadError> {
        let deadline_ns = monotonic_ns() + PREPARE_WITHIN_NS;
        let mut writer = Writer::create(directory, file_bytes, seed)?;
        let mut blocks = 0;
        while blocks < writer.blocks && (blocks < LEAST_BLOCKS || monotonic_ns() < deadline_ns) {
            if stopped() {
                return Ok(None);
            }
            writer.write_next()?;
            blocks += 1;
        }
        let buffer = AlignedBytes::new(writer.block_bytes(), writer.file.align_bytes());
        let mut file = writer.file;
        // What is not written yet can't be dropped from the cache.
        file.write_back().map_err(|e| cannot(directory, &e))?;
        let round = (0..u32::try_from(blocks).unwrap_or(u32::MAX)).collect();
        Ok(Some(Self { directory, file, buffer, order, random: Random::new(seed), round, next: 0 }))
    }

    pub(crate) fn read_next(&mut self) -> Result<u64, LoadError> {
        if self.next == 0 {
            self.file.drop_cached();
            if self.order == Order::Random {
                self.random.shuffle(&mut self.round);
            }
        }
        let block = self.buffer.as_mut_slice();
        let block_bytes = block.len() as u64;
        let read = self.file.read_at(block, u64::from(self.round[self.next]) * block_bytes);
        read.map_err(|e| cannot(self.directory, &e))?;
        self.next = (self.next + 1) % self.round.len();
        Ok(block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Incompressible;
    use crate::write::tests::assert_at_the_device;

    #[test]
    fn every_block_is_read_once_a_round_in_both_orders_and_holds_what_was_written() {
        let directory = tempfile::tempdir().unwrap();
        for order in [Order::Sequential, Order::Random] {
            let mut reader =
                Reader::prepare(directory.path(), 6 << 20, 3, order, &|| false).unwrap().unwrap();
            let blocks = reader.round.len();
            assert!((2..=6).contains(&blocks));
            let mut data = Incompressible::new(3, reader.buffer.as_slice().len(), 4_096);
            let written: Vec<Vec<u8>> = (0..blocks).map(|_| data.block().to_vec()).collect();
            let before = DeviceTraffic::of_current_thread();
            let mut counted = 0;
            for round in 0..3 {
                let mut seen: Vec<usize> = Vec::new();
                for _ in 0..blocks {
                    counted += reader.read_next().unwrap();
                    let found = written.iter().position(|w| w == reader.buffer.as_slice());
                    seen.push(found.expect("a block that was written"));
                }
                let sequential: Vec<usize> = (0..blocks).collect();
                assert!(order == Order::Random || seen == sequential, "round {round}: {seen:?}");
                seen.sort_unstable();
                assert_eq!(seen, sequential, "round {round}");
            }
            assert_at_the_device(before, |t| t.read_bytes, counted);
        }
    }

    #[test]
    fn a_stop_while_the_file_is_made_is_obeyed() {
        let directory = tempfile::tempdir().unwrap();
        let begin_ns = monotonic_ns();
        let none = Reader::prepare(directory.path(), 64 << 20, 3, Order::Sequential, &|| true).unwrap();
        assert!(none.is_none());
        assert!(monotonic_ns() - begin_ns < 30 * PREPARE_WITHIN_NS);
    }
}
