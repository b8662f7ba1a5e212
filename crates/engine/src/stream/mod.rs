//! Job streams: when work is released, how much it is, by when it must be done, and what happens when it is not.
//!
//! The same streams are tasks that are measured and loads that disturb. [`run()`] executes one on a [`Machine`], real or
//! simulated; every release is accounted for, so that nothing late can be omitted.
//!
//! Sources: Liu and Layland 1973 (periodic tasks); Con Kolivas, interbench 0.31 (audio, video, X, gaming); G. Tene on
//! coordinated omission.

mod real;
mod run;

pub use real::RealMachine;
pub use run::{Machine, Spent, Stop, run};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Release {
    Periodic {
        period_ns: u64,
    },
    /// Open loop with exponential intervals: arrivals do not wait for the work.
    Poisson {
        mean_ns: u64,
    },
    /// Closed loop: a job is released a think time after the one before has ended; 0 means back to back.
    Closed {
        think_ns: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Demand {
    /// CPU time by the thread's own clock.
    Cpu { ns: u64 },
    /// A fixed number of turns of the spinning loop, for comparing machines.
    Turns { turns: u64 },
    /// CPU time that grows from nothing to the whole period and starts anew (interbench's X).
    Ramp {
        /// Demand of the last step, ns.
        most_ns: u64,
        /// Steps from nothing to `most_ns`, both included; at least 2.
        steps: u32,
    },
    /// The same ramp in turns of the spinning loop.
    RampTurns { most_turns: u64, steps: u32 },
    /// Starts a process that ends at once, and waits for it.
    Launch,
}

impl Demand {
    /// The demand of job `k` as a plain one.
    #[must_use]
    pub fn of_job(self, k: u64) -> Self {
        let share = |most: u64, steps: u32| {
            let last = u64::from(steps.max(2) - 1);
            (u128::from(most) * u128::from(k % (last + 1)) / u128::from(last)) as u64
        };
        match self {
            Self::Ramp { most_ns, steps } => Self::Cpu { ns: share(most_ns, steps) },
            Self::RampTurns { most_turns, steps } => Self::Turns { turns: share(most_turns, steps) },
            other => other,
        }
    }

    /// CPU time of job `k`, ns, where it is known beforehand.
    pub fn cpu_ns(self, k: u64) -> Option<u64> {
        match self.of_job(k) {
            Self::Cpu { ns } => Some(ns),
            _ => None,
        }
    }
}

/// By when a job must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Deadline {
    /// By the next release of a periodic stream.
    Next,
    After {
        ns: u64,
    },
    Periods {
        /// Periods, at least 1.
        count: u32,
    },
    None,
}

/// What happens to releases that come while the stream is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Overload {
    /// Releases that pass while a job is late, or that cannot begin within their period, are dropped.
    Drop,
    /// Late releases run as soon as possible; more than `most_periods` behind, all that have passed are dropped.
    Queue {
        /// Longest backlog in periods (mean intervals of a Poisson stream); 0 means without limit.
        most_periods: u32,
    },
    /// A release whose deadline has passed before it could begin is skipped; the others are executed.
    Skip,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    pub release: Release,
    /// Work per job; of the first thread if there are `stages`.
    pub demand: Demand,
    pub deadline: Deadline,
    pub overload: Overload,
    /// Work of further threads that a job wakes one after the other (input, client, compositor).
    #[serde(default)]
    pub stages: Vec<Demand>,
}

impl Stream {
    /// The relative deadline, ns; `None` if there is none.
    pub fn deadline_ns(&self) -> Option<u64> {
        match (self.deadline, self.period_ns()) {
            (Deadline::Next, Some(period)) => Some(period),
            (Deadline::Periods { count }, Some(period)) => Some(period * u64::from(count)),
            (Deadline::After { ns }, _) => Some(ns),
            _ => None,
        }
    }

    /// The period, or the mean interval of an open loop, ns.
    pub fn period_ns(&self) -> Option<u64> {
        match self.release {
            Release::Periodic { period_ns } => Some(period_ns),
            Release::Poisson { mean_ns } => Some(mean_ns),
            Release::Closed { .. } => None,
        }
    }

    /// CPU time that job `k` asks for over all stages, ns, where it is known beforehand.
    pub fn cpu_ns(&self, k: u64) -> Option<u64> {
        let first = self.demand.cpu_ns(k)?;
        self.stages.iter().try_fold(first, |sum, d| Some(sum + d.cpu_ns(k)?))
    }

    /// Upper bound of the jobs recorded in `length_ns`, for preallocation.
    pub fn jobs_in(&self, length_ns: u64) -> usize {
        let per = match self.release {
            Release::Periodic { period_ns } => period_ns,
            // Twice the mean number and some: an open loop that exceeds it ends early and says so.
            Release::Poisson { mean_ns } => mean_ns / 2,
            Release::Closed { think_ns } => (think_ns + self.demand.cpu_ns(1).unwrap_or(0)).max(100_000),
        };
        (length_ns / per.max(1)) as usize + 64
    }
}

machmeter_data::named! {
#[derive(Serialize, Deserialize)]
pub enum Fate {
    Ran = "ran",
    /// Executed at once, because its release had passed already.
    RanBehind = "ran behind",
    /// Given up: its release passed while the stream was busy with another job.
    Dropped = "dropped",
    /// Given up after a sleep, because it was woken too late to begin.
    Overslept = "overslept",
} }

impl Fate {
    /// As stored: 0 to 3.
    pub const fn number(self) -> i32 {
        self as i32
    }

    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// One release and what became of it. Times are ns; `release_ns` counts from the start of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Number of the release, from 0.
    pub number: u64,
    pub release_ns: u64,
    /// From its release until it began (of a chain: sum of the waits for a wake-up) or was given up.
    pub wake_ns: u64,
    /// From its release until it was done; of a dropped one, until it was given up.
    pub response_ns: u64,
    /// CPU time it got, by thread clocks.
    pub cpu_ns: u64,
    pub fate: Fate,
}

impl Job {
    pub fn ran(&self) -> bool {
        matches!(self.fate, Fate::Ran | Fate::RanBehind)
    }

    /// Whether its thread slept until its release, so that the wait for a wake-up was its own.
    pub fn slept(&self) -> bool {
        matches!(self.fate, Fate::Ran | Fate::Overslept)
    }

    /// Time without the CPU after it began, ns; by the resolution of the clocks slightly negative at most.
    pub fn preempt_ns(&self) -> i64 {
        self.response_ns as i64 - self.wake_ns as i64 - self.cpu_ns as i64
    }

    /// Whether it was done by its deadline; `None` for streams without deadlines.
    pub fn met(&self, stream: &Stream) -> Option<bool> {
        stream.deadline_ns().map(|d| self.ran() && self.response_ns <= d)
    }

    /// Wait from the release until it began or was given up, ns; back to back, response beyond its CPU time.
    pub fn lateness_ns(&self, stream: &Stream) -> u64 {
        match stream.release {
            Release::Closed { think_ns: 0 } => self.preempt_ns().max(0) as u64,
            _ => self.wake_ns,
        }
    }
}
