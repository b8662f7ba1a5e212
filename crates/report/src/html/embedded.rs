//! The record inside the page: the page is also the data.
//!
//! It is JSON that reads as a record; to keep pages of many metrics small, metrics and checks stand in the
//! [packed](machmeter_data::packed) form, facts as rows in that form too, and of the facts after the run only those that
//! differ.

use machmeter_data::{Facts, Record, packed};
use serde_json::{Map, Value};

use crate::{budget, digest};

/// The tag before the record.
pub(super) const OPEN: &str = "<script type=\"application/json\" id=\"machmeter-record\">";

/// The record as a page carries it, with `<` written as an escape, so that nothing inside can end the block or open a comment.
pub(super) fn write(record: &Record) -> String {
    // Serializing a record can't fail: keys are strings, and there is no I/O.
    let mut document = serde_json::to_value(record).unwrap_or_default();
    for name in ["metrics", "checks"] {
        if let Some(list) = document.get_mut(name).map(Value::take)
            && let Value::Array(rows) = list
        {
            document[name] = packed::pack(rows);
        }
    }
    if let Some(machine) = document.get_mut("machine").and_then(Value::as_object_mut) {
        machine.remove("after");
        if let Some(Value::Object(facts)) = machine.remove("before") {
            machine.insert("before_rows".to_owned(), packed::pack(facts.into_iter().map(row).collect()));
        }
        let differs = differing(&record.machine.before, &record.machine.after);
        machine.insert("after_differs".to_owned(), Value::Object(differs));
    }
    escaped(&document.to_string())
}

/// A fact with its path as one more member.
fn row((path, mut fact): (String, Value)) -> Value {
    fact["path"] = Value::String(path);
    fact
}

/// Facts that came or changed, and `null` for those that went.
fn differing(before: &Facts, after: &Facts) -> Map<String, Value> {
    let gone =
        before.0.keys().filter(|path| after.get(path).is_none()).map(|path| (path.clone(), Value::Null));
    let came = after.0.iter().filter(|(path, fact)| before.get(path) != Some(*fact));
    gone.chain(came.map(|(path, fact)| (path.clone(), serde_json::to_value(fact).unwrap_or_default())))
        .collect()
}

/// In JSON a `<` can stand only inside strings.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The record as plain JSON by the schema, taken out of a page that [`render`](super::render) wrote; nothing if there is
/// none. Metrics, facts and checks have all their digits.
pub fn extract(html: &str) -> Option<String> {
    let start = html.find(OPEN)? + OPEN.len();
    let length = html[start..].find("</script>")?;
    let record: Record = serde_json::from_str(&html[start..start + length]).ok()?;
    serde_json::to_string(&record).ok().map(|json| escaped(&json))
}

/// Twelve hexadecimal digits over the embedded data of a record: equal digits, equal data.
pub(crate) fn data_digest(finite_record: &Record) -> String {
    let mut record = finite_record.clone();
    budget::apply(&mut record);
    digest::short(&write(&record))
}
