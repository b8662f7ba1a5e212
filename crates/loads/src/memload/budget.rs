//! How much memory the load takes: at its start, and as the machine changes while it runs.

use machmeter_sys::oom::MemoryLeft;

pub(super) const BLOCK_BYTES: u64 = 1 << 20;
/// With less than this the load would be about its own code.
pub(super) const LEAST_BYTES: u64 = 8 << 20;
/// Limit of the load's group where none is asked for: at most this, and at most a quarter of what is available.
const GROUP_DEFAULT_BYTES: u64 = 1 << 30;
/// Without a group where nothing is asked for: more would take longer to fill and to give back than a load may take.
const UNGROUPED_DEFAULT_BYTES: u64 = 2 << 30;
/// Below this share of all memory the load gives way, percent.
const LOW_PERCENT: u64 = 15;
/// Above this share of time in which every task waits for memory the load gives way, percent.
const STALL_PERCENT: f64 = 10.0;

/// The limit of the load's group, or the most it holds without one, bytes.
pub(super) fn limit(asked_bytes: Option<u64>, left: MemoryLeft, grouped: bool) -> Result<u64, String> {
    let half_bytes = left.available_bytes / 2;
    let default_bytes = if grouped {
        GROUP_DEFAULT_BYTES.min(left.available_bytes / 4)
    } else {
        UNGROUPED_DEFAULT_BYTES.min(half_bytes)
    };
    let bytes = asked_bytes.unwrap_or(default_bytes).min(half_bytes) / BLOCK_BYTES * BLOCK_BYTES;
    if bytes < LEAST_BYTES || is_low(left) {
        return Err(format!(
            "only {} MiB of {} MiB of memory are available, too little for this load",
            left.available_bytes >> 20,
            left.total_bytes >> 20
        ));
    }
    Ok(bytes)
}

/// The largest limit of which the file makes a good quarter, so that a group without swap space can reclaim something.
pub(super) fn reclaimable_limit(limit_bytes: u64, file_most_bytes: u64) -> u64 {
    // In a smaller group whole blocks leave no difference between a tenth more and nothing more.
    const LEAST_FILE_BYTES: u64 = 8 << 20;
    if file_most_bytes < LEAST_FILE_BYTES {
        return limit_bytes;
    }
    limit_bytes.min(file_most_bytes.saturating_mul(4)) / BLOCK_BYTES * BLOCK_BYTES
}

/// What is kept in use inside a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkingSet {
    pub(super) anonymous_bytes: u64,
    /// A file that is read over and over, bytes.
    pub(super) file_bytes: u64,
}

impl WorkingSet {
    /// 110 % of `limit_bytes`, so that it reclaims all the time: anonymous memory to swap space, file pages to the file.
    pub(super) fn for_limit(limit_bytes: u64, swap_free_bytes: u64, file_most_bytes: u64) -> Self {
        let tenths = |n: u64| limit_bytes / 10 * n;
        let (least, most) =
            if swap_free_bytes >= limit_bytes / 2 { (tenths(9), tenths(11)) } else { (tenths(5), tenths(8)) };
        let anonymous_bytes = tenths(11).saturating_sub(file_most_bytes).clamp(least, most);
        let file_bytes = file_most_bytes.min(tenths(11) - anonymous_bytes);
        let whole = |bytes: u64| bytes / BLOCK_BYTES * BLOCK_BYTES;
        Self { anonymous_bytes: whole(anonymous_bytes), file_bytes: whole(file_bytes) }
    }

    pub(super) fn bytes(self) -> u64 {
        self.anonymous_bytes + self.file_bytes
    }
}

fn is_low(left: MemoryLeft) -> bool {
    left.available_bytes < left.total_bytes / 100 * LOW_PERCENT
}

/// Whether the load must give way at once. Inside a group, stalls are what the load is for.
pub(super) fn must_yield(left: MemoryLeft, full_stall_percent: Option<f64>, grouped: bool) -> bool {
    is_low(left) || (!grouped && full_stall_percent.is_some_and(|percent| percent > STALL_PERCENT))
}

