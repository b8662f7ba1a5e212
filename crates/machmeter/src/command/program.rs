//! Runs a program that a command records or watches, and takes over its exit code.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use machmeter_sys::guard::signals;
use machmeter_sys::process::{pid_is_alive, terminate_process};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use crate::{Exit, Failure, Globals, Result};

/// Shortest and longest interval between checks for the end of a program, ns. The end of a short program is seen soon.
const LOOK_NS: [u64; 2] = [1_000_000, 20_000_000];

/// Sleeps for a twentieth of the time since `began_ns`, within [`LOOK_NS`].
fn pause(began_ns: u64) {
    let now_ns = monotonic_ns();
    nanosleep_until(now_ns + ((now_ns - began_ns) / 20).clamp(LOOK_NS[0], LOOK_NS[1]));
}

/// Starts a program. Its output goes to stderr if a document goes to stdout.
/// Errors: one line, with the exit code of shells (127 for a program that does not exist, 126 for one that cannot be run).
pub(super) fn start(mut process: Command, name: &OsString, globals: &Globals) -> Result<Child> {
    if globals.stdout_is_taken() {
        process.stdout(Stdio::from(std::io::stderr()));
    }
    process.spawn().map_err(|e| {
        let code = if e.kind() == ErrorKind::NotFound { 127 } else { 126 };
        let failure = Failure::usage(format!("{}: {e}", Path::new(name).display()));
        Failure { exit: Exit::Program(code), ..failure }
    })
}

/// Waits until the program has ended, but leaves its exit status and counters. Forwards signals to it, and calls `look` at least fifty times a second.
pub(super) fn ended(pid: i32, mut look: impl FnMut()) {
    let (began_ns, mut is_forwarded) = (monotonic_ns(), false);
    while pid_is_alive(pid) {
        if !is_forwarded && signals::stop_requested().is_some() {
            is_forwarded = true;
            let _ = terminate_process(pid);
        }
        pause(began_ns);
        look();
    }
}

/// Waits until a process of others has ended or `is_over`, and calls `look` at least fifty times a second.
pub(super) fn watched(pid: i32, is_over: impl Fn() -> bool, mut look: impl FnMut()) {
    let began_ns = monotonic_ns();
    while !is_over() && pid_is_alive(pid) {
        pause(began_ns);
        look();
    }
}

/// The exit code of the program, by the convention of shells.
pub(super) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(0), _) => Exit::Fine,
        (Some(code), _) => Exit::Program(code as u8),
        (None, signal) => Exit::Program(128 + signal.unwrap_or(0) as u8),
    }
}
