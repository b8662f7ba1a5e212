//! Loops that do not do what they declare, as compilers and authors have produced them. They are read, never run: a check
//! that does not fail on each of them proves nothing.

use crate::kernel::declared::{additions, chase, general, strided};
use crate::kernel::{Declared, Kernel, Walk};

const fn fixture(name: &'static str, declared: Declared, walk: Walk, code: crate::kernel::Code) -> Kernel {
    Kernel { available: || false, ..general(name, declared, walk, code) }
}

/// Loads that Howell's loop was meant to make.
const EIGHT_READS: Declared = strided(8, 0);

/// Every one of these must fail [`super::check`]. None is available to run.
pub(in crate::kernel) const FIXTURES: &[Kernel] = &[
    fixture("seed_unrolled", EIGHT_READS, Walk::Strided(8), code::seed_unrolled),
    fixture(
        "folded_loads",
        Declared { loads: 16, load_bytes: 128, ..strided(0, 0) },
        Walk::Forward([8, 0, 0]),
        code::folded_loads,
    ),
    fixture("folded_sum", additions(16), Walk::Register, code::folded_sum),
    fixture("spill", chase(1), Walk::Chase, code::spill),
    fixture("branches", additions(2), Walk::Register, code::branches),
    fixture("call", additions(1), Walk::Register, code::call),
    fixture("overlap", chase(1), Walk::Chase, code::overlap),
    fixture(
        "gap",
        Declared { loads: 7, load_bytes: 56, ..strided(0, 0) },
        Walk::Forward([64, 0, 0]),
        code::gap,
    ),
    fixture("overrun", EIGHT_READS, Walk::Forward([64, 0, 0]), code::overrun),
];

/// A function with the bodies of one turn.
macro_rules! turn {
    ($name:ident, $($turn:expr),* $(,)?) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(
            _: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64,
        ) -> u64 {
            ::core::arch::naked_asm!($($turn,)* "ret", ".p2align 4", ".skip 16, 0")
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod code {
    turn!(
        seed_unrolled,
        "lea r11, [r9+2*r9]\n3:\nmov rax, [rdx]\nmov rax, [rdx+2*r9]\nmov rax, [rdx+r11]\nmov rax, [rdx+4*r9]\nmov rax, [rdx+r8]\nmov rax, [rdx+2*r11]\nmov rax, [rdx+rcx]\nlea rdx, [rdx+8*r9]\ndec rsi\njnz 3b"
    );
    turn!(folded_loads, "3:\nmov rcx, [rdx]\nshl rcx, 4\nadd rax, rcx\nadd rdx, 8\ndec rsi\njnz 3b");
    turn!(folded_sum, "shl rcx, 4\n3:\nadd rax, rcx\ndec rsi\njnz 3b");
    turn!(spill, "3:\n.rept 16\nmov rax, [rax]\n.endr\nmov [rsp-8], rax\nmov rax, [rsp-8]\ndec rsi\njnz 3b");
    turn!(branches, "3:\nadd rax, rcx\njc 4f\nadd rax, rcx\n4:\ndec rsi\njnz 3b");
    turn!(call, "3:\ncall 4f\ndec rsi\njnz 3b\njmp 5f\n4:\ninc rax\nret\n5:");
    turn!(overlap, "3:\n.rept 8\nmov rax, [rax]\nmov rcx, [rcx]\n.endr\ndec rsi\njnz 3b");
    turn!(gap, "3:\n.irp i,0,2,3,4,5,6,7\nmov rax, [rdx+8*\\i]\n.endr\nadd rdx, 64\ndec rsi\njnz 3b");
    turn!(overrun, "3:\n.irp i,0,1,2,3,4,5,6,7\nmov rax, [rdx+8*\\i]\n.endr\nadd rdx, 128\ndec rsi\njnz 3b");
}

#[cfg(target_arch = "aarch64")]
mod code {
    turn!(
        seed_unrolled,
        "3:\nldr x0, [x2]\nldr x0, [x2, x6]\nldr x0, [x2, x7]\nldr x0, [x2, x8]\nldr x0, [x2, x9]\nldr x0, [x2, x10]\nldr x0, [x2, x11]\nadd x2, x2, x5, lsl #3\nsubs x1, x1, #1\nb.ne 3b"
    );
    turn!(folded_loads, "3:\nldr x3, [x2]\nadd x0, x0, x3, lsl #4\nadd x2, x2, #8\nsubs x1, x1, #1\nb.ne 3b");
    turn!(folded_sum, "3:\nadd x0, x0, x3, lsl #4\nsubs x1, x1, #1\nb.ne 3b");
    turn!(spill, "3:\n.rept 16\nldr x0, [x0]\n.endr\nstr x0, [sp]\nldr x0, [sp]\nsubs x1, x1, #1\nb.ne 3b");
    turn!(branches, "3:\nadd x0, x0, x3\ncbz x0, 4f\nadd x0, x0, x3\n4:\nsubs x1, x1, #1\nb.ne 3b");
    turn!(call, "3:\nbl 4f\nsubs x1, x1, #1\nb.ne 3b\nb 5f\n4:\nadd x0, x0, #1\nret\n5:");
    turn!(overlap, "3:\n.rept 8\nldr x0, [x0]\nldr x3, [x3]\n.endr\nsubs x1, x1, #1\nb.ne 3b");
    turn!(
        gap,
        "3:\n.irp i,0,2,3,4,5,6,7\nldr x0, [x2, #8*\\i]\n.endr\nadd x2, x2, #64\nsubs x1, x1, #1\nb.ne 3b"
    );
    turn!(
        overrun,
        "3:\n.irp i,0,1,2,3,4,5,6,7\nldr x0, [x2, #8*\\i]\n.endr\nadd x2, x2, #128\nsubs x1, x1, #1\nb.ne 3b"
    );
}
