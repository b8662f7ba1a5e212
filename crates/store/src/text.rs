//! Text files (reports, cards, tables), written in one step.

use std::io::Write;
use std::path::Path;

use crate::{StoreError, atomic};

/// Writes `text` to `path`; a crash or a full disk leaves the old file or none.
///
/// # Errors
/// One line when it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), StoreError> {
    atomic::replace(path, |out| out.write_all(text.as_bytes()))
}
