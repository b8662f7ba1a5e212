//! Eight accesses a turn, a given stride apart (the loop of Howell's table of shared memory). None waits for another: with
//! a stride that prefetchers follow, time per access is throughput. What the same walk costs when each load waits for the one
//! before is told by a chain in [`crate::kernel::chain::Order::Sequential`].

use super::looped;
use crate::kernel::declared::strided;
use crate::kernel::{Kernel, Walk};

pub(in crate::kernel) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "read.strided8",
        width_bits: 64,
        available: || true,
        declared: strided(8, 0),
        walk: Walk::Strided(8),
        code: read,
    },
    Kernel {
        name: "write.strided8",
        width_bits: 64,
        available: || true,
        declared: strided(0, 8),
        walk: Walk::Strided(8),
        code: write,
    },
];

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
    after: []
);
