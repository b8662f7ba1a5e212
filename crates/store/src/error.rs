//! The error type of this crate: one line with the file, the position in it, the problem and advice.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Result with the error of this crate.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Returns the error `or` unless `holds`.
pub(crate) fn sure(holds: bool, or: impl FnOnce() -> StoreError) -> Result<()> {
    if holds { Ok(()) } else { Err(or()) }
}

#[derive(Debug, Error)]
#[error("{}{}: {what}", path.display(), line.map_or_else(String::new, |n| format!(", line {n}")))]
pub struct StoreError {
    path: PathBuf,
    line: Option<usize>,
    what: String,
}

impl StoreError {
    /// The error `what` about `path`; line breaks in `what` become spaces.
    pub fn new(path: &Path, what: impl Into<String>) -> Self {
        let what: String = what.into();
        Self {
            path: path.to_owned(),
            line: None,
            what: what.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    pub(crate) fn at(path: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::new(path, what) }
    }

    /// The error of the system during `action` (`write`, `read`, `create`), in words that show what to do.
    pub(crate) fn io(path: &Path, action: &str, error: &io::Error) -> Self {
        let what = match error.kind() {
            io::ErrorKind::StorageFull => format!(
                "cannot {action}: no space left on this file system; free disk space or choose another directory"
            ),
            io::ErrorKind::QuotaExceeded => format!("cannot {action}: your disk quota is used up"),
            io::ErrorKind::ReadOnlyFilesystem => format!("cannot {action}: the file system is read-only"),
            io::ErrorKind::PermissionDenied => format!("cannot {action}: permission denied"),
            io::ErrorKind::NotFound if action == "read" => "no such file".to_owned(),
            io::ErrorKind::NotFound => format!("cannot {action}: the folder does not exist"),
            io::ErrorKind::IsADirectory => format!("cannot {action}: it is a folder"),
            _ => format!("cannot {action}: {error}"),
        };
        Self::new(path, what)
    }
}
