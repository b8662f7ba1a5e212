//! Finds the state directory with the stored runs, and reads the environment variables.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use machmeter_data::Record;
use machmeter_store::History;
use machmeter_sys::thread::effective_user;

/// The state directory: `MACHMETER_STATE`, else `XDG_STATE_HOME/machmeter`, else `~/.local/state/machmeter`.
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
pub(crate) fn directory() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    var("MACHMETER_STATE")
        .or_else(|| var("XDG_STATE_HOME").map(|d| d.join("machmeter")))
        .or_else(|| var("HOME").map(|d| d.join(".local/state/machmeter")))
}

/// Columns that `COLUMNS` asks for, if stdout is no terminal.
pub(crate) fn columns() -> Option<usize> {
    variable("COLUMNS")?.trim().parse().ok().filter(|columns| *columns > 0)
}

/// True if the user disabled color with `NO_COLOR`.
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

/// The value of a variable that is set and not empty.
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// True if the terminal accepts no escape sequences (`TERM=dumb`).
pub(crate) fn is_dumb() -> bool {
    variable("TERM").is_some_and(|t| t == "dumb")
}

/// True if output must be ASCII: on a dumb terminal, or if the locale names an encoding other than UTF-8, such as `LC_ALL=C`. Without a locale, UTF-8 is
/// assumed.
pub(crate) fn is_ascii() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let is_utf8 = |locale: &str| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    is_dumb() || locale.is_some_and(|l| !is_utf8(&l))
}

const NONE: &str = "no state directory: set HOME, XDG_STATE_HOME or MACHMETER_STATE";

/// The stored runs, for reading; creates nothing.
/// Errors: one line with the reason why there are none (no HOME).
pub(crate) fn past() -> Result<History, String> {
    directory().map(|dir| History::at(&dir)).ok_or_else(|| NONE.to_owned())
}

/// The history of runs, for storing.
/// Errors: one line with the reason why there is none (no HOME, read-only, owned by another user).
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
pub(crate) fn history() -> Result<History, String> {
    let dir = directory().ok_or(NONE)?;
    let is_named = std::env::var_os("MACHMETER_STATE").is_some_and(|v| !v.is_empty());
    // `sudo` may keep HOME. Files of root there would lock its owner out.
    let owner = dir.ancestors().find_map(|dir| dir.metadata().ok()).map_or(0, |m| m.uid());
    if !is_named && effective_user() == 0 && owner != 0 {
        let what = format!("{} belongs to user {owner}, so root saves nothing there", dir.display());
        return Err(format!("{what}: use sudo -H, or set MACHMETER_STATE"));
    }
    History::open(&dir).map_err(|e| e.to_string())
}

/// Earlier complete runs with the verb, parameters and kind of machine of `record`, the latest first: at most `most`, among the latest `files`. Unreadable
/// runs are ignored.
pub(crate) fn like(history: &History, record: &Record, most: usize, files: usize) -> Vec<Record> {
    let Ok(names) = history.list() else { return Vec::new() };
    names
        .iter()
        .rev()
        .take(files)
        .filter_map(|n| history.read(n).ok())
        .filter(|r| {
            let machine = &r.machine.fingerprint;
            machine.is_some()
                && *machine == record.machine.fingerprint
                && r.complete
                && r.run.started < record.run.started
        })
        .filter(|r| r.run.verb == record.run.verb && r.run.parameters == record.run.parameters)
        .take(most)
        .collect()
}
