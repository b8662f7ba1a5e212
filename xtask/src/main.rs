//! Repository chores: `cargo xtask arch | asm | completions | docs [--write] | man | reference [--write] | schema [--write]`.
//!
//! `man` and `completions` write files for packagers. Each other one checks something that no compiler sees, and says in one line
//! what is wrong; `--write` brings generated files up to date instead.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line chore talks to its user")]

mod arch;
mod asm;
mod docs;
mod reference;
mod schema;
mod shell;
mod spelling;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// The workspace's root folder.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap_or_else(|_| PathBuf::from("."))
}

fn run(arguments: &[String]) -> Result<()> {
    let write = arguments.iter().any(|a| a == "--write");
    match arguments.first().map(String::as_str) {
        Some("arch") => arch::check(&root()),
        Some("asm") => asm::check(&root()),
        Some("docs") => docs::run(&root(), write),
        Some(what @ ("man" | "completions")) => shell::write(&root(), what),
        Some("reference") => reference::run(&root(), write),
        Some("schema") => schema::run(&root(), write),
        _ => bail!(
            "usage: cargo xtask arch | asm | completions | docs [--write] | man | reference [--write] | schema [--write]"
        ),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}
