//! Schedules read from the binary files of the reference's converter: little endian, packed, one section for each rank.

use crate::engine::ANY;
use crate::program::{Op, Verb};

use super::build::{Builder, Require};
use super::write::{HEADER_BYTES, NODE_BYTES};
use super::{COOKIE, Goal, USED_COOKIE};

/// Places in a file count from behind the cookie.
const BASE: usize = 8;
/// Bytes of an operation in files with operations of Portals.
const PORTALS_NODE_BYTES: usize = 104;

/// Reads a schedule, or says what is wrong first, with its place. Nothing is allocated beyond the size of the file.
pub fn read_binary(bytes: &[u8]) -> Result<Goal, String> {
    let mut file = File { bytes, ranks: 0, largest: (0, 0), rank: None };
    let cookie = file.u64(0)?;
    let used = "the file was used up by a run with --save-mem: convert the text again";
    file.check(cookie != USED_COOKIE, 0, || used)?;
    file.check(cookie == COOKIE, 0, || "no binary schedule: the first 8 bytes are not 4223")?;
    let ranks = file.u32(8)?;
    let table = BASE + HEADER_BYTES;
    let room = bytes.len().saturating_sub(table) / 16;
    file.check(ranks != 0 && ranks != ANY && ranks as usize <= room, 8, || {
        format!("{ranks} ranks; a file of {} bytes has room for {room}", bytes.len())
    })?;
    let (max_cpu, max_nic) = (file.u8(12)?, file.u8(13)?);
    (file.ranks, file.largest) = (ranks, (max_cpu, max_nic));
    let mut builder = Builder::default();
    let mut start = HEADER_BYTES + 16 * ranks as usize;
    for rank in 0..ranks {
        let at = table + 16 * rank as usize;
        let (found, end) = (file.u64(at)?, file.u64(at + 8)?);
        file.check(found == start as u64, at, || {
            format!("rank {rank} starts at {found} instead of {start}")
        })?;
        let (first, last) = (found + 8, (bytes.len() - BASE) as u64);
        let fits = (first..=last).contains(&end);
        file.check(fits, at + 8, || format!("rank {rank} ends at {end}, outside {first} to {last}"))?;
        File { rank: Some(rank), ..file }.read(&mut builder, BASE + start, BASE + end as usize)?;
        start = end as usize;
    }
    file.check(BASE + start == bytes.len(), BASE + start, || "bytes follow the last rank")?;
    let goal = builder.build();
    file.check((goal.max_cpu, goal.max_nic) == file.largest, 12, || {
        format!("CPU {max_cpu} and network interface {max_nic} are not the largest ones used")
    })?;
    Ok(goal)
}

#[derive(Clone, Copy)]
struct File<'a> {
    bytes: &'a [u8],
    ranks: u32,
    /// Largest CPU and network interface.
    largest: (u8, u8),
    /// Whose part is read.
    rank: Option<u32>,
}

