//! The only place that writes to stdout and stderr. A closed pipe is no error of ours: the result is saved all the same.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use machmeter_engine::Progress;

/// Writes to a file, or to stdout for `-`.
/// Errors: in one line, as [`print`] and the system say.
pub(crate) fn put(target: &Path, text: &str) -> Result<(), String> {
    if target.as_os_str() == "-" {
        return print(text);
    }
    machmeter_store::text::write(target, text).map_err(|e| e.to_string())
}

/// Writes to stdout and makes sure that it got there.
/// Errors: when stdout cannot take it (full disk); a reader that went away is fine.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    let wrote = out
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") });
    match wrote.and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| format!("stdout: {e}")),
    }
}

/// Writes a line to stderr, if anybody listens.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Progress on stderr, a line per step.
pub(crate) struct Lines {
    pub(crate) quiet: bool,
}

impl Progress for Lines {
    fn step(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    fn figure(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }
}
