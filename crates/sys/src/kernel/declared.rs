//! What kernels do per turn, by family: the same declaration for every instruction set, given the bytes of an access and
//! how many elements a turn unrolls.

use super::{Chain, Code, Declared, Kernel, Walk};

const DOUBLE_BYTES: u32 = 8;

/// Families of loops that stream through memory. Operand a is written (by those that write), b and c are read; kernels
/// with one operand have only a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Sums the words of a.
    Read,
    /// What a begins with, all over a.
    Write,
    /// As `Write`, past the caches.
    WriteStreaming,
    /// a = b.
    Copy,
    CopyStreaming,
    /// a = 3 b, doubles.
    Scale,
    /// a = b + c.
    Add,
    /// a = b + 3 c.
    Triad,
    /// a = -a, by a multiplication.
    Update,
    /// a = a + 3 b.
    Daxpy,
    /// So many reads from b (sums its words) for each so many writes of what a begins with to a.
    Mix(u32, u32),
}

impl Stream {
    /// Loads, stores and floating-point operations per element of a turn.
    const fn each(self) -> (u32, u32, u32) {
        match self {
            Self::Read => (1, 0, 0),
            Self::Write | Self::WriteStreaming => (0, 1, 0),
            Self::Copy | Self::CopyStreaming => (1, 1, 0),
            Self::Scale | Self::Update => (1, 1, 1),
            Self::Add => (2, 1, 1),
            Self::Triad | Self::Daxpy => (2, 1, 2),
            Self::Mix(reads, writes) => (reads, writes, 0),
        }
    }

    /// A turn of `count` elements of `bytes` each.
    pub(super) const fn declared(self, count: u32, bytes: u32) -> Declared {
        let (loads, stores, operations) = self.each();
        let streaming = matches!(self, Self::WriteStreaming | Self::CopyStreaming);
        Declared {
            loads: loads * count,
            stores: stores * count,
            streaming_stores: if streaming { stores * count } else { 0 },
            load_bytes: loads * count * bytes,
            store_bytes: stores * count * bytes,
            flops: operations * count * bytes / DOUBLE_BYTES,
            ..register(Chain::Independent)
        }
    }

    pub(super) const fn walk(self, count: u32, bytes: u32) -> Walk {
        let turn = count * bytes;
        Walk::Forward(match self {
            Self::Read | Self::Write | Self::WriteStreaming | Self::Update => [turn, 0, 0],
            Self::Copy | Self::CopyStreaming | Self::Scale | Self::Daxpy => [turn, turn, 0],
            Self::Add | Self::Triad => [turn, turn, turn],
            Self::Mix(reads, writes) => [writes * turn, reads * turn, 0],
        })
    }
}

pub(super) const fn register(chain: Chain) -> Declared {
    Declared {
        operations: 0,
        loads: 0,
        stores: 0,
        streaming_stores: 0,
        load_bytes: 0,
        store_bytes: 0,
        branches: 1,
        flops: 0,
        chain,
    }
}

/// So many additions, each needing the one before.
pub(super) const fn additions(operations: u32) -> Declared {
    Declared { operations, ..register(Chain::Dependent) }
}

/// So many instructions, of which several go at a time, that make so many floating-point operations.
pub(super) const fn arithmetic(operations: u32, flops: u32) -> Declared {
    Declared { flops, operations, ..register(Chain::Independent) }
}

/// Accesses of 8 bytes, a stride apart.
pub(super) const fn strided(loads: u32, stores: u32) -> Declared {
    Declared { loads, stores, load_bytes: loads * 8, store_bytes: stores * 8, ..register(Chain::Independent) }
}

/// A kernel of 64 bits that every processor of the architecture can run.
pub(super) const fn general(name: &'static str, declared: Declared, walk: Walk, code: Code) -> Kernel {
    Kernel { name, width_bits: 64, available: || true, declared, walk, code }
}

pub(super) const fn of_registers(
    name: &'static str,
    width_bits: u32,
    available: fn() -> bool,
    declared: Declared,
    code: Code,
) -> Kernel {
    Kernel { name, width_bits, available, declared, walk: Walk::Register, code }
}

/// A chain of so many additions.
pub(super) const fn adds(name: &'static str, count: u32, code: Code) -> Kernel {
    general(name, additions(count), Walk::Register, code)
}

/// Eight reads, and eight writes, a stride apart.
pub(super) const fn strided_kernels(read: Code, write: Code) -> [Kernel; 2] {
    [
        general("read.strided8", strided(8, 0), Walk::Strided(8), read),
        general("write.strided8", strided(0, 8), Walk::Strided(8), write),
    ]
}

/// Sixteen loads of one chain, each followed by a store of what it loaded to where it was.
pub(super) const fn chase_and_store() -> Declared {
    Declared { stores: 16, store_bytes: 128, ..chase(1) }
}

/// Sixteen loads of each of `ways` chains. With one chain, each load waits for the one before.
pub(super) const fn chase(ways: u32) -> Declared {
    let chain = if ways == 1 { Chain::Dependent } else { Chain::Independent };
    Declared { loads: 16 * ways, load_bytes: 128 * ways, ..register(chain) }
}

/// The table of the kernels that follow chains, over functions of these names.
macro_rules! chase_kernels {
    () => {
        const fn row(name: &'static str, ways: u32, code: Code) -> Kernel {
            general(name, chase(ways), Walk::Chase, code)
        }

        pub(in crate::kernel) const KERNELS: &[Kernel] = &[
            row("chase.1", 1, chase_1),
            row("chase.2", 2, chase_2),
            row("chase.3", 3, chase_3),
            row("chase.4", 4, chase_4),
            row("chase.5", 5, chase_5),
            row("chase.6", 6, chase_6),
            row("chase.8", 8, chase_8),
            row("chase.10", 10, chase_10),
            row("chase.12", 12, chase_12),
            row("chase.16", 16, chase_16),
            row("chase.24", 24, chase_24),
            // Follows one chain and writes each pointer back to where it was.
            Kernel { declared: chase_and_store(), ..row("chase_store.1", 1, store_1) },
        ];
    };
}
pub(super) use chase_kernels;
