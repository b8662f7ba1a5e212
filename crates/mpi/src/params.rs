//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use std::path::PathBuf;

use clap::Args;
use machmeter_data::quantity::{Unit, human, parse_bytes};
use machmeter_engine::ProbeError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operations::{LOGGPS, OPERATIONS, Operation, TRAINS, named};

const PARTS: [&str; 4] = ["costs", "loggps", "shmem", "pairs"];
/// Largest message, bytes: buffers hold one of every rank, and a message of this size takes some 20 ms.
const MOST_BYTES: u64 = 64 << 20;

/// Parameters of the mpi probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Ranks to start; one per CPU by default. Under a launcher, its ranks are used.
    #[arg(short = 'n', long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=4096))]
    #[serde(default)]
    pub ranks: Option<u32>,
    /// Operations: send, pingpong, bcast, ...; all by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub ops: Vec<String>,
    /// Message sizes, from and to, bytes: 0-1M.
    #[arg(long, value_name = "FROM-TO", default_value = "0-1M")]
    pub sizes: String,
    /// Launches of the ranks, one after the other; every interval includes their variation, and Q needs three.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub launches: u32,
    /// MPI library; by default that of the launcher or the system.
    #[arg(long, value_name = "PATH")]
    #[serde(default)]
    pub lib: Option<PathBuf>,
    /// Parts: costs, loggps, shmem, pairs; costs,loggps by default, and pairs for more than two ranks. shmem slows MPI by starting another library.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub parts: Vec<String>,
    /// Allow more ranks than CPUs; every figure is marked, because waiting ranks take the CPU from working ones.
    #[arg(long)]
    #[serde(default)]
    pub oversubscribe: bool,
}

impl Params {
    /// Names of the operations, in the order of the table. Errors: a name that is none.
    pub(crate) fn operations(&self) -> Result<Vec<String>, ProbeError> {
        let known: Vec<&str> = OPERATIONS.iter().map(|o| o.name).collect();
        for (option, given, known) in [("ops", &self.ops, &known[..]), ("parts", &self.parts, &PARTS)] {
            if let Some(wrong) = given.iter().find(|name| !known.contains(&name.trim())) {
                let known = known.join(", ");
                return Err(ProbeError::Usage(format!("--{option}: '{wrong}' is not one of {known}")));
            }
        }
        let [costs, loggps, shmem, _] = PARTS.map(|part| has(&self.parts, part));
        let all = self.parts.is_empty();
        let of_part = |name: &&str| {
            let is_shmem = named(name).is_some_and(Operation::is_shmem);
            let is_cost = !is_shmem && !TRAINS.contains(name);
            (all || costs) && is_cost || (all || loggps) && LOGGPS.contains(name) || shmem && is_shmem
        };
        let wanted = |name: &&str| if self.ops.is_empty() { of_part(name) } else { has(&self.ops, name) };
        Ok(known.into_iter().filter(wanted).map(str::to_owned).collect())
    }

    /// Whether all pairs of so many ranks are measured.
    pub(crate) fn pairs(&self, ranks: usize) -> bool {
        let is_all = self.parts.is_empty() && self.ops.is_empty();
        is_all && ranks > 2 || has(&self.parts, PARTS[3])
    }

    /// Smallest and largest message, bytes. Errors: what is no range of sizes.
    pub(crate) fn range(&self) -> Result<(u64, u64), ProbeError> {
        let wrong = |why: String| ProbeError::Usage(format!("--sizes {}: {why}", self.sizes));
        let (from, to) = self.sizes.split_once('-').unwrap_or((&self.sizes, &self.sizes));
        let [from, to] = [from, to].map(|text| parse_bytes(text.trim()));
        let form = || wrong("give two sizes in bytes, such as 0-64K".to_owned());
        let (from, to) = (from.ok_or_else(form)?, to.ok_or_else(form)?);
        if to < from || to > MOST_BYTES {
            let most = human(MOST_BYTES as f64, Unit::Bytes);
            return Err(wrong(format!("sizes must be 0 B to {most}, the smaller one first")));
        }
        Ok((from, to))
    }
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|given| given.trim() == name)
}
