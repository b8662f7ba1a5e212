//! Patterns of messages over a link: turns of a near end, which takes the time, and of a far end.

use std::io;

use machmeter_stats::quantile::{quantile, sorted};
use machmeter_sys::link::Link;
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

/// The first byte of a message that ends a pattern has this bit; the others are the number of the pattern or of the turn.
pub const END: u8 = 0x80;
/// Numbers of turns and patterns go round below this.
pub const NUMBERS: u8 = 0x80;

pub const MOST_BYTES: u64 = 64 << 20;
/// Most messages of a turn, and most work between them, turns of the work that the ends do.
const MOST_MESSAGES: u32 = 4096;
const MOST_WORK: u64 = 1 << 32;
/// Most that the far end waits before it receives, ns.
const MOST_DELAY_NS: u64 = 1_000_000_000;

/// The turns of one visit: messages there, then messages back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    pub link: usize,
    /// Ends with the message that has this number.
    pub pattern: u8,
    pub there: u32,
    pub back: u32,
    pub bytes: u64,
    /// Work of the far end between two messages back.
    pub work: u64,
    /// The far end waits so long after the first message and times the rest; it times nothing if 0.
    pub delay_ns: u64,
}

impl Turns {
    /// The reason why these turns are refused, in one line; `None` if they are in range.
    pub fn objection(&self) -> Option<String> {
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

/// The far end's account of a pattern.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Messages received before the one that ended it.
    pub messages: u64,
    /// Involuntary context switches.
    pub preempted: u64,
    /// Mean time of a receive call in each timed turn, ns.
    pub receive_ns: Vec<f64>,
    /// Why it ended before its last message.
    pub why: Option<String>,
}

/// Keeps the CPU busy until a time, monotonic ns; the time then.
pub fn spin_until(ns: u64) -> u64 {
    loop {
        let now_ns = monotonic_ns();
        if now_ns >= ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

/// Pairs of clock readings for that median.
const LOOKS: usize = 31;

/// Cost of reading the clock: the median distance of two readings, ns.
pub fn look_ns() -> f64 {
    let look = |_| {
        let begin_ns = monotonic_ns();
        (monotonic_ns() - begin_ns) as f64
    };
    sorted(&(0..LOOKS).map(look).collect::<Vec<f64>>()).ok().and_then(|s| quantile(&s, 0.5)).unwrap_or(0.0)
}

/// Time of each of some calls since a look at the clock, ns, without that of the look at their end.
pub fn per_call_ns(begin_ns: u64, look_ns: f64, calls: u32) -> f64 {
    ((monotonic_ns() - begin_ns) as f64 - look_ns).max(0.0) / f64::from(calls)
}

/// Messages in a row, and the work between two of them, turns of the work that is passed along.
#[derive(Debug, Clone, Copy)]
pub struct Train {
    pub messages: u32,
    pub work: u64,
}

/// Sends a train; `sent` counts its messages.
///
/// # Errors
/// As the link; the rest is not sent then.
pub fn send_train(
    link: &mut dyn Link,
    message: &[u8],
    train: Train,
    work: &mut dyn FnMut(u64),
    sent: &mut u64,
) -> io::Result<()> {
    for i in 0..train.messages {
        if i > 0 && train.work > 0 {
            work(train.work);
        }
        link.send(message)?;
        *sent += 1;
    }
    Ok(())
}

/// Receives until `got` messages of the turn `number` are `wanted`. A late reply to an earlier turn is passed over.
///
/// # Errors
/// As the link.
pub fn receive_train(
    link: &mut dyn Link,
    message: &mut [u8],
    number: u8,
    wanted: u32,
    got: &mut u32,
) -> io::Result<()> {
    while *got < wanted {
        link.receive(message)?;
        *got += u32::from(message[0] == number);
    }
    Ok(())
}

/// Turns whose receive calls are kept, at most.
const MOST_TIMED: usize = 10_000;

/// The far end's turns, until the message that ends them; `seen` counts.
///
/// # Errors
/// As the link.
pub fn take_turns(
    link: &mut dyn Link,
    turns: &Turns,
    message: &mut [u8],
    work: fn(u64),
    seen: &mut Ended,
) -> io::Result<()> {
    let last = END | turns.pattern;
    let (mut number, mut got) = (NUMBERS, 0);
    let look_ns = if turns.delay_ns > 0 { look_ns() } else { 0.0 };
    loop {
        // The rest of a turn whose first message is there.
        if turns.delay_ns > 0 && got == 1 && turns.there > 1 {
            let begin_ns = spin_until(monotonic_ns() + turns.delay_ns);
            for _ in 1..turns.there {
                link.receive(message)?;
            }
            let each_ns = per_call_ns(begin_ns, look_ns, turns.there - 1);
            seen.messages += u64::from(turns.there) - 1;
            got = turns.there;
            if seen.receive_ns.len() < MOST_TIMED {
                seen.receive_ns.push(each_ns);
            }
        } else {
            link.receive(message)?;
            let head = message[0];
            if head == last {
                return Ok(());
            }
            // An end of an earlier pattern that came late.
            if head & END != 0 {
                continue;
            }
            seen.messages += 1;
            // Another turn has begun: a message of this one got lost.
            if head != number {
                (number, got) = (head, 0);
            }
            got += 1;
        }
        if got >= turns.there {
            got = 0;
            message[0] = number;
            for i in 0..turns.back {
                if i > 0 && turns.work > 0 {
                    work(turns.work);
                }
                link.send(message)?;
            }
            number = NUMBERS;
        }
    }
}
