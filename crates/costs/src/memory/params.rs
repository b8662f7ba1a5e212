//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the memory probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Parts: ladder, bandwidth, loaded, table; all by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub parts: Vec<String>,
    /// Largest working set of the ladder: 64M, 1G; four times the last cache by default, at most 128 MiB at level quick and 256 MiB at standard.
    #[arg(long, value_name = "SIZE")]
    #[serde(default)]
    pub max_bytes: Option<String>,
    /// Pages of the ladder: small, huge, both.
    #[arg(long, value_name = "SIZE", default_value = "both")]
    pub pages: String,
    /// Working sets per octave; by default the time decides.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[serde(default)]
    pub ladder_points: Option<u32>,
    /// Also measure latency over strides of 64 to 4096 bytes.
    #[arg(long)]
    #[serde(default)]
    pub surface: bool,
    /// Bandwidth kernels: read, copy, read.avx2, ...; families or single widths; a selection by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Largest number of CPUs for bandwidth; all measured CPUs by default.
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Buffer of each CPU's bandwidth kernels: 64M, 1G; four times the last cache by default, at most 128 MiB at level quick and 256 MiB at standard.
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// Contents: random or zeros; of the bandwidth buffers.
    #[arg(long, value_name = "KIND", default_value = "random")]
    pub data: String,
    /// Models of table: threads, processes, user-threads; threads by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub models: Vec<String>,
    /// Size of the last cache, for table: 32M; its buffers are twice as large; by default the size that the system claims.
    #[arg(long, value_name = "SIZE")]
    #[serde(default)]
    pub cache_size: Option<String>,
    /// Distance of table's accesses: 64; by default the line size that the system claims.
    #[arg(long, value_name = "SIZE")]
    #[serde(default)]
    pub block_size: Option<String>,
}
