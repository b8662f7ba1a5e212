//! The command-line program: a command tree built from the registries of probes, formats, checks and readers.
//!
//! [`main_with`] parses the arguments, runs the command and returns an exit code. A program with more probes calls it with its own [`Registries`].
#![forbid(unsafe_code)]

mod cli;
mod command;
mod compat;
mod exit;
mod failure;
mod globals;
mod job;
mod output;
mod progress;
mod recorder;
mod session;
mod state;
pub mod untrusted;
mod view;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use machmeter_engine::{Entry, Loads, Worker, settings, worker};
use machmeter_loads::AllLoads;

pub use exit::Exit;
pub(crate) use failure::Failure;
pub(crate) use globals::Globals;

/// Result of an operation whose failure is one line.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

pub struct Registries {
    pub probes: &'static [Entry],
    pub loads: &'static (dyn Loads + Sync),
    /// Roles in which the program starts itself.
    pub workers: &'static [&'static [Worker]],
}

/// All probes, sorted by name.
pub const PROBES: &[Entry] = &[
    Entry::of::<machmeter_flow_probe::Flow>(),
    Entry::of::<machmeter_interactive::Interactive>(),
    Entry::of::<machmeter_costs::Memory>(),
    Entry::of::<machmeter_mpi::Mpi>(),
    Entry::of::<machmeter_net::Net>(),
    Entry::of::<machmeter_noise::Noise>(),
    Entry::of::<machmeter_costs::Ops>(),
    Entry::of::<machmeter_costs::Sync>(),
];

/// All roles, by crate.
const WORKERS: &[&[Worker]] = &[
    &[worker::NOTHING, settings::GUARD],
    machmeter_loads::WORKERS,
    machmeter_interactive::WORKERS,
    machmeter_noise::WORKERS,
    machmeter_costs::ops::WORKERS,
    machmeter_mpi::WORKERS,
    machmeter_net::WORKERS,
];

impl Default for Registries {
    fn default() -> Self {
        Self { probes: PROBES, loads: &AllLoads, workers: WORKERS }
    }
}

/// Runs the program with the arguments of the process and returns its exit code.
pub fn main_with(registries: &Registries) -> ExitCode {
    machmeter_sys::guard::signals::ignore_those_of_writes();
    // Must precede anything that changes the nice value.
    machmeter_sys::sched::inherited_nice();
    machmeter_sys::memory::share_heap_under_limit();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = as_worker(registries, &arguments) {
        return code;
    }
    let wants_json = failure::wants_json(&arguments);
    failure::tell_defects_in_one_line();
    let work = || match cli::parse(registries, &arguments)? {
        Some(matches) => command::run(registries, &matches),
        None => Ok(Exit::Fine),
    };
    // A defect of this program is an ordinary failure: one line, a document under `--json`, a documented exit code.
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failure::defect()));
    // Only rank 0 of a launcher's processes prints.
    if let Err(failure) = &done
        && machmeter_sys::mpi::launched().is_some_and(|l| l.rank != 0)
    {
        return failure.exit.into();
    }
    done.unwrap_or_else(|f| f.ending_in(&cli::help_of(registries, &arguments)).report(wants_json)).into()
}

/// The command tree, for manual pages and completions.
pub fn command_line(registries: &Registries) -> clap::Command {
    cli::command(registries)
}

/// Runs a role if the program was started in one; returns its exit code.
fn as_worker(registries: &Registries, arguments: &[OsString]) -> Option<ExitCode> {
    let [_, mark, name, rest @ ..] = arguments else { return None };
    if mark != worker::ARGUMENT {
        return None;
    }
    let worker = registries.workers.iter().copied().flatten().find(|w| name == w.name);
    Some(ExitCode::from(worker.map_or(Exit::Usage.code(), |w| (w.run)(rest))))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use machmeter_data::CheckState::{self, Fail, Unknown, Warn};
    use machmeter_data::summary::RowInfo;
    use machmeter_data::{Hazard, Metric};

    use super::PROBES;

    #[test]
    fn checks_and_metrics_speak_of_the_same_hazards() {
        let metrics = || PROBES.iter().flat_map(|p| p.info.metrics());
        let declared: BTreeSet<Hazard> = metrics().flat_map(|m| m.weakened_by).copied().collect();
        let named = machmeter_doctor::CHECKS.iter().flat_map(|c| c.hazards).copied().collect();
        assert_eq!(declared, named);
        let strong: Vec<&str> = metrics().filter(|m| m.weakened_by.is_empty()).map(|m| m.id).collect();
        assert_eq!(strong, ["interactive.scheduled"], "a plan is not weakened by what happens");
    }

    #[test]
    fn a_check_flags_what_its_hazards_weaken_and_what_the_machine_is_flags_nothing() {
        let infos: Vec<_> = PROBES.iter().flat_map(|p| p.info.metrics()).collect();
        let weakened_by: BTreeMap<_, _> = infos.iter().map(|m| (m.id, m.weakened_by)).collect();
        let flagged = |id: &str, state: CheckState| {
            let mut record = crate::session::empty_record();
            let info = |id| infos.iter().find(|m| m.id == id).unwrap();
            let ids = ["noise.stolen_fraction", "memory.latency", "ops.cost"];
            record.metrics = ids.map(|id| Metric::new(info(id), [].into(), 1.0, "", 1)).to_vec();
            record.checks.push(crate::command::doctor::tests::check(id, state, ""));
            crate::session::flag_by_checks(&mut record, &weakened_by);
            record.metrics.iter().map(|m| !m.flags.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(flagged("E104", Fail), [true, true, true]);
        assert_eq!(flagged("E309", Fail), [true, false, false], "interrupts take the CPU");
        assert_eq!(flagged("E304", Fail), [false, true, false], "huge pages place memory");
        assert_eq!(flagged("E104", Warn), [false, false, false], "a condition of the whole run");
        assert_eq!(flagged("E104", Unknown), [false, false, false]);
        assert_eq!(flagged("E111", Fail), [false, false, false], "a guest");
    }

    #[test]
    fn rows_of_the_page_ask_for_figures_that_probes_have() {
        for probe in PROBES {
            // Rows beside a picture do not count.
            let is_beside = |r: &&RowInfo| r.detail || ["LADDER", "TAKEN"].contains(&r.section);
            let rows = probe.info.rows.iter().filter(|r| !is_beside(r)).count();
            assert!(rows <= 3, "{}: a page of all probes is short", probe.info.name);
            for pick in probe.info.rows.iter().flat_map(|r| r.picks) {
                let (id, names) = pick.names();
                let known = probe.info.metrics().find(|m| m.id == id).unwrap_or_else(|| panic!("{id}"));
                for name in names {
                    assert!(known.params.contains(&name), "{id} has no parameter {name}");
                }
            }
        }
    }
}
