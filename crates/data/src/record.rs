//! The record of one run: the document that every view, comparison and prediction starts from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::facts::Facts;
use crate::metric::Metric;
use crate::shape::Dataset;
pub use crate::summary::{Summary, SummaryLine};

/// Value of [`Record::format`].
pub const FORMAT: &str = "machmeter-result";
/// Version of the document's schema: minor versions only add, readers ignore unknown keys.
pub const SCHEMA_VERSION: &str = "1.0";

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Always `machmeter-result`.
    pub format: String,
    /// Schema version, `1.0`.
    pub version: String,
    /// Unique id of the run.
    pub id: String,
    /// False when the run ended before its plan.
    pub complete: bool,
    /// `time`, `samples`, `signal:INT`, `error`, ...
    pub stopped_by: String,
    /// The program that wrote it.
    pub tool: Tool,
    /// What was asked for.
    pub run: Run,
    /// The machine before and after.
    pub machine: Machine,
    /// The clock that timed it; `null` for documents read from foreign files.
    pub clock: Option<ClockRecord>,
    /// What a person should read first: rows of figures, and what the machine is fit for. Written by the analysis, so that
    /// views need not know any probe.
    #[serde(default)]
    pub summary: Summary,
    /// Environment checks.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Figures.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Data to show.
    #[serde(default)]
    pub datasets: Vec<Dataset>,
    /// Findings: statements with evidence (a constant-interference verdict, a periodic source).
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Things that weaken the result.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Raw samples stored beside the document.
    #[serde(default)]
    pub raw: Vec<RawFile>,
    /// Where an imported document came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Room for additions that readers may ignore.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, serde_json::Value>,
}

impl Record {
    /// A record of this format in which nothing stands yet but who wrote what under which id.
    pub fn new(id: String, tool: Tool, run: Run) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: SCHEMA_VERSION.to_owned(),
            id,
            tool,
            run,
            ..Self::default()
        }
    }

    /// The record that this JSON says, whatever its version. Here and nowhere else, a parser of records is compiled: it takes seconds.
    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json)
    }

    /// The metric with this id whose parameters include all of `wanted`.
    pub fn metric(&self, id: &str, wanted: &[(&str, &str)]) -> Option<&Metric> {
        self.metrics.iter().find(|m| {
            m.id == id && wanted.iter().all(|(k, v)| m.params.get(*k).is_some_and(|p| p.to_string() == *v))
        })
    }

    /// All datasets with this id.
    pub fn datasets(&self, id: &str) -> impl Iterator<Item = &Dataset> {
        self.datasets.iter().filter(move |d| d.id == id)
    }

    /// Adds a warning once per code and text. Warnings of one code that say the same up to a colon become one:
    /// `disk full: result lost` and `disk full: samples lost` become `disk full: result lost; samples lost`.
    pub fn warn(&mut self, warning: Warning) {
        let Some((head, tail)) = warning.text.split_once(": ") else {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
            return;
        };
        let same = |w: &&mut Warning| w.code == warning.code && w.next == warning.next;
        let told = |w: &&mut Warning| w.text.split_once(": ").is_some_and(|(h, _)| h == head);
        match self.warnings.iter_mut().filter(same).find(told) {
            Some(w) if format!("; {};", &w.text[head.len() + 2..]).contains(&format!("; {tail};")) => {}
            Some(w) => w.text = format!("{}; {tail}", w.text),
            None => self.warnings.push(warning),
        }
    }
}

/// The program that wrote a record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `machmeter`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Commit it was built from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Target triple.
    pub target: String,
    /// Compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rustc: Option<String>,
}

/// What was asked for and how it went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Wall time, ns.
    pub wall_ns: u64,
    /// Command line.
    pub command: Vec<String>,
    /// Verb: `noise`, `characterize`, `import`.
    pub verb: String,
    /// `quick`, `standard`, `thorough`, `soak`.
    pub level: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Effective user id.
    pub euid: u32,
    /// Scheduling policy that the measuring threads got, `other` or `fifo:45`.
    pub policy: String,
    /// CPUs that were asked for, `0-1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// Parameters of each probe, as recorded from its parameter struct.
    #[serde(default)]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// User's tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// What the run changed on the machine while it lasted (and undid).
    #[serde(default)]
    pub side_effects: Vec<String>,
}

/// The machine around the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Facts before.
    pub before: Facts,
    /// Facts after.
    pub after: Facts,
    /// Paths that changed.
    #[serde(default)]
    pub changed: Vec<String>,
    /// SHA-256 over the hardware facts: same value, same kind of machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// The clock and its qualification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockRecord {
    /// `rdtsc`, `cntvct`, `monotonic_raw`.
    pub source: String,
    /// Ticks per second.
    pub rate_hz: f64,
    /// Bound of the error of `rate_hz`, ppm.
    pub rate_error_ppm: f64,
    /// Deviation from the kernel's figure, ppm, where the kernel publishes one.
    pub kernel_deviation_ppm: Option<f64>,
    /// Distance of neighboring values, ticks, rounded up.
    pub step_ticks: u64,
    /// Mean cost of one read, ticks.
    pub read_cost_ticks: f64,
    /// Bound of the offset between CPUs, ticks; `null` when it could not be bounded.
    pub cross_cpu_ticks: Option<f64>,
    /// Reads that went backwards.
    pub backward_steps: u64,
    /// Reason for the choice of this source.
    pub why: String,
}

/// A statement the analysis makes, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `noise.constant_interference`, `noise.periodic`, ...
    pub id: String,
    /// Verdict in one word: `none_seen`, `present`, `unknown`, ...
    pub verdict: String,
    /// One sentence for a person.
    pub text: String,
    /// What was compared with what, with figures.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// Something that weakens the result, with what to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code, `W301`.
    pub code: String,
    /// What happened, with figures.
    pub text: String,
    /// What to do.
    pub next: String,
    /// Whether it changes what is read on the page of the whole machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes: bool,
}

/// A file of raw samples beside the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RawFile {
    /// File name, relative to the record.
    pub file: String,
    /// Table name.
    pub table: String,
    /// Rows.
    pub rows: u64,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
}

/// Origin of an imported record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Format it was read from: `ftq-2009`, `oslat-json`, ...
    pub format: String,
    /// File names.
    pub files: Vec<String>,
    /// What the format does not say, and what was assumed.
    #[serde(default)]
    pub assumptions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::{Record, Warning};

    #[test]
    fn warnings_that_begin_alike_become_one() {
        let mut record = Record::default();
        for (code, text) in [
            ("W901", "disk full: result lost"),
            ("W901", "disk full: samples lost; log lost"),
            ("W901", "disk full: result lost"),
            ("W901", "disk full: samples lost; log lost"),
            ("W902", "disk full: result lost"),
            ("W901", "disk slow: result late"),
            ("W901", "no colon"),
            ("W901", "no colon"),
        ] {
            let next = "free some space".to_owned();
            record.warn(Warning { code: code.to_owned(), text: text.to_owned(), next, changes: false });
        }
        let expected = [
            ("W901", "disk full: result lost; samples lost; log lost"),
            ("W902", "disk full: result lost"),
            ("W901", "disk slow: result late"),
            ("W901", "no colon"),
        ];
        assert!(record.warnings.iter().map(|w| (&w.code[..], &w.text[..])).eq(expected), "{record:?}");
    }
}
