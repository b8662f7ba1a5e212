//! The only place that writes to stdout and stderr. A closed pipe is no error of ours: the result is saved all the same.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use machmeter_data::text::printable;
use machmeter_engine::Progress;

use crate::Exit;

/// Writes to a file, or to stdout for `-`.
/// Errors: in one line, as [`print`] and the system say.
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

/// Writes to stdout and makes sure that it got there.
/// Errors: when stdout cannot take it (full disk); a reader that went away is fine.
pub(crate) fn write(bytes: &[u8]) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| format!("stdout: {e}")),
    }
}

/// Writes a line to stderr, if anybody listens. Names in it may be of strangers.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Says what went wrong, a line each: the exit code of that.
pub(crate) fn tell(trouble: &[String]) -> Exit {
    for t in trouble {
        say(&format!("error: {t}"));
    }
    if trouble.is_empty() { Exit::Fine } else { Exit::CannotMeasure }
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
        self.step(text);
    }
}
