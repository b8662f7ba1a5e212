//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use std::path::{Path, PathBuf};

use clap::Args;
use machmeter_engine::ProbeError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the ops probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Parts: arithmetic, calls, processes, decades; all by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub parts: Vec<String>,
    /// Table of operations in whole powers of ten; the logarithm is truncated.
    #[arg(long)]
    #[serde(default)]
    pub truncate_decades: bool,
    /// Directory for test files; by default the directory for temporary files.
    #[arg(long, value_name = "DIR")]
    #[serde(default)]
    pub directory: Option<String>,
    /// Program to start instead of /bin/true; it must end by itself with exit code 0, even if started by exec.
    #[arg(long, value_name = "PATH")]
    #[serde(default)]
    pub exec_target: Option<String>,
}

impl Params {
    pub(super) fn check(&self) -> Result<(), ProbeError> {
        if let Some(d) = self.directory.as_ref().filter(|d| !Path::new(d).is_dir()) {
            return Err(ProbeError::Usage(format!("--directory {d}: no such directory")));
        }
        if let Some(p) = self.exec_target.as_ref().filter(|p| !Path::new(p).is_file()) {
            return Err(ProbeError::Usage(format!("--exec-target {p}: no such program")));
        }
        Ok(())
    }

    pub(super) fn measures(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|p| p == part)
    }

    pub(super) fn files_in(&self) -> PathBuf {
        self.directory.as_ref().map_or_else(std::env::temp_dir, PathBuf::from)
    }
}
