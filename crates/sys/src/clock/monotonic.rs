//! The kernel's unadjusted clock: works everywhere, costs a vDSO call or, where the kernel distrusts the counter, a
//! system call.

use super::{SourceId, TickSource};

/// `clock_gettime(CLOCK_MONOTONIC_RAW)`; one tick is 1 ns, not steered by NTP, as the kernel's own rate.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicRaw;

impl TickSource for MonotonicRaw {
    const ID: SourceId = SourceId::MonotonicRaw;

    #[inline(always)]
    fn now() -> u64 {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `t` is a live timespec, and the clock exists since Linux 2.6.28: the call can't fail.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut t) };
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    }
}
