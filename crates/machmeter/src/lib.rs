//! The command tree of machmeter, built from the registries of probes, formats, checks and readers.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod exit;
mod failure;
mod globals;
mod output;
mod session;
mod state;
mod view;
mod compat;

use std::ffi::OsString;
use std::process::ExitCode;

use machmeter_engine::Entry;

pub use exit::Exit;

/// What the program is made of.
pub struct Registries {
    /// Probes.
    pub probes: &'static [Entry],
}

impl Default for Registries {
    fn default() -> Self {
        Self { probes: machmeter_probes::PROBES }
    }
}

/// Runs the program with the arguments of the process and returns its exit code.
pub fn main_with(registries: &Registries) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let wants_json = failure::wants_json(&arguments);
    let exit = match cli::parse(registries, &arguments) {
        cli::Parsed::Run(matches) => command::run(registries, &matches).unwrap_or_else(|f| f.report(wants_json)),
        cli::Parsed::Said(exit) => exit,
        cli::Parsed::Wrong(failure) => failure.report(wants_json),
    };
    exit.into()
}
