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

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use machmeter_data::{Record, Table};

use crate::best::BestStore;
use crate::error::StoreError;
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

/// Writes the record to `path` and its tables beside it as `STEM.TABLE.parquet`; `record.raw` then names them.
/// Errors: when anything cannot be written; the files of this call are removed then.
pub fn save_as(record: &mut Record, tables: &[Table], path: &Path) -> Result<Saved, StoreError> {
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let mut saved = Saved { name: stem.clone(), record: path.to_owned(), raw: Vec::new() };
    let mut write_all = || {
        record.raw.clear();
        for table in tables {
            let file = path.with_file_name(format!("{stem}.{}.parquet", portable(&table.name)));
            record.raw.push(parquet::write_table(table, &file)?);
            saved.raw.push(file);
        }
        json::write(record, path)
    };
    match write_all() {
        Ok(()) => Ok(saved),
        Err(e) => {
            record.raw.clear();
            for file in &saved.raw {
                // Already in trouble: what cannot be removed now stays as an unreferenced file.
                let _ = fs::remove_file(file);
            }
            Err(e)
        }
    }
}

/// The tables that `record`, read from `path`, refers to, each checked against its checksum.
pub fn raw_tables(record: &Record, path: &Path) -> Result<Vec<Table>, StoreError> {
    record.raw.iter().map(|raw| parquet::read_verified(raw, path)).collect()
}

impl History {
    /// Opens the state directory, creating it where needed. A caller that gets the error goes on without a history and
    /// shows the reason.
    /// Errors: why runs cannot be kept there: read-only, no permission, no space.
    pub fn open(state_dir: &Path) -> Result<Self, StoreError> {
        let history = Self { dir: state_dir.to_owned() };
        for folder in [history.runs(), history.tags()] {
            fs::create_dir_all(&folder).map_err(|e| StoreError::io(&folder, "create", &e))?;
        }
        // Creating a file is the only test of write permission that also sees read-only mounts and full disks.
        let probe = history.runs().join(format!(".writable.{}", date::new_run_id()));
        fs::write(&probe, b"x").map_err(|e| StoreError::io(&history.runs(), "write", &e))?;
        fs::remove_file(&probe).map_err(|e| StoreError::io(&history.runs(), "write", &e))?;
        Ok(history)
    }

    /// Saves the run under a new name and makes it `last`; its tags point to it.
    pub fn save(&self, record: &mut Record, tables: &[Table]) -> Result<Saved, StoreError> {
        let id: String = record.id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        let name = format!("{}-{}", date::fine_stamp(), if id.is_empty() { "run" } else { &id });
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
    pub fn resolve(&self, name: &str) -> Result<PathBuf, StoreError> {
        let wrong = |why: String| Err(StoreError::new(Path::new(name), why));
        if let Some(back) = runs_back(name) {
            let runs = self.list()?;
            return match runs.len().checked_sub(back + 1) {
                Some(i) => Ok(self.runs().join(format!("{}.json", runs[i]))),
                None if runs.is_empty() => wrong(format!("no run saved yet in {}", self.dir.display())),
                None => wrong(format!(
                    "only {} runs are saved, last~{} is the oldest",
                    runs.len(),
                    runs.len() - 1
                )),
            };
        }
        if let Ok(run) = fs::read_to_string(self.tags().join(portable(name))) {
            let path = self.runs().join(format!("{}.json", run.trim()));
            if path.exists() {
                return Ok(path);
            }
        }
        if Path::new(name).is_file() {
            return Ok(PathBuf::from(name));
        }
        let matching: Vec<String> = self.list()?.into_iter().filter(|r| r.starts_with(name)).collect();
        match matching.as_slice() {
            [one] => Ok(self.runs().join(format!("{one}.json"))),
            [] => wrong("no such file, tag or run (use last, last~1, a tag, or a path)".to_owned()),
            many => wrong(format!("{} runs begin like this; give more of the name", many.len())),
        }
    }

    /// The record of a saved run by its whole name, as [`Self::list`] gives it.
    /// Errors: when it is no file or no record. A pipe of that name is not waited for.
    pub fn read(&self, name: &str) -> Result<Record, StoreError> {
        let path = self.runs().join(format!("{name}.json"));
        if path.is_file() { json::read(&path) } else { Err(StoreError::new(&path, "no file".to_owned())) }
    }

    /// Names of all saved runs, oldest first.
    pub fn list(&self) -> Result<Vec<String>, StoreError> {
        let entries = fs::read_dir(self.runs()).map_err(|e| StoreError::io(&self.runs(), "read", &e))?;
        let mut names: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter_map(|n| n.strip_suffix(".json").map(str::to_owned))
            .filter(|n| !n.starts_with('.'))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes the oldest runs until `keep` are left and returns the names of those removed. Tags of removed runs go too.
    pub fn prune(&self, keep: usize) -> Result<Vec<String>, StoreError> {
        let mut names = self.list()?;
        names.truncate(names.len().saturating_sub(keep));
        for name in &names {
            // The record goes first: a run without its record is no run, a record without its samples is a broken one.
            for path in [self.runs().join(format!("{name}.json"))].into_iter().chain(self.raw_files(name)?) {
                fs::remove_file(&path).map_err(|e| StoreError::io(&path, "remove", &e))?;
            }
        }
        if let Ok(tags) = fs::read_dir(self.tags()) {
            for tag in tags.filter_map(Result::ok) {
                if fs::read_to_string(tag.path()).is_ok_and(|run| names.contains(&run)) {
                    let _ = fs::remove_file(tag.path());
                }
            }
        }
        Ok(names)
    }

    /// Best values of this user's machines.
    pub fn best_values(&self) -> BestStore {
        BestStore::in_state_dir(&self.dir)
    }

    /// Figures of machines from which ranges of what is usual grow.
    pub fn reference(&self) -> ReferenceStore {
        ReferenceStore::in_state_dir(&self.dir)
    }

    fn raw_files(&self, name: &str) -> Result<Vec<PathBuf>, StoreError> {
        let entries = fs::read_dir(self.runs()).map_err(|e| StoreError::io(&self.runs(), "read", &e))?;
        let start = format!("{name}.");
        Ok(entries
            .filter_map(Result::ok)
            .filter(|e| {
                e.file_name().to_str().is_some_and(|n| n.starts_with(&start) && n.ends_with(".parquet"))
            })
            .map(|e| e.path())
            .collect())
    }

    fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }

    fn tags(&self) -> PathBuf {
        self.dir.join("tags")
    }
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

/// A name as a file name: bytes that are not plain are written as `%41`.
pub(crate) fn portable(name: &str) -> String {
    name.bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'=' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
pub(crate) mod tests;
