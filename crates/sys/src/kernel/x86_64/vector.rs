//! Streams in the widths of the vector registers. One text for the three instruction sets, which differ in the prefix of the
//! mnemonic, the registers, and whether an operation names its destination apart from its first operand.

use super::looped;
use crate::kernel::declared::Stream;
use crate::kernel::{Code, Kernel};

/// Vectors in a turn, and pairs of reads and writes in a turn of a mix.
const VECTORS: u32 = 8;
const MIXES: u32 = 2;
/// Vectors in a turn of daxpy: 100, 1000 and 10,000 doubles are whole turns of up to 256 bits.
const DAXPY_VECTORS: u32 = 5;

pub(super) const fn row(
    name: &'static str,
    stream: Stream,
    count: u32,
    width_bits: u32,
    available: fn() -> bool,
    code: Code,
) -> Kernel {
    let (declared, walk) = (stream.declared(count, width_bits / 8), stream.walk(count, width_bits / 8));
    Kernel { name, width_bits, available, declared, walk, code }
}

/// The arithmetic on doubles, for vectors and for single ones. `dup` is the register again where an operation names its
/// destination apart.
macro_rules! arithmetic {
    (
        prefix: $v:literal, suffix: $s:literal, register: $r:literal, dup: $dup:literal, bytes: $bytes:literal, mov: $mov:literal,
        movq: $movq:literal, splat: [$($splat:expr),*], leave: [$($leave:expr),*]
    ) => {
        looped!(
            scale,
            before: ["mov rax, 0x4008000000000000", concat!($movq, " xmm15, rax"), $($splat),*],
            pass: ["mov r10, rdx", "mov r11, rcx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($mov, " ", $r, "\\i, [r11+", $bytes, "*\\i]"),
                concat!($v, "mul", $s, " ", $dup, $r, "\\i, ", $r, "15"),
                concat!($mov, " [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 8*", $bytes),
                concat!("add r11, 8*", $bytes),
            ],
            after: [$($leave),*]
        );
        looped!(
            add,
            pass: ["mov r10, rdx", "mov r11, rcx", "mov r9, r8"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($mov, " ", $r, "\\i, [r11+", $bytes, "*\\i]"),
                concat!($v, "add", $s, " ", $dup, $r, "\\i, [r9+", $bytes, "*\\i]"),
                concat!($mov, " [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 8*", $bytes),
                concat!("add r11, 8*", $bytes),
                concat!("add r9, 8*", $bytes),
            ],
            after: [$($leave),*]
        );
        looped!(
            triad,
            before: ["mov rax, 0x4008000000000000", concat!($movq, " xmm15, rax"), $($splat),*],
            pass: ["mov r10, rdx", "mov r11, rcx", "mov r9, r8"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($mov, " ", $r, "\\i, [r9+", $bytes, "*\\i]"),
                concat!($v, "mul", $s, " ", $dup, $r, "\\i, ", $r, "15"),
                concat!($v, "add", $s, " ", $dup, $r, "\\i, [r11+", $bytes, "*\\i]"),
                concat!($mov, " [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 8*", $bytes),
                concat!("add r11, 8*", $bytes),
                concat!("add r9, 8*", $bytes),
            ],
            after: [$($leave),*]
        );
        looped!(
            update,
            before: ["mov rax, 0xbff0000000000000", concat!($movq, " xmm15, rax"), $($splat),*],
            pass: ["mov r10, rdx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($mov, " ", $r, "\\i, [r10+", $bytes, "*\\i]"),
                concat!($v, "mul", $s, " ", $dup, $r, "\\i, ", $r, "15"),
                concat!($mov, " [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 8*", $bytes),
            ],
            after: [$($leave),*]
        );
        looped!(
            daxpy,
            before: ["mov rax, 0x4008000000000000", concat!($movq, " xmm15, rax"), $($splat),*],
            pass: ["mov r10, rdx", "mov r11, rcx"],
            turn: [
                ".irp i,0,1,2,3,4",
                concat!($mov, " ", $r, "\\i, [r11+", $bytes, "*\\i]"),
                concat!($v, "mul", $s, " ", $dup, $r, "\\i, ", $r, "15"),
                concat!($v, "add", $s, " ", $dup, $r, "\\i, [r10+", $bytes, "*\\i]"),
                concat!($mov, " [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 5*", $bytes),
                concat!("add r11, 5*", $bytes),
            ],
            after: [$($leave),*]
        );
    };
}
pub(super) use arithmetic;

