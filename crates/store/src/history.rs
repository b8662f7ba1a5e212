//! Past runs of this user: every run is kept and can be named again.
//!
//! ```text
//! STATE/runs/20261121T194200Z-000417-1a2b3c4d.json          the record
//! STATE/runs/20261121T194200Z-000417-1a2b3c4d.TABLE.parquet its raw samples
//! STATE/tags/TAG                                            name of the latest run with that tag
//! STATE/best/FINGERPRINT.json                               best values of one kind of machine
//! STATE/reference.json                                      figures of machines added by `reference add`
//! ```
//! Names sort by time, each file appears in one step, and the record comes last, so processes need no lock.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use machmeter_data::{Record, Table};

use crate::best::BestStore;
use crate::error::{Result, StoreError};
use crate::reference::ReferenceStore;
use crate::{atomic, date, json, parquet};

#[derive(Debug, Clone)]
pub struct History {
    dir: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Name in the history (its stamp), or the file's stem elsewhere.
    pub name: String,
    pub record: PathBuf,
    /// Raw samples, one file per table.
    pub raw: Vec<PathBuf>,
}

/// Writes the record to `path` and its tables beside it as `STEM.TABLE.parquet`; `record.raw` then names them. Beside a device, a
/// pipe or an open file of a process there is no room for tables.
/// Errors: when anything cannot be written; the files of this call are removed then.
pub fn save_as(record: &mut Record, tables: &[Table], path: &Path) -> Result<Saved> {
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let mut saved = Saved { name: stem.clone(), record: path.to_owned(), raw: Vec::new() };
    let folder = fs::canonicalize(atomic::folder_of(path)).unwrap_or_default();
    let is_special = fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
    let has_room = !is_special && folder != Path::new("/dev") && !folder.starts_with("/proc");
    let mut write_all = || {
        record.raw.clear();
        for table in tables.iter().filter(|_| has_room) {
            let file = path.with_file_name(format!("{stem}.{}.parquet", portable(&table.name)));
            record.raw.push(parquet::write_table(table, &file)?);
            saved.raw.push(file);
        }
        json::write(record, path)
    };
    let written = write_all();
    if written.is_err() {
        record.raw.clear();
        for file in &saved.raw {
            // Already in trouble: what cannot be removed now stays as an unreferenced file.
            let _ = fs::remove_file(file);
        }
    }
    written.map(|()| saved)
}

/// The tables that `record`, read from `path`, refers to, each checked against its checksum.
pub fn raw_tables(record: &Record, path: &Path) -> Result<Vec<Table>> {
    record.raw.iter().map(|raw| parquet::read_verified(raw, path)).collect()
}

/// The beginning of a record's identifier, for file names.
fn short_id(record: &Record) -> String {
    record.id.chars().filter(char::is_ascii_alphanumeric).take(8).collect()
}

impl History {
    /// The runs kept in a state directory, which need not be there: for reading.
    pub fn at(state_dir: &Path) -> Self {
        Self { dir: state_dir.to_owned() }
    }

