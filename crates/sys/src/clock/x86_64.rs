//! The time stamp counter of x86-64 in its three read variants, and what CPUID says about it.
//!
//! Order of reads: Intel SDM volume 2, RDTSC and RDTSCP; AMD APM volume 3. `lfence` waits for earlier instructions on
//! Intel, and on AMD since the kernel sets its dispatch-serializing bit.

use core::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _mm_mfence, _rdtsc, CpuidResult};
use std::sync::OnceLock;

use super::{SourceId, TickSource};
use crate::facts::field;
use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy)]
pub struct Rdtsc;

impl TickSource for Rdtsc {
    const ID: SourceId = SourceId::Rdtsc;

    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: every x86-64 CPU has the instruction; Linux leaves it open to user mode.
        unsafe { _rdtsc() }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LfenceRdtsc;

impl TickSource for LfenceRdtsc {
    const ID: SourceId = SourceId::LfenceRdtsc;

    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: part of SSE2, which every x86-64 CPU has.
        unsafe { _mm_lfence() };
        // SAFETY: as in `Rdtsc`.
        unsafe { _rdtsc() }
    }
}

/// Lets no later instruction begin before all earlier ones are done.
#[inline(always)]
pub fn barrier() {
    // SAFETY: part of SSE2, which every x86-64 CPU has.
    unsafe { _mm_lfence() };
}

/// Lets no later instruction begin before all earlier stores are visible to other CPUs. A memory fence of the language does not order a
/// tick read: the processor reads its counter while stores still wait for their cache lines.
#[inline(always)]
pub fn settle() {
    // SAFETY: part of SSE2, which every x86-64 CPU has.
    unsafe { _mm_mfence() };
    barrier();
}

/// `rdtscp`. Only on CPUs that have it: see [`SourceId::is_available`].
#[derive(Debug, Clone, Copy)]
pub struct Rdtscp;

impl TickSource for Rdtscp {
    const ID: SourceId = SourceId::Rdtscp;

    #[inline(always)]
    fn now() -> u64 {
        let mut aux = 0;
        // SAFETY: `aux` outlives the call; `dispatch` never runs this source on a CPU without the instruction.
        unsafe { __rdtscp(&raw mut aux) }
    }
}

#[allow(
    unused_unsafe,
    reason = "the intrinsic became safe between the oldest supported compiler and today's"
)]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { __cpuid(leaf) }
}

/// The four registers of one CPUID leaf, or `None` where the CPU does not list it.
pub(super) fn leaf(number: u32) -> Option<[u32; 4]> {
    let group = number & 0xf000_0000;
    if group == 0x4000_0000 && !has_hypervisor() {
        return None;
    }
    let highest = cpuid(group).eax;
    // A CPU without the group answers with its highest basic leaf, whose EAX lies outside the group.
    if highest & 0xf000_0000 != group || number > highest {
        return None;
    }
    let r = cpuid(number);
    Some([r.eax, r.ebx, r.ecx, r.edx])
}

/// Whether CPUID has the bit every hypervisor sets.
fn has_hypervisor() -> bool {
    cpuid(1).ecx >> 31 & 1 == 1
}

/// The hypervisor's signature of leaf 0x40000000 (`KVMKVMKVM`, `Microsoft Hv`, ...), if one shows itself.
pub(crate) fn hypervisor_signature() -> Option<String> {
    let [_, b, c, d] = leaf(0x4000_0000)?;
    let bytes: Vec<u8> =
        [b, c, d].iter().flat_map(|r| r.to_le_bytes()).filter(u8::is_ascii_graphic).collect();
    String::from_utf8(bytes).ok().filter(|s| !s.is_empty())
}

/// CPUID 0x80000001 EDX bit 27, asked once: a hypervisor traps CPUID (7.4 us seen under KVM), and every dispatch asks.
pub(super) fn has_rdtscp() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| leaf(0x8000_0001).is_some_and(|r| r[3] >> 27 & 1 == 1))
}

/// Whether the counter runs at one rate in all P, C and T states: by CPUID 0x80000007 EDX bit 8, or by the kernel's word.
pub(super) fn is_steady() -> bool {
    // The first CPU's part; the rest can take the kernel long on a large machine.
    let cpuinfo = || FsRoot::host().read_start("proc/cpuinfo", 4096).unwrap_or_default();
    leaf(0x8000_0007).is_some_and(|r| r[3] >> 8 & 1 == 1) || is_steady_to_kernel(&cpuinfo())
}

/// The rate does not follow the core's frequency (`constant_tsc`), and it runs on in deep idle states (`nonstop_tsc`).
fn is_steady_to_kernel(cpuinfo: &str) -> bool {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split_whitespace().any(|f| f == *flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_must_state_both_parts_of_a_steady_counter() {
        assert!(is_steady_to_kernel("processor\t: 0\nflags\t\t: fpu nonstop_tsc constant_tsc rdtscp\n"));
        for flags in ["fpu constant_tsc", "fpu nonstop_tsc", "", "fpu xconstant_tsc nonstop_tsc"] {
            assert!(!is_steady_to_kernel(&format!("flags\t\t: {flags}\n")), "{flags}");
        }
        assert!(!is_steady_to_kernel(""));
    }
}
