//! Real process trees: this executable answers to the roles of the loads itself, so it has no test harness.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::assigning_clones,
    reason = "tests without a harness are not compiled as tests, so the usual freedom of tests is given here"
)]

mod kills;
mod memload;
mod tools;
mod work;

use std::process::ExitCode;

use machmeter_engine::worker;
use machmeter_sys::process;
use tools::ROLES;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|a| a == worker::ARGUMENT) {
        let name = arguments.next().unwrap_or_default();
        let rest: Vec<_> = arguments.collect();
        let mut roles = machmeter_loads::WORKERS.iter().chain(ROLES);
        return roles.find(|w| name == w.name).map_or(ExitCode::from(2), |w| (w.run)(&rest).into());
    }
    // A program of its own, so that the workers of another run of the same tests are not taken for ours.
    let own = tempfile::tempdir().unwrap();
    let program = own.path().join("trees");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    process::set_program(program);
    let named: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let tests: Vec<(&str, fn())> = [work::TESTS, kills::TESTS, memload::TESTS].concat();
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(n, _)| named.is_empty() || named.iter().any(|f| n.contains(f)))
    {
        let ended = std::panic::catch_unwind(test);
        println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
        failed += u8::from(ended.is_err());
    }
    ExitCode::from(u8::from(failed > 0))
}
