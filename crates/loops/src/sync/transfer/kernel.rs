//! The removal of a line from all caches: the only way to make a line clean in the cache of one CPU and absent from another's.

use std::sync::atomic::AtomicU64;

/// Writes the line of `word` back and removes it from all caches. Ordered by [`wait_flushed`].
#[inline]
pub(super) fn flush(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of the base instruction set (SSE2); changes no contents, and the word is mapped.
    unsafe {
        std::arch::x86_64::_mm_clflush(word.as_ptr().cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: Linux lets user space clean and invalidate by address (SCTLR_EL1.UCI); changes no contents.
    unsafe {
        std::arch::asm!("dc civac, {}", in(reg) word.as_ptr(), options(nostack, preserves_flags));
    }
}

#[inline]
pub(super) fn wait_flushed() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of the base instruction set (SSE2).
    unsafe {
        std::arch::x86_64::_mm_mfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier.
    unsafe {
        std::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
}
