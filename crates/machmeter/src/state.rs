//! Where runs are kept, and what the environment of the process says about it.

use std::path::PathBuf;

use machmeter_store::History;

/// The state directory: `MACHMETER_STATE`, else `XDG_STATE_HOME/machmeter`, else `~/.local/state/machmeter`.
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
pub(crate) fn directory() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    var("MACHMETER_STATE")
        .or_else(|| var("XDG_STATE_HOME").map(|d| d.join("machmeter")))
        .or_else(|| var("HOME").map(|d| d.join(".local/state/machmeter")))
}

/// Whether the user asked for no color in general.
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

/// The history of runs.
/// Errors: in one line, why there is none (no HOME, read-only).
pub(crate) fn history() -> Result<History, String> {
    let dir = directory().ok_or("no state directory: set HOME, XDG_STATE_HOME or MACHMETER_STATE")?;
    History::open(&dir).map_err(|e| e.to_string())
}