impl File<'_> {
    fn chunk<const N: usize>(&self, at: usize) -> Result<[u8; N], String> {
        let found = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        found.copied().ok_or_else(|| format!("byte {}: the file ends too early", self.bytes.len()))
    }

    fn u8(&self, at: usize) -> Result<u8, String> {
        Ok(self.chunk::<1>(at)?[0])
    }

    fn u32(&self, at: usize) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.chunk(at)?))
    }

    fn u64(&self, at: usize) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.chunk(at)?))
    }

    fn wrong(&self, at: usize, text: &str) -> String {
        let rank = self.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        format!("byte {at}: {rank}{text}")
    }

    fn check<T: AsRef<str>>(&self, holds: bool, at: usize, text: impl FnOnce() -> T) -> Result<(), String> {
        if holds { Ok(()) } else { Err(self.wrong(at, text().as_ref())) }
    }

    /// Reads the part of the rank.
    fn read(&self, builder: &mut Builder, start: usize, end: usize) -> Result<(), String> {
        let (nodes, roots) = (self.u32(start)? as usize, self.u32(start + 4)? as usize);
        let length = (end - start) as u64;
        let bytes_for = |node: usize| 8 + 4 * roots as u64 + (node * nodes) as u64;
        let rest = length.checked_sub(bytes_for(NODE_BYTES)).filter(|rest| rest.is_multiple_of(4));
        let unfit = || self.wrong(start, &format!("{nodes} operations do not fit into {length} bytes"));
        let edges = rest.ok_or_else(unfit)? / 4;
        let first_node = start + 8 + 4 * roots;
        let first_edge = first_node + NODE_BYTES * nodes;
        // Files of Portals have the same cookie: larger operations fit where the first one here is none.
        let is_portals = length >= bytes_for(PORTALS_NODE_BYTES) && nodes > 0;
        let mut next_edge = 0u64;
        for op in 0..nodes {
            let at = first_node + NODE_BYTES * op;
            builder.add(match self.node(at) {
                Err(_) if is_portals => return Err(self.wrong(at, "operations of Portals are not supported")),
                other => other?,
            });
            for (place, what) in [(23, Require::End), (31, Require::Start)] {
                let (count, first) = (u64::from(self.u32(at + place)?), self.u32(at + place + 4)?);
                let fits = u64::from(first) == next_edge && next_edge + count <= edges;
                self.check(fits, at + place, || {
                    format!("operation {op} has {count} edges from {first} on, outside the {edges} edges")
                })?;
                for edge in next_edge..next_edge + count {
                    let at = first_edge + 4 * edge as usize;
                    let to = self.u32(at)?;
                    self.check((to as usize) < nodes, at, || format!("operation {to} is none of {nodes}"))?;
                    builder.require(to, op as u32, what);
                }
                next_edge += count;
            }
        }
        self.check(next_edge == edges, first_edge, || {
            format!("{edges} edges, of which operations use {next_edge}")
        })?;
        builder.end_rank().map_err(|op| {
            let at = first_node + NODE_BYTES * op as usize;
            self.wrong(at, "the operation requires itself through other operations")
        })?;
        self.roots(builder, start, first_node, roots)
    }

    fn node(&self, at: usize) -> Result<Op, String> {
        let (ranks, largest) = (self.ranks, self.largest);
        let verb = match self.u8(at + 4)? {
            1 => Verb::Send,
            2 => Verb::Receive,
            3 => Verb::Calculate,
            other => {
                let text = format!("operation of kind {other}, which is none of 1 to 3");
                return Err(self.wrong(at + 4, &text));
            }
        };
        let (peer, amount, tag) = (self.u32(at + 5)?, self.u64(at + 9)?, self.u32(at + 17)?);
        let (cpu, nic) = (self.u8(at + 21)?, self.u8(at + 22)?);
        let is_rank = peer < ranks || verb == Verb::Receive && peer == ANY;
        self.check(is_rank, at + 5, || format!("rank {peer} is none of the {ranks} ranks"))?;
        let is_alone = verb != Verb::Calculate || (peer, tag) == (0, 0);
        self.check(is_alone, at + 5, || "a calculation with a peer or a tag")?;
        let is_there = cpu <= largest.0.min(254) && nic <= largest.1.min(254);
        self.check(is_there, at + 21, || "a CPU or network interface beyond the largest one of the file")?;
        Ok(Op { verb, peer, amount, tag, cpu, nic })
    }

    /// Numbers of requirements and the list of roots follow from the edges.
    fn roots(&self, builder: &Builder, start: usize, first_node: usize, roots: usize) -> Result<(), String> {
        let mut root = 0;
        for (op, requires) in builder.last_requires().enumerate() {
            let at = first_node + NODE_BYTES * op;
            let found = self.u32(at)?;
            let text = || format!("operation {op} has {requires} requirements, not {found}");
            self.check(found == requires, at, text)?;
            if requires == 0 {
                let at = start + 8 + 4 * root;
                let is_listed = root < roots && self.u32(at)? == op as u32;
                self.check(is_listed, at, || "the list of operations without requirements is not that")?;
                root += 1;
            }
        }
        self.check(root == roots, start + 4, || "too many operations without requirements")
    }
}
