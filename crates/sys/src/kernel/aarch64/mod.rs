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
        $name:ident, $(before: [$($before:expr),* $(,)?],)? $(pass: [$($pass:expr),* $(,)?],)?
        turn: [$($turn:expr),* $(,)?] $(, after: [$($after:expr),* $(,)?])? $(,)?
    ) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
            ::core::arch::naked_asm!(
                $($($before,)*)?
                "2:",
                "mov x9, x1",
                $($($pass,)*)?
                ".p2align 6",
                "3:",
                $($turn,)*
                "subs x9, x9, #1",
                "b.ne 3b",
                "subs x0, x0, #1",
                "b.ne 2b",
                $($($after,)*)?
                "ret",
            )
        }
    };
}
use looped;

/// Writes of what a begins with, and copies of b to a, in pairs of registers; four pairs a turn.
macro_rules! pair_moves {
    ($write:ident, $copy:ident, $store:literal, [$one:literal, $two:literal], pair: $pair:literal, turn: $turn:literal) => {
        looped!(
            $write,
            before: [concat!("ldr ", $one, ", [x2]")],
            pass: ["mov x10, x2"],
            turn: [
                ".irp i,0,1,2,3",
                concat!($store, " ", $one, ", ", $one, ", [x10, #", $pair, "*\\i]"),
                ".endr",
                concat!("add x10, x10, #", $turn),
            ],
        );
        looped!(
            $copy,
            pass: ["mov x10, x2", "mov x11, x3"],
            turn: [
                ".irp i,0,1,2,3",
                concat!("ldp ", $one, ", ", $two, ", [x11, #", $pair, "*\\i]"),
                concat!($store, " ", $one, ", ", $two, ", [x10, #", $pair, "*\\i]"),
                ".endr",
                concat!("add x10, x10, #", $turn),
                concat!("add x11, x11, #", $turn),
            ],
        );
    };
}
use pair_moves;

/// The arithmetic on doubles, eight registers a turn: register 31 holds `three` or `minus_one`, `scaled` multiplies
/// register i by it, `added` adds register 16 to register i, and `fused` three times register 16.
macro_rules! arithmetic {
    (
        register: $r:literal, three: $three:literal, minus_one: $minus_one:literal, scaled: $scaled:literal,
        added: $added:literal, fused: $fused:literal, bytes: $bytes:literal, turn: $turn:literal
    ) => {
        looped!(
            scale,
            before: [$three],
            pass: ["mov x10, x2", "mov x11, x3"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!("ldr ", $r, "\\i, [x11, #", $bytes, "*\\i]"),
                $scaled,
                concat!("str ", $r, "\\i, [x10, #", $bytes, "*\\i]"),
                ".endr",
                concat!("add x10, x10, #", $turn),
                concat!("add x11, x11, #", $turn),
            ],
        );
        looped!(
            add,
            pass: ["mov x10, x2", "mov x11, x3", "mov x12, x4"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!("ldr ", $r, "\\i, [x11, #", $bytes, "*\\i]"),
                concat!("ldr ", $r, "16, [x12, #", $bytes, "*\\i]"),
                $added,
                concat!("str ", $r, "\\i, [x10, #", $bytes, "*\\i]"),
                ".endr",
                concat!("add x10, x10, #", $turn),
                concat!("add x11, x11, #", $turn),
                concat!("add x12, x12, #", $turn),
            ],
        );
        looped!(
            triad,
            before: [$three],
            pass: ["mov x10, x2", "mov x11, x3", "mov x12, x4"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!("ldr ", $r, "\\i, [x11, #", $bytes, "*\\i]"),
                concat!("ldr ", $r, "16, [x12, #", $bytes, "*\\i]"),
                $fused,
                concat!("str ", $r, "\\i, [x10, #", $bytes, "*\\i]"),
                ".endr",
                concat!("add x10, x10, #", $turn),
                concat!("add x11, x11, #", $turn),
                concat!("add x12, x12, #", $turn),
            ],
        );
        looped!(
            update,
            before: [$minus_one],
            pass: ["mov x10, x2"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!("ldr ", $r, "\\i, [x10, #", $bytes, "*\\i]"),
                $scaled,
                concat!("str ", $r, "\\i, [x10, #", $bytes, "*\\i]"),
                ".endr",
                concat!("add x10, x10, #", $turn),
            ],
        );
    };
}
use arithmetic;
