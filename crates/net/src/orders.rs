//! What both ends say to each other beside the link, one JSON value a line: nothing but messages crosses the link itself.

use serde::{Deserialize, Serialize};

/// The first byte of a message that ends a pattern has this bit; the others are the number of the pattern or of the turn.
pub(crate) const END: u8 = 0x80;
/// Numbers of turns and patterns go round below this.
pub(crate) const NUMBERS: u8 = 0x80;

pub(crate) const MOST_BYTES: u64 = 64 << 20;
/// Most messages of a turn, and most work between them, turns of [`machmeter_engine::cpu_work::spin`].
const MOST_MESSAGES: u32 = 4096;
const MOST_WORK: u64 = 1 << 32;
/// Most that the far end waits before it receives, ns.
const MOST_DELAY_NS: u64 = 1_000_000_000;

/// The turns of one visit: messages there, then messages back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turns {
    pub(crate) link: usize,
    /// Ends with the message that has this number.
    pub(crate) pattern: u8,
    pub(crate) there: u32,
    pub(crate) back: u32,
    pub(crate) bytes: u64,
    /// Work of the far end between two messages back.
    pub(crate) work: u64,
    /// The far end waits so long after the first message and times the rest; it times nothing if 0.
    pub(crate) delay_ns: u64,
}

impl Turns {
    /// What cannot be meant, in one line.
    pub(crate) fn objection(&self) -> Option<String> {
        let counts = 1..=MOST_MESSAGES;
        if !counts.contains(&self.there) || !counts.contains(&self.back) {
            return Some(format!("{} and {} messages a turn: 1 to {MOST_MESSAGES}", self.there, self.back));
        }
        if self.bytes == 0 || self.bytes > MOST_BYTES {
            return Some(format!("messages of {} B: 1 to {MOST_BYTES}", self.bytes));
        }
        let sane = self.pattern < NUMBERS && self.work <= MOST_WORK && self.delay_ns <= MOST_DELAY_NS;
        (!sane).then(|| "a number of a pattern, a time or work out of range".to_owned())
    }
}

/// What the near end asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Take part in turns until the message that ends them.
    Turns(Turns),
}

/// What the far end says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It waits for the first message.
    Ready,
    Ended(Ended),
    Cannot(String),
}

/// What the far end saw of a pattern.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Messages received before the one that ended it.
    pub(crate) messages: u64,
    /// Switches against its will.
    pub(crate) preempted: u64,
    /// Time of each receive call by turns, where they were timed, ns.
    pub(crate) receive_ns: Vec<f64>,
    /// Why it ended before its last message.
    pub(crate) why: Option<String>,
}
