//! Self-test: a task is kept from its CPU at known times, and what the probe records of it is checked against the exact
//! simulation of the task run on the disturber's own log.
//!
//! Two disturbers: a real-time hog above a real-time task (needs the right to real time), and a controller that stops and
//! continues the task's process (needs no right at all; the log holds when the kernel said "stopped"). A check that the
//! machine or the rights do not permit is "not shown", with the reason; never "pass".

mod accounts;
mod hog;
mod judge;
mod lab;
mod point;
mod stops;

use machmeter_engine::{Progress, budget};

use crate::selftest::SelfCheck;
use lab::Lab;

/// What to test, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Segments of 1.5 s instead of 8 s: about 30 s instead of 140 s in all.
    pub quick: bool,
    /// The CPU to test on; the last allowed one when not given.
    pub cpu: Option<usize>,
    /// Seed of the phases between tasks and disturbers.
    pub seed: u64,
}

/// Runs all checks in order. Ends early, with what was done so far, when a signal asks to stop. Call it from a thread that
/// lives on: the tasks' processes are tied to it.
///
/// # Errors
/// In one line, when there is no CPU to test on.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let mut lab = Lab::open(options, progress)?;
    let mut checks = Vec::new();
    let parts: [(&str, Part); 4] = [
        ("a task alone", accounts::alone),
        ("a real-time hog above a real-time task", hog::checks),
        ("stopping and continuing a task, without rights", stops::checks),
        ("a task beside a spinning thread", accounts::beside_a_spinner),
    ];
    for (name, part) in parts {
        if budget::stop_requested() {
            return Ok(checks);
        }
        progress.step(&format!("selftest interactive: {name}"));
        checks.extend(part(&mut lab));
    }
    checks.extend(accounts::of_all(&lab));
    Ok(checks)
}

type Part = fn(&mut Lab<'_>) -> Vec<SelfCheck>;
