//! Parameters of the probe: flags, keys of job files, schema and record in one struct.

use std::path::PathBuf;

use clap::Args;
use machmeter_engine::ProbeError;
use machmeter_flow::Sampling;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::graphs::{GRAPHS, Known};
use crate::kernels::Kernel;

/// Largest granularity that can be asked for: iterations of a run.
const MOST_GRANULARITY: u32 = 4_096;

/// Parameters of the flow probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Parts: prices, graphs; both by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub parts: Vec<String>,
    /// Benchmark graphs: `rt_stap_easy`, `e_comm`, `noise_removal`; all by default.
    #[arg(long = "graph", value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    pub graph: Vec<String>,
    /// Kernel, instead of the published and the fast one: table or fused, copy or mirror, heap or bitmap.
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    #[serde(default)]
    pub kernel: Vec<String>,
    /// Measure all eight kernels: the gain of each of the three ideas.
    #[arg(long, conflicts_with = "kernel")]
    #[serde(default)]
    pub ablation: bool,
    /// Most iterations per run of a schedule; a range is measured in powers of two.
    #[arg(long, value_name = "N or FROM-TO", default_value = "1")]
    pub granularity: String,
    /// Time one of K turns of the scheduler, at random: timers disturb less, fewer calls are timed.
    #[arg(long, value_name = "K", hide_short_help = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    #[serde(default = "every_turn")]
    pub one_of: u32,
    /// Also predict each run from a stored one in virtual time: `last` or a file.
    #[arg(long, value_name = "RUN")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predict_from: Option<String>,
    /// Also show names without calls.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// Input samples of the graph; WAV for `noise_removal`; for `e_comm` the received signal, 4 samples per symbol, as c32:
    /// real and imaginary part, little-endian 32-bit floats.
    #[arg(long = "in", value_name = "FILE")]
    #[serde(default, rename = "in", serialize_with = "as_text")]
    pub input: Option<PathBuf>,
    /// Write the output of the graph; the enhanced samples of `noise_removal` as WAV; the received signal of `e_comm` as c32,
    /// which --in reads again.
    #[arg(long, value_name = "FILE")]
    #[serde(default, serialize_with = "as_text")]
    pub out: Option<PathBuf>,
}

/// As a record has it: what is not UTF-8 in a path becomes a replacement character.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn as_text<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|p| p.to_string_lossy()).serialize(to)
}

fn every_turn() -> u32 {
    1
}

impl Default for Params {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            graph: Vec::new(),
            kernel: Vec::new(),
            ablation: false,
            granularity: "1".to_owned(),
            one_of: 1,
            predict_from: None,
            all: false,
            input: None,
            out: None,
        }
    }
}

impl Params {
    pub(crate) fn graphs(&self) -> Result<Vec<&'static Known>, ProbeError> {
        let known = |name: &String| {
            GRAPHS.iter().find(|g| g.name == name).ok_or_else(|| {
                let names: Vec<&str> = GRAPHS.iter().map(|g| g.name).collect();
                ProbeError::Usage(format!("--graph {name}: it is not one of {}", names.join(", ")))
            })
        };
        if self.graph.is_empty() {
            Ok(GRAPHS.iter().collect())
        } else {
            self.graph.iter().map(known).collect()
        }
    }

    pub(crate) fn kernels(&self) -> Result<Vec<Kernel>, ProbeError> {
        if self.ablation {
            return Ok(Kernel::all().collect());
        }
        if self.kernel.is_empty() {
            return Ok(vec![Kernel::FAST, Kernel::CLASSIC]);
        }
        let of_words = Kernel::of_words(&self.kernel);
        of_words.map(|k| vec![k]).map_err(|why| ProbeError::Usage(format!("--kernel: {why}")))
    }

    pub(crate) fn sampling(&self) -> Result<Sampling, ProbeError> {
        match self.one_of {
            0 => Err(ProbeError::Usage("one_of 0: it must be 1 or more".to_owned())),
            1 => Ok(Sampling::Always),
            k => Ok(Sampling::OneOf(k)),
        }
    }

    pub(crate) fn granularities(&self) -> Result<Vec<u32>, ProbeError> {
        let text = &self.granularity;
        let wrong = || {
            ProbeError::Usage(format!(
                "--granularity {text}: give a number from 1 to {MOST_GRANULARITY}, or a range such as 1-256"
            ))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |t: &str| t.trim().parse().ok().filter(|n| (1..=MOST_GRANULARITY).contains(n));
        let (first, last) = number(first).zip(number(last)).ok_or_else(wrong)?;
        if first > last {
            return Err(wrong());
        }
        let powers = std::iter::successors(Some(first), |g| g.checked_mul(2)).take_while(|g| *g < last);
        Ok(powers.chain([last]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_what_could_be() {
        let with = |granularity: &str| Params { granularity: granularity.to_owned(), ..Params::default() };
        assert_eq!(with("1-20").granularities().unwrap(), [1, 2, 4, 8, 16, 20]);
        assert_eq!(with("8").granularities().unwrap(), [8]);
        for wrong in ["0", "", "4-2", "1-9999", "-1", "x"] {
            let why = with(wrong).granularities().unwrap_err().to_string();
            assert!(why.contains("from 1 to 4096"), "{wrong}: {why}");
        }
        let unknown = Params { graph: vec!["nope".to_owned()], ..Params::default() };
        assert!(unknown.graphs().err().unwrap().to_string().contains("noise_removal"));
    }
}
