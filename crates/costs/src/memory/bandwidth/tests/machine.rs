//! On this machine.

use machmeter_engine::cost::Cost;
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::team::sampler::HostClock;
use machmeter_sys::pages::Backing;

use super::super::together;
use super::{Buffer, CHUNK_BYTES, Contents, Level, Spec, Stream, spec};
use crate::testing::{sampled, seats};

#[test]
fn the_first_cache_is_read_faster_than_memory() {
    let _cpus = crate::testing::lock_cpus();
    let bytes = 64 << 20;
    let buffer = Buffer::new(bytes, Backing::Small, Contents::Random).unwrap();
    buffer.fill(3);
    let near = Spec { working_set_bytes: 24 << 10, ..spec("read", Level::L1, 1) };
    let far = Spec { working_set_bytes: bytes, level: Level::Memory, ..near };
    let benches = [near, far].map(|s| {
        let stream = Stream::new(s.kernel, &buffer, s.working_set_bytes, CHUNK_BYTES).unwrap();
        Bench::new(s.row(stream.kernel_turns()), stream)
    });
    let rows = sampled(CellList::of_benches(benches.into(), Pace::of(Pace::BATCH_NS, 3)), 1_000_000_000);
    let ns_per_tick = HostClock::MONOTONIC.rate.ns_per_tick();
    let costs: Vec<Cost> = rows.iter().map(|r| Cost::of(r, ns_per_tick, 1)).collect();
    let [Some(near), Some(far)] = [costs[0].value_ns(), costs[1].value_ns()] else {
        let rejected: u64 = rows.iter().map(|r| r.rejected.total()).sum();
        assert!(rejected > 0, "no figures, and nothing disturbed: {costs:?}");
        return;
    };
    assert!(near * 1.3 < far, "{near} ns per byte in L1, {far} in memory");
}

#[test]
fn several_cpus_work_at_once_and_end_in_time() {
    let Some((_lock, cpus)) = crate::testing::lock_several() else { return };
    let bytes = 32 << 20;
    let specs =
        [1_usize, 2].map(|cpus| Spec { working_set_bytes: bytes, ..spec("copy", Level::Memory, cpus) });
    let buffer = || Buffer::new(bytes, Backing::Small, Contents::Random).unwrap();
    let buffers = [buffer(), buffer()];
    buffers[0].fill(1);
    let (seats, clock) = (seats(&cpus[..2]), HostClock::MONOTONIC);
    let setting = together::Setting { seats, buffers: buffers.iter().collect(), clock, seed: 1 };
    let cells = specs.iter().map(|spec| together::TogetherCell::new(&setting, spec).unwrap());
    let rows = sampled(cells.collect(), 1_500_000_000);
    let tried: u64 = rows.iter().map(|r| r.pairs.len() as u64 + r.rejected.total()).sum();
    assert!(tried > 0, "{rows:?}");
    for row in rows.iter().filter(|r| r.pairs.len() > 6) {
        let Some(ns) = Cost::of(row, clock.rate.ns_per_tick(), 1).value_ns() else { continue };
        // Between a tenth of the slowest and ten times the fastest memory there is.
        assert!((1e8..1e13).contains(&(1e9 / ns)), "{ns} ns per byte: {row:?}");
    }
}
