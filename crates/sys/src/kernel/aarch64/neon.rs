//! Streams of 128-bit vectors, in pairs where that is one instruction, and lines of zeros.

use core::arch::asm;

use super::{arithmetic, looped, pair_moves, row};
use crate::kernel::Kernel;
use crate::kernel::declared::Stream;

/// Bytes of a line that `dc zva` fills; other sizes are not supported.
const LINE_BYTES: u32 = 64;

pub(in crate::kernel) const KERNELS: &[Kernel] = &[
    row("read.neon", Stream::Read, 4, 32, 128, read),
    row("write.neon", Stream::Write, 4, 32, 128, write),
    row("write_nt.neon", Stream::WriteStreaming, 4, 32, 128, write_nt),
    row("copy.neon", Stream::Copy, 4, 32, 128, copy),
    row("copy_nt.neon", Stream::CopyStreaming, 4, 32, 128, copy_nt),
    row("scale.neon", Stream::Scale, 8, 16, 128, scale),
    row("add.neon", Stream::Add, 8, 16, 128, add),
    row("triad.neon", Stream::Triad, 8, 16, 128, triad),
    row("update.neon", Stream::Update, 8, 16, 128, update),
    row("daxpy.neon", Stream::Daxpy, 5, 16, 128, daxpy),
    row("mix_1r1w.neon", Stream::Mix(1, 1), 2, 32, 128, mix_1r1w),
    row("mix_2r1w.neon", Stream::Mix(2, 1), 2, 32, 128, mix_2r1w),
    row("mix_3r1w.neon", Stream::Mix(3, 1), 2, 32, 128, mix_3r1w),
    Kernel { available: fills_lines, ..row("write.zva", Stream::Write, 8, LINE_BYTES, 512, write_zva) },
];

/// Whether `dc zva` is allowed and fills lines of [`LINE_BYTES`].
fn fills_lines() -> bool {
    let id: u64;
    // SAFETY: a register that every program may read.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    // Bit 4 forbids it; bits 0 to 3 are the logarithm of the size in words of 4 bytes.
    id & 0x10 == 0 && 4 << (id & 0xf) == LINE_BYTES
}

/// Clears the sums, v0 to v7.
macro_rules! clear {
    () => {
        ".irp i,0,1,2,3,4,5,6,7\nmovi v\\i\\().2d, #0\n.endr"
    };
}

/// Adds the sums into x0.
macro_rules! fold {
    () => {
        ".irp i,1,2,3,4,5,6,7\nadd v0.2d, v0.2d, v\\i\\().2d\n.endr\naddp d0, v0.2d\nfmov x0, d0"
    };
}

looped!(
    read,
    before: [clear!()],
    pass: ["mov x10, x2"],
    turn: [
        "ldp q16, q17, [x10]",
        "ldp q18, q19, [x10, #32]",
        "ldp q20, q21, [x10, #64]",
        "ldp q22, q23, [x10, #96]",
        "add v0.2d, v0.2d, v16.2d",
        "add v1.2d, v1.2d, v17.2d",
        "add v2.2d, v2.2d, v18.2d",
        "add v3.2d, v3.2d, v19.2d",
        "add v4.2d, v4.2d, v20.2d",
        "add v5.2d, v5.2d, v21.2d",
        "add v6.2d, v6.2d, v22.2d",
        "add v7.2d, v7.2d, v23.2d",
        "add x10, x10, #128",
    ],
    after: [fold!()]
);

pair_moves!(write, copy, "stp", ["q16", "q17"], pair: "32", turn: "128");
pair_moves!(write_nt, copy_nt, "stnp", ["q16", "q17"], pair: "32", turn: "128");

arithmetic!(
    register: "q",
    three: "fmov v31.2d, #3.0",
    minus_one: "fmov v31.2d, #-1.0",
    scaled: "fmul v\\i\\().2d, v\\i\\().2d, v31.2d",
    added: "fadd v\\i\\().2d, v\\i\\().2d, v16.2d",
    fused: "fmla v\\i\\().2d, v16.2d, v31.2d",
    bytes: "16",
    turn: "128"
);

looped!(
    daxpy,
    before: ["fmov v31.2d, #3.0"],
    pass: ["mov x10, x2", "mov x11, x3"],
    turn: [
        ".irp i,0,1,2,3,4",
        "ldr q\\i, [x10, #16*\\i]",
        "ldr q16, [x11, #16*\\i]",
        "fmla v\\i\\().2d, v16.2d, v31.2d",
        "str q\\i, [x10, #16*\\i]",
        ".endr",
        "add x10, x10, #80",
        "add x11, x11, #80",
    ],
);

/// So many pairs read from b, then two pairs written to a.
macro_rules! mix {
    ($name:ident, $pairs:literal, $bytes:literal) => {
        looped!(
            $name,
            before: [clear!(), "ldr q31, [x2]"],
            pass: ["mov x10, x2", "mov x11, x3"],
            turn: [
                concat!(".irp i,", $pairs),
                "ldp q16, q17, [x11, #32*\\i]",
                "add v\\i\\().2d, v\\i\\().2d, v16.2d",
                "add v7.2d, v7.2d, v17.2d",
                ".endr",
                "stp q31, q31, [x10]",
                "stp q31, q31, [x10, #32]",
                "add x10, x10, #64",
                concat!("add x11, x11, #", $bytes),
            ],
            after: [fold!()]
        );
    };
}

mix!(mix_1r1w, "0,1", "64");
mix!(mix_2r1w, "0,1,2,3", "128");
mix!(mix_3r1w, "0,1,2,3,4,5", "192");

looped!(
    write_zva,
    pass: ["mov x10, x2"],
    turn: [".rept 8", "dc zva, x10", "add x10, x10, #64", ".endr"],
);
