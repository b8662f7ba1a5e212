//! Files of other kinds (reports, cards, exports), written in one step.

use std::io::Write;
use std::path::Path;

use crate::{StoreError, atomic};

/// Looks whether [`write()`] could write `path` now; makes nothing.
///
/// Errors: a folder that is not there or takes no file, or a path that is one.
pub fn could_write(path: &Path) -> Result<(), StoreError> {
    atomic::could_replace(path)
}

/// Writes `content` to `path`; a crash or a full disk leaves the old file or none.
pub fn write(path: &Path, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), StoreError> {
    atomic::replace(path, |out| out.write_all(content.as_ref()))
}
