//! Lists of like objects written column by column, the form in which a page carries them: a report of a thousand metrics
//! repeats no name, no unit and no estimator a thousand times. Nothing is rounded: what is unpacked equals what was packed.
//!
//! A list is either a plain JSON array or `{"n": rows, "columns": {name: column}}`. A column is a list with one item per
//! row, `{"all": value}` where every row has the same, or `{"of": list}` with what repeats and where it stands: `"at"` has an
//! index per row, `"runs"` has pairs of index and number of rows, and `"has"` has the numbers of rows that have the next item
//! and of rows that have none, in turns. The index -1 is a row that has none. Members that are `null` are left out, which
//! readers of records take for the same.

pub mod deflated;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// Rows of a packed list at most: more than any record has, and few enough that a broken file can't exhaust memory.
const MOST_ROWS: usize = 1_000_000;
/// Memory that one list may take once unpacked, estimated: a short text can say a million times the same long thing.
const MOST_BYTES: usize = 256 << 20;
/// What one value takes at least.
const VALUE_BYTES: usize = 48;

/// The packed form of a list of objects; any other list comes back as it is.
pub fn pack(rows: Vec<Value>) -> Value {
    if rows.len() < 2 || !rows.iter().all(Value::is_object) {
        return Value::Array(rows);
    }
    let n = rows.len();
    let mut columns: BTreeMap<String, Vec<Option<Value>>> = BTreeMap::new();
    for (i, row) in rows.into_iter().enumerate() {
        let Value::Object(members) = row else { continue };
        for (name, value) in members.into_iter().filter(|(_, v)| !v.is_null()) {
            columns.entry(name).or_insert_with(|| vec![None; n])[i] = Some(value);
        }
    }
    let columns: Map<String, Value> = columns.into_iter().map(|(name, c)| (name, column(c))).collect();
    json!({"n": n, "columns": columns})
}

/// The shortest of the forms of a column.
fn column(items: Vec<Option<Value>>) -> Value {
    let mut index: BTreeMap<String, i64> = BTreeMap::new();
    let mut of: Vec<Value> = Vec::new();
    let mut at: Vec<i64> = Vec::with_capacity(items.len());
    for item in &items {
        let Some(v) = item else {
            at.push(-1);
            continue;
        };
        let next = of.len() as i64;
        let i = *index.entry(v.to_string()).or_insert(next);
        if i == next {
            of.push(v.clone());
        }
        at.push(i);
    }
    if of.len() == 1 && !at.contains(&-1) {
        return json!({"all": of[0]});
    }
    let present = at.iter().filter(|i| **i != -1).count();
    let repeats = of.len() * 4 <= present * 3;
    if !repeats && present == at.len() {
        return pack(items.into_iter().flatten().collect());
    }
    if repeats {
        let (at, runs) = (json!(at), json!(runs(&at)));
        let runs_are_shorter = runs.to_string().len() < at.to_string().len();
        let (name, places) = if runs_are_shorter { ("runs", runs) } else { ("at", at) };
        return json!({"of": pack(of), name: places});
    }
    let has = has(&at);
    json!({"of": pack(items.into_iter().flatten().collect()), "has": has})
}

/// Pairs of an index and how many rows in turn have it.
fn runs(at: &[i64]) -> Vec<i64> {
    at.chunk_by(|a, b| a == b).flat_map(|run| [run[0], run.len() as i64]).collect()
}

/// Numbers of rows with and without an item, in turns, beginning with those that have one.
fn has(at: &[i64]) -> Vec<usize> {
    let mut out = if at.first() == Some(&-1) { vec![0] } else { Vec::new() };
    out.extend(at.chunk_by(|a, b| (*a == -1) == (*b == -1)).map(<[i64]>::len));
    out
}

/// What is left of [`MOST_BYTES`] while a list is unpacked.
struct Room(usize);

