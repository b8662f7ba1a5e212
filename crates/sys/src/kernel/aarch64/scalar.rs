//! Streams of 64 bits at a time: moves through the general registers, arithmetic on single doubles.

use super::{arithmetic, looped, pair_moves, row};
use crate::kernel::Kernel;
use crate::kernel::declared::Stream;

/// The kernels. Streaming stores exist for pairs only.
pub(in crate::kernel) const KERNELS: &[Kernel] = &[
    row("read.scalar", Stream::Read, 8, 8, 64, read),
    row("write.scalar", Stream::Write, 8, 8, 64, write),
    row("write_nt.scalar", Stream::WriteStreaming, 4, 16, 64, write_nt),
    row("copy.scalar", Stream::Copy, 8, 8, 64, copy),
    row("copy_nt.scalar", Stream::CopyStreaming, 4, 16, 64, copy_nt),
    row("scale.scalar", Stream::Scale, 8, 8, 64, scale),
    row("add.scalar", Stream::Add, 8, 8, 64, add),
    row("triad.scalar", Stream::Triad, 8, 8, 64, triad),
    row("update.scalar", Stream::Update, 8, 8, 64, update),
    row("daxpy.scalar", Stream::Daxpy, 5, 8, 64, daxpy),
];

looped!(
    read,
    before: ["mov x14, xzr", "mov x15, xzr"],
    pass: ["mov x10, x2"],
    turn: [
        ".irp i,0,2,4,6",
        "ldr x16, [x10, #8*\\i]",
        "ldr x17, [x10, #8*\\i+8]",
        "add x14, x14, x16",
        "add x15, x15, x17",
        ".endr",
        "add x10, x10, #64",
    ],
    after: ["add x0, x14, x15"]
);

looped!(
    write,
    before: ["ldr x13, [x2]"],
    pass: ["mov x10, x2"],
    turn: [".irp i,0,1,2,3,4,5,6,7", "str x13, [x10, #8*\\i]", ".endr", "add x10, x10, #64"],
);

looped!(
    copy,
    pass: ["mov x10, x2", "mov x11, x3"],
    turn: [
        ".irp i,0,1,2,3,4,5,6,7",
        "ldr x13, [x11, #8*\\i]",
        "str x13, [x10, #8*\\i]",
        ".endr",
        "add x10, x10, #64",
        "add x11, x11, #64",
    ],
);

pair_moves!(write_nt, copy_nt, "stnp", ["x13", "x14"], pair: "16", turn: "64");

arithmetic!(
    register: "d",
    three: "fmov d31, #3.0",
    minus_one: "fmov d31, #-1.0",
    scaled: "fmul d\\i, d\\i, d31",
    added: "fadd d\\i, d\\i, d16",
    fused: "fmadd d\\i, d16, d31, d\\i",
    bytes: "8",
    turn: "64"
);

looped!(
    daxpy,
    before: ["fmov d31, #3.0"],
    pass: ["mov x10, x2", "mov x11, x3"],
    turn: [
        ".irp i,0,1,2,3,4",
        "ldr d\\i, [x11, #8*\\i]",
        "ldr d16, [x10, #8*\\i]",
        "fmadd d\\i, d\\i, d31, d16",
        "str d\\i, [x10, #8*\\i]",
        ".endr",
        "add x10, x10, #40",
        "add x11, x11, #40",
    ],
);
