//! Stores the best value of a figure ever measured on one kind of machine.
//!
//! A constant disturbance is invisible within one run, but visible against a run without it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::date;
use crate::error::{Result, StoreError, sure};

/// A value in the unit of its key, and the time of its first measurement, RFC 3339.
#[derive(Debug, Serialize, Deserialize)]
struct Best {
    value: f64,
    since: String,
}

/// The folder of best values in a state directory, one small file per machine fingerprint.
#[derive(Debug, Clone)]
pub struct BestStore {
    folder: PathBuf,
}

impl BestStore {
    pub(crate) fn in_state_dir(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("best") }
    }

    /// The lowest value stored under `key` for the machine, if any.
    pub fn lowest(&self, fingerprint: &str, key: &str) -> Result<Option<f64>> {
        Ok(load::<BTreeMap<String, Best>>(&self.file(fingerprint, "json"))?.get(key).map(|best| best.value))
    }

    /// Stores a value if it is lower than the stored one, for a quantity that is better when lower.
    ///
    /// Safe if other processes do the same at the same time.
    /// Errors: a value that is not finite, or a folder that is not writable.
    pub fn keep_lowest(&self, fingerprint: &str, key: &str, value: f64) -> Result<()> {
        let path = self.file(fingerprint, "json");
        let none = || StoreError::new(&path, format!("{key}: {value} is not a valid figure"));
        sure(value.is_finite(), none)?;
        fs::create_dir_all(&self.folder).map_err(|e| StoreError::io(&self.folder, "create", &e))?;
        let _held = lock(&self.file(fingerprint, "lock"))?;
        let mut all: BTreeMap<String, Best> = load(&path)?;
        if all.get(key).is_some_and(|best| best.value <= value) {
            return Ok(());
        }
        all.insert(key.to_owned(), Best { value, since: date::now_rfc3339() });
        store(&path, &all)
    }

    fn file(&self, fingerprint: &str, extension: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = fingerprint.chars().map(plain).take(80).collect();
        self.folder.join(format!("{}.{extension}", if name.is_empty() { "unknown" } else { &name }))
    }
}

/// The content of the file at `path`; the default if there is no file.
pub(crate) fn load<T: DeserializeOwned + Default>(path: &Path) -> Result<T> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|e| StoreError::new(path, format!("damaged ({e}); remove the file to start again"))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(e) => Err(StoreError::io(path, "read", &e)),
    }
}

/// Writes the data that [`load`] reads, in one step.
pub(crate) fn store(path: &Path, all: &impl Serialize) -> Result<()> {
    atomic::replace(path, |out| {
        serde_json::to_writer_pretty(&mut *out, all)?;
        out.write_all(b"\n")
    })
}

/// Waits for the lock `path`. Dropping the file, or the end of the process, releases it.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(path).map_err(|e| StoreError::io(path, "write", &e))?;
    file.lock().map_err(|e| StoreError::io(path, "lock", &e))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_value_stays_and_wrong_ones_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = BestStore::in_state_dir(dir.path());
        assert_eq!(store.lowest("f", "turn_ns").unwrap(), None);
        for (value, best) in [(9.5, 9.5), (9.7, 9.5), (9.4, 9.4), (9.4, 9.4)] {
            store.keep_lowest("f", "turn_ns", value).unwrap();
            assert_eq!(store.lowest("f", "turn_ns").unwrap(), Some(best));
        }
        assert_eq!(store.lowest("other", "turn_ns").unwrap(), None);
        assert!(store.keep_lowest("f", "turn_ns", f64::NAN).is_err());
        assert!(store.keep_lowest("../../f", "k", 1.0).is_ok());
        assert!(dir.path().join("best/______f.json").exists());
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = BestStore::in_state_dir(dir.path());
        std::thread::scope(|s| {
            for t in 0..4 {
                let store = &store;
                s.spawn(move || {
                    for i in 0..10 {
                        let value = f64::from(1000 - 10 * i - t);
                        store.keep_lowest("f", "shared", value).unwrap();
                        store.keep_lowest("f", &format!("own{t}"), value).unwrap();
                    }
                });
            }
        });
        assert_eq!(store.lowest("f", "shared").unwrap(), Some(907.0));
        for t in 0..4 {
            assert_eq!(store.lowest("f", &format!("own{t}")).unwrap(), Some(910.0 - f64::from(t)));
        }
    }
}
