//! The best value ever seen of a figure on one kind of machine. A constant disturbance cannot be seen within one run; it
//! can against a run in which it was absent.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use machmeter_data::Better;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::date;
use crate::error::StoreError;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The value, in the unit of its key.
    pub value: f64,
    /// When it was first seen, RFC 3339.
    pub since: String,
    /// Values offered so far, this one included.
    pub offered: u64,
}

/// The folder of best values of a state directory, one small file per machine fingerprint.
#[derive(Debug, Clone)]
pub struct BestStore {
    folder: PathBuf,
}

impl BestStore {
    pub(crate) fn in_state_dir(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("best") }
    }

    /// The best value stored under `key` for the machine, if any.
    pub fn best(&self, fingerprint: &str, key: &str) -> Result<Option<Best>, StoreError> {
        Ok(load::<BTreeMap<String, Best>>(&self.file(fingerprint, "json"))?.remove(key))
    }

    /// Offers a value and returns the best one, this or an older one, and the best one before.
    ///
    /// Safe against other processes doing the same.
    /// Errors: a value that is not finite, a quantity without a good direction, or a folder that cannot be written.
    pub fn remember_best(
        &self,
        fingerprint: &str,
        key: &str,
        value: f64,
        better: Better,
    ) -> Result<(Best, Option<Best>), StoreError> {
        let path = self.file(fingerprint, "json");
        if !value.is_finite() {
            return Err(StoreError::new(&path, format!("{key}: {value} is not a figure to remember")));
        }
        if better == Better::Neither {
            let what = format!("{key}: a quantity without a good direction has no best value");
            return Err(StoreError::new(&path, what));
        }
        fs::create_dir_all(&self.folder).map_err(|e| StoreError::io(&self.folder, "create", &e))?;
        let _held = lock(&self.file(fingerprint, "lock"))?;
        let mut all: BTreeMap<String, Best> = load(&path)?;
        let before = all.get(key).cloned();
        let offered = before.as_ref().map_or(0, |b| b.offered) + 1;
        let now = match &before {
            Some(b)
                if (better == Better::Lower && b.value <= value)
                    || (better == Better::Higher && b.value >= value) =>
            {
                Best { offered, ..b.clone() }
            }
            _ => Best { value, since: date::now_rfc3339(), offered },
        };
        all.insert(key.to_owned(), now.clone());
        store(&path, &all)?;
        Ok((now, before))
    }

    fn file(&self, fingerprint: &str, extension: &str) -> PathBuf {
        let name: String = fingerprint
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(80)
            .collect();
        self.folder.join(format!("{}.{extension}", if name.is_empty() { "unknown" } else { &name }))
    }
}

/// What the file at `path` holds; nothing where there is none.
pub(crate) fn load<T: DeserializeOwned + Default>(path: &Path) -> Result<T, StoreError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|e| StoreError::new(path, format!("damaged ({e}); remove it to start anew"))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(e) => Err(StoreError::io(path, "read", &e)),
    }
}

/// Writes what [`load`] reads, in one step.
pub(crate) fn store(path: &Path, all: &impl Serialize) -> Result<(), StoreError> {
    atomic::replace(path, |out| {
        serde_json::to_writer_pretty(&mut *out, all)?;
        out.write_all(b"\n")
    })
}

/// Waits for the lock `path`; dropping it releases it, and so does the end of the process.
pub(crate) fn lock(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(|e| StoreError::io(path, "write", &e))?;
    file.lock().map_err(|e| StoreError::io(path, "lock", &e))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_value_stays_and_wrong_ones_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = BestStore::in_state_dir(dir.path());
        assert_eq!(store.best("f", "turn_ns").unwrap(), None);
        for (value, best) in [(9.5, 9.5), (9.7, 9.5), (9.4, 9.4), (9.4, 9.4)] {
            assert_eq!(store.remember_best("f", "turn_ns", value, Better::Lower).unwrap().0.value, best);
        }
        for (value, best) in [(5.0, 5.0), (4.0, 5.0), (6.0, 6.0)] {
            assert_eq!(store.remember_best("f", "count", value, Better::Higher).unwrap().0.value, best);
        }
        assert_eq!(store.best("f", "turn_ns").unwrap().unwrap().offered, 4);
        assert_eq!(store.best("other", "turn_ns").unwrap(), None);
        assert!(store.remember_best("f", "turn_ns", f64::NAN, Better::Lower).is_err());
        assert!(store.remember_best("f", "turn_ns", 1.0, Better::Neither).is_err());
        assert!(store.remember_best("../../f", "k", 1.0, Better::Lower).is_ok());
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
                        store.remember_best("f", "shared", value, Better::Lower).unwrap();
                        store.remember_best("f", &format!("own{t}"), value, Better::Lower).unwrap();
                    }
                });
            }
        });
        let shared = store.best("f", "shared").unwrap().unwrap();
        assert_eq!((shared.value, shared.offered), (907.0, 40));
        for t in 0..4 {
            assert_eq!(store.best("f", &format!("own{t}")).unwrap().unwrap().offered, 10);
        }
    }
}
