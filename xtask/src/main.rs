//! Repository chores: `cargo xtask arch | asm | docs [--write] | quick | reference [--write] | schema [--write]`.
//!
//! Each checks something that no compiler sees, and says in one line what is wrong; `--write` brings generated files up to date instead.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line chore talks to its user")]

mod arch;
mod asm;
mod disassembly;
mod docs;
mod quick;
mod reference;
mod schema;
mod spelling;
mod style;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap_or_else(|_| PathBuf::from("."))
}

/// What a program says when it is run in `root`.
/// Errors: when it cannot be run, or ends with another code than 0 or one of `also`.
fn said(root: &Path, program: &str, arguments: &[&str], also: &[i32]) -> Result<String> {
    let shown = || format!("{program} {}", arguments.join(" "));
    let out = Command::new(program).args(arguments).current_dir(root).output().with_context(shown)?;
    let fine = out.status.success() || out.status.code().is_some_and(|code| also.contains(&code));
    ensure!(fine, "{}: {}", shown(), String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?)
}

/// Errors: with all that was `found`, if anything was.
fn none(found: &[String], what: &str) -> Result<()> {
    ensure!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
    Ok(())
}

/// How files ended.
fn settled(write: bool) -> &'static str {
    if write { "written" } else { "up to date" }
}

/// Files of the repository that match these patterns of `git ls-files`.
fn files(root: &Path, patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let listed = [&["ls-files", "-co", "--exclude-standard", "--"], patterns].concat();
    let names = said(root, "git", &listed, &[])?;
    Ok(names.lines().map(|name| root.join(name)).filter(|path| path.exists()).collect())
}

fn run(arguments: &[String]) -> Result<()> {
    let write = arguments.iter().any(|a| a == "--write");
    match arguments.first().map(String::as_str) {
        Some("arch") => arch::check(&root()),
        Some("asm") => asm::check(&root()),
        Some("docs") => docs::run(&root(), write),
        Some("quick") => quick::check(&root()),
        Some("reference") => reference::run(&root(), write),
        Some("schema") => schema::run(&root(), write),
        _ => bail!(
            "usage: cargo xtask arch | asm | docs [--write] | quick | reference [--write] | schema [--write]"
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