/// How much may be held now, bytes, of `wanted_bytes`, by a load that holds `held_bytes`.
pub(super) fn allowed(
    left: MemoryLeft,
    full_stall_percent: Option<f64>,
    held_bytes: u64,
    wanted_bytes: u64,
    grouped: bool,
) -> u64 {
    if must_yield(left, full_stall_percent, grouped) {
        held_bytes / 2
    } else if grouped {
        wanted_bytes
    } else {
        // Never more than half of what would be available without the load.
        wanted_bytes.min(u64::midpoint(held_bytes, left.available_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn left(total_mib: u64, available_mib: u64) -> MemoryLeft {
        MemoryLeft { total_bytes: total_mib * MIB, available_bytes: available_mib * MIB, swap_free_bytes: 0 }
    }

    #[test]
    fn limits_follow_what_is_available() {
        assert_eq!(limit(None, left(24_000, 20_000), true), Ok(1_024 * MIB));
        assert_eq!(limit(None, left(2_000, 1_600), true), Ok(400 * MIB));
        assert_eq!(limit(None, left(24_000, 20_000), false), Ok(2_048 * MIB));
        assert_eq!(limit(Some(64 * MIB), left(24_000, 20_000), true), Ok(64 * MIB));
        assert_eq!(limit(Some(15_000 * MIB), left(24_000, 20_000), true), Ok(10_000 * MIB));
        assert!(limit(None, left(1_000, 149), false).unwrap_err().contains("149 MiB of 1000 MiB"));
        assert!(limit(None, left(40, 12), false).is_err());
    }

    #[test]
    fn the_working_set_is_a_tenth_more_than_the_limit_wherever_it_can_be() {
        let limit = 1_000 * MIB;
        for (swap_mib, file_mib, want) in [
            (0, 10_000, (500, 600)),
            (0, 400, (700, 400)),
            (0, 250, (800, 250)),
            (0, 0, (800, 0)),
            (600, 10_000, (900, 200)),
            (600, 0, (1_100, 0)),
        ] {
            let set = WorkingSet::for_limit(limit, swap_mib * MIB, file_mib * MIB);
            let mib = (set.anonymous_bytes / MIB, set.file_bytes / MIB);
            assert_eq!(mib, want, "swap {swap_mib} file {file_mib}");
        }
    }

    #[test]
    fn a_limit_of_its_own_choice_leaves_something_to_reclaim() {
        for file_mib in [8, 9, 13, 16, 50, 256, 5_000] {
            let limit = reclaimable_limit(1_024 * MIB, file_mib * MIB);
            let set = WorkingSet::for_limit(limit, 0, file_mib * MIB);
            assert!(set.bytes() > limit && set.anonymous_bytes <= limit / 10 * 8, "{file_mib}: {set:?}");
        }
        assert_eq!(reclaimable_limit(1_024 * MIB, 2 * MIB), 1_024 * MIB);
    }

    #[test]
    fn without_a_group_half_of_the_free_memory_is_never_passed() {
        // A machine of 1000 MiB on which somebody else takes more and more.
        let (mut held, mut others) = (0_u64, 200_u64);
        for _ in 0..200 {
            let available = 1_000 - others - held;
            held = allowed(left(1_000, available), Some(0.0), held * MIB, 900 * MIB, false) / MIB;
            assert!(held <= (1_000 - others) / 2, "holds {held} beside {others}");
            others = (others + 5).min(880);
        }
        assert!(held < 60, "gives way: {held}");
    }

    #[test]
    fn stalls_and_low_memory_halve_what_is_held() {
        let plenty = left(1_000, 800);
        assert_eq!(allowed(plenty, Some(11.0), 64 * MIB, 64 * MIB, false), 32 * MIB);
        assert_eq!(allowed(plenty, Some(11.0), 64 * MIB, 64 * MIB, true), 64 * MIB);
        assert_eq!(allowed(plenty, None, 64 * MIB, 64 * MIB, false), 64 * MIB);
        assert_eq!(allowed(left(1_000, 140), None, 64 * MIB, 64 * MIB, true), 32 * MIB);
    }
}
