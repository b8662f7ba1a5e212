//! Eight accesses a turn, a given stride apart, as the kernels of these names for x86-64 make them.

use super::looped;
use crate::kernel::Kernel;
use crate::kernel::declared::strided_kernels;

pub(in crate::kernel) const KERNELS: &[Kernel] = &strided_kernels(read, write);

/// Two to seven strides, in x6, x7, x8, x11, x12 and x13.
macro_rules! multiples {
    () => {
        "add x6, x5, x5\nadd x7, x6, x5\nadd x8, x7, x5\nadd x11, x8, x5\nadd x12, x11, x5\nadd x13, x12, x5"
    };
}

looped!(
    read,
    before: [multiples!(), "mov x14, xzr", "mov x15, xzr"],
    pass: ["mov x10, x2"],
    turn: [
        "ldr x16, [x10]",
        "ldr x17, [x10, x5]",
        "add x14, x14, x16",
        "add x15, x15, x17",
        "ldr x16, [x10, x6]",
        "ldr x17, [x10, x7]",
        "add x14, x14, x16",
        "add x15, x15, x17",
        "ldr x16, [x10, x8]",
        "ldr x17, [x10, x11]",
        "add x14, x14, x16",
        "add x15, x15, x17",
        "ldr x16, [x10, x12]",
        "ldr x17, [x10, x13]",
        "add x14, x14, x16",
        "add x15, x15, x17",
        "add x10, x10, x5, lsl #3",
    ],
    after: ["add x0, x14, x15"]
);

looped!(
    write,
    before: [multiples!(), "ldr x14, [x2]"],
    pass: ["mov x10, x2"],
    turn: [
        "str x14, [x10]",
        "str x14, [x10, x5]",
        "str x14, [x10, x6]",
        "str x14, [x10, x7]",
        "str x14, [x10, x8]",
        "str x14, [x10, x11]",
        "str x14, [x10, x12]",
        "str x14, [x10, x13]",
        "add x10, x10, x5, lsl #3",
    ],
);
