//! Self-test: known disturbances are injected into the real machine, and what the probe says of them is checked against
//! the injectors' own logs.
//!
//! A check that the machine or the rights do not permit is "not shown", with the reason; never "pass".

mod bounds;
mod descheduled;
mod inject;
mod lab;
mod loop_cost;
pub mod score;
mod stalls;
mod total;

use std::ffi::OsString;

use machmeter_engine::{Progress, budget};
use serde::{Deserialize, Serialize};

use lab::Lab;

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The bar was met.
    Pass,
    /// The bar was missed.
    Fail,
    /// The machine was not quiet enough, or a right is missing; the reason stands in `found`.
    NotShown,
    /// A figure without a bar.
    Info,
}

impl State {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotShown => "not shown",
            Self::Info => "info",
        }
    }

    /// Pass if `met`, else fail.
    fn of(met: bool) -> Self {
        if met { Self::Pass } else { Self::Fail }
    }
}

/// One check: what was injected, what is true, what the probe found, and the bar between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Stable name, `stalls.100ns`.
    pub id: String,
    /// What was injected or done.
    pub what: String,
    /// What is true, by the injector's own log or by another witness.
    pub truth: String,
    /// What the probe said; the reason when nothing could be shown.
    pub found: String,
    /// What would pass.
    pub bar: String,
    /// Outcome.
    pub state: State,
}

impl SelfCheck {
    fn not_shown(id: &str, what: &str, bar: &str, why: impl std::fmt::Display) -> Self {
        Self {
            id: id.to_owned(),
            what: what.to_owned(),
            truth: "-".to_owned(),
            found: why.to_string(),
            bar: bar.to_owned(),
            state: State::NotShown,
        }
    }
}

/// What to test, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Fewer and shorter injections: about 15 s instead of 50 s.
    pub quick: bool,
    /// The CPU to test on; the last allowed one when not given.
    pub cpu: Option<usize>,
    /// Seed of the injections' random times.
    pub seed: u64,
    /// Arguments with which this very program prints the checks of [`run_unprivileged`] as a JSON list: it is started
    /// so, as an unprivileged user, when this one is root. Without it those checks run as the present user.
    pub unprivileged_arguments: Option<Vec<OsString>>,
}

/// Runs all checks in order. Ends early, with what was done so far, when a signal asks to stop.
///
/// # Errors
/// In one line, when there is no CPU or no clock to test on.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let lab = Lab::open(options.cpu, options.seed, progress)?;
    let mut checks = Vec::new();
    let parts: [(&str, Part); 7] = [
        ("cost of the loop", loop_cost::checks),
        ("stalls inside the loop", stalls::checks),
        ("an injector above the meter", inject::checks),
        ("the total of stolen time", total::checks),
        ("loss of the CPU, without privileges", descheduled::checks),
        ("real-time on all CPUs", bounds::fifo_everywhere),
        ("cost of attribution", bounds::attribution_cost),
    ];
    for (name, part) in parts {
        if budget::stop_requested() {
            return Ok(checks);
        }
        progress.step(&format!("selftest noise: {name}"));
        checks.extend(part(&lab, options));
    }
    checks.push(bounds::in_time(&lab));
    Ok(checks)
}

type Part = fn(&Lab<'_>, &Options) -> Vec<SelfCheck>;

/// Runs only the checks that are about having no privileges, as the present user.
///
/// # Errors
/// As [`run`].
pub fn run_unprivileged(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let lab = Lab::open(options.cpu, options.seed, progress)?;
    Ok(descheduled::as_present_user(&lab, options))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
