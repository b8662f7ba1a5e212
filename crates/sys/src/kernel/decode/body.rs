//! The inner body among the instructions of a function, and what it does, for any instruction set.

use std::collections::BTreeSet;

use super::Decoded;
use crate::kernel::declared::register;
use crate::kernel::{Chain, Declared};

/// A set of registers, a bit each.
pub(super) type Registers = u64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// Register that holds the address, as a set of one; 0 for none.
    pub base: Registers,
    pub indexed: bool,
    /// Constant added to it, bytes.
    pub displacement: i64,
    pub bytes: u32,
    pub load: bool,
    pub store: Option<Store>,
    pub stack: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Ordinary,
    Streaming,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Flow {
    #[default]
    Next,
    /// To this offset in the function (or on, if there is a condition).
    Branch(i64),
    Call,
    Return,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    /// Offset in the function, bytes.
    pub at: i64,
    pub length: u8,
    pub flow: Flow,
    pub accesses: Vec<Access>,
    pub reads: Registers,
    pub writes: Registers,
    pub flops: u32,
    /// Adds a constant to a register and does nothing else to registers.
    pub advance: Option<(Registers, i64)>,
    pub constant: Option<(Registers, u64)>,
    /// Repeats itself so many times as this register says; `accesses` are those of one time, and their addresses move on.
    pub repeated_by: Option<Registers>,
}

/// Reads instruction after instruction, by `next` from an offset on, up to the return that nothing jumps over.
pub(super) fn function(
    limit: usize,
    mut next: impl FnMut(usize) -> Result<Step, String>,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let (mut at, mut furthest) = (0, 0);
    while at < limit {
        let step = next(at)?;
        at += usize::from(step.length);
        if let Flow::Branch(target) = step.flow {
            furthest = furthest.max(target);
        }
        let ends = step.flow == Flow::Return && furthest < at as i64;
        steps.push(step);
        if ends {
            return Ok(steps);
        }
    }
    Err(format!("no end within {limit} bytes"))
}

pub(super) fn decode(steps: &[Step]) -> Result<Decoded, String> {
    let body = inner(steps).ok_or("no loop")?;
    let mut found = Declared { branches: 0, ..register(Chain::Independent) };
    let (mut calls, mut spills, mut advances) = (0, 0, Vec::new());
    for (i, step) in body.iter().enumerate() {
        let times = match step.repeated_by {
            None => 1,
            Some(register) => count(&body[..i], register).ok_or("repeats an unknown number of times")?,
        };
        found.flops += step.flops;
        found.branches += u32::from(matches!(step.flow, Flow::Branch(_)));
        calls += u32::from(step.flow == Flow::Call);
        for access in &step.accesses {
            let bytes = access.bytes.checked_mul(times).ok_or("repeats too often")?;
            spills += u32::from(access.stack);
            if access.load {
                found.loads += 1;
                found.load_bytes += bytes;
            }
            if let Some(store) = access.store {
                found.stores += 1;
                found.store_bytes += bytes;
                found.streaming_stores += u32::from(store == Store::Streaming);
            }
            if step.repeated_by.is_some() {
                advances.push(bytes);
            }
        }
    }
    let gapless = walk(body, &mut advances);
    advances.sort_unstable_by(|a, b| b.cmp(a));
    let accessing: Vec<&Step> = body.iter().filter(|s| !s.accesses.is_empty()).collect();
    let dependent = if accessing.is_empty() {
        // The last two instructions count down and branch; alone, they are the chain.
        let work = body.len().saturating_sub(2);
        found.operations = work as u32;
        chained(&body[..work.max(1)].iter().collect::<Vec<_>>())
    } else {
        chained(&accessing)
    };
    if dependent {
        found.chain = Chain::Dependent;
    }
    Ok(Decoded { found, calls, spills, advances, gapless })
}

fn inner(steps: &[Step]) -> Option<&[Step]> {
    let loops = steps.iter().enumerate().filter_map(|(last, step)| match step.flow {
        Flow::Branch(target) if target <= step.at => {
            let first = steps.iter().position(|s| s.at == target)?;
            Some((first, last))
        }
        _ => None,
    });
    let (first, last) = loops.min_by_key(|(first, last)| last - first)?;
    Some(&steps[first..=last])
}

/// The constant that a register was last set to.
fn count(before: &[Step], register: Registers) -> Option<u32> {
    let last = before.iter().rev().find(|s| s.writes & register != 0)?;
    let (set, value) = last.constant?;
    (set == register).then(|| u32::try_from(value).ok()).flatten()
}

/// Whether each needs a register that the one before writes, the first one that of the last one a turn ago. A store leaves no
/// result in a register: what follows it is to need what was before it.
fn chained(work: &[&Step]) -> bool {
    let before = |i: usize| {
        (1..=work.len()).map(|back| work[(i + work.len() - back) % work.len()]).find(|s| s.writes != 0)
    };
    work.iter().all(|step| step.repeated_by.is_none())
        && work.iter().enumerate().all(|(i, step)| before(i).is_some_and(|b| b.writes & step.reads != 0))
}

/// Adds how far the addresses move on in a turn; whether they touch all that they pass.
fn walk(body: &[Step], advances: &mut Vec<u32>) -> bool {
    let mut gapless = true;
    let steps = || body.iter().filter(|s| s.repeated_by.is_none());
    let bases: BTreeSet<Registers> = steps().flat_map(|s| &s.accesses).map(|a| a.base).collect();
    for base in bases.into_iter().filter(|base| *base != 0) {
        let mut advance = 0;
        let mut touched: Vec<(i64, i64)> = Vec::new();
        for step in steps() {
            for access in step.accesses.iter().filter(|a| a.base == base && !a.indexed) {
                let from = access.displacement + advance;
                touched.push((from, from + i64::from(access.bytes)));
            }
            advance += step.advance.filter(|(register, _)| *register == base).map_or(0, |(_, bytes)| bytes);
        }
        if advance == 0 {
            continue;
        }
        advances.push(u32::try_from(advance).unwrap_or(0));
        touched.sort_unstable();
        touched.dedup();
        let joined = touched.windows(2).all(|w| w[1].0 == w[0].1);
        let span = touched.last().map_or(0, |l| l.1) - touched.first().map_or(0, |f| f.0);
        gapless &= joined && span == advance;
    }
    gapless
}
