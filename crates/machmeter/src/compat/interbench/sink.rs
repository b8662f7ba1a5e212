//! Where lines go: stdout and the log file, each told once when it cannot take them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Failure, Result, output};

/// The console and the log file beside it.
pub(super) struct Sink {
    log: Option<(File, PathBuf)>,
    stdout: bool,
    /// What went wrong, in the order it did.
    pub(super) trouble: Vec<String>,
}

impl Sink {
    /// The console, and the log file unless `log` is none. It is opened before anything is measured.
    pub(super) fn open(name: &str, log: Option<&Path>) -> Result<Self> {
        let refusal = |path: &Path, e: io::Error| {
            let is_denied = e.kind() == io::ErrorKind::PermissionDenied;
            let why = if is_denied { "permission denied".to_owned() } else { e.to_string() };
            Failure::cannot(format!("{name}: log file {}: {why}", path.display()))
                .help("-c writes to the console only; or run it in another folder")
        };
        let open = |path: &Path| match OpenOptions::new().append(true).create(true).open(path) {
            Ok(file) => Ok((file, path.to_owned())),
            Err(e) => Err(refusal(path, e)),
        };
        Ok(Self { log: log.map(open).transpose()?, stdout: true, trouble: Vec::new() })
    }

    /// Writes whole lines to both. One that fails is left out from then on.
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

    /// Whether lines still get anywhere.
    pub(super) fn is_open(&self) -> bool {
        self.stdout || self.log.is_some()
    }

    /// The log file as it is named, if there is one.
    pub(super) fn log(&self) -> Option<&Path> {
        self.log.as_ref().map(|(_, path)| path.as_path())
    }
}
