//! Kernels that touch no memory: the empty loop (the control of Howell's method), chains of additions whose cost is known
//! to be one cycle each, and as much floating-point arithmetic as the processor can take.

use super::looped;
use crate::kernel::declared::{additions, arithmetic};
use crate::kernel::{Code, Declared, Kernel, Walk};

const fn row(name: &'static str, width_bits: u32, declared: Declared, code: Code) -> Kernel {
    Kernel { name, width_bits, available: || true, declared, walk: Walk::Register, code }
}

const fn adds(name: &'static str, count: u32, code: Code) -> Kernel {
    row(name, 64, additions(count), code)
}

pub(in crate::kernel) const KERNELS: &[Kernel] = &[
    adds("empty", 0, empty),
    adds("adds.1", 1, adds_1),
    adds("adds.2", 2, adds_2),
    adds("adds.4", 4, adds_4),
    adds("adds.8", 8, adds_8),
    adds("adds.16", 16, adds_16),
    adds("adds.32", 32, adds_32),
    adds("adds.64", 64, adds_64),
    row("mix.160", 64, arithmetic(171, 10), mix_160),
    row("fma.scalar", 64, arithmetic(12, 24), fma_scalar),
    row("fma.neon", 128, arithmetic(12, 48), fma_neon),
];

looped!(empty, before: [], pass: [], turn: [], after: []);

macro_rules! additions {
    ($name:ident, $count:literal) => {
        looped!(
            $name,
            before: ["mov x10, xzr", "mov x11, #1"],
            pass: [],
            turn: [concat!(".rept ", $count), "add x10, x10, x11", ".endr"],
            after: ["mov x0, x10"]
        );
    };
}

additions!(adds_1, "1");
additions!(adds_2, "2");
additions!(adds_4, "4");
additions!(adds_8, "8");
additions!(adds_16, "16");
additions!(adds_32, "32");
additions!(adds_64, "64");

looped!(
    mix_160,
    before: [
        "mov x10, xzr",
        "mov x11, #1",
        "mov x12, xzr",
        "mov x13, xzr",
        "mov x14, xzr",
        "mov x15, xzr",
        "fmov d1, xzr",
    ],
    pass: [],
    turn: [
        "movi v0.2d, #0",
        ".rept 10",
        "fadd d0, d0, d1",
        ".endr",
        ".rept 32",
        "add x10, x10, x11",
        "add x12, x12, x11",
        "add x13, x13, x11",
        "add x14, x14, x11",
        "add x15, x15, x11",
        ".endr",
    ],
    after: ["add x0, x10, x12", "add x0, x0, x13", "add x0, x0, x14", "add x0, x0, x15"]
);

// acc = 0.5 acc + 1 tends to 2 and stays a normal number.
looped!(
    fma_scalar,
    before: [
        ".irp i,0,1,2,3,4,5,6,7,16,17,18,19",
        "fmov d\\i, xzr",
        ".endr",
        "fmov d30, #0.5",
        "fmov d31, #1.0",
    ],
    pass: [],
    turn: [
        ".irp i,0,1,2,3,4,5,6,7,16,17,18,19",
        "fmadd d\\i, d\\i, d30, d31",
        ".endr",
    ],
    after: ["fmov x0, d0"]
);

// acc = acc + 0.5 grows slowly: as a vector, the product is always added to the destination.
looped!(
    fma_neon,
    before: [
        ".irp i,0,1,2,3,4,5,6,7,16,17,18,19",
        "fmov v\\i\\().2d, #1.0",
        ".endr",
        "fmov v30.2d, #0.5",
        "fmov v31.2d, #1.0",
    ],
    pass: [],
    turn: [
        ".irp i,0,1,2,3,4,5,6,7,16,17,18,19",
        "fmla v\\i\\().2d, v30.2d, v31.2d",
        ".endr",
    ],
    after: ["fmov x0, d0"]
);
