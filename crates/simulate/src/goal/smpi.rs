//! Schedules written as time-independent traces for SMPI (Casanova et al. 2015), all ranks in one file.
//!
//! Messages are non-blocking; an operation that requires the end of one waits for it first. A trace has one thread per rank: calculations
//! of several CPUs follow each other. One flop stands for one nanosecond: replay on hosts of 1 Gflop/s.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use crate::program::{Op, Verb};

use super::Goal;

/// Number of `MPI_BYTE` in a trace.
const BYTE: u32 = 6;

/// Writes a schedule as a trace, which cannot have a receive from any sender or of any tag.
pub fn write_smpi(goal: &Goal, to: &mut impl Write) -> io::Result<()> {
    if let Some(rank) = goal.takes_any.iter().position(|any| *any) {
        let text =
            format!("rank {rank} receives from any sender or any tag, which a trace for SMPI cannot say");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    for rank in 0..goal.ranks() {
        writeln!(to, "{rank} init")?;
        write_rank(goal, rank, to)?;
        writeln!(to, "{rank} finalize")?;
    }
    Ok(())
}

fn wait(rank: u32, op: Op, to: &mut impl Write) -> io::Result<()> {
    match op.verb {
        Verb::Send => writeln!(to, "{rank} wait {rank} {} {}", op.peer, op.tag),
        Verb::Receive => writeln!(to, "{rank} wait {} {rank} {}", op.peer, op.tag),
        Verb::Calculate => Ok(()),
    }
}

/// Operations in an order that their requirements allow: messages before calculations, then as the file has them.
fn write_rank(goal: &Goal, rank: u32, to: &mut impl Write) -> io::Result<()> {
    let (nodes, edges) = (goal.nodes(rank), goal.edges(rank));
    let mut requires: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (at, n) in nodes.iter().enumerate() {
        for op in &edges[n.end_edges as usize..n.start_edges as usize] {
            requires[*op as usize].push(at as u32);
        }
    }
    let mut open: Vec<u32> = nodes.iter().map(|n| n.requires).collect();
    let mut is_over: Vec<bool> = nodes.iter().map(|n| n.op.verb == Verb::Calculate).collect();
    let key = |op: u32| Reverse((nodes[op as usize].op.verb == Verb::Calculate, op));
    let mut ready: BinaryHeap<_> =
        (0..nodes.len() as u32).filter(|op| open[*op as usize] == 0).map(key).collect();
    while let Some(Reverse((_, op))) = ready.pop() {
        for required in &requires[op as usize] {
            if !std::mem::replace(&mut is_over[*required as usize], true) {
                wait(rank, nodes[*required as usize].op, to)?;
            }
        }
        let n = &nodes[op as usize];
        let Op { verb, peer, amount, tag, .. } = n.op;
        match verb {
            Verb::Send => writeln!(to, "{rank} isend {peer} {tag} {amount} {BYTE}")?,
            Verb::Receive => writeln!(to, "{rank} irecv {peer} {tag} {amount} {BYTE}")?,
            Verb::Calculate => writeln!(to, "{rank} compute {amount}")?,
        }
        for next in &edges[n.end_edges as usize..n.last_edge as usize] {
            open[*next as usize] -= 1;
            if open[*next as usize] == 0 {
                ready.push(key(*next));
            }
        }
    }
    for (n, _) in nodes.iter().zip(&is_over).filter(|(_, is_over)| !**is_over) {
        wait(rank, n.op, to)?;
    }
    Ok(())
}
