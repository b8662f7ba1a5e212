//! The processor's own loops over memory, 4096 bytes an instruction: microcode that may write lines without reading them
//! first. One such instruction counts as one load or store of all its bytes.

use core::arch::naked_asm;

use crate::kernel::declared::{Stream, general};
use crate::kernel::{Code, Kernel};

const BYTES: u32 = 4_096;

const fn row(name: &'static str, stream: Stream, code: Code) -> Kernel {
    general(name, stream.declared(1, BYTES), stream.walk(1, BYTES), code)
}

pub(in crate::kernel) const KERNELS: &[Kernel] =
    &[row("write.rep_stosb", Stream::Write, rep_stosb), row("copy.rep_movsb", Stream::Copy, rep_movsb)];

// The instruction counts in rcx, moves rdi and rsi, and writes al: passes and turns are kept elsewhere.
#[unsafe(naked)]
unsafe extern "C" fn rep_stosb(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!(
        "mov r10, rdi",
        "movzx eax, byte ptr [rdx]",
        "2:",
        "mov r9, rsi",
        "mov rdi, rdx",
        ".p2align 6",
        "3:",
        "mov ecx, {bytes}",
        "rep stosb",
        "dec r9",
        "jnz 3b",
        "dec r10",
        "jnz 2b",
        "ret",
        ".skip 16, 0xcc",
        bytes = const BYTES,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn rep_movsb(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!(
        "mov r10, rdi",
        "mov r11, rsi",
        "mov r8, rcx",
        "2:",
        "mov r9, r11",
        "mov rdi, rdx",
        "mov rsi, r8",
        ".p2align 6",
        "3:",
        "mov ecx, {bytes}",
        "rep movsb",
        "dec r9",
        "jnz 3b",
        "dec r10",
        "jnz 2b",
        "xor eax, eax",
        "ret",
        ".skip 16, 0xcc",
        bytes = const BYTES,
    )
}
