//! Kernels that touch no memory: the empty loop (the control of Howell's method), chains of additions whose cost is known
//! to be one cycle each, and as much floating-point arithmetic as the processor can take.

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
    of_registers("fma.scalar", 64, fused, arithmetic(12, 24), fma_scalar),
    of_registers("fma.sse2", 128, || true, arithmetic(14, 28), fma_sse2),
    of_registers("fma.avx2", 256, fused, arithmetic(12, 96), fma_avx2),
    of_registers("fma.avx512", 512, || is_x86_feature_detected!("avx512f"), arithmetic(12, 192), fma_avx512),
];

fn fused() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

looped!(empty, turn: []);

// The second operand is a register, because recent processors fold chains of additions of constants.
macro_rules! additions {
    ($($name:ident $count:literal),*) => {
        $(
            looped!(
                $name,
                before: ["xor r10d, r10d", "mov ecx, 1"],
                turn: [concat!(".rept ", $count), "add r10, rcx", ".endr"],
                after: ["mov rax, r10"]
            );
        )*
    };
}

additions!(adds_1 "1", adds_2 "2", adds_4 "4", adds_8 "8", adds_16 "16", adds_32 "32", adds_64 "64");

looped!(
    mix_160,
    before: [
        "xor r10d, r10d",
        "mov ecx, 1",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r11d, r11d",
        "xor edx, edx",
        "xorps xmm1, xmm1",
    ],
    turn: [
        "xorps xmm0, xmm0",
        ".rept 10",
        "addsd xmm0, xmm1",
        ".endr",
        ".rept 32",
        "add r10, rcx",
        "add r8, rcx",
        "add r9, rcx",
        "add r11, rcx",
        "add rdx, rcx",
        ".endr",
    ],
    after: ["lea rax, [r10 + r8]", "add rax, r9", "add rax, r11", "add rax, rdx"]
);

/// x = 0.5 and y = 1 in the last registers: x acc + y tends to 2, a normal number. Returns the first.
macro_rules! fused_multiply_adds {
    ($name:ident, $reg:literal, $suffix:literal, splat: [$($splat:expr),*]) => {
        looped!(
            $name,
            before: [
                ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                "vxorps xmm\\i, xmm\\i, xmm\\i",
                ".endr",
                "mov rax, 0x3fe0000000000000",
                "vmovq xmm14, rax",
                "mov rax, 0x3ff0000000000000",
                "vmovq xmm15, rax",
                $($splat),*
            ],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                concat!("vfmadd213", $suffix, " ", $reg, "\\i, ", $reg, "14, ", $reg, "15"),
                ".endr",
            ],
            after: ["vmovq rax, xmm0", "vzeroupper"]
        );
    };
}

fused_multiply_adds!(fma_scalar, "xmm", "sd", splat: []);
fused_multiply_adds!(
    fma_avx2, "ymm", "pd", splat: ["vpbroadcastq ymm14, xmm14", "vpbroadcastq ymm15, xmm15"]
);
fused_multiply_adds!(
    fma_avx512, "zmm", "pd", splat: ["vpbroadcastq zmm14, xmm14", "vpbroadcastq zmm15, xmm15"]
);

looped!(
    fma_sse2,
    before: [
        "mov rax, 0x3ff0000000000000",
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,15",
        "movq xmm\\i, rax",
        "punpcklqdq xmm\\i, xmm\\i",
        ".endr",
    ],
    turn: [
        ".irp i,0,1,2,3,4,5,6",
        "mulpd xmm\\i, xmm15",
        ".endr",
        ".irp i,7,8,9,10,11,12,13",
        "addpd xmm\\i, xmm15",
        ".endr",
    ],
    after: ["movq rax, xmm0"]
);
