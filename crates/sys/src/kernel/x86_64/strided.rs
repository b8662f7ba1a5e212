//! Eight accesses a turn, a given stride apart (the loop of Howell's table of shared memory). None waits for another: with
//! a stride that prefetchers follow, time per access is throughput. What the same walk costs when each load waits for the one
//! before is told by a chain in [`crate::kernel::chain::Order::Sequential`].

use super::looped;
use crate::kernel::Kernel;
use crate::kernel::declared::strided_kernels;

pub(in crate::kernel) const KERNELS: &[Kernel] = &strided_kernels(read, write);

// r11, rcx and r8 hold the stride three, five and seven times. Registers beyond those that calls leave free are put back.
looped!(
    read,
    before: [
        "push rbx",
        "push r12",
        "lea r11, [r9+2*r9]",
        "lea rcx, [r9+4*r9]",
        "lea r8, [r11+4*r9]",
        "xor ebx, ebx",
        "xor r12d, r12d",
    ],
    pass: ["mov r10, rdx"],
    turn: [
        "add rbx, [r10]",
        "add r12, [r10+r9]",
        "add rbx, [r10+2*r9]",
        "add r12, [r10+r11]",
        "add rbx, [r10+4*r9]",
        "add r12, [r10+rcx]",
        "add rbx, [r10+2*r11]",
        "add r12, [r10+r8]",
        "lea r10, [r10+8*r9]",
    ],
    after: ["lea rax, [rbx+r12]", "pop r12", "pop rbx"]
);

looped!(
    write,
    before: [
        "push rbx",
        "mov rbx, [rdx]",
        "lea r11, [r9+2*r9]",
        "lea rcx, [r9+4*r9]",
        "lea r8, [r11+4*r9]",
    ],
    pass: ["mov r10, rdx"],
    turn: [
        "mov [r10], rbx",
        "mov [r10+r9], rbx",
        "mov [r10+2*r9], rbx",
        "mov [r10+r11], rbx",
        "mov [r10+4*r9], rbx",
        "mov [r10+rcx], rbx",
        "mov [r10+2*r11], rbx",
        "mov [r10+r8], rbx",
        "lea r10, [r10+8*r9]",
    ],
    after: ["pop rbx"]
);
