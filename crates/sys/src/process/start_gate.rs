//! Sleeping on a word of memory, shared between processes or not (futex(2)).

use std::sync::atomic::AtomicU64;

use libc::{c_long, timespec};

/// The half of the word that the kernel compares: the low one.
fn low_half(word: &AtomicU64) -> *mut u32 {
    let halves = word.as_ptr().cast::<u32>();
    // The low half of a word comes last where the highest byte comes first.
    halves.wrapping_add(usize::from(cfg!(target_endian = "big")))
}

/// Sleeps while the word's low 32 bits equal those of `value`, until somebody calls [`wake_all`], `until_ns` (monotonic)
/// comes, or for no reason: look again after it.
pub fn sleep_while(word: &AtomicU64, value: u64, until_ns: u64) {
    // Centuries are for ever, and fit the kernel's type.
    let until_ns = until_ns.min(i64::MAX as u64);
    let until = timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as c_long,
    };
    let nothing = std::ptr::null::<u32>();
    let any = u32::MAX;
    // SAFETY: the word lives for the call, the kernel only reads it; the time is a live timespec.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(word),
            libc::FUTEX_WAIT_BITSET,
            value as u32,
            &raw const until,
            nothing,
            any,
        )
    };
}

/// Wakes all that sleep on the word. Change it before.
pub fn wake_all(word: &AtomicU64) {
    // SAFETY: the word lives for the call, which uses its address only.
    unsafe { libc::syscall(libc::SYS_futex, low_half(word), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::monotonic_ns;
    use std::sync::atomic::Ordering;

    #[test]
    fn sleepers_are_woken_and_end_by_themselves() {
        let word = AtomicU64::new(7);
        let begin_ns = monotonic_ns();
        sleep_while(&word, 8, u64::MAX);
        sleep_while(&word, 7, begin_ns + 5_000_000);
        assert!(monotonic_ns() >= begin_ns + 5_000_000, "as long as it was told, no reason to wake before");
        std::thread::scope(|s| {
            s.spawn(|| {
                while word.load(Ordering::Acquire) == 7 {
                    sleep_while(&word, 7, u64::MAX);
                }
            });
            word.store(9, Ordering::Release);
            wake_all(&word);
        });
    }
}