impl Room {
    /// Takes room for `count` values of `bytes` each, before they are made.
    fn take(&mut self, count: usize, bytes: usize) -> Result<(), String> {
        let left = count.checked_mul(bytes).and_then(|all| self.0.checked_sub(all));
        self.0 = left.ok_or_else(|| format!("more than {} MiB once unpacked", MOST_BYTES >> 20))?;
        Ok(())
    }
}

/// About what a value takes in memory.
fn weight(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) => members.iter().map(|(name, v)| name.len() + weight(v)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// The list behind a packed or plain one; the error says what is wrong with it.
fn unpack(list: Value, room: &mut Room) -> Result<Vec<Value>, String> {
    let mut table = match list {
        Value::Array(items) => return Ok(items),
        Value::Object(table) => table,
        _ => return Err("a packed list is neither a list nor a table".to_owned()),
    };
    let n = table.get("n").and_then(Value::as_u64).ok_or("a packed list lacks its number of rows")? as usize;
    if n > MOST_ROWS {
        return Err(format!("a packed list of {n} rows, more than the {MOST_ROWS} that are read"));
    }
    let Some(Value::Object(columns)) = table.remove("columns") else {
        return Err("a packed list lacks its columns".to_owned());
    };
    room.take(n, VALUE_BYTES)?;
    let mut rows = vec![Map::new(); n];
    for (name, column) in columns {
        room.take(n, VALUE_BYTES + name.len())?;
        let items = expand(column, n, room).map_err(|why| format!("column {name}: {why}"))?;
        if items.len() != n {
            return Err(format!("column {name} has {} items for {n} rows", items.len()));
        }
        for (row, item) in rows.iter_mut().zip(items) {
            if let Some(item) = item {
                row.insert(name.clone(), item);
            }
        }
    }
    Ok(rows.into_iter().map(Value::Object).collect())
}

/// One item per row, or none where a row has none.
fn expand(column: Value, n: usize, room: &mut Room) -> Result<Vec<Option<Value>>, String> {
    let Value::Object(mut members) = column else {
        return Ok(unpack(column, room)?.into_iter().map(Some).collect());
    };
    if let Some(same) = members.remove("all") {
        room.take(n, weight(&same))?;
        return Ok(vec![Some(same); n]);
    }
    let Some(of) = members.remove("of") else {
        return Ok(unpack(Value::Object(members), room)?.into_iter().map(Some).collect());
    };
    let of = unpack(of, room)?;
    let weights: Vec<usize> = of.iter().map(weight).collect();
    places(&members, n)?
        .into_iter()
        .map(|i| match usize::try_from(i) {
            Err(_) => Ok(None),
            Ok(i) => {
                let item = of.get(i).ok_or_else(|| format!("no item {i}"))?;
                room.take(1, weights[i])?;
                Ok(Some(item.clone()))
            }
        })
        .collect()
}

/// The index of each row, -1 where it has none, from any of the three forms.
fn places(members: &Map<String, Value>, n: usize) -> Result<Vec<i64>, String> {
    let numbers = |name: &str| -> Option<Vec<i64>> {
        members.get(name)?.as_array()?.iter().map(Value::as_i64).collect()
    };
    let too_many = || format!("more than {n} rows");
    let mut at: Vec<i64> = Vec::with_capacity(n);
    let mut push = |index: &mut dyn FnMut() -> i64, count: i64| -> Result<(), String> {
        let count = usize::try_from(count).ok().filter(|c| at.len() + c <= n).ok_or_else(too_many)?;
        at.extend((0..count).map(|_| index()));
        Ok(())
    };
    if let Some(list) = numbers("at") {
        return Ok(list);
    } else if let Some(runs) = numbers("runs") {
        for run in runs.chunks_exact(2) {
            push(&mut || run[0], run[1])?;
        }
    } else if let Some(has) = numbers("has") {
        let mut next = -1;
        for (i, count) in has.into_iter().enumerate() {
            let mut following = || {
                next += 1;
                next
            };
            let mut none = || -1;
            let index: &mut dyn FnMut() -> i64 = if i % 2 == 0 { &mut following } else { &mut none };
            push(index, count)?;
        }
    } else {
        return Err("it does not say where its items stand".to_owned());
    }
    Ok(at)
}

/// Reads a list that is plain or packed; use as `#[serde(deserialize_with = "packed::list")]`.
///
/// # Errors
/// When the list is neither, or an item is not a `T`.
pub fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(Either(PhantomData))
}

