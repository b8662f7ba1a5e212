//! The record of one run: the document that all views, comparisons and predictions use.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::facts::{Facts, stored};
use crate::metric::Metric;
use crate::shape::Dataset;
pub use crate::summary::{Summary, SummaryLine};

/// Value of [`Record::format`].
pub const FORMAT: &str = "machmeter-result";
/// Version of the document's schema. A minor version only adds keys, and readers ignore unknown keys.
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
    /// False if the run ended before its plan.
    pub complete: bool,
    /// Reason for the end: `time`, `samples`, `signal:INT`, `error`, ...
    pub stopped_by: String,
    /// The program that wrote the record.
    pub tool: Tool,
    /// The job and its execution.
    pub run: Run,
    /// The machine before and after the run.
    pub machine: Machine,
    /// The clock that timed the run; `null` for documents from foreign files.
    pub clock: Option<ClockRecord>,
    /// The most important results: rows of figures, and verdicts per purpose. The analysis writes them, so views depend on no probe.
    #[serde(default)]
    pub summary: Summary,
    /// Environment checks.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Figures.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Data to draw.
    #[serde(default)]
    pub datasets: Vec<Dataset>,
    /// Findings: statements with evidence (a constant-interference verdict, a periodic source).
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Conditions that weaken the result.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Raw samples stored beside the document.
    #[serde(default)]
    pub raw: Vec<RawFile>,
    /// Origin of an imported document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Additions that readers may ignore.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, serde_json::Value>,
}

impl Record {
    /// A record of this format with only an id, the tool and the run.
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

    /// Reads a record of any version; facts in the form of an earlier version are converted. No other function parses records, because each parser takes
    /// seconds to compile.
    ///
    /// # Errors
    /// The text is not JSON, or not a record.
    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        let mut record: Self = serde_json::from_slice(json)?;
        for facts in [&mut record.machine.before, &mut record.machine.after] {
            stored::renew(facts);
        }
        Ok(record)
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

    /// Adds a warning once per code and text. Warnings with equal code and equal text up to a colon are merged: `disk full: result lost` and
    /// `disk full: samples lost` become `disk full: result lost; samples lost`.
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
    /// Commit of the build, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Target triple.
    pub target: String,
    /// Compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rustc: Option<String>,
}

/// The job and its execution.
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
    /// CPUs selected by the user, `0-1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// Parameters of each probe, from its parameter struct.
    #[serde(default)]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// Tags given by the user.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Changes that the run made to the machine while it lasted, and undid.
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
    /// Paths of facts that changed.
    #[serde(default)]
    pub changed: Vec<String>,
    /// SHA-256 over the hardware facts; equal values mean the same kind of machine.
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
    /// Bound on the error of `rate_hz`, ppm.
    pub rate_error_ppm: f64,
    /// Deviation from the kernel's rate, ppm, if the kernel publishes one.
    pub kernel_deviation_ppm: Option<f64>,
    /// Distance between neighboring values, ticks, rounded up.
    pub step_ticks: u64,
    /// Mean cost of one read, ticks.
    pub read_cost_ticks: f64,
    /// Bound on the offset between CPUs, ticks; `null` without a bound.
    pub cross_cpu_ticks: Option<f64>,
    /// Reads that returned an earlier time than the previous read.
    pub backward_steps: u64,
    /// Reason for the choice of this source.
    pub why: String,
}

/// A statement of the analysis, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `noise.constant_interference`, `noise.periodic`, ...
    pub id: String,
    /// Verdict in one word: `none_seen`, `present`, `unknown`, ...
    pub verdict: String,
    /// The statement in one sentence.
    pub text: String,
    /// The comparisons behind it, with figures.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// A condition that weakens the result, with advice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code, `W301`.
    pub code: String,
    /// The event, with figures.
    pub text: String,
    /// Advice.
    pub next: String,
    /// True if it is important: it changes how figures of the page are read.
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
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
}

/// Origin of an imported record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Source format: `ftq-2009`, `oslat-json`, ...
    pub format: String,
    /// File names.
    pub files: Vec<String>,
    /// Gaps of the format, and the assumptions made for them.
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
