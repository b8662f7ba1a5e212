//! Scheduling policies of Linux: parsing, applying to the calling thread with the true cause of a refusal, and the limits
//! the kernel sets on real-time threads ([`RtLimits`]).
//!
//! Sources: `sched(7)`, `sched_setattr(2)`, Documentation/scheduler/sched-deadline.rst and sched-rt-group.rst.

mod apply;
pub(crate) mod cause;
mod extra;
mod limits;

pub use apply::{apply, apply_to, current};
pub use extra::{CLAMP_MAX, Extra, SLICE_MAX_NS, SLICE_MIN_NS, apply_with};
pub use limits::{FAIR_SERVER_SINCE, FairServer, GroupBudget, KernelVersion, RtLimits};

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use machmeter_data::quantity::parse_duration_ns;

use crate::Refused;

/// Highest priority of the `fifo` and `rr` policies; the lowest is 1.
pub const RT_PRIORITY_MAX: u8 = 99;

/// A scheduling policy with its parameters.
///
/// The text form, which [`FromStr`] reads and [`fmt::Display`] writes, is `other` (nice as inherited), `other:-5`, `batch`, `idle`,
/// `fifo:50`, `rr:10`, `deadline:1ms/10ms/10ms` (runtime, deadline, period).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The normal policy with a nice value from -20 (favored) to 19.
    Other { nice: i8 },
    /// Like `other`, but treated as CPU-bound; nice 0.
    Batch,
    /// Runs only when nothing else wants the CPU.
    Idle,
    /// First in, first out real time with priority 1 to 99; runs until it blocks or a higher priority wakes.
    Fifo(u8),
    /// Round robin real time with priority 1 to 99.
    Rr(u8),
    /// Constant bandwidth server: `runtime_ns` in each `period_ns`, before `deadline_ns` into the period.
    Deadline { runtime_ns: u64, deadline_ns: u64, period_ns: u64 },
}

/// The nice value that this process was started with (`nice`, batch queues, cron), read at the first call.
pub fn inherited_nice() -> i8 {
    static NICE: OnceLock<i8> = OnceLock::new();
    // The main thread's, which no measurement changes; -20 to 19 by the kernel's promise.
    *NICE.get_or_init(|| rustix::process::getpriority_process(None).map_or(0, |nice| nice as i8))
}

impl Policy {
    /// The normal policy with the nice value that this process was started with: what `other` without a number means. A
    /// process without rights may not leave it.
    pub fn ordinary() -> Self {
        Self::Other { nice: inherited_nice() }
    }

