//! What it costs to start something that does nothing and to wait for its end, and to switch between two threads: all on
//! one CPU, so that no row waits for another CPU to wake up (the sync probe prices that).
//!
//! A start that fails is quicker than one that works (lmbench once priced `exec` of a program that did not exist), so every
//! thread writes a word and every child's exit code is looked at. The child may run before its parent goes on, which takes
//! the CPU away from the parent: involuntary switches belong to these operations and do not reject a sample; medians stand
//! against the few that strangers take.

mod catalogue;
mod switch;

#[cfg(test)]
mod tests;

use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::sampling::{HostTiming, Pace, Sampler, Timing};
use machmeter_engine::{Analysis, ProbeError};
use machmeter_sys::thread::monotonic_ns;

use super::Params;
use super::info::{COST, NO_FIGURE, NOT_STARTED};
use super::repeated::affordable;
use super::table;
use crate::part::{At, Part};
use switch::{By, Switches};

const PART_NAME: &str = "processes";
/// Few, because a pair of the slowest rows takes several ms.
const PAIRS_PER_VISIT: usize = 2;
/// More rounds narrow the intervals no further than the machine's own drift.
const ROUNDS: usize = 150;
/// Rows that are no starts.
const SWITCHES: [(&str, By); 2] = [("pipe_two_threads", By::Pipe), ("yield_two_threads", By::Yield)];

/// The part.
pub(super) const PART: Part<Params> = Part { name: PART_NAME, weight: 25, measure, analyze };

/// Time of the host, on which only a change of the CPU disturbs.
struct Switching(HostTiming);

impl Timing for Switching {
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        self.0.time(work)
    }

    fn mark(&mut self) -> (u64, Option<usize>) {
        (0, self.0.mark().1)
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
}

fn measure(at: &mut At<'_, '_>, params: &Params) -> Result<Vec<Row>, ProbeError> {
    let no_cpu = || ProbeError::Cannot("there is no CPU to measure on".to_owned());
    let cpu = at.host.cpus.first().ok_or_else(no_cpu)?;
    let mut planned = catalogue::programs(params, at.left_ns());
    planned.extend(catalogue::starts());
    planned.extend(SWITCHES.map(|(operation, by)| Switches::plan(operation, by, cpu, at.policy)));
    let pace = Pace {
        batch_ns: Pace::BATCH_NS,
        pairs_per_visit: PAIRS_PER_VISIT,
        rounds: ROUNDS,
        until_ns: at.until_ns,
    };
    let mut benches = affordable(planned, &pace, monotonic_ns());
    let timing = Switching(HostTiming::new(at.host.source()));
    Sampler::new(timing, at.host.rate, at.host.seed).interleave(&mut benches, &pace);
    Ok(benches.into_iter().map(|b| b.row).collect())
}

fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let priced = table::priced(rows, PART_NAME);
    let mut out = Analysis::default();
    if priced.is_empty() {
        return out;
    }
    out.metrics = priced.iter().map(|p| table::metric(&COST, p)).collect();
    out.datasets.push(table::dataset(
        PART_NAME,
        "Threads and processes",
        "Starting something that does nothing and waiting for its end, and handing the CPU to another thread; all on one CPU.",
        &priced,
    ));
    let is_switch = |r: &Row| SWITCHES.iter().any(|s| s.0 == r.operation);
    out.warnings.extend(table::warning(&NOT_STARTED, &priced, |r| !is_switch(r)));
    out.warnings.extend(table::warning(&NO_FIGURE, &priced, is_switch));
    let cost = |operation: &str| table::cost_ns(&priced, operation);
    out.summary = table::line(&[
        ("thread", cost("thread_create_join")),
        ("fork", cost("fork_exit_wait")),
        ("spawn", cost("spawn")),
        ("switch", cost("yield_two_threads").or_else(|| cost("pipe_two_threads"))),
    ]);
    out
}