/// Reads, writes, copies and mixes of whole vectors. Sums of words go to registers 0 to 7, what is written comes from 15.
macro_rules! moves {
    (
        prefix: $v:literal, register: $r:literal, dup: $dup:literal, bytes: $bytes:literal, clear: $clear:literal,
        fold: [$($fold:expr),*], leave: [$($leave:expr),*]
    ) => {
        looped!(
            read,
            before: [".irp i,0,1,2,3,4,5,6,7", $clear, ".endr"],
            pass: ["mov r10, rdx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($v, "paddq ", $dup, $r, "\\i, [r10+", $bytes, "*\\i]"),
                ".endr",
                concat!("add r10, 8*", $bytes),
            ],
            after: [$($fold,)* $($leave),*]
        );
        looped!(
            write,
            before: [concat!($v, "movaps ", $r, "15, [rdx]")],
            pass: ["mov r10, rdx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($v, "movaps [r10+", $bytes, "*\\i], ", $r, "15"),
                ".endr",
                concat!("add r10, 8*", $bytes),
            ],
            after: [$($leave),*]
        );
        looped!(
            write_nt,
            before: [concat!($v, "movaps ", $r, "15, [rdx]")],
            pass: ["mov r10, rdx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($v, "movntps [r10+", $bytes, "*\\i], ", $r, "15"),
                ".endr",
                concat!("add r10, 8*", $bytes),
            ],
            after: ["sfence", $($leave),*]
        );
        looped!(
            copy,
            pass: ["mov r10, rdx", "mov r11, rcx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($v, "movaps ", $r, "\\i, [r11+", $bytes, "*\\i]"),
                concat!($v, "movaps [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 8*", $bytes),
                concat!("add r11, 8*", $bytes),
            ],
            after: [$($leave),*]
        );
        looped!(
            copy_nt,
            pass: ["mov r10, rdx", "mov r11, rcx"],
            turn: [
                ".irp i,0,1,2,3,4,5,6,7",
                concat!($v, "movaps ", $r, "\\i, [r11+", $bytes, "*\\i]"),
                concat!($v, "movntps [r10+", $bytes, "*\\i], ", $r, "\\i"),
                ".endr",
                concat!("add r10, 8*", $bytes),
                concat!("add r11, 8*", $bytes),
            ],
            after: ["sfence", $($leave),*]
        );
        mix!(
            mix_1r1w, "0,1", "2", prefix: $v, register: $r, dup: $dup, bytes: $bytes, clear: $clear,
            fold: [$($fold),*], leave: [$($leave),*]
        );
        mix!(
            mix_2r1w, "0,1,2,3", "4", prefix: $v, register: $r, dup: $dup, bytes: $bytes, clear: $clear,
            fold: [$($fold),*], leave: [$($leave),*]
        );
        mix!(
            mix_3r1w, "0,1,2,3,4,5", "6", prefix: $v, register: $r, dup: $dup, bytes: $bytes, clear: $clear,
            fold: [$($fold),*], leave: [$($leave),*]
        );
    };
}

/// Reads of b, then two writes of a.
macro_rules! mix {
    (
        $name:ident, $reads:literal, $count:literal, prefix: $v:literal, register: $r:literal, dup: $dup:literal,
        bytes: $bytes:literal, clear: $clear:literal, fold: [$($fold:expr),*], leave: [$($leave:expr),*]
    ) => {
        looped!(
            $name,
            before: [
                ".irp i,0,1,2,3,4,5,6,7",
                $clear,
                ".endr",
                concat!($v, "movaps ", $r, "15, [rdx]"),
            ],
            pass: ["mov r10, rdx", "mov r11, rcx"],
            turn: [
                concat!(".irp i,", $reads),
                concat!($v, "paddq ", $dup, $r, "\\i, [r11+", $bytes, "*\\i]"),
                ".endr",
                concat!($v, "movaps [r10], ", $r, "15"),
                concat!($v, "movaps [r10+", $bytes, "], ", $r, "15"),
                concat!("add r10, 2*", $bytes),
                concat!("add r11, ", $count, "*", $bytes),
            ],
            after: [$($fold,)* $($leave),*]
        );
    };
}

