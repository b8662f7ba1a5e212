//! The caches as the system reports them.

use machmeter_sys::topology::{Cache, Topology};
use serde::{Deserialize, Serialize};

/// A cache as the system describes it; 0 for what it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportedCache {
    /// 1 is the nearest.
    pub(super) level: u32,
    pub(super) bytes: usize,
    pub(super) line_bytes: usize,
    pub(super) ways: usize,
}

/// The data caches of a CPU that have a size, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct ReportedCaches(pub(super) Vec<ReportedCache>);

impl ReportedCaches {
    pub(super) fn of(topology: &Topology, cpu: usize) -> Self {
        let number = |n: Option<u64>| n.map_or(0, |n| n as usize);
        let cache = |c: &Cache| ReportedCache {
            level: c.level,
            bytes: number(c.size_bytes),
            line_bytes: number(c.line_bytes),
            ways: number(c.ways.map(u64::from)),
        };
        Self(topology.data_caches(cpu).into_iter().map(cache).filter(|c| c.bytes > 0).collect())
    }

    /// Capacity of the cache of a level, bytes; 0 where none is claimed.
    pub(super) fn level_bytes(&self, level: u32) -> usize {
        self.0.iter().find(|c| c.level == level).map_or(0, |c| c.bytes)
    }

    pub(super) fn last_bytes(&self) -> Option<usize> {
        self.0.last().map(|c| c.bytes)
    }

    /// Caches of these capacities from the first level on, with lines of 64 bytes.
    #[cfg(test)]
    pub(super) fn planted(capacities: &[usize]) -> Self {
        let cache =
            |(level, bytes): (u32, &usize)| ReportedCache { level, bytes: *bytes, line_bytes: 64, ways: 8 };
        Self((1..).zip(capacities).map(cache).collect())
    }
}
