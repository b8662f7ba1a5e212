//! Kernels that touch no memory, as those of these names for x86-64.

use super::looped;
use crate::kernel::Kernel;
use crate::kernel::declared::{adds, arithmetic, of_registers};

pub(in crate::kernel) const KERNELS: &[Kernel] = &[
    adds("empty", 0, empty),
    adds("adds.1", 1, adds_1),
    adds("adds.2", 2, adds_2),
    adds("adds.4", 4, adds_4),
    adds("adds.8", 8, adds_8),
    adds("adds.16", 16, adds_16),
    adds("adds.32", 32, adds_32),
    adds("adds.64", 64, adds_64),
    of_registers("mix.160", 64, || true, arithmetic(171, 10), mix_160),
    of_registers("fma.scalar", 64, || true, arithmetic(12, 24), fma_scalar),
    of_registers("fma.neon", 128, || true, arithmetic(12, 48), fma_neon),
];

looped!(empty, turn: []);

macro_rules! additions {
    ($($name:ident $count:literal),*) => {
        $(
            looped!(
                $name,
                before: ["mov x10, xzr", "mov x11, #1"],
                turn: [concat!(".rept ", $count), "add x10, x10, x11", ".endr"],
                after: ["mov x0, x10"]
            );
        )*
    };
}

additions!(adds_1 "1", adds_2 "2", adds_4 "4", adds_8 "8", adds_16 "16", adds_32 "32", adds_64 "64");

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
    turn: [
        ".irp i,0,1,2,3,4,5,6,7,16,17,18,19",
        "fmla v\\i\\().2d, v30.2d, v31.2d",
        ".endr",
    ],
    after: ["fmov x0, d0"]
);
