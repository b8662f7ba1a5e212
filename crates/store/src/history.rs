//! Stores the runs of this user, and finds them by name.
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
    /// Name in the history (its stamp), or the stem of the file elsewhere.
    pub name: String,
    pub record: PathBuf,
    /// Raw samples, one file per table.
    pub raw: Vec<PathBuf>,
}

/// Writes the record to `path` and its tables beside it as `STEM.TABLE.parquet`, and lists them in `record.raw`. Beside a device, a pipe or an open file of
/// a process, tables are not written.
/// Errors: a file can't be written; the files of this call are then removed.
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
            // After the first error, a file that can't be removed stays as an unreferenced file.
            let _ = fs::remove_file(file);
        }
    }
    written.map(|()| saved)
}

/// The tables of `record`, which was read from `path`, each verified by its checksum.
pub fn raw_tables(record: &Record, path: &Path) -> Result<Vec<Table>> {
    record.raw.iter().map(|raw| parquet::read_verified(raw, path)).collect()
}

/// The first eight characters of a record's identifier, for file names.
fn short_id(record: &Record) -> String {
    record.id.chars().filter(char::is_ascii_alphanumeric).take(8).collect()
}

impl History {
    /// The runs in a state directory, for reading; the directory need not exist.
    pub fn at(state_dir: &Path) -> Self {
        Self { dir: state_dir.to_owned() }
    }

    /// Opens the state directory, and creates it if necessary, for this user alone. After an error, a caller continues without a history and shows the reason.
    /// Errors: the reason why runs can't be stored there: read-only, no permission, no space.
    pub fn open(state_dir: &Path) -> Result<Self> {
        let history = Self::at(state_dir);
        for folder in [history.runs(), history.tags()] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            made.map_err(|e| history.refused(&folder, "create", &e))?;
        }
        // Only creating a file also detects read-only mounts and full disks.
        let probe = history.runs().join(format!(".writable.{}", date::new_run_id()));
        let written = fs::write(&probe, b"x");
        let removed = fs::remove_file(&probe);
        written.and(removed).map_err(|e| history.refused(&history.runs(), "write", &e))?;
        Ok(history)
    }

    /// The error of the system, with the owner of the directory: a run under `sudo` may have created it.
    fn refused(&self, folder: &Path, action: &str, e: &io::Error) -> StoreError {
        let owner = fs::metadata(&self.dir).map_or(0, |m| m.uid());
        if e.kind() != io::ErrorKind::PermissionDenied || owner == rustix::process::geteuid().as_raw() {
            return StoreError::io(folder, action, e);
        }
        let what = format!("cannot {action}: permission denied, the state directory belongs to user {owner}");
        StoreError::new(folder, format!("{what}; change the owner with chown -R, or set MACHMETER_STATE"))
    }

    /// Saves the run under a new name; `last` and its tags then refer to it.
    pub fn save(&self, record: &mut Record, tables: &[Table]) -> Result<Saved> {
        let id = short_id(record);
        let mut stamp = date::fine_stamp(chrono::Utc::now());
        // After a clock that was fast, the newest run still sorts last.
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

    /// The record file for `name`: `last`, `last~N` (N runs before), a tag, the name of a run or its beginning, or the path of a file.
    pub fn resolve(&self, name: &str) -> Result<PathBuf> {
        let wrong = |why: String| Err(StoreError::new(Path::new(name), why));
        if let Some(back) = runs_back(name) {
            let runs = self.list()?;
            return match runs.len().checked_sub(back + 1) {
                Some(i) => Ok(self.record(&runs[i])),
                None if runs.is_empty() => wrong(format!("no run saved in {}", self.dir.display())),
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
        // A pipe is read like a file; for a folder, reading it gives the error.
        if Path::new(name).exists() {
            return Ok(PathBuf::from(name));
        }
        let matching: Vec<String> = self.list()?.into_iter().filter(|r| r.starts_with(name)).collect();
        match matching.as_slice() {
            [one] => Ok(self.record(one)),
            [] => wrong("no such file, tag or run (use last, last~1, a tag, or a path)".to_owned()),
            many => {
                wrong(format!("{} runs have names that start like this; give more of the name", many.len()))
            }
        }
    }

    /// The saved copy of a record that was read from elsewhere, found by its identifier.
    pub fn copy_of(&self, record: &Record) -> Option<PathBuf> {
        let end = format!("-{}", short_id(record));
        let name =
            self.list().ok()?.into_iter().rev().find(|name| !record.id.is_empty() && name.ends_with(&end))?;
        json::read(&self.record(&name)).ok().filter(|found| found.id == record.id)?;
        Some(self.record(&name))
    }

    /// The record of a saved run by its complete name, as in [`Self::list`].
    /// Errors: the file does not exist or is not a record.
    pub fn read(&self, name: &str) -> Result<Record> {
        json::read(&self.record(name))
    }

    /// Names of all saved runs, oldest first.
    pub fn list(&self) -> Result<Vec<String>> {
        let files = self.files()?;
        Ok(files.into_iter().filter(|(_, of)| of.contains_key("json")).map(|(name, _)| name).collect())
    }

    /// Removes the oldest runs until at most `keep` runs with at most `max_bytes` are left, never the newest, and returns the names of the removed runs. Tags
    /// of removed runs are removed, too.
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
            // The record is removed first: samples without a record are harmless, but a record without its samples is broken.
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

    /// Files of each run, oldest first: their extensions and sizes, bytes. Ignores folders and files with other names.
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

    /// Figures of machines, from which usual ranges are computed.
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

/// The pattern of run names: 0 represents any digit.
const STAMP: &str = "00000000T000000Z-000000";

/// True if `name` has the form of a name from [`History::save`].
fn is_run(name: &str) -> bool {
    let digits: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let id = digits.strip_prefix(STAMP).and_then(|rest| rest.strip_prefix('-'));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Number of runs before the last one in `last` or `last~N`.
fn runs_back(name: &str) -> Option<usize> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The names of a tag: its key if it has no value, else `key=value` and the value alone.
fn tag_names(key: &str, value: &str) -> Vec<String> {
    if value.is_empty() { vec![key.to_owned()] } else { vec![format!("{key}={value}"), value.to_owned()] }
}

/// A name as a file name: other than plain bytes are written as `%41`. Long names are cut.
pub(crate) fn portable(name: &str) -> String {
    let mut portable: String = name
        .bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'=' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect();
    // 255 minus the rest of the names of a temporary file and of a table.
    portable.truncate(160);
    portable
}

#[cfg(test)]
#[path = "history_tests.rs"]
pub(crate) mod tests;