macro_rules! kernels {
    ($isa:ident, $table:ident, $set:literal, $bits:literal, $available:expr) => {
        pub(in crate::kernel) const $table: &[Kernel] = &[
            row(concat!("read.", $set), Stream::Read, VECTORS, $bits, $available, $isa::read),
            row(concat!("write.", $set), Stream::Write, VECTORS, $bits, $available, $isa::write),
            row(
                concat!("write_nt.", $set),
                Stream::WriteStreaming,
                VECTORS,
                $bits,
                $available,
                $isa::write_nt,
            ),
            row(concat!("copy.", $set), Stream::Copy, VECTORS, $bits, $available, $isa::copy),
            row(concat!("copy_nt.", $set), Stream::CopyStreaming, VECTORS, $bits, $available, $isa::copy_nt),
            row(concat!("scale.", $set), Stream::Scale, VECTORS, $bits, $available, $isa::scale),
            row(concat!("add.", $set), Stream::Add, VECTORS, $bits, $available, $isa::add),
            row(concat!("triad.", $set), Stream::Triad, VECTORS, $bits, $available, $isa::triad),
            row(concat!("update.", $set), Stream::Update, VECTORS, $bits, $available, $isa::update),
            row(concat!("daxpy.", $set), Stream::Daxpy, DAXPY_VECTORS, $bits, $available, $isa::daxpy),
            row(concat!("mix_1r1w.", $set), Stream::Mix(1, 1), MIXES, $bits, $available, $isa::mix_1r1w),
            row(concat!("mix_2r1w.", $set), Stream::Mix(2, 1), MIXES, $bits, $available, $isa::mix_2r1w),
            row(concat!("mix_3r1w.", $set), Stream::Mix(3, 1), MIXES, $bits, $available, $isa::mix_3r1w),
        ];
    };
}

kernels!(sse2, SSE2, "sse2", 128, || true);
kernels!(avx2, AVX2, "avx2", 256, || is_x86_feature_detected!("avx2"));
kernels!(avx512, AVX512, "avx512", 512, || is_x86_feature_detected!("avx512f"));

mod sse2 {
    use super::looped;
    arithmetic!(
        prefix: "", suffix: "pd", register: "xmm", dup: "", bytes: "16", mov: "movaps", movq: "movq",
        splat: ["punpcklqdq xmm15, xmm15"], leave: []
    );
    moves!(
        prefix: "", register: "xmm", dup: "", bytes: "16", clear: "pxor xmm\\i, xmm\\i",
        fold: [
            ".irp i,1,2,3,4,5,6,7", "paddq xmm0, xmm\\i", ".endr",
            "pshufd xmm1, xmm0, 0x4e", "paddq xmm0, xmm1", "movq rax, xmm0"
        ],
        leave: []
    );
}

mod avx2 {
    use super::looped;
    arithmetic!(
        prefix: "v", suffix: "pd", register: "ymm", dup: "ymm\\i, ", bytes: "32", mov: "vmovaps", movq: "vmovq",
        splat: ["vpbroadcastq ymm15, xmm15"], leave: ["vzeroupper"]
    );
    moves!(
        prefix: "v", register: "ymm", dup: "ymm\\i, ", bytes: "32", clear: "vpxor xmm\\i, xmm\\i, xmm\\i",
        fold: [
            ".irp i,1,2,3,4,5,6,7", "vpaddq ymm0, ymm0, ymm\\i", ".endr",
            "vextracti128 xmm1, ymm0, 1", "vpaddq xmm0, xmm0, xmm1",
            "vpshufd xmm1, xmm0, 0x4e", "vpaddq xmm0, xmm0, xmm1", "vmovq rax, xmm0"
        ],
        leave: ["vzeroupper"]
    );
}

mod avx512 {
    use super::looped;
    arithmetic!(
        prefix: "v", suffix: "pd", register: "zmm", dup: "zmm\\i, ", bytes: "64", mov: "vmovaps", movq: "vmovq",
        splat: ["vpbroadcastq zmm15, xmm15"], leave: ["vzeroupper"]
    );
    moves!(
        prefix: "v", register: "zmm", dup: "zmm\\i, ", bytes: "64", clear: "vpxor xmm\\i, xmm\\i, xmm\\i",
        fold: [
            ".irp i,1,2,3,4,5,6,7", "vpaddq zmm0, zmm0, zmm\\i", ".endr",
            "vextracti64x4 ymm1, zmm0, 1", "vpaddq ymm0, ymm0, ymm1",
            "vextracti128 xmm1, ymm0, 1", "vpaddq xmm0, xmm0, xmm1",
            "vpshufd xmm1, xmm0, 0x4e", "vpaddq xmm0, xmm0, xmm1", "vmovq rax, xmm0"
        ],
        leave: ["vzeroupper"]
    );
}
