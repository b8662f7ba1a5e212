//! Loads that each give the address of the next. Operand a holds where each chain stands; the kernel goes on from there and
//! leaves there where it ends. Passes and turns are one count. The one that stores writes every line that it comes through, as
//! multichase's `incr` does, with what is there already: the chain stays what it is.

use core::arch::naked_asm;

use crate::kernel::declared::{chase, chase_and_store, chase_kernels, general};
use crate::kernel::{Code, Kernel, Walk};

chase_kernels!();

/// The chains' places in `a`, each with the register that holds it. A chain in a vector register passes through rsi for its
/// load, which costs it a few cycles: little beside the misses that so many chains are for.
macro_rules! chase {
    ($name:ident, [$($at:literal $reg:literal)*], [$($far:literal $vector:literal)*]) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
            naked_asm!(
                ".irp kept,rbx,rbp,r12,r13,r14,r15,rdx",
                "push \\kept",
                ".endr",
                "imul rdi, rsi",
                $(concat!("movq ", $vector, ", qword ptr [rdx+8*", $far, "]"),)*
                $(concat!("mov ", $reg, ", [rdx+8*", $at, "]"),)*
                ".p2align 6",
                "3:",
                ".rept 16",
                $(concat!("mov ", $reg, ", [", $reg, "]"),)*
                $(
                    concat!("movq rsi, ", $vector),
                    "mov rsi, [rsi]",
                    concat!("movq ", $vector, ", rsi"),
                )*
                ".endr",
                "dec rdi",
                "jnz 3b",
                "pop rdx",
                $(concat!("mov [rdx+8*", $at, "], ", $reg),)*
                $(concat!("movq qword ptr [rdx+8*", $far, "], ", $vector),)*
                ".irp kept,r15,r14,r13,r12,rbp,rbx",
                "pop \\kept",
                ".endr",
                "mov rax, [rdx]",
                "ret",
                ".skip 16, 0xcc",
            )
        }
    };
}

chase!(chase_1, [0 "rax"], []);
chase!(chase_2, [0 "rax" 1 "rcx"], []);
chase!(chase_3, [0 "rax" 1 "rcx" 2 "r8"], []);
chase!(chase_4, [0 "rax" 1 "rcx" 2 "r8" 3 "r9"], []);
chase!(chase_5, [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10"], []);
chase!(chase_6, [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10" 5 "r11"], []);
chase!(chase_8, [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10" 5 "r11" 6 "rbx" 7 "rbp"], []);
chase!(chase_10, [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10" 5 "r11" 6 "rbx" 7 "rbp" 8 "r12" 9 "r13"], []);
chase!(
    chase_12,
    [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10" 5 "r11" 6 "rbx" 7 "rbp" 8 "r12" 9 "r13" 10 "r14" 11 "r15"],
    []
);
chase!(
    chase_16,
    [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10" 5 "r11" 6 "rbx" 7 "rbp" 8 "r12" 9 "r13" 10 "r14" 11 "r15"],
    [12 "xmm0" 13 "xmm1" 14 "xmm2" 15 "xmm3"]
);
chase!(
    chase_24,
    [0 "rax" 1 "rcx" 2 "r8" 3 "r9" 4 "r10" 5 "r11" 6 "rbx" 7 "rbp" 8 "r12" 9 "r13" 10 "r14" 11 "r15"],
    [
        12 "xmm0" 13 "xmm1" 14 "xmm2" 15 "xmm3" 16 "xmm4" 17 "xmm5" 18 "xmm6" 19 "xmm7" 20 "xmm8" 21 "xmm9" 22 "xmm10" 23 "xmm11"
    ]
);

#[unsafe(naked)]
unsafe extern "C" fn store_1(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!(
        "imul rdi, rsi",
        "mov rax, [rdx]",
        ".p2align 6",
        "3:",
        ".rept 8",
        "mov rcx, [rax]",
        "mov [rax], rcx",
        "mov rax, [rcx]",
        "mov [rcx], rax",
        ".endr",
        "dec rdi",
        "jnz 3b",
        "mov [rdx], rax",
        "ret",
        ".skip 16, 0xcc",
    )
}
