//! The mpi probe, and noise across ranks, as a user runs them, under every MPI of this machine: figures of all operations, both
//! thresholds, refusals, ranks that are killed, nothing left behind. One test at a time, each limited in time.

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

/// Ranks of launches that other tests do not have.
const ROLE: &str = "mpi-rank";

/// MPIs with a launcher; says so where there is none, or one CPU.
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

/// Ranks that wait spin, and get nowhere beside others who want their CPUs.
fn priority() -> &'static str {
    if is_root() { "--prio fifo:5" } else { "" }
}

/// A launcher with words of its own, as somebody calls it.
fn launcher(lab: &Lab, mpi: &Installed, words: &[&str]) -> Command {
    let mut command = Command::new(mpi.launcher.as_ref().unwrap());
    lab.set_up(command.args(words));
    allowed(command)
}

/// The program with ranks of this MPI.
fn on(lab: &Lab, mpi: &Installed, line: &str) -> Command {
    let mut command = lab.command(&words(line));
    command.args(["--lib", &library(mpi)]);
    command
}

/// This program under a launcher of somebody.
fn launched(lab: &Lab, mpi: &Installed, ranks: u32, line: &str) -> Ended {
    Running::of(launcher(lab, mpi, &words(&format!("-n {ranks} {PROGRAM} {line}")))).end()
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_machmeter");

fn nobody_is_left() {
    assert!(soon(|| commands_with(ROLE).is_empty()), "{:?} are left", commands_with(ROLE));
}
