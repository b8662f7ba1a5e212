//! Tests of the mpi probe, and of noise across ranks, under every MPI library of this machine. They cover figures of all operations, both thresholds,
//! refusals and killed ranks, and check that nothing is left behind. The tests run one at a time, each with a time limit.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod figures;
mod killed;
mod noise;
#[path = "../program/mod.rs"]
mod program;
mod recorder;
mod refused;
mod trace;

use std::process::Command;

use machmeter_sys::mpi::{Installed, installed};
use machmeter_sys::process::commands_with;
use program::{Ended, Lab, Running, allowed, is_root, soon, words};

/// Role of ranks; no other test starts it.
const ROLE: &str = "mpi-rank";

/// MPI libraries with a launcher; prints a line if there is none, or only one CPU.
fn mpis() -> Vec<Installed> {
    let all: Vec<_> = installed(None).unwrap().into_iter().filter(|m| m.launcher.is_some()).collect();
    let cpus = machmeter_sys::affinity::mask().unwrap().to_vec().len();
    if all.is_empty() || cpus < 2 {
        println!("skipped: {} MPI libraries with a launcher, {cpus} CPU(s)", all.len());
        return Vec::new();
    }
    all
}

fn library(mpi: &Installed) -> String {
    mpi.library.to_str().unwrap().to_owned()
}

/// Waiting ranks spin, and make no progress if other programs want their CPUs.
fn priority() -> &'static str {
    if is_root() { "--prio fifo:5" } else { "" }
}

/// A launcher with arguments, as a user calls it.
fn launcher(lab: &Lab, mpi: &Installed, words: &[&str]) -> Command {
    let mut command = Command::new(mpi.launcher.as_ref().unwrap());
    lab.set_up(command.args(words));
    allowed(command)
}

/// The program with ranks of this MPI library.
fn on(lab: &Lab, mpi: &Installed, line: &str) -> Command {
    let mut command = lab.command(&words(line));
    command.args(["--lib", &library(mpi)]);
    command
}

/// This program under a user's launcher.
fn launched(lab: &Lab, mpi: &Installed, ranks: u32, line: &str) -> Ended {
    Running::of(launcher(lab, mpi, &words(&format!("-n {ranks} {PROGRAM} {line}")))).end()
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_machmeter");

fn nobody_is_left() {
    assert!(soon(|| commands_with(ROLE).is_empty()), "{:?} are left", commands_with(ROLE));
}
