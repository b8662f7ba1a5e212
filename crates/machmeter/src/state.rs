//! Where runs are kept, and what the environment of the process says about it.

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

/// Whether the user asked for no color in general.
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

/// True if output must be ASCII: on a dumb terminal, or if the locale names an encoding other than UTF-8, such as `LC_ALL=C`. The
/// encoding of a locale that is not set is unknown, and UTF-8 assumed.
pub(crate) fn is_ascii() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let is_utf8 = |locale: &str| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    is_dumb() || locale.is_some_and(|l| !is_utf8(&l))
}

const NONE: &str = "no state directory: set HOME, XDG_STATE_HOME or MACHMETER_STATE";

/// Runs kept so far, for reading: nothing is made.
/// Errors: in one line, why there are none (no HOME).
pub(crate) fn past() -> Result<History, String> {
    directory().map(|dir| History::at(&dir)).ok_or_else(|| NONE.to_owned())
}

/// The history of runs, for keeping more.
/// Errors: in one line, why there is none (no HOME, read-only, another user's).
#[allow(clippy::disallowed_methods, reason = "the only variables this program honors are read here")]
pub(crate) fn history() -> Result<History, String> {
    let dir = directory().ok_or(NONE)?;
    let is_named = std::env::var_os("MACHMETER_STATE").is_some_and(|v| !v.is_empty());
    // `sudo` may leave HOME as it was; files of root would shut its owner out.
    let owner = dir.ancestors().find_map(|dir| dir.metadata().ok()).map_or(0, |m| m.uid());
    if !is_named && effective_user() == 0 && owner != 0 {
        let what = format!("{} is of user {owner}, and root keeps nothing there", dir.display());
        return Err(format!("{what}: sudo -H, or set MACHMETER_STATE"));
    }
    History::open(&dir).map_err(|e| e.to_string())
}

/// Complete runs of the history before it of the same verb with the same parameters on the same kind of machine, the latest first: `most` at
/// most, among the latest `files`. What cannot be read is no run.
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
