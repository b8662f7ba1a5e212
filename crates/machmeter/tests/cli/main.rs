//! The command lines of the program: exit codes, refusals, files, texts, budgets and signals. These tests need no quiet machine.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

mod calculated;
mod commands;
mod compare;
mod compat;
mod documentation;
mod fuzz_corpora;
mod fuzz_options;
mod hostile;
mod interactive;
mod limits;
mod one_file;
#[path = "../program/mod.rs"]
mod program;
mod robust;
mod sessions;
mod stored;
