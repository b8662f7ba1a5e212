//! Stores figures of machines, added from records, from which usual ranges are computed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use machmeter_data::summary::Shows;
use serde::{Deserialize, Serialize};

use crate::best;
use crate::error::Result;

/// A figure: selector of its metric, the part of the metric, value in the unit of the metric.
pub type Figure = (String, Shows, f64);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// `server`, `board`, ...
    pub kind: String,
    pub figures: Vec<Figure>,
}

/// The file in a state directory with these figures.
#[derive(Debug, Clone)]
pub struct ReferenceStore {
    path: PathBuf,
}

impl ReferenceStore {
    pub(crate) fn in_state_dir(state_dir: &Path) -> Self {
        Self { path: state_dir.join("reference.json") }
    }

    /// Machines by fingerprint.
    pub fn machines(&self) -> Result<BTreeMap<String, Machine>> {
        best::load(&self.path)
    }

    /// Adds machines by fingerprint, all or none, and returns all stored ones. A machine counts once, with its newest figure.
    pub fn add(&self, new: Vec<(String, Machine)>) -> Result<BTreeMap<String, Machine>> {
        let _held = best::lock(&self.path.with_extension("lock"))?;
        let mut all = self.machines()?;
        for (fingerprint, new) in new {
            let old = all.entry(fingerprint).or_default();
            old.figures.retain(|o| !new.figures.iter().any(|n| (&n.0, &n.1) == (&o.0, &o.1)));
            old.kind = new.kind;
            old.figures.extend(new.figures);
        }
        best::store(&self.path, &all)?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(figures: &[(&str, f64)]) -> Machine {
        let figures = figures.iter().map(|(id, v)| ((*id).to_owned(), Shows::Value, *v)).collect();
        Machine { kind: "server".to_owned(), figures }
    }

    #[test]
    fn a_machine_counts_once_and_a_damaged_file_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let store = ReferenceStore::in_state_dir(dir.path());
        assert!(store.machines().unwrap().is_empty());
        store.add(vec![("a".into(), machine(&[("x", 1.0), ("y", 2.0)]))]).unwrap();
        let all = store.add(vec![("a".into(), machine(&[("y", 3.0)])), ("b".into(), machine(&[]))]).unwrap();
        assert_eq!((all.len(), &all["a"]), (2, &machine(&[("x", 1.0), ("y", 3.0)])));
        assert_eq!(store.machines().unwrap(), all);
        std::fs::write(dir.path().join("reference.json"), "{").unwrap();
        let refused = store.add(vec![("c".into(), machine(&[]))]).unwrap_err().to_string();
        assert!(refused.contains("remove the file to start again"), "{refused}");
        assert_eq!(std::fs::read_to_string(dir.path().join("reference.json")).unwrap(), "{");
    }
}
