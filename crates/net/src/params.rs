//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use machmeter_data::quantity::parse_bytes;
use machmeter_engine::ProbeError;
use machmeter_sys::link::{TRANSPORTS, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::orders::MOST_BYTES;
use crate::peer::Token;

const TRANSPORTS_HERE: [&str; 3] = ["shm", "unix", "tcp"];
const TRANSPORTS_BETWEEN: [&str; 2] = ["tcp", "udp"];
const DEFAULT_SIZES: &str = "1-1M";

const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Direction of the train; the single reply goes the other way.
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
    /// Transports: shm, unix, tcp, tcp-nagle, udp, seqpacket, pipe; shm,unix,tcp by default, tcp,udp with --peer.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub transports: Vec<String>,
    /// Message sizes, from and to, bytes: 1-64K.
    #[arg(long, value_name = "FROM-TO", default_value = DEFAULT_SIZES)]
    pub sizes: String,
    /// Direction of the trains of messages.
    #[arg(long, value_enum, default_value_t)]
    pub direction: Direction,
    /// Other machine, where `machmeter serve` runs; default port 7117.
    #[arg(long, value_name = "HOST:PORT", requires = "token_file")]
    #[serde(default)]
    pub peer: Option<String>,
    /// File with the token printed by `machmeter serve`; readable by its owner only.
    #[arg(long, value_name = "FILE", requires = "peer")]
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// TCP congestion control: cubic, reno, ...; that of the system by default.
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub congestion: Option<String>,
    /// Also measure round trips under this load; see `machmeter list loads`.
    #[arg(long, value_name = "LOAD")]
    #[serde(default)]
    pub load: Option<String>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            transports: Vec::new(),
            sizes: DEFAULT_SIZES.to_owned(),
            direction: Direction::default(),
            peer: None,
            token_file: None,
            congestion: None,
            load: None,
        }
    }
}

impl Params {
    /// The transports, each once.
    pub(crate) fn transports(&self) -> Result<Vec<&'static Transport>, ProbeError> {
        let usual: &[&str] = if self.peer.is_some() { &TRANSPORTS_BETWEEN } else { &TRANSPORTS_HERE };
        let usual: Vec<String> = usual.iter().map(|&name| name.to_owned()).collect();
        let mut found: Vec<&'static Transport> = Vec::new();
        for name in if self.transports.is_empty() { &usual } else { &self.transports } {
            let fits = |t: &&Transport| t.crosses_machines || self.peer.is_none();
            let Some(transport) = Transport::named(name.trim()).filter(fits) else {
                let known: Vec<&str> = TRANSPORTS.iter().filter(fits).map(|t| t.name).collect();
                let between = if self.peer.is_some() { ", the transports between machines" } else { "" };
                return Err(ProbeError::Usage(format!(
                    "--transports: '{name}' is not one of {}{between}",
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
    pub(crate) fn range(&self) -> Result<(u64, u64), ProbeError> {
        let wrong = |why: String| ProbeError::Usage(format!("--sizes {}: {why}", self.sizes));
        let (from, to) = self.sizes.split_once('-').unwrap_or((&self.sizes, &self.sizes));
        let [from, to] = [from, to].map(|text| parse_bytes(text.trim()));
        let form = || wrong("give two sizes in bytes, such as 1-64K".to_owned());
        let (from, to) = (from.ok_or_else(form)?, to.ok_or_else(form)?);
        if from == 0 || to < from || to > MOST_BYTES {
            return Err(wrong(format!("sizes must be 1 to {MOST_BYTES} B, the smaller one first")));
        }
        Ok((from, to))
    }

    /// The token and the address of the other machine, where there is one.
    pub(crate) fn peer(&self) -> Result<Option<(&str, Token)>, ProbeError> {
        match (&self.peer, &self.token_file) {
            (None, _) => Ok(None),
            (Some(_), None) => Err(ProbeError::Usage("--peer needs --token-file".to_owned())),
            (Some(peer), Some(file)) => Ok(Some((peer, Token::read(file).map_err(ProbeError::Usage)?))),
        }
    }

    pub(crate) fn check_congestion(&self) -> Result<(), ProbeError> {
        let Some(name) = &self.congestion else { return Ok(()) };
        let known = fs::read_to_string(CONGESTION_CONTROLS).unwrap_or_default();
        if known.is_empty() || known.split_whitespace().any(|k| k == name) {
            return Ok(());
        }
        let known: Vec<&str> = known.split_whitespace().collect();
        Err(ProbeError::Usage(format!("--congestion: '{name}' is not one of {}", known.join(", "))))
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
