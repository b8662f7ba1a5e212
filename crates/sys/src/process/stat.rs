//! Processes and threads as their `stat` in `/proc` shows them (proc(5)).

use std::fs;

use machmeter_data::text::printable;

use crate::counters::stat::NS_PER_TICK;

const PF_KTHREAD: u64 = 0x0020_0000;
const SCHED_DEADLINE: i32 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub comm: String,
    pub(super) state: char,
    pub(super) group: i32,
    threads: u32,
    /// Whether it belongs to the kernel.
    pub kernel: bool,
    /// CPU time, in units of 10 ms.
    pub cpu_ns: u64,
    pub priority: u32,
    policy: i32,
}

impl Stat {
    /// Of a process, or of a thread but for its CPU time.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    pub fn of_thread(pid: u32, tid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?)
    }

    /// The name in parentheses may hold anything, also parentheses and bytes that are no text.
    fn parse(stat: &[u8]) -> Option<Self> {
        let before_name = stat.iter().position(|b| *b == b'(')?;
        let after_name = stat.iter().rposition(|b| *b == b')')?;
        let name = stat.get(before_name + 1..after_name)?;
        let text = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        // proc(5) counts from 1; the first field after the name is number 3.
        let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
        Some(Self {
            comm: printable(&String::from_utf8_lossy(name)),
            state: fields.first()?.chars().next()?,
            group: fields.get(2)?.parse().ok()?,
            threads: number(20)? as u32,
            kernel: number(9)? & PF_KTHREAD != 0,
            cpu_ns: (number(14)? + number(15)?) * NS_PER_TICK,
            priority: number(40)? as u32,
            policy: number(41)? as i32,
        })
    }

    /// The first thread of a process may have ended long before the others.
    pub(super) fn is_live(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || self.threads > 1
    }

    /// `fifo`, `rr`, `deadline`, or `None` for a policy that is not real-time.
    pub fn real_time(&self) -> Option<&'static str> {
        match self.policy {
            libc::SCHED_FIFO => Some("fifo"),
            libc::SCHED_RR => Some("rr"),
            SCHED_DEADLINE => Some("deadline"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_other_bytes_do_not_shift_the_fields() {
        let text = b"71 (a) R 9 (\xff) S 1 42 42 0 -1 2097216 100 0 0 0 7 3 0 0 20 0 1 0 98765 1000 1 2 3 4 5 6 7 8 9 \
                     0 1 2 3 4 17 0 99 1 0 0 0\n";
        let stat = Stat::parse(text).unwrap();
        let want = Stat {
            comm: "a) R 9 (\u{fffd}".to_owned(),
            state: 'S',
            group: 42,
            threads: 1,
            kernel: true,
            cpu_ns: 100_000_000,
            priority: 99,
            policy: 1,
        };
        assert_eq!(stat, want);
        assert_eq!(stat.real_time(), Some("fifo"));
        assert!(stat.is_live() && !Stat { state: 'Z', ..stat.clone() }.is_live());
        assert!(Stat { state: 'Z', threads: 2, ..stat }.is_live(), "only its first thread has ended");
        for broken in [&b""[..], b"71 no name S 1", b"71 (short) S 1", b")("] {
            assert_eq!(Stat::parse(broken), None);
        }
    }
}
