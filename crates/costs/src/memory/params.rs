//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the memory probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Parts to measure: ladder, bandwidth, loaded, table; all when not given.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub parts: Vec<String>,
    /// Largest working set of the ladder (64M, 1G); four times the last cache when not given, at most 128 MiB at the level quick and 256 MiB at standard.
    #[arg(long, value_name = "SIZE")]
    #[serde(default)]
    pub max_bytes: Option<String>,
    /// Page sizes of the ladder: small, huge or both.
    #[arg(long, value_name = "SIZE", default_value = "both")]
    pub pages: String,
    /// Working sets per octave of the ladder; as the time allows when not given.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[serde(default)]
    pub ladder_points: Option<u32>,
    /// Latency over strides of 64 to 4096 bytes as well.
    #[arg(long)]
    #[serde(default)]
    pub surface: bool,
    /// Kernels of the bandwidth part: families (read, copy, ...) or single widths (read.avx2); its own choice when not given.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Most CPUs that move memory at once; all measured ones when not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Memory that each CPU's kernels walk over (64M, 1G); four times the last cache when not given, at most 128 MiB at the level quick and 256 MiB at standard.
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// What the memory holds whose bandwidth is measured: random (nothing can shorten it) or zeros.
    #[arg(long, value_name = "KIND", default_value = "random")]
    pub data: String,
    /// Programming models of table A: threads, processes, user-threads; threads when not given.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub models: Vec<String>,
    /// Size of the last cache, for table A, whose buffers are twice as large (32M); as the system claims it when not given.
    #[arg(long, value_name = "SIZE")]
    #[serde(default)]
    pub cache_size: Option<String>,
    /// Distance of table A's accesses (64); the line as the system claims it when not given.
    #[arg(long, value_name = "SIZE")]
    #[serde(default)]
    pub block_size: Option<String>,
}
