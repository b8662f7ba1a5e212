//! Loops that do not do what they declare, as compilers and authors have produced them. They are read, never run: a check
//! that does not fail on each of them proves nothing.

use crate::kernel::declared::{additions, chase, strided};
use crate::kernel::{Declared, Kernel, Walk};

const fn fixture(name: &'static str, declared: Declared, walk: Walk, code: crate::kernel::Code) -> Kernel {
    Kernel { name, width_bits: 64, available: || false, declared, walk, code }
}

/// Loads that the seed's loop was meant to make.
const EIGHT_READS: Declared = strided(8, 0);

/// Every one of these must fail [`super::check`]. None is available to run.
pub(in crate::kernel) const FIXTURES: &[Kernel] = &[
    fixture("seed_unrolled", EIGHT_READS, Walk::Strided(8), code::seed_unrolled),
    fixture(
        "folded_loads",
        Declared { loads: 16, load_bytes: 128, ..strided(0, 0) },
        Walk::Forward([8, 0, 0]),
        code::folded_loads,
    ),
    fixture("folded_sum", additions(16), Walk::Register, code::folded_sum),
    fixture("spill", chase(1), Walk::Chase, code::spill),
    fixture("branches", additions(2), Walk::Register, code::branches),
    fixture("call", additions(1), Walk::Register, code::call),
    fixture("overlap", chase(1), Walk::Chase, code::overlap),
    fixture(
        "gap",
        Declared { loads: 7, load_bytes: 56, ..strided(0, 0) },
        Walk::Forward([64, 0, 0]),
        code::gap,
    ),
    fixture("overrun", EIGHT_READS, Walk::Forward([64, 0, 0]), code::overrun),
];

/// A function with the bodies of one turn.
macro_rules! turn {
    ($name:ident, $($turn:expr),* $(,)?) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(
            _: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64,
        ) -> u64 {
            ::core::arch::naked_asm!($($turn,)* "ret", ".p2align 4", ".skip 16, 0")
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod code {
    turn!(
        seed_unrolled,
        "lea r11, [r9+2*r9]",
        "3:",
        "mov rax, [rdx]",
        "mov rax, [rdx+2*r9]",
        "mov rax, [rdx+r11]",
        "mov rax, [rdx+4*r9]",
        "mov rax, [rdx+r8]",
        "mov rax, [rdx+2*r11]",
        "mov rax, [rdx+rcx]",
        "lea rdx, [rdx+8*r9]",
        "dec rsi",
        "jnz 3b",
    );
    turn!(
        folded_loads,
        "3:",
        "mov rcx, [rdx]",
        "shl rcx, 4",
        "add rax, rcx",
        "add rdx, 8",
        "dec rsi",
        "jnz 3b"
    );
    turn!(folded_sum, "shl rcx, 4", "3:", "add rax, rcx", "dec rsi", "jnz 3b");
    turn!(
        spill,
        "3:",
        ".rept 16",
        "mov rax, [rax]",
        ".endr",
        "mov [rsp-8], rax",
        "mov rax, [rsp-8]",
        "dec rsi",
        "jnz 3b",
    );
    turn!(branches, "3:", "add rax, rcx", "jc 4f", "add rax, rcx", "4:", "dec rsi", "jnz 3b");
    turn!(call, "3:", "call 4f", "dec rsi", "jnz 3b", "jmp 5f", "4:", "inc rax", "ret", "5:");
    turn!(overlap, "3:", ".rept 8", "mov rax, [rax]", "mov rcx, [rcx]", ".endr", "dec rsi", "jnz 3b",);
    turn!(
        gap,
        "3:",
        ".irp i,0,2,3,4,5,6,7",
        "mov rax, [rdx+8*\\i]",
        ".endr",
        "add rdx, 64",
        "dec rsi",
        "jnz 3b",
    );
    turn!(
        overrun,
        "3:",
        ".irp i,0,1,2,3,4,5,6,7",
        "mov rax, [rdx+8*\\i]",
        ".endr",
        "add rdx, 128",
        "dec rsi",
        "jnz 3b",
    );
}

#[cfg(target_arch = "aarch64")]
mod code {
    turn!(
        seed_unrolled,
        "3:",
        "ldr x0, [x2]",
        "ldr x0, [x2, x6]",
        "ldr x0, [x2, x7]",
        "ldr x0, [x2, x8]",
        "ldr x0, [x2, x9]",
        "ldr x0, [x2, x10]",
        "ldr x0, [x2, x11]",
        "add x2, x2, x5, lsl #3",
        "subs x1, x1, #1",
        "b.ne 3b",
    );
    turn!(
        folded_loads,
        "3:",
        "ldr x3, [x2]",
        "add x0, x0, x3, lsl #4",
        "add x2, x2, #8",
        "subs x1, x1, #1",
        "b.ne 3b"
    );
    turn!(folded_sum, "3:", "add x0, x0, x3, lsl #4", "subs x1, x1, #1", "b.ne 3b");
    turn!(
        spill,
        "3:",
        ".rept 16",
        "ldr x0, [x0]",
        ".endr",
        "str x0, [sp]",
        "ldr x0, [sp]",
        "subs x1, x1, #1",
        "b.ne 3b",
    );
    turn!(
        branches,
        "3:",
        "add x0, x0, x3",
        "cbz x0, 4f",
        "add x0, x0, x3",
        "4:",
        "subs x1, x1, #1",
        "b.ne 3b"
    );
    turn!(call, "3:", "bl 4f", "subs x1, x1, #1", "b.ne 3b", "b 5f", "4:", "add x0, x0, #1", "ret", "5:");
    turn!(overlap, "3:", ".rept 8", "ldr x0, [x0]", "ldr x3, [x3]", ".endr", "subs x1, x1, #1", "b.ne 3b",);
    turn!(
        gap,
        "3:",
        ".irp i,0,2,3,4,5,6,7",
        "ldr x0, [x2, #8*\\i]",
        ".endr",
        "add x2, x2, #64",
        "subs x1, x1, #1",
        "b.ne 3b",
    );
    turn!(
        overrun,
        "3:",
        ".irp i,0,1,2,3,4,5,6,7",
        "ldr x0, [x2, #8*\\i]",
        ".endr",
        "add x2, x2, #128",
        "subs x1, x1, #1",
        "b.ne 3b",
    );
}
