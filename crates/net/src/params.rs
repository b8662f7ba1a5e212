//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use clap::Args;
use machmeter_engine::ProbeError;
use machmeter_sys::link::{TRANSPORTS, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::orders::MOST_BYTES;

const DEFAULT_TRANSPORTS: &str = "shm,unix,tcp";
const DEFAULT_SIZES: &str = "1-1M";

/// Which way the train goes; the single reply goes the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the first CPU to the second.
    #[default]
    There,
    /// From the second to the first.
    Back,
    /// Both, one after the other.
    Both,
}

/// Parameters of the net probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Transports: shm, unix, tcp, tcp-nagle, udp, seqpacket, pipe.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = DEFAULT_TRANSPORTS)]
    pub transports: Vec<String>,
    /// Message sizes, from and to, bytes: 1-64K.
    #[arg(long, value_name = "FROM-TO", default_value = DEFAULT_SIZES)]
    pub sizes: String,
    /// Which way trains of messages go.
    #[arg(long, value_enum, default_value_t)]
    pub direction: Direction,
}

impl Default for Params {
    fn default() -> Self {
        let transports = DEFAULT_TRANSPORTS.split(',').map(str::to_owned).collect();
        Self { transports, sizes: DEFAULT_SIZES.to_owned(), direction: Direction::default() }
    }
}

impl Params {
    /// The transports, each once.
    ///
    /// # Errors
    /// One line: a name that is none.
    pub(crate) fn transports(&self) -> Result<Vec<&'static Transport>, ProbeError> {
        let mut found: Vec<&'static Transport> = Vec::new();
        for name in &self.transports {
            let Some(transport) = Transport::named(name.trim()) else {
                let known: Vec<&str> = TRANSPORTS.iter().map(|t| t.name).collect();
                return Err(ProbeError::Usage(format!(
                    "--transports: '{name}' is not one of {}",
                    known.join(", ")
                )));
            };
            if !found.iter().any(|t| t.name == transport.name) {
                found.push(transport);
            }
        }
        Ok(found)
    }

    /// Smallest and largest message, bytes.
    ///
    /// # Errors
    /// One line: what is no range of sizes.
    pub(crate) fn range(&self) -> Result<(u64, u64), ProbeError> {
        let wrong = |why: String| ProbeError::Usage(format!("--sizes {}: {why}", self.sizes));
        let (from, to) = self.sizes.split_once('-').unwrap_or((&self.sizes, &self.sizes));
        let [from, to] = [from, to].map(|text| bytes(text.trim()));
        let form = || wrong("two sizes in bytes are wanted, as in 1-64K".to_owned());
        let (from, to) = (from.ok_or_else(form)?, to.ok_or_else(form)?);
        if from == 0 || to < from || to > MOST_BYTES {
            return Err(wrong(format!("from 1 to {MOST_BYTES} B, the smaller one first")));
        }
        Ok((from, to))
    }

    /// The directions of trains.
    pub(crate) fn directions(&self) -> &'static [&'static str] {
        match self.direction {
            Direction::There => &["there"],
            Direction::Back => &["back"],
            Direction::Both => &["there", "back"],
        }
    }
}

/// `64K` is 65536.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}
