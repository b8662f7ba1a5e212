//! Lists of like objects written column by column, the form in which a page carries them: a report of a thousand metrics
//! repeats no name, no unit and no estimator a thousand times. Nothing is rounded: what is unpacked equals what was packed.
//!
//! A list is either a plain JSON array or `{"n": rows, "columns": {name: column}}`. A column is a list with one item per
//! row, `{"all": value}` where every row has the same, or `{"of": list, "at": [index or -1, ...]}` where items repeat or some
//! rows have none (-1). Members that are `null` are left out, which readers of records take for the same.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// Rows of a packed list at most: more than any record has, and few enough that a broken file can't exhaust memory.
const MOST_ROWS: usize = 1_000_000;

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
    let every: Option<Vec<Value>> = items.into_iter().collect();
    match every {
        // With hardly a repetition the indices would cost more than they save.
        Some(every) if of.len() * 4 > at.len() * 3 => pack(every),
        _ => json!({"of": pack(of), "at": at}),
    }
}

/// The list behind a packed or plain one; the error says what is wrong with it.
fn unpack(list: Value) -> Result<Vec<Value>, String> {
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
    let mut rows = vec![Map::new(); n];
    for (name, column) in columns {
        let items = expand(column, n).map_err(|why| format!("column {name}: {why}"))?;
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
fn expand(column: Value, n: usize) -> Result<Vec<Option<Value>>, String> {
    let Value::Object(mut members) = column else {
        return Ok(unpack(column)?.into_iter().map(Some).collect());
    };
    if let Some(same) = members.remove("all") {
        return Ok(vec![Some(same); n]);
    }
    let (Some(of), Some(Value::Array(at))) = (members.remove("of"), members.remove("at")) else {
        return Ok(unpack(Value::Object(members))?.into_iter().map(Some).collect());
    };
    let of = unpack(of)?;
    at.iter()
        .map(|i| match i.as_i64() {
            Some(-1) => Ok(None),
            Some(i) if i >= 0 && (i as usize) < of.len() => Ok(Some(of[i as usize].clone())),
            _ => Err(format!("no item {i}")),
        })
        .collect()
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
        let rows = unpack(Value::Object(table)).map_err(A::Error::custom)?;
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
        assert!(text.contains("\"unit\":{\"all\":\"ns\"}"), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(unpack(read).unwrap(), rows());
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
            (json!({"n": 1e15 as u64, "columns": {"a": {"all": 1}}}), "more than"),
            (json!({"n": 1, "columns": {"a": 7}}), "neither"),
        ] {
            let why = unpack(bad).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
