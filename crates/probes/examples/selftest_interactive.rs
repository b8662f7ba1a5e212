//! Runs the self-test of the interactive probe without the rest of the program: `selftest_interactive [--quick]`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]

use std::ffi::OsString;
use std::process::ExitCode;

use machmeter_engine::host::Silent;
use machmeter_engine::worker::{ARGUMENT, NOTHING};
use machmeter_probes::interactive::selftest::{Options, run};
use machmeter_probes::interactive::worker::WORKER;
use machmeter_probes::selftest::SelfCheck;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|a| a == ARGUMENT) {
        let role = [WORKER, NOTHING].into_iter().find(|w| arguments.get(1).is_some_and(|a| a == w.name));
        return role.map_or(ExitCode::from(2), |w| ExitCode::from((w.run)(&arguments[2..])));
    }
    let options = Options { quick: arguments.iter().any(|a| a == "--quick"), cpu: None, seed: 1 };
    match run(&options, &Silent) {
        Ok(checks) => checks.iter().for_each(print),
        Err(e) => eprintln!("error: {e}"),
    }
    ExitCode::SUCCESS
}

fn print(c: &SelfCheck) {
    println!(
        "{:9}  {}: {}\n           truth: {}\n           found: {}\n           bar: {}",
        c.state.name(),
        c.id,
        c.what,
        c.truth,
        c.found,
        c.bar
    );
}
