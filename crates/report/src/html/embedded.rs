//! The record inside the page: the page is also the data.
//!
//! It is JSON that reads as a record; metrics and checks stand in the [packed](machmeter_data::packed) form, facts as rows in
//! that form too, and of the facts after the run only those that differ. The page carries it
//! [deflated](machmeter_data::packed::deflated). Pages of earlier versions carry the JSON itself.

use machmeter_data::packed::{self, deflated};
use machmeter_data::{Facts, Record};
use serde_json::{Map, Value};

use crate::{budget, digest};

/// The tag before the record.
pub(super) const OPEN: &str = "<script type=\"application/zlib\" id=\"machmeter-record\">";
/// What every tag before a record ends with, in every version.
const OPEN_END: &str = "id=\"machmeter-record\">";

/// The record's JSON in the form that a page carries.
pub(super) fn json(record: &Record) -> String {
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
    document.to_string()
}

/// The block between the tags.
pub(super) fn block(json: &str) -> String {
    deflated::write(json)
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

/// The record as plain JSON by the schema, taken out of a page that [`render`](super::render) of this or an earlier version
/// wrote; nothing if there is none. Metrics, facts and checks have all their digits.
pub fn extract(html: &str) -> Option<String> {
    let start = html.find(OPEN_END)? + OPEN_END.len();
    let block = &html[start..start + html[start..].find("</script>")?];
    let plain = block.trim_start().starts_with('{');
    let json = if plain { block.to_owned() } else { deflated::read(block).ok()? };
    let record: Record = serde_json::from_str(&json).ok()?;
    serde_json::to_string(&record).ok()
}

/// Twelve hexadecimal digits over the embedded data of a record, before it is deflated: equal digits, equal data.
pub(crate) fn data_digest(finite_record: &Record) -> String {
    let mut record = finite_record.clone();
    budget::apply(&mut record);
    digest::short(&json(&record))
}
