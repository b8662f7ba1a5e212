//! The kernel's unadjusted clock: works everywhere, costs a vDSO call or, where the kernel distrusts the counter, a
//! system call.

use super::{SourceId, TickSource};

/// `clock_gettime(CLOCK_MONOTONIC_RAW)`; one tick is 1 ns. Not steered by NTP, so a rate measured against it is the
/// rate the kernel itself assumes.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicRaw;

impl TickSource for MonotonicRaw {
    const ID: SourceId = SourceId::MonotonicRaw;

    #[inline(always)]
    fn now() -> u64 {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `t` is a valid timespec for the whole call. The call can't fail: the clock id exists since Linux
        // 2.6.28 and the pointer is good.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut t) };
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    }
}