struct Either<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for Either<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, or a table of its columns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut out = Vec::with_capacity(items.size_hint().unwrap_or(0).min(4096));
        while let Some(item) = items.next_element()? {
            out.push(item);
        }
        Ok(out)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Vec<T>, A::Error> {
        let mut table = Map::new();
        while let Some((name, value)) = members.next_entry::<String, Value>()? {
            table.insert(name, value);
        }
        let rows = unpack(Value::Object(table), &mut Room(MOST_BYTES)).map_err(A::Error::custom)?;
        rows.into_iter().map(|row| T::deserialize(row).map_err(A::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        (0..40)
            .map(|i| {
                let mut row = json!({
                    "id": format!("x.{}", i / 10),
                    "unit": "ns",
                    "params": {"load": i % 4, "task": "audio"},
                    "value": 0.1 + f64::from(i) / 3.0,
                });
                if i > 20 {
                    row["max"] = json!(f64::from(i) * 1.1);
                }
                if i % 3 == 0 {
                    row["ci"] = json!({"level": 0.95, "low": f64::from(i) / 7.0, "high": 9.0});
                    row["blocks"] = json!([1.0 / 3.0, i, 2]);
                }
                row
            })
            .collect()
    }

    #[test]
    fn what_was_packed_comes_back_exactly_and_is_shorter() {
        let packed = pack(rows());
        let text = packed.to_string();
        assert!(text.len() * 2 < Value::Array(rows()).to_string().len(), "{text}");
        for form in ["\"unit\":{\"all\":\"ns\"}", "\"runs\":[0,10,1,10,", "\"has\":[0,21,19]", "\"at\":["] {
            assert!(text.contains(form), "{form}: {text}");
        }
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(unpack(read, &mut Room(MOST_BYTES)).unwrap(), rows());
    }

    #[test]
    fn lists_of_other_things_stay_plain() {
        for plain in [json!([]), json!([{"a": 1}]), json!([1, 2]), json!([{"a": 1}, 2])] {
            let Value::Array(items) = plain.clone() else { panic!("a list") };
            assert_eq!(pack(items), plain);
        }
    }

    #[test]
    fn broken_tables_are_refused_with_the_reason() {
        for (bad, word) in [
            (json!({"columns": {}}), "number of rows"),
            (json!({"n": 2}), "lacks its columns"),
            (json!({"n": 2, "columns": {"a": [1]}}), "1 items for 2 rows"),
            (json!({"n": 1, "columns": {"a": {"of": [1], "at": [1]}}}), "no item 1"),
            (json!({"n": 1, "columns": {"a": {"of": [1], "runs": [0, 9e18 as i64]}}}), "more than 1 rows"),
            (json!({"n": 1, "columns": {"a": {"of": [1]}}}), "where its items stand"),
            (json!({"n": 1e15 as u64, "columns": {"a": {"all": 1}}}), "more than"),
            (json!({"n": 1, "columns": {"a": 7}}), "neither"),
        ] {
            let why = unpack(bad, &mut Room(MOST_BYTES)).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn a_short_text_that_would_fill_memory_is_refused() {
        let long = "x".repeat(10_000);
        let empty_rows = json!({"n": MOST_ROWS, "columns": {}});
        let many: Map<String, Value> = (0..1000).map(|i| (format!("c{i}"), empty_rows.clone())).collect();
        for bomb in [
            json!({"n": MOST_ROWS, "columns": {"a": {"all": long}}}),
            json!({"n": 100_000, "columns": {"a": {"of": [long], "runs": [0, 100_000]}}}),
            json!({"n": MOST_ROWS, "columns": many}),
        ] {
            let why = unpack(bomb, &mut Room(MOST_BYTES)).unwrap_err();
            assert!(why.contains("256 MiB"), "{why}");
        }
    }
}
