//! Streams of 64 bits at a time: moves through the general registers, arithmetic on single doubles.

use super::looped;
use super::vector::{arithmetic, row};
use crate::kernel::Kernel;
use crate::kernel::declared::Stream;

pub(in crate::kernel) const KERNELS: &[Kernel] = &[
    row("read.scalar", Stream::Read, 8, 64, || true, read),
    row("write.scalar", Stream::Write, 8, 64, || true, write),
    row("write_nt.scalar", Stream::WriteStreaming, 8, 64, || true, write_nt),
    row("copy.scalar", Stream::Copy, 8, 64, || true, copy),
    row("copy_nt.scalar", Stream::CopyStreaming, 8, 64, || true, copy_nt),
    row("scale.scalar", Stream::Scale, 8, 64, || true, scale),
    row("add.scalar", Stream::Add, 8, 64, || true, add),
    row("triad.scalar", Stream::Triad, 8, 64, || true, triad),
    row("update.scalar", Stream::Update, 8, 64, || true, update),
    row("daxpy.scalar", Stream::Daxpy, 5, 64, || true, daxpy),
];

arithmetic!(
    prefix: "", suffix: "sd", register: "xmm", dup: "", bytes: "8", mov: "movsd", movq: "movq", splat: [], leave: []
);

looped!(
    read,
    before: ["xor ecx, ecx", "xor r8d, r8d", "xor r9d, r9d", "xor r11d, r11d"],
    pass: ["mov r10, rdx"],
    turn: [
        "add rcx, [r10]",
        "add r8, [r10+8]",
        "add r9, [r10+16]",
        "add r11, [r10+24]",
        "add rcx, [r10+32]",
        "add r8, [r10+40]",
        "add r9, [r10+48]",
        "add r11, [r10+56]",
        "add r10, 64",
    ],
    after: ["lea rax, [rcx+r8]", "add rax, r9", "add rax, r11"]
);

looped!(
    write,
    before: ["mov rcx, [rdx]"],
    pass: ["mov r10, rdx"],
    turn: [".irp i,0,1,2,3,4,5,6,7", "mov [r10+8*\\i], rcx", ".endr", "add r10, 64"],
);

looped!(
    write_nt,
    before: ["mov rcx, [rdx]"],
    pass: ["mov r10, rdx"],
    turn: [".irp i,0,1,2,3,4,5,6,7", "movnti [r10+8*\\i], rcx", ".endr", "add r10, 64"],
    after: ["sfence"]
);

looped!(
    copy,
    pass: ["mov r10, rdx", "mov r11, rcx"],
    turn: [
        ".irp i,0,1,2,3,4,5,6,7",
        "mov r9, [r11+8*\\i]",
        "mov [r10+8*\\i], r9",
        ".endr",
        "add r10, 64",
        "add r11, 64",
    ],
);

looped!(
    copy_nt,
    pass: ["mov r10, rdx", "mov r11, rcx"],
    turn: [
        ".irp i,0,1,2,3,4,5,6,7",
        "mov r9, [r11+8*\\i]",
        "movnti [r10+8*\\i], r9",
        ".endr",
        "add r10, 64",
        "add r11, 64",
    ],
    after: ["sfence"]
);
