//! What ranks do.

/// Kind of an operation, in the order in which those that get ready together begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    Send,
    Receive,
    Calculate,
}

/// Tag of a calculation that is a collective operation of a known cost.
pub const COLLECTIVE: u32 = 2;
/// Tag of a calculation that enters group 0; those of other groups follow.
pub(crate) const ENTER: u32 = COLLECTIVE + 1;

/// What is told of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A CPU begins to calculate or to send.
    Begin,
    /// A CPU begins to take a message in; it is the sender's operation that is named.
    Take,
    End,
}

/// An operation of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    pub verb: Verb,
    /// The other rank of a message, [`crate::ANY`] for a receive from any; 0 of a calculation.
    pub peer: u32,
    /// Bytes of a message, or the length of a calculation, ps.
    pub amount: u64,
    /// Tag of a message, [`crate::ANY`] for a receive of any; of a calculation 0, or [`COLLECTIVE`].
    pub tag: u32,
    pub cpu: u8,
    pub nic: u8,
}

impl Op {
    pub fn send(peer: u32, bytes: u64, tag: u32) -> Self {
        Self { verb: Verb::Send, peer, amount: bytes, tag, cpu: 0, nic: 0 }
    }

    pub fn receive(peer: u32, bytes: u64, tag: u32) -> Self {
        Self { verb: Verb::Receive, peer, amount: bytes, tag, cpu: 0, nic: 0 }
    }

    pub fn calculate(ps: u64) -> Self {
        Self { verb: Verb::Calculate, peer: 0, amount: ps, tag: 0, cpu: 0, nic: 0 }
    }
}

/// An operation that got ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    pub rank: u32,
    /// Number in the rank.
    pub id: u32,
    pub op: Op,
}

/// A program: operations of each rank by number, and which of them get ready when others start or finish.
///
/// The engine calls `begin` once for each rank in order, then `started` and `finished` once for each operation. Each of them adds the
/// operations that get ready to `ready`, in order.
pub trait Program {
    fn ranks(&self) -> u32;
    /// CPUs of a rank that operations name.
    fn cpus(&self) -> u8 {
        1
    }
    /// Network interfaces of a rank that operations name.
    fn nics(&self) -> u8 {
        1
    }
    /// Number of operations of all ranks.
    fn operations(&self) -> u64;
    /// Whether a receive of the rank takes any sender or tag.
    fn takes_any(&self, _rank: u32) -> bool {
        false
    }
    /// Operations that nothing holds back. Forgets an earlier run of the rank.
    fn begin(&mut self, rank: u32, ready: &mut Vec<Ready>);
    fn op(&self, rank: u32, op: u32) -> Op;
    fn started(&mut self, _rank: u32, _op: u32, _ready: &mut Vec<Ready>) {}
    fn finished(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>);
}

/// The order in which operations that get ready together begin: by rank, sends before receives before calculations.
#[inline]
pub(crate) fn put_in_order(ready: &mut [Ready]) {
    let key = |r: &Ready| u64::from(r.rank) << 8 | r.op.verb as u64;
    if ready.len() > 1 && !ready.is_sorted_by_key(key) {
        ready.sort_by_key(key);
    }
}
