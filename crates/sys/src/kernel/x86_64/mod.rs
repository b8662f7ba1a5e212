//! The kernels for x86-64. Arguments come in rdi (passes), rsi (turns), rdx, rcx, r8 (operands a, b, c) and r9 (stride); only
//! registers that a caller does not expect to be kept are used, or they are put back.

mod chase;
mod register;
mod scalar;
mod strided;
mod string;
mod vector;

use super::Kernel;

pub(super) const KERNELS: &[&[Kernel]] = &[
    register::KERNELS,
    scalar::KERNELS,
    vector::SSE2,
    vector::AVX2,
    vector::AVX512,
    string::KERNELS,
    strided::KERNELS,
    chase::KERNELS,
];

/// A function of the form [`super::Code`]: `before` once; per pass, rax = turns and what `pass` says; per turn, `turn`;
/// `after` once. The inner body begins a line of the instruction cache. The bytes after the end belong to the function, so
/// that reading a few bytes past its last instruction is reading its own.
macro_rules! looped {
    (
        $name:ident, $(before: [$($before:expr),* $(,)?],)? $(pass: [$($pass:expr),* $(,)?],)?
        turn: [$($turn:expr),* $(,)?] $(, after: [$($after:expr),* $(,)?])? $(,)?
    ) => {
        #[unsafe(naked)]
        pub(in crate::kernel) unsafe extern "C" fn $name(
            _: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64,
        ) -> u64 {
            ::core::arch::naked_asm!(
                $($($before,)*)?
                "2:",
                "mov rax, rsi",
                $($($pass,)*)?
                ".p2align 6",
                "3:",
                $($turn,)*
                "dec rax",
                "jnz 3b",
                "dec rdi",
                "jnz 2b",
                $($($after,)*)?
                "ret",
                ".skip 16, 0xcc",
            )
        }
    };
}
use looped;
