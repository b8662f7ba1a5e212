//! What the system says about its caches, carried from the measurement to the analysis as a fact.

use std::collections::BTreeMap;

use machmeter_sys::topology::{Cache, Topology};

/// Name of the fact.
const CACHES: &str = "ladder.caches";

/// A cache as the system describes it; 0 for what it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    /// 1 is the nearest.
    pub(super) level: u32,
    /// Capacity, bytes.
    pub(super) bytes: usize,
    /// Line, bytes.
    pub(super) line_bytes: usize,
    /// Ways.
    pub(super) ways: usize,
}

/// The data caches of the measured CPU, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Claims(pub(super) Vec<Claim>);

impl Claims {
    /// Of a CPU.
    pub(super) fn of(topology: &Topology, cpu: usize) -> Self {
        let number = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let claim = |c: &Cache| Claim {
            level: c.level,
            bytes: number(c.size_bytes),
            line_bytes: number(c.line_bytes),
            ways: c.ways.map_or(0, |w| w as usize),
        };
        Self(topology.data_caches(cpu).into_iter().map(claim).filter(|c| c.bytes > 0).collect())
    }

    /// Size of the last cache, bytes.
    pub(super) fn last_bytes(&self) -> Option<usize> {
        self.0.last().map(|c| c.bytes)
    }

    /// Adds the fact.
    pub(super) fn tell(&self, facts: &mut BTreeMap<String, String>) {
        let text = |c: &Claim| format!("{}:{}:{}:{}", c.level, c.bytes, c.line_bytes, c.ways);
        facts.insert(CACHES.to_owned(), self.0.iter().map(text).collect::<Vec<_>>().join(","));
    }

    /// From the facts; empty where there is none.
    pub(super) fn read(facts: &BTreeMap<String, String>) -> Self {
        let claim = |text: &str| {
            let mut numbers = text.split(':').map(|n| n.parse::<usize>().ok());
            let mut next = || numbers.next().flatten();
            Some(Claim { level: next()? as u32, bytes: next()?, line_bytes: next()?, ways: next()? })
        };
        Self(facts.get(CACHES).map_or_else(Vec::new, |t| t.split(',').filter_map(claim).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_survive_as_facts() {
        let claims = Claims(vec![
            Claim { level: 1, bytes: 32_768, line_bytes: 64, ways: 8 },
            Claim { level: 3, bytes: 32 << 20, line_bytes: 64, ways: 0 },
        ]);
        let mut facts = BTreeMap::new();
        claims.tell(&mut facts);
        assert_eq!(Claims::read(&facts), claims);
        assert_eq!(claims.last_bytes(), Some(32 << 20));
        assert_eq!(Claims::read(&BTreeMap::new()), Claims::default());
        facts.insert(CACHES.to_owned(), "1:x,2".to_owned());
        assert_eq!(Claims::read(&facts), Claims::default());
    }
}
