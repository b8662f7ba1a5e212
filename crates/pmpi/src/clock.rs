//! Ticks of the processor where they run at one rate, else the monotonic clock.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::system;

/// Whether ticks are the processor's.
static IS_PROCESSOR: AtomicBool = AtomicBool::new(false);

/// A reading that was disturbed took longer than this, ticks: a microsecond at 2 GHz.
const MOST_APART: u64 = 2_000;
/// Readings at most until one is not disturbed.
const MOST_READINGS: u32 = 8;

/// Chooses; returns whether ticks are the processor's.
pub(crate) fn choose() -> bool {
    let steady = is_steady();
    IS_PROCESSOR.store(steady, Ordering::Relaxed);
    steady
}

/// The kernel gives up a time stamp counter that is not the same on all CPUs, and says so in its choice of a clock.
#[cfg(target_arch = "x86_64")]
fn is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    /// Extended leaf with the bit "invariant TSC" (Intel SDM 2, CPUID; AMD APM 3, E.4.6).
    const POWER: u32 = 0x8000_0007;
    let is_invariant = __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0;
    let chosen = std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    is_invariant && chosen.is_ok_and(|name| name.starts_with(b"tsc") || name.starts_with(b"kvm-clock"))
}

#[cfg(not(target_arch = "x86_64"))]
fn is_steady() -> bool {
    cfg!(target_arch = "aarch64")
}

#[inline(always)]
pub(crate) fn ticks() -> u64 {
    if IS_PROCESSOR.load(Ordering::Relaxed) { counter() } else { monotonic_ns() }
}

#[cold]
#[inline(never)]
fn monotonic_ns() -> u64 {
    now_ns(system::CLOCK_MONOTONIC)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads the virtual counter, which Linux lets programs read.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
    };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    monotonic_ns()
}

/// A clock of the system, ns.
pub(crate) fn now_ns(clock: c_int) -> u64 {
    let mut time = system::Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the place for the answer lives through the call; these clocks are always there.
    unsafe { system::clock_gettime(clock, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Ticks and the monotonic clock at one time, ns.
pub(crate) fn pair() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..MOST_READINGS {
        let before = ticks();
        let at_ns = now_ns(system::CLOCK_MONOTONIC);
        let apart = ticks().saturating_sub(before);
        if apart < best.0 {
            best = (apart, before + apart / 2, at_ns);
        }
        if apart <= MOST_APART {
            break;
        }
    }
    (best.1, best.2)
}
