//! Self-test: known disturbances are injected, and what the probe says is checked against the injectors' own logs.
//! A check that the machine or the rights do not permit is "not shown", with the reason; never "pass".

mod bounds;
mod descheduled;
mod inject;
mod lab;
mod late;
mod loop_cost;
pub mod score;
mod stalls;
mod total;

use machmeter_engine::{Progress, Worker, deadline};

use lab::Lab;
use machmeter_engine::selftest::{Shown, check, percent};

pub use machmeter_engine::selftest::{Options, SelfCheck, State};

/// The checks that are about having no privileges, in a process of a user that has none.
pub(super) const UNPRIVILEGED: Worker = Worker { name: "noise-unprivileged", run: descheduled::run };

/// A rank of the check of ranks that come late.
pub(super) const LATE: Worker = Worker { name: "noise-late", run: late::run };
pub(crate) use late::Planted;

/// Runs all checks in order; a signal ends it early. Errors: one line, when there is no CPU or clock to test on.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let lab = Lab::open(options.cpu, options.seed)?;
    let mut checks = Vec::new();
    let parts: [(&str, Part); 8] = [
        ("cost of the loop", loop_cost::checks),
        ("stalls inside the loop", stalls::checks),
        ("an injector above the meter", inject::checks),
        ("the total of stolen time", total::checks),
        ("loss of the CPU, without privileges", descheduled::checks),
        ("real-time on all CPUs", bounds::fifo_everywhere),
        ("cost of attribution", bounds::attribution_cost),
        ("a rank that comes late", late::checks),
    ];
    for (name, part) in parts {
        if deadline::stop_requested() {
            return Ok(checks);
        }
        progress.step(&format!("selftest noise: {name}"));
        checks.extend(part(&lab, options));
    }
    checks.push(bounds::in_time(&lab));
    Ok(checks)
}

type Part = fn(&Lab, &Options) -> Vec<SelfCheck>;
