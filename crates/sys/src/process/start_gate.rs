//! Sleeping on a word of memory, shared between processes or not (futex(2)).

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::thread::futex::{self, Flags};

use crate::thread::timespec;

/// The half of the word that the kernel compares: the low one.
fn low_half(word: &AtomicU64) -> &AtomicU32 {
    // The low half of a word comes last where the highest byte comes first.
    let half = word.as_ptr().cast::<u32>().wrapping_add(usize::from(cfg!(target_endian = "big")));
    // SAFETY: half of a live word, and reached by the kernel only.
    unsafe { AtomicU32::from_ptr(half) }
}

/// Sleeps while the word's low 32 bits equal those of `value`, until somebody calls [`wake_all`], `until_ns` (monotonic)
/// comes, or for no reason: look again after it.
pub fn sleep_while(word: &AtomicU64, value: u64, until_ns: u64) {
    // Centuries are for ever, and fit the kernel's type.
    let until = timespec(until_ns.min(i64::MAX as u64));
    let _ = futex::wait_bitset(low_half(word), Flags::empty(), value as u32, Some(&until), NonZeroU32::MAX);
}

/// Wakes all that sleep on the word. Change it before.
pub fn wake_all(word: &AtomicU64) {
    let _ = futex::wake(low_half(word), Flags::empty(), i32::MAX as u32);
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
