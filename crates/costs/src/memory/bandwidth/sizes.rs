//! How large the working sets are: one that fits each cache that the system claims, and one that fits none.

use machmeter_engine::Level as RunLevel;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;

use crate::memory::reported::ReportedCaches;

machmeter_data::named! { pub(in crate::memory) enum Level {
    L1 = "L1",
    L2 = "L2",
    /// Last cache, where it is not the second.
    Last = "LLC",
    Memory = "DRAM",
    /// A point between, of the curve over sizes.
    Sweep = "sweep",
} }

impl Level {
    pub(in crate::memory) const TABLE: [Self; 4] = [Self::L1, Self::L2, Self::Last, Self::Memory];
}

/// Taken where the system claims no caches: small enough for the first caches of all processors in use.
const L1_UNCLAIMED_BYTES: usize = 32 << 10;
/// Walked in memory where no last cache is claimed.
const MEMORY_UNCLAIMED_BYTES: usize = 256 << 20;
/// Least for memory: small claimed caches are claimed wrongly more often than they exist.
pub(in crate::memory) const MEMORY_LEAST_BYTES: usize = 64 << 20;
pub(in crate::memory) const MEMORY_FEWEST_BYTES: usize = 8 << 20;

/// The working set for each level that there is, memory not among them, bytes over all operands.
pub(in crate::memory) fn cached(claimed: &ReportedCaches) -> Vec<(Level, usize)> {
    let (l1_bytes, l2_bytes) = (claimed.level_bytes(1), claimed.level_bytes(2));
    let l1_bytes = if l1_bytes > 0 { l1_bytes } else { L1_UNCLAIMED_BYTES };
    let mut out = vec![(Level::L1, l1_bytes / 4 * 3)];
    if l2_bytes >= 4 * l1_bytes {
        out.push((Level::L2, l2_bytes / 2));
    }
    if let Some(last_bytes) = claimed.last_bytes().filter(|last| *last >= 4 * l2_bytes.max(l1_bytes)) {
        // A shared last cache is seldom ours alone, nor a guest's what is claimed: take little.
        let bytes = (last_bytes / 10).max(2 * l2_bytes).max(4 * l1_bytes);
        out.push((Level::Last, bytes.next_multiple_of(64 << 10)));
    }
    out
}

/// Largest working set that nobody asked for, bytes: parts hold theirs at once; a gigabyte takes a second.
pub(in crate::memory) const fn most_bytes(level: RunLevel) -> usize {
    match level {
        RunLevel::Quick => 128 << 20,
        RunLevel::Standard => 256 << 20,
        RunLevel::Thorough | RunLevel::Soak => usize::MAX,
    }
}

/// The working set that fits no cache: four times the last one, as STREAM's rule and the loaded-latency tools have it.
pub(in crate::memory) fn memory_wanted(claimed: &ReportedCaches) -> usize {
    let wanted = |last_bytes: usize| last_bytes.saturating_mul(4).max(MEMORY_LEAST_BYTES);
    claimed.last_bytes().map_or(MEMORY_UNCLAIMED_BYTES, wanted)
}

/// Memory left to this process, bytes; little where that is not told.
pub(in crate::memory) fn available_bytes() -> f64 {
    let left = MemoryLeft::of_this_process(&FsRoot::host());
    left.map_or(MEMORY_FEWEST_BYTES as f64 * 8.0, |m| m.available_bytes as f64)
}

/// `wanted` halved until it is at most `most`, so that like runs take one size; `None`: no memory.
pub(in crate::memory) fn within(wanted: usize, most: usize) -> Option<usize> {
    let mut bytes = wanted;
    while bytes > most {
        bytes /= 2;
    }
    let bytes = bytes / 4_096 * 4_096;
    (bytes >= MEMORY_FEWEST_BYTES.min(wanted)).then_some(bytes)
}

/// Sizes of the curve: two per octave from 4 KiB up to `memory_bytes`, without those next to a level's own.
pub(in crate::memory) fn sweep(memory_bytes: usize) -> Vec<usize> {
    let octaves = |bytes: usize| [bytes, (bytes as f64 * std::f64::consts::SQRT_2) as usize / 256 * 256];
    (12..usize::BITS - 2)
        .map(|shift| 1_usize << shift)
        .take_while(|bytes| *bytes < memory_bytes)
        .flat_map(octaves)
        .filter(|bytes| *bytes < memory_bytes)
        .collect()
}

/// A size as a person writes it: `65536`, `64K`, `64KiB`, `1.5G`; units are powers of 1,024.
pub(in crate::memory) fn parse_bytes(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let digits = t.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(t.len());
    let (number, unit) = t.split_at(digits);
    let wrong = || format!("'{text}' is not a size: write for example 65536, 64M or 1GiB");
    let unit = unit.trim().to_ascii_lowercase();
    let unit_bytes: u64 = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return Err(wrong()),
    };
    let bytes = number.parse::<f64>().map_err(|_| wrong())? * unit_bytes as f64;
    if (1.0..9e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}
