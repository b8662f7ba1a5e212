//! Writes lines to stdout and the log file, and reports each once if it fails.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Failure, Result, output};

/// The console, and the log file beside it.
pub(super) struct Sink {
    log: Option<(File, PathBuf)>,
    stdout: bool,
    /// Errors, in order.
    pub(super) trouble: Vec<String>,
}

impl Sink {
    /// Opens the log file, unless `log` is `None`, before anything is measured.
    pub(super) fn open(name: &str, log: Option<&Path>) -> Result<Self> {
        let refusal = |path: &Path, e: io::Error| {
            let is_denied = e.kind() == io::ErrorKind::PermissionDenied;
            let why = if is_denied { "permission denied".to_owned() } else { e.to_string() };
            Failure::cannot(format!("{name}: log file {}: {why}", path.display()))
                .help("-c writes to the console only; or run it in another directory")
        };
        let open = |path: &Path| match OpenOptions::new().append(true).create(true).open(path) {
            Ok(file) => Ok((file, path.to_owned())),
            Err(e) => Err(refusal(path, e)),
        };
        Ok(Self { log: log.map(open).transpose()?, stdout: true, trouble: Vec::new() })
    }

    /// Writes whole lines to both outputs. A failed output is not used again.
    pub(super) fn put(&mut self, text: &str) {
        if self.stdout
            && let Err(e) = output::print(text)
        {
            self.stdout = false;
            self.trouble.push(e);
        }
        if let Some((file, path)) = &mut self.log
            && let Err(e) = file.write_all(text.as_bytes()).and_then(|()| file.flush())
        {
            self.trouble.push(format!("log file {}: {e}", path.display()));
            self.log = None;
        }
    }

    /// True if an output is left.
    pub(super) fn is_open(&self) -> bool {
        self.stdout || self.log.is_some()
    }

    /// Path of the log file, if there is one.
    pub(super) fn log(&self) -> Option<&Path> {
        self.log.as_ref().map(|(_, path)| path.as_path())
    }
}
