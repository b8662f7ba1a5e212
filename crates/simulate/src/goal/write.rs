//! Schedules written, as text and as the binary file of the reference's converter.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::engine::ANY;
use crate::program::{Op, Verb};

use super::{COOKIE, Goal};

/// Bytes of an operation in a binary file.
pub(super) const NODE_BYTES: usize = 39;
/// Bytes before the table of ranks, after the cookie.
pub(super) const HEADER_BYTES: usize = 6;

/// Writes a schedule as text. Labels are `l1`, `l2`, ... in each rank.
pub fn write_text(goal: &Goal, to: &mut impl Write) -> io::Result<()> {
    let any = |x: u32| if x == ANY { "-1".to_owned() } else { x.to_string() };
    let mut text = String::new();
    let _ = writeln!(text, "num_ranks {}\n", goal.ranks());
    for rank in 0..goal.ranks() {
        let _ = writeln!(text, "rank {rank} {{");
        let (nodes, edges) = (goal.nodes(rank), goal.edges(rank));
        for (at, n) in nodes.iter().enumerate() {
            let _ = write!(text, "l{}: ", at + 1);
            let Op { verb, peer, amount, tag, cpu, nic } = n.op;
            let _ = match verb {
                Verb::Calculate => write!(text, "calc {amount}"),
                Verb::Send => write!(text, "send {amount}b to {peer} tag {}", any(tag)),
                Verb::Receive => write!(text, "recv {amount}b from {} tag {}", any(peer), any(tag)),
            };
            for (word, number) in [("cpu", cpu), ("nic", nic)].into_iter().filter(|(_, n)| *n > 0) {
                let _ = write!(text, " {word} {number}");
            }
            text.push('\n');
        }
        for (at, n) in nodes.iter().enumerate() {
            let ends = edges[n.end_edges as usize..n.start_edges as usize].iter().map(|to| (to, "requires"));
            let starts =
                edges[n.start_edges as usize..n.last_edge as usize].iter().map(|to| (to, "irequires"));
            for (to, word) in ends.chain(starts) {
                let _ = writeln!(text, "l{} {word} l{}", to + 1, at + 1);
            }
        }
        text.push_str("}\n\n");
        to.write_all(text.as_bytes())?;
        text.clear();
    }
    to.write_all(text.as_bytes())
}

/// Writes a schedule as a binary file, byte by byte that of the reference's `txt2bin`.
pub fn write_binary(goal: &Goal, to: &mut impl Write) -> io::Result<()> {
    let roots = |rank: u32| goal.nodes(rank).iter().filter(|n| n.requires == 0).count();
    let mut out = Vec::new();
    out.extend(COOKIE.to_le_bytes());
    out.extend(goal.ranks().to_le_bytes());
    out.extend([goal.max_cpu, goal.max_nic]);
    let mut start = (HEADER_BYTES + 16 * goal.ranks() as usize) as u64;
    for rank in 0..goal.ranks() {
        let nodes = goal.nodes(rank).len();
        let bytes = 8 + 4 * roots(rank) + NODE_BYTES * nodes + 4 * goal.edges(rank).len();
        out.extend(start.to_le_bytes());
        start += bytes as u64;
        out.extend(start.to_le_bytes());
    }
    for rank in 0..goal.ranks() {
        let nodes = goal.nodes(rank);
        out.extend((nodes.len() as u32).to_le_bytes());
        out.extend((roots(rank) as u32).to_le_bytes());
        for (at, _) in nodes.iter().enumerate().filter(|(_, n)| n.requires == 0) {
            out.extend((at as u32).to_le_bytes());
        }
        for n in nodes {
            let verb = match n.op.verb {
                Verb::Send => 1,
                Verb::Receive => 2,
                Verb::Calculate => 3,
            };
            let mut node = [0; NODE_BYTES];
            node[0..4].copy_from_slice(&n.requires.to_le_bytes());
            node[4] = verb;
            node[5..9].copy_from_slice(&n.op.peer.to_le_bytes());
            node[9..17].copy_from_slice(&n.op.amount.to_le_bytes());
            node[17..21].copy_from_slice(&n.op.tag.to_le_bytes());
            (node[21], node[22]) = (n.op.cpu, n.op.nic);
            node[23..27].copy_from_slice(&(n.start_edges - n.end_edges).to_le_bytes());
            node[27..31].copy_from_slice(&n.end_edges.to_le_bytes());
            node[31..35].copy_from_slice(&(n.last_edge - n.start_edges).to_le_bytes());
            node[35..39].copy_from_slice(&n.start_edges.to_le_bytes());
            out.extend_from_slice(&node);
        }
        for edge in goal.edges(rank) {
            out.extend(edge.to_le_bytes());
        }
        if out.len() > 1 << 16 {
            to.write_all(&out)?;
            out.clear();
        }
    }
    to.write_all(&out)
}
