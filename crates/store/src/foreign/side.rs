//! Facts that a foreign format cannot hold: from a small JSON file beside it, `PREFIX.machmeter.json`, or from options.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Result, StoreError};

/// Facts in addition to files of a foreign format. Absent means unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SideFacts {
    /// Clock ticks per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_hz: Option<f64>,
    /// Length of a window in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ticks: Option<i64>,
    /// CPU of each thread, by thread number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<i32>,
    /// Number of samples dropped because memory was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_samples: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

impl SideFacts {
    /// These facts, completed by those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tick_hz: self.tick_hz.or(other.tick_hz),
            window_ticks: self.window_ticks.or(other.window_ticks),
            cpus: if self.cpus.is_empty() { other.cpus } else { self.cpus },
            lost_samples: self.lost_samples.or(other.lost_samples),
            command: if self.command.is_empty() { other.command } else { self.command },
        }
    }

    /// Checks the facts.
    /// Errors: the reason why the facts at `place` are impossible.
    pub(super) fn check(&self, place: &Path) -> Result<()> {
        let not = |name: &str, value: String| {
            StoreError::new(place, format!("{name} is {value}, expected a positive number"))
        };
        match (self.tick_hz, self.window_ticks) {
            (Some(hz), _) if !(hz.is_finite() && hz > 0.0) => Err(not("tick_hz", hz.to_string())),
            (_, Some(w)) if w <= 0 => Err(not("window_ticks", w.to_string())),
            _ => Ok(()),
        }
    }

    pub(super) fn tick_hz_note(&self) -> String {
        self.tick_hz.map_or_else(|| "unknown".to_owned(), |hz| hz.to_string())
    }

    /// The CPU of a thread, or its number if the CPU is unknown.
    pub(super) fn cpu_of(&self, thread: i32) -> i32 {
        usize::try_from(thread).ok().and_then(|t| self.cpus.get(t)).copied().unwrap_or(thread)
    }
}

/// `PREFIX` with `suffix` appended.
pub fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn path_of(prefix: &Path) -> PathBuf {
    with_suffix(prefix, ".machmeter.json")
}