    /// Whether threads of this policy run before every `other` thread (`fifo`, `rr`, `deadline`).
    pub fn is_real_time(&self) -> bool {
        matches!(self, Self::Fifo(_) | Self::Rr(_) | Self::Deadline { .. })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Other { .. } => "other",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Fifo(_) => "fifo",
            Self::Rr(_) => "rr",
            Self::Deadline { .. } => "deadline",
        }
    }

    /// Checks the parameters against the ranges the kernel accepts.
    pub fn validate(&self) -> Result<(), Refused> {
        self.check().map_err(|why| unreadable(&self.to_string(), &why))
    }

    fn check(&self) -> Result<(), String> {
        match *self {
            Self::Other { nice } if !(-20..=19).contains(&nice) => {
                Err(format!("nice {nice} is outside -20..19"))
            }
            Self::Fifo(p) | Self::Rr(p) if p == 0 || p > RT_PRIORITY_MAX => {
                Err(format!("priority {p} is outside 1..{RT_PRIORITY_MAX}"))
            }
            Self::Deadline { runtime_ns, .. } if runtime_ns < 1024 => {
                Err("runtime must be at least 1.024us".to_owned())
            }
            Self::Deadline { runtime_ns, deadline_ns, period_ns }
                if !(runtime_ns <= deadline_ns && deadline_ns <= period_ns) =>
            {
                Err("needs runtime <= deadline <= period".to_owned())
            }
            Self::Deadline { period_ns, .. } if period_ns >= 1 << 63 => {
                Err("period must be below 2^63 ns".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Other { nice: 0 } if inherited_nice() == 0 => f.write_str(self.name()),
            Self::Batch | Self::Idle => f.write_str(self.name()),
            Self::Other { nice } => write!(f, "other:{nice}"),
            Self::Fifo(p) | Self::Rr(p) => write!(f, "{}:{p}", self.name()),
            Self::Deadline { runtime_ns, deadline_ns, period_ns } => {
                write!(f, "deadline:{}/{}/{}", span(runtime_ns), span(deadline_ns), span(period_ns))
            }
        }
    }
}

/// The shortest exact text of a time span.
pub(crate) fn span(ns: u64) -> String {
    [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
        .into_iter()
        .find(|(unit_ns, _)| ns != 0 && ns.is_multiple_of(*unit_ns))
        .map_or_else(|| format!("{ns}ns"), |(unit_ns, name)| format!("{}{name}", ns / unit_ns))
}

/// A policy text that could not be read, or parameters out of range.
fn unreadable(text: &str, why: &str) -> Refused {
    let forms = "other[:NICE], batch, idle, fifo:PRIO, rr:PRIO or deadline:RUN/DEADLINE/PERIOD";
    Refused(format!("policy '{text}': {why} (write {forms})"))
}

impl FromStr for Policy {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let fail = |why: &str| unreadable(text, why);
        let text = text.trim();
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let priority = || {
            let digits = rest.ok_or_else(|| fail("priority missing, 1 to 99"))?;
            digits.parse::<u8>().map_err(|_| fail("priority must be a whole number, 1 to 99"))
        };
        let policy = match (name.to_ascii_lowercase().as_str(), rest) {
            ("other" | "normal", None) => Self::ordinary(),
            ("other" | "normal", Some(nice)) => Self::Other {
                nice: nice.parse().map_err(|_| fail("nice must be a whole number, -20 to 19"))?,
            },
            ("batch", None) => Self::Batch,
            ("idle", None) => Self::Idle,
            ("fifo", _) => Self::Fifo(priority()?),
            ("rr", _) => Self::Rr(priority()?),
            ("deadline", Some(spans)) => parse_deadline(spans).map_err(|why| fail(&why))?,
            ("deadline", None) => return Err(fail("runtime, deadline and period missing")),
            ("batch" | "idle", Some(_)) => return Err(fail("takes no parameter")),
            _ => return Err(fail("unknown policy")),
        };
        policy.check().map_err(|why| fail(&why))?;
        Ok(policy)
    }
}

fn parse_deadline(text: &str) -> Result<Policy, String> {
    let spans_ns = text.split('/').map(parse_span_ns).collect::<Result<Vec<_>, _>>()?;
    match spans_ns[..] {
        [runtime_ns, period_ns] => Ok(Policy::Deadline { runtime_ns, deadline_ns: period_ns, period_ns }),
        [runtime_ns, deadline_ns, period_ns] => Ok(Policy::Deadline { runtime_ns, deadline_ns, period_ns }),
        _ => Err("needs RUNTIME/PERIOD or RUNTIME/DEADLINE/PERIOD".to_owned()),
    }
}

/// As [`parse_duration_ns`], but a number without a unit is refused: spans of a scheduler are never whole seconds.
pub(crate) fn parse_span_ns(text: &str) -> Result<u64, String> {
    if text.trim_end().ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("'{text}' needs a unit: ns, us, ms or s"));
    }
    parse_duration_ns(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_of_the_documentation_are_read() {
        assert_eq!("other".parse(), Ok(Policy::ordinary()));
        assert_eq!("other:-5".parse(), Ok(Policy::Other { nice: -5 }));
        assert_eq!("fifo:50".parse(), Ok(Policy::Fifo(50)));
        assert_eq!("RR:1".parse(), Ok(Policy::Rr(1)));
        let want = Policy::Deadline { runtime_ns: 1_000_000, deadline_ns: 10_000_000, period_ns: 10_000_000 };
        assert_eq!("deadline:1ms/10ms/10ms".parse(), Ok(want));
        assert_eq!("deadline:1000us/0.01s".parse(), Ok(want));
    }

    #[test]
    fn wrong_texts_name_the_text_and_the_reason() {
        for (text, part) in [
            ("fifo", "priority missing"),
            ("fifo:0", "outside 1..99"),
            ("fifo:100", "outside 1..99"),
            ("fifo:300", "whole number"),
            ("other:20", "outside -20..19"),
            ("batch:1", "takes no parameter"),
            ("deadline:5ms/1ms/10ms", "runtime <= deadline <= period"),
            ("deadline:1/10/10", "needs a unit"),
            ("deadline:1ms/-3ms", "a negative time"),
            ("deadline:1ms", "RUNTIME/PERIOD"),
            ("realtime", "unknown policy"),
            ("", "unknown policy"),
        ] {
            let e = text.parse::<Policy>().unwrap_err().to_string();
            assert!(e.contains(part) && e.contains(&format!("'{text}'")), "{text}: {e}");
            assert!(!e.contains('\n'));
        }
    }

    fn any_policy() -> impl Strategy<Value = Policy> {
        prop_oneof![
            (-20_i8..=19).prop_map(|nice| Policy::Other { nice }),
            Just(Policy::Batch),
            Just(Policy::Idle),
            (1_u8..=99).prop_map(Policy::Fifo),
            (1_u8..=99).prop_map(Policy::Rr),
            (1_024_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40).prop_map(
                |(runtime_ns, slack_ns, rest_ns)| {
                    let deadline_ns = runtime_ns + slack_ns;
                    Policy::Deadline { runtime_ns, deadline_ns, period_ns: deadline_ns + rest_ns }
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn display_and_parse_are_inverse(policy in any_policy()) {
            prop_assert_eq!(policy.to_string().parse(), Ok(policy));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Policy>();
        }
    }
}
