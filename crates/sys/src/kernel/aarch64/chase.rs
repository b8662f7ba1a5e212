//! Loads that each give the address of the next, as the kernels of these names for x86-64 make them.

use core::arch::naked_asm;

use crate::kernel::declared::{chase, chase_and_store, chase_kernels, general};
use crate::kernel::{Code, Kernel, Walk};

chase_kernels!();

/// The chains' registers, in the order of their places in `a`.
macro_rules! chase {
    ($name:ident, $list:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
            naked_asm!(
                "stp x19, x20, [sp, #-80]!",
                "stp x21, x22, [sp, #16]",
                "stp x23, x24, [sp, #32]",
                "stp x25, x26, [sp, #48]",
                "str x2, [sp, #64]",
                "mul x0, x0, x1",
                concat!(".irp r,", $list),
                "ldr x\\r, [x2], #8",
                ".endr",
                ".p2align 6",
                "3:",
                ".rept 16",
                concat!(".irp r,", $list),
                "ldr x\\r, [x\\r]",
                ".endr",
                ".endr",
                "subs x0, x0, #1",
                "b.ne 3b",
                "ldr x2, [sp, #64]",
                concat!(".irp r,", $list),
                "str x\\r, [x2], #8",
                ".endr",
                "mov x0, x3",
                "ldp x21, x22, [sp, #16]",
                "ldp x23, x24, [sp, #32]",
                "ldp x25, x26, [sp, #48]",
                "ldp x19, x20, [sp], #80",
                "ret",
            )
        }
    };
}

chase!(chase_1, "3");
chase!(chase_2, "3,4");
chase!(chase_3, "3,4,5");
chase!(chase_4, "3,4,5,6");
chase!(chase_5, "3,4,5,6,7");
chase!(chase_6, "3,4,5,6,7,8");
chase!(chase_8, "3,4,5,6,7,8,9,10");
chase!(chase_10, "3,4,5,6,7,8,9,10,11,12");
chase!(chase_12, "3,4,5,6,7,8,9,10,11,12,13,14");
chase!(chase_16, "3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,1");
chase!(chase_24, "3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,1,19,20,21,22,23,24,25,26");

#[unsafe(naked)]
unsafe extern "C" fn store_1(_: u64, _: u64, _: *mut u8, _: *mut u8, _: *mut u8, _: u64) -> u64 {
    naked_asm!(
        "mul x0, x0, x1",
        "ldr x3, [x2]",
        ".p2align 6",
        "3:",
        ".rept 8",
        "ldr x4, [x3]",
        "str x4, [x3]",
        "ldr x3, [x4]",
        "str x3, [x4]",
        ".endr",
        "subs x0, x0, #1",
        "b.ne 3b",
        "str x3, [x2]",
        "mov x0, x3",
        "ret",
    )
}
