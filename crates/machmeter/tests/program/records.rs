//! Reads records that the program wrote, and checks the properties of every record.

use std::fs;
use std::path::Path;

use machmeter_data::record::FORMAT;
use machmeter_data::{CheckState, Interval, Metric, Record};

/// Parses a record and checks the properties of every record.
#[track_caller]
pub(crate) fn sound(text: &str, place: &str) -> Record {
    let begin: String = text.chars().take(400).collect();
    let record: Record =
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{place}: not one record: {e}\n{begin}"));
    assert_eq!(record.format, FORMAT, "{place}");
    let named = [&record.id, &record.run.started, &record.stopped_by];
    assert!(named.iter().all(|text| !text.is_empty()), "{place}");
    for m in &record.metrics {
        let has_reason = m.why.as_ref().is_some_and(|w| !w.is_empty());
        let is_possible = |v: f64| v.is_finite() && (v >= 0.0 || may_be_negative(&m.id));
        assert!(m.value.map_or(has_reason, is_possible), "{place}: {m:?}");
        let is_interval = |ci: &Interval| ci.low <= ci.high && ci.low.is_finite() && ci.high.is_finite();
        assert!(m.value.is_none() || m.ci.as_ref().is_none_or(is_interval), "{place}: {m:?}");
    }
    for w in &record.warnings {
        assert!(!w.code.is_empty() && !w.text.is_empty() && !w.text.contains('\n'), "{place}: {w:?}");
    }
    record
}

fn may_be_negative(id: &str) -> bool {
    machmeter::PROBES.iter().flat_map(|p| p.info.metrics()).any(|m| m.id == id && m.may_be_negative)
}

#[track_caller]
pub(crate) fn record_in(path: &Path) -> Record {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    sound(&text, &path.display().to_string())
}

pub(crate) fn value(record: &Record, id: &str, params: &[(&str, &str)]) -> Option<f64> {
    record.metric(id, params)?.value
}

/// True if other programs kept the CPUs busy; a run then may lack parts.
pub(crate) fn is_loaded(record: &Record) -> bool {
    let fails = |id: &str| record.checks.iter().any(|c| c.id == id && c.state == CheckState::Fail);
    fails("E104") && fails("E105")
}

#[track_caller]
pub(crate) fn warned(record: &Record, code: &str) {
    assert!(record.warnings.iter().any(|w| w.code == code), "{code} is not among {:?}", record.warnings);
}

/// Metrics with this id.
pub(crate) fn of<'r>(record: &'r Record, id: &'r str) -> impl Iterator<Item = &'r Metric> {
    record.metrics.iter().filter(move |m| m.id == id)
}

pub(crate) fn price(record: &Record, operation: &str) -> Option<f64> {
    value(record, "ops.cost", &[("operation", operation)])
}

/// The reason why an operation has no cost.
#[track_caller]
pub(crate) fn why(record: &Record, operation: &str) -> String {
    let m = record.metric("ops.cost", &[("operation", operation)]);
    let m = m.unwrap_or_else(|| panic!("{operation} is not mentioned"));
    assert_eq!(m.value, None, "{operation} has a price");
    m.why.clone().unwrap()
}
