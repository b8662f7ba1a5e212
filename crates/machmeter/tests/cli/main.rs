//! Tests of command lines: exit codes, refusals, files, texts, time limits and signals. These tests need no quiet machine.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

mod beside;
mod book;
mod calculated;
mod calls;
mod commands;
mod compare;
mod compat;
mod documentation;
mod dry_run;
mod flow;
mod fuzz_corpora;
mod fuzz_options;
mod help_values;
mod hostile;
mod interactive;
mod jobs;
mod limits;
mod net;
mod one_file;
mod outputs;
mod processes;
#[path = "../program/mod.rs"]
mod program;
mod promises;
mod rights;
mod robust;
mod sessions;
mod shown;
mod signals;
mod stored;
mod verbs;
