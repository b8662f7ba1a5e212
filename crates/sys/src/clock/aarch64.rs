//! The virtual counter of the Arm generic timer (Arm ARM, D12): one rate on all CPUs by architecture, 1 GHz from
//! Armv8.6 on and mostly 24 to 100 MHz before.

use core::arch::asm;

use super::{SourceId, TickSource};

/// `mrs cntvct_el0`: may be read early by an out-of-order core.
#[derive(Debug, Clone, Copy)]
pub struct Cntvct;

impl TickSource for Cntvct {
    const ID: SourceId = SourceId::Cntvct;

    #[inline(always)]
    fn now() -> u64 {
        let ticks: u64;
        // SAFETY: reads a register that Linux opens to user mode; touches no memory and no flags.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }
}

/// `isb; mrs cntvct_el0`: the barrier keeps the read behind all earlier instructions.
#[derive(Debug, Clone, Copy)]
pub struct CntvctIsb;

impl TickSource for CntvctIsb {
    const ID: SourceId = SourceId::CntvctIsb;

    #[inline(always)]
    fn now() -> u64 {
        let ticks: u64;
        // SAFETY: as in `Cntvct`; without `nomem`, so that the compiler moves no memory access across the stamp.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }
}

/// Lets no later instruction begin before all earlier ones are done.
#[inline(always)]
pub fn barrier() {
    // SAFETY: a barrier; touches no register and no flags.
    unsafe { asm!("isb", options(nostack, preserves_flags)) };
}

/// Lets no later instruction begin before all earlier stores are visible to other CPUs.
#[inline(always)]
pub fn settle() {
    // SAFETY: barriers; they touch no register and no flags.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// By architecture.
pub(super) fn is_steady() -> bool {
    true
}

/// The rate firmware published in `cntfrq_el0`, which is what the kernel uses; Hz.
pub(super) fn counter_hz() -> u64 {
    let hz: u64;
    // SAFETY: a read-only register that Linux opens to user mode.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    hz
}
