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

use super::{Chain, Declared, Kernel, Walk};

pub(super) use fixtures::FIXTURES;

/// A function longer than this is not one of ours, bytes.
const LONGEST_BYTES: usize = 16 << 10;

/// What one turn of the inner body does: the instructions from the target of the innermost backward branch to that branch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decoded {
    /// In the terms of a declaration: a repeated instruction (`rep movsb`) is one load, the bytes are those of every
    /// repetition. Dependent if every access (every operation, where there is no access) needs a result of the one before.
    found: Declared,
    calls: u32,
    spills: u32,
    /// By how many bytes each address moves on, largest first; addresses that move by a register's value are left out.
    advances: Vec<u32>,
    /// Whether each address that moves on touches every byte that it passes.
    gapless: bool,
}

/// Reads a kernel's code. Errors: one line: an unknown instruction, no end, no loop.
fn decode(kernel: &Kernel) -> Result<Decoded, String> {
    let steps = read(kernel.code)?;
    body::decode(&steps)
}

/// Whether the code does what is declared and nothing besides: no call, no stack, one branch, addresses that move
/// on by what is walked and leave nothing out. Errors: the first difference, in one line.
fn check(kernel: &Kernel) -> Result<(), String> {
    let code = decode(kernel).map_err(|why| format!("{}: {why}", kernel.name))?;
    let (declared, found) = (kernel.declared, code.found);
    let counts = [
        ("calls", 0, code.calls),
        ("accesses to the stack", 0, code.spills),
        ("branches", declared.branches, found.branches),
        ("loads", declared.loads, found.loads),
        ("stores", declared.stores, found.stores),
        ("streaming stores", declared.streaming_stores, found.streaming_stores),
        ("bytes loaded", declared.load_bytes, found.load_bytes),
        ("bytes stored", declared.store_bytes, found.store_bytes),
        ("floating-point operations", declared.flops, found.flops),
        ("operations", declared.operations, found.operations),
    ];
    if let Some((what, said, has)) = counts.into_iter().find(|(_, said, has)| said != has) {
        return Err(format!("{}: declares {said} {what}, its code has {has}", kernel.name));
    }
    if declared.chain != found.chain {
        let are = if found.chain == Chain::Dependent { "are" } else { "are not" };
        return Err(format!(
            "{}: declares {:?} accesses or operations, in its code each {are} in need of the one before",
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
