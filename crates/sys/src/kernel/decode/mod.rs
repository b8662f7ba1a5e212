//! What the code of a kernel does, read back from its own bytes in this process: Howell's rule that the generated code
//! must be looked at, made automatic. His own example shows why: its loop of eight reads makes seven.

mod aarch64;
mod body;
mod fixtures;
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::read;
#[cfg(target_arch = "x86_64")]
use x86_64::read;

use super::{Chain, Kernel, Walk};

pub(super) use fixtures::FIXTURES;

/// A function longer than this is not one of ours, bytes.
const LONGEST_BYTES: usize = 16 << 10;

/// What one turn of the inner body does: the instructions from the target of the innermost backward branch to that branch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decoded {
    /// Instructions that load; a repeated one (`rep movsb`) counts once.
    loads: u32,
    stores: u32,
    streaming_stores: u32,
    /// Bytes loaded, those of every repetition.
    load_bytes: u32,
    store_bytes: u32,
    branches: u32,
    /// Floating-point operations over all lanes, a fused multiply-add as two.
    flops: u32,
    calls: u32,
    spills: u32,
    /// Instructions on registers besides those that count and branch, where the body touches no memory.
    operations: u32,
    /// Whether every access (every operation, where there is no access) needs a result of the one before.
    dependent: bool,
    /// By how many bytes each address moves on, largest first; addresses that move by a register's value are left out.
    advances: Vec<u32>,
    /// Whether each address that moves on touches every byte that it passes.
    gapless: bool,
    instructions: u32,
}

/// Reads a kernel's code.
/// Errors: one line: an instruction that is not known, no end, no loop.
fn decode(kernel: &Kernel) -> Result<Decoded, String> {
    let steps = read(kernel.code)?;
    body::decode(&steps)
}

/// Whether the code does what is declared, and nothing besides: no call, no access to the stack, one branch that closes the
/// body, addresses that move on by what a turn is said to walk and leave nothing out.
/// Errors: the first difference, in one line.
fn check(kernel: &Kernel) -> Result<(), String> {
    let code = decode(kernel).map_err(|why| format!("{}: {why}", kernel.name))?;
    let declared = kernel.declared;
    let differs = |what: &str, said: u32, found: u32| {
        Err(format!("{}: declares {said} {what}, its code has {found}", kernel.name))
    };
    let counts = [
        ("calls", 0, code.calls),
        ("accesses to the stack", 0, code.spills),
        ("branches", declared.branches, code.branches),
        ("loads", declared.loads, code.loads),
        ("stores", declared.stores, code.stores),
        ("streaming stores", declared.streaming_stores, code.streaming_stores),
        ("bytes loaded", declared.load_bytes, code.load_bytes),
        ("bytes stored", declared.store_bytes, code.store_bytes),
        ("floating-point operations", declared.flops, code.flops),
        ("operations", declared.operations, code.operations),
    ];
    for (what, said, found) in counts {
        if said != found {
            return differs(what, said, found);
        }
    }
    if (declared.chain == Chain::Dependent) != code.dependent {
        let found = if code.dependent { "are" } else { "are not" };
        return Err(format!(
            "{}: declares {:?} accesses or operations, in its code each {found} in need of the one before",
            kernel.name, declared.chain
        ));
    }
    let mut walked: Vec<u32> = match kernel.walk {
        Walk::Forward(bytes) => bytes.into_iter().filter(|b| *b > 0).collect(),
        Walk::Register | Walk::Strided(_) | Walk::Chase => Vec::new(),
    };
    walked.sort_unstable_by(|a, b| b.cmp(a));
    if walked != code.advances {
        return Err(format!(
            "{}: declares addresses that move on by {walked:?} bytes, in its code they move by {:?}",
            kernel.name, code.advances
        ));
    }
    if !code.gapless {
        return Err(format!("{}: its code leaves bytes out that it passes", kernel.name));
    }
    Ok(())
}
