//! Kernels that touch no memory: the empty loop (the control of the seed's method), and chains of additions whose cost is
//! known to be one cycle each.

use core::arch::naked_asm;

use super::{Chain, Declared, Kernel, Walk};

/// The kernels.
pub(super) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "empty",
        what: "the loop itself: count down and branch",
        width_bits: 64,
        available: || true,
        declared: register(1),
        walk: Walk::Register,
        code: empty,
    },
    Kernel {
        name: "adds.16",
        what: "16 additions, each needing the one before",
        width_bits: 64,
        available: || true,
        declared: register(1),
        walk: Walk::Register,
        code: adds_16,
    },
];

const fn register(branches: u32) -> Declared {
    Declared {
        loads: 0,
        stores: 0,
        streaming_stores: 0,
        load_bytes: 0,
        store_bytes: 0,
        branches,
        flops: 0,
        chain: Chain::Dependent,
    }
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn empty(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!("2:", "mov rax, rsi", ".p2align 5", "3:", "dec rax", "jnz 3b", "dec rdi", "jnz 2b", "ret")
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn empty(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!(
        "2:",
        "mov x9, x1",
        ".p2align 5",
        "3:",
        "subs x9, x9, #1",
        "b.ne 3b",
        "subs x0, x0, #1",
        "b.ne 2b",
        "ret"
    )
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn adds_16(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    // The second operand is a register, because recent processors fold chains of additions of constants.
    naked_asm!(
        "xor eax, eax",
        "mov ecx, 1",
        "2:",
        "mov r10, rsi",
        ".p2align 5",
        "3:",
        ".rept 16",
        "add rax, rcx",
        ".endr",
        "dec r10",
        "jnz 3b",
        "dec rdi",
        "jnz 2b",
        "ret"
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn adds_16(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!(
        "mov x10, x0",
        "mov x0, xzr",
        "mov x11, #1",
        "2:",
        "mov x9, x1",
        ".p2align 5",
        "3:",
        ".rept 16",
        "add x0, x0, x11",
        ".endr",
        "subs x9, x9, #1",
        "b.ne 3b",
        "subs x10, x10, #1",
        "b.ne 2b",
        "ret"
    )
}
