//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the sync probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Parts: transfer, contention, locks, wakeups, models; all by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub parts: Vec<String>,
}