    /// Opens the state directory, creating it where needed, for this user alone. A caller that gets the error goes on without a
    /// history and shows the reason.
    /// Errors: why runs cannot be kept there: read-only, no permission, no space.
    pub fn open(state_dir: &Path) -> Result<Self> {
        let history = Self::at(state_dir);
        for folder in [history.runs(), history.tags()] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            made.map_err(|e| history.refused(&folder, "create", &e))?;
        }
        // Creating a file is the only test of write permission that also sees read-only mounts and full disks.
        let probe = history.runs().join(format!(".writable.{}", date::new_run_id()));
        let written = fs::write(&probe, b"x");
        let removed = fs::remove_file(&probe);
        written.and(removed).map_err(|e| history.refused(&history.runs(), "write", &e))?;
        Ok(history)
    }

    /// The system's answer, and whose the directory is: a run under `sudo` may have made it.
    fn refused(&self, folder: &Path, action: &str, e: &io::Error) -> StoreError {
        let owner = fs::metadata(&self.dir).map_or(0, |m| m.uid());
        if e.kind() != io::ErrorKind::PermissionDenied || owner == rustix::process::geteuid().as_raw() {
            return StoreError::io(folder, action, e);
        }
        let what = format!("cannot {action}: permission denied, the state directory belongs to user {owner}");
        StoreError::new(folder, format!("{what}; give it back with chown -R, or set MACHMETER_STATE"))
    }

    /// Saves the run under a new name and makes it `last`; its tags point to it.
    pub fn save(&self, record: &mut Record, tables: &[Table]) -> Result<Saved> {
        let id = short_id(record);
        let mut stamp = date::fine_stamp(chrono::Utc::now());
        // After a clock that was ahead the newest run still sorts last.
        if let Some(last) = self.list()?.pop().filter(|last| *last >= stamp) {
            stamp = date::after(&last[..STAMP.len()]).unwrap_or(stamp);
        }
        let name = format!("{stamp}-{}", if id.is_empty() { "run" } else { &id });
        let saved = save_as(record, tables, &self.runs().join(format!("{name}.json")))?;
        for (key, value) in &record.run.tags {
            for tag in tag_names(key, value) {
                let path = self.tags().join(portable(&tag));
                atomic::replace(&path, |out| out.write_all(name.as_bytes()))?;
            }
        }
        Ok(saved)
    }

    /// The record file that `name` means: `last`, `last~N` (N runs before), a tag, a run's name or the beginning of one,
    /// or the path of a file.
    pub fn resolve(&self, name: &str) -> Result<PathBuf> {
        let wrong = |why: String| Err(StoreError::new(Path::new(name), why));
        if let Some(back) = runs_back(name) {
            let runs = self.list()?;
            return match runs.len().checked_sub(back + 1) {
                Some(i) => Ok(self.record(&runs[i])),
                None if runs.is_empty() => wrong(format!("no run saved yet in {}", self.dir.display())),
                None => {
                    let n = runs.len();
                    wrong(format!("only {n} runs are saved, last~{} is the oldest", n - 1))
                }
            };
        }
        let tagged = fs::read_to_string(self.tags().join(portable(name)));
        if let Some(path) = tagged.ok().map(|run| self.record(run.trim())).filter(|p| p.is_file()) {
            return Ok(path);
        }
        // A pipe is read like a file; of a folder the system says that it is one.
        if Path::new(name).exists() {
            return Ok(PathBuf::from(name));
        }
        let matching: Vec<String> = self.list()?.into_iter().filter(|r| r.starts_with(name)).collect();
        match matching.as_slice() {
            [one] => Ok(self.record(one)),
            [] => wrong("no such file, tag or run (use last, last~1, a tag, or a path)".to_owned()),
            many => wrong(format!("{} runs begin like this; give more of the name", many.len())),
        }
    }

    /// The saved copy of a record that was read from elsewhere: same identifier.
    pub fn copy_of(&self, record: &Record) -> Option<PathBuf> {
        let end = format!("-{}", short_id(record));
        let name =
            self.list().ok()?.into_iter().rev().find(|name| !record.id.is_empty() && name.ends_with(&end))?;
        json::read(&self.record(&name)).ok().filter(|found| found.id == record.id)?;
        Some(self.record(&name))
    }

    /// The record of a saved run by its whole name, as [`Self::list`] gives it.
    /// Errors: when it is not there or no record.
    pub fn read(&self, name: &str) -> Result<Record> {
        json::read(&self.record(name))
    }

    /// Names of all saved runs, oldest first.
    pub fn list(&self) -> Result<Vec<String>> {
        let files = self.files()?;
        Ok(files.into_iter().filter(|(_, of)| of.contains_key("json")).map(|(name, _)| name).collect())
    }

    /// Removes the oldest runs until at most `keep` of at most `max_bytes` are left, never the newest, and returns the names of
    /// those removed. Tags of removed runs go too.
    pub fn prune(&self, keep: usize, max_bytes: u64) -> Result<Vec<String>> {
        let mut files = self.files()?;
        files.retain(|_, of| of.contains_key("json"));
        let mut kept_bytes = 0;
        let mut removed = Vec::new();
        for (i, (name, of)) in files.iter().rev().enumerate() {
            kept_bytes += of.values().sum::<u64>();
            if i < keep && (i == 0 || kept_bytes <= max_bytes) {
                continue;
            }
            // The record goes first: a run without its record is no run, a record without its samples is a broken one.
            let others = of.keys().map(String::as_str).filter(|e| *e != "json");
            for ending in std::iter::once("json").chain(others) {
                let path = self.runs().join(format!("{name}.{ending}"));
                fs::remove_file(&path).map_err(|e| StoreError::io(&path, "remove", &e))?;
            }
            removed.push(name.clone());
        }
        if let Ok(tags) = fs::read_dir(self.tags()) {
            for tag in tags.filter_map(Result::ok) {
                if fs::read_to_string(tag.path()).is_ok_and(|run| removed.contains(&run)) {
                    let _ = fs::remove_file(tag.path());
                }
            }
        }
        Ok(removed)
    }

    /// Files of each run, oldest first: their endings and bytes. What no run is called, and what is no file, is not ours.
    fn files(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>> {
        let entries = match fs::read_dir(self.runs()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            entries => entries.map_err(|e| StoreError::io(&self.runs(), "read", &e))?,
        };
        let mut files: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for entry in entries.filter_map(Result::ok) {
            let file = entry.file_name();
            let Some((name, ending)) = file.to_str().and_then(|f| f.split_once('.')) else { continue };
            let is_ours = is_run(name) && (ending == "json" || ending.ends_with(".parquet"));
            if is_ours && let Some(facts) = entry.metadata().ok().filter(fs::Metadata::is_file) {
                files.entry(name.to_owned()).or_default().insert(ending.to_owned(), facts.len());
            }
        }
        Ok(files)
    }

    /// Best values of this user's machines.
    pub fn best_values(&self) -> BestStore {
        BestStore::in_state_dir(&self.dir)
    }

    /// Figures of machines from which ranges of what is usual grow.
    pub fn reference(&self) -> ReferenceStore {
        ReferenceStore::in_state_dir(&self.dir)
    }

    fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }

    fn record(&self, name: &str) -> PathBuf {
        self.runs().join(format!("{name}.json"))
    }

    fn tags(&self) -> PathBuf {
        self.dir.join("tags")
    }
}

/// A digit where names of runs have one.
const STAMP: &str = "00000000T000000Z-000000";

/// Whether [`History::save`] names runs so.
fn is_run(name: &str) -> bool {
    let digits: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let id = digits.strip_prefix(STAMP).and_then(|rest| rest.strip_prefix('-'));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// How many runs before the last one `last`, `last~N` means.
fn runs_back(name: &str) -> Option<usize> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The names a tag is found by: its key when it has no value, else `key=value` and the value alone.
fn tag_names(key: &str, value: &str) -> Vec<String> {
    if value.is_empty() { vec![key.to_owned()] } else { vec![format!("{key}={value}"), value.to_owned()] }
}

/// A name as a file name: bytes that are not plain are written as `%41`. Its beginning, where it is longer than files are named.
pub(crate) fn portable(name: &str) -> String {
    let mut portable: String = name
        .bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'=' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect();
    // 255 less the rest of a temporary file's name and of a table's.
    portable.truncate(160);
    portable
}

#[cfg(test)]
#[path = "history_tests.rs"]
pub(crate) mod tests;
