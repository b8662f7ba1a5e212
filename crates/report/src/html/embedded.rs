//! The record inside the page: the page is also the data. It is the record's JSON, [deflated].

use machmeter_data::{Record, deflated};

use crate::{budget, digest};

pub(super) const OPEN: &str = "<script type=\"application/zlib\" id=\"machmeter-record\">";

/// The record's JSON.
pub(super) fn json(record: &Record) -> String {
    // Serializing a record can't fail: keys are strings, and there is no I/O.
    serde_json::to_string(record).unwrap_or_default()
}

pub(super) fn block(json: &str) -> String {
    deflated::write(json)
}

/// Twelve hexadecimal digits over the embedded data of a record, before it is deflated: equal digits, equal data.
pub(crate) fn data_digest(finite_record: &Record) -> String {
    let mut record = finite_record.clone();
    budget::apply(&mut record);
    digest::short(&json(&record))
}
