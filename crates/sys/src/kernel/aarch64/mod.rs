//! The kernels for aarch64. Arguments come in x0 (passes), x1 (turns), x2, x3, x4 (operands a, b, c) and x5 (stride); only
//! registers that a caller does not expect to be kept are used, or they are put back (x18 and the lower halves of v8 to v15
//! are never touched).

mod chase;
mod neon;
mod register;
mod scalar;
mod strided;

use super::Kernel;
use super::declared::Stream;
use super::{Code, Walk};

/// The kernels, sorted by family.
pub(super) const KERNELS: &[&[Kernel]] =
    &[register::KERNELS, scalar::KERNELS, neon::KERNELS, strided::KERNELS, chase::KERNELS];

/// A kernel that streams; a turn makes `count` accesses of `bytes` (two registers' where they go in pairs) per operand.
const fn row(
    name: &'static str,
    stream: Stream,
    count: u32,
    bytes: u32,
    width_bits: u32,
    code: Code,
) -> Kernel {
    let walk: Walk = stream.walk(count, bytes);
    Kernel { name, width_bits, available: || true, declared: stream.declared(count, bytes), walk, code }
}

/// A function of the form [`super::Code`]: `before` once; per pass, x9 = turns and what `pass` says; per turn, `turn`;
/// `after` once, which leaves the result in x0 (0 before). The inner body begins a line of the instruction cache.
macro_rules! looped {
    (
        $name:ident, before: [$($before:expr),* $(,)?], pass: [$($pass:expr),* $(,)?], turn: [$($turn:expr),* $(,)?],
        after: [$($after:expr),* $(,)?]
    ) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
            ::core::arch::naked_asm!(
                $($before,)*
                "2:",
                "mov x9, x1",
                $($pass,)*
                ".p2align 6",
                "3:",
                $($turn,)*
                "subs x9, x9, #1",
                "b.ne 3b",
                "subs x0, x0, #1",
                "b.ne 2b",
                $($after,)*
                "ret",
            )
        }
    };
}
use looped;
