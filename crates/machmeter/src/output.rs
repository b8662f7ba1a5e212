//! Writes to stdout and stderr; no other module does. A closed pipe is no error, because the result is saved anyway.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use machmeter_data::text::printable;
use machmeter_engine::Progress;

use crate::Exit;

/// Writes to a file, or to stdout for `-`.
/// Errors: one line, from [`print`] or the system.
pub(crate) fn put(target: &Path, text: &str) -> Result<(), String> {
    if target.as_os_str() == "-" {
        return print(text);
    }
    machmeter_store::atomic::write(target, text).map_err(|e| e.to_string())
}

/// Writes lines to stdout; see [`write`].
pub(crate) fn print(text: &str) -> Result<(), String> {
    if text.ends_with('\n') { write(text.as_bytes()) } else { write(format!("{text}\n").as_bytes()) }
}

/// Writes to stdout and flushes it.
/// Errors: stdout does not accept the data (full disk); a closed pipe is no error.
pub(crate) fn write(bytes: &[u8]) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| format!("stdout: {e}")),
    }
}

/// Writes a line to stderr and ignores errors. Control characters are removed, because names in the line can come from other users.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Prints errors, one line each; returns the exit code.
pub(crate) fn tell(trouble: &[String]) -> Exit {
    for t in trouble {
        say(&format!("error: {t}"));
    }
    if trouble.is_empty() { Exit::Fine } else { Exit::CannotMeasure }
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Progress on stderr, one line per step.
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
        self.step(text);
    }
}
