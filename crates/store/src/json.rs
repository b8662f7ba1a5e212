//! Reads and writes the record as a JSON document.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::Path;

use machmeter_data::Record;
use machmeter_data::record::{FORMAT, SCHEMA_VERSION};
use machmeter_data::text::steers;
use machmeter_data::{deflated, finite};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::error::{Result, StoreError};
use crate::{atomic, bounded, keys};

/// The id of the script element that contains the record in an HTML report.
const HTML_ELEMENT_ID: &str = "machmeter-record";
/// Largest document, MiB, also in a page: reading one takes nine times its size.
const LARGEST_MIB: u64 = deflated::MOST_BYTES as u64 >> 20;

/// The record as indented JSON with a line end. A number that is not finite is missing in it, with the reason.
pub fn to_string(record: &Record) -> Result<String> {
    let bad = |e: String| StoreError::new(Path::new("record"), e);
    let mut text = Vec::new();
    write_to(record, &mut text).map_err(|e| bad(e.to_string()))?;
    String::from_utf8(text).map_err(|e| bad(e.to_string()))
}

/// Writes [`to_string`] to `path` in one step: a reader finds the old document or the whole new one.
/// Errors: the system refuses (no space, no permission); the old file is unchanged.
pub fn write(record: &Record, path: &Path) -> Result<()> {
    atomic::replace(path, |out| write_to(record, out))
}

fn write_to(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    finite::record(record).serialize(&mut Serializer::with_formatter(&mut *out, Layout::default()))?;
    out.write_all(b"\n")
}

/// One line per key, lists on one line: a series of a thousand numbers stays readable and small.
#[derive(Default)]
struct Layout {
    depth: usize,
}

impl Layout {
    fn new_line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Layout {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.new_line(out)?;
        out.write_all(b"}")
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.new_line(out)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }
}

/// Reads a record from a JSON document or from an HTML report that contains one.
/// Errors: one line with the file, the position in it, and the expected content.
pub fn read(path: &Path) -> Result<Record> {
    from_bytes(&bounded::read(path, LARGEST_MIB, "record")?, path)
}

/// The same from any source; `name` represents it in messages (`-` for standard input).
pub fn read_from(source: &mut dyn Read, name: &Path) -> Result<Record> {
    from_bytes(&bounded::read_from(source, name, LARGEST_MIB, "record")?, name)
}

/// The same from bytes already read.
pub fn from_bytes(bytes: &[u8], name: &Path) -> Result<Record> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].split(|b| *b == b'\n').count();
        let what = format!("line {line}: not UTF-8 text; expected a machmeter record as JSON or HTML");
        StoreError::new(name, what)
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let fail = |why: String| StoreError::new(name, why);
    // The document to which the line numbers of an error refer.
    let (json, within) = match text.trim_start().chars().next() {
        None => return Err(StoreError::new(name, "empty; expected a machmeter record as JSON or HTML")),
        Some('<') => (Cow::Owned(in_page(text).map_err(fail)?), "the record inside the page, "),
        Some(_) => (Cow::Borrowed(text), ""),
    };
    let json = printable(&json);
    let mut record = Record::from_json(json.as_bytes()).map_err(|e| fail(explain(&json, &e, within)))?;
    check_identity(Some(&record.format), Some(&record.version)).map_err(fail)?;
    keys::renew(&mut record);
    Ok(record)
}

/// JSON with a space for each control character in its texts, plain or escaped; line ends stay.
fn printable(json: &str) -> Cow<'_, str> {
    let is_bad = |c: char| steers(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(|c| c == '\\' || is_bad(c)) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        let code = || u32::from_str_radix(rest.as_str().get(..4)?, 16).ok().and_then(char::from_u32);
        match escaped {
            Some('u') if code().is_some_and(|c| steers(c) && c != '\n') => {
                rest.nth(3);
                out.push(' ');
            }
            Some('b' | 'f' | 'r' | 't') => out.push(' '),
            Some(other) => out.extend([c, other]),
            None => out.push(if is_bad(c) { ' ' } else { c }),
        }
    }
    Cow::Owned(out)
}

/// Extracts the record's JSON from an HTML page and inflates it.
fn in_page(html: &str) -> Result<String, String> {
    let block = embedded(html).ok_or_else(|| {
        format!("an HTML page without a machmeter record (no script element with id {HTML_ELEMENT_ID})")
    })?;
    deflated::read(block).map_err(|why| format!("the record inside the page: {why}"))
}

/// The block of an HTML page that contains the record.
fn embedded(html: &str) -> Option<&str> {
    let mut rest = 0;
    while let Some(at) = html[rest..].find("<script") {
        let tag = rest + at;
        let body = tag + html[tag..].find('>')? + 1;
        let end = body + html[body..].find("</script")?;
        let attributes = &html[tag..body];
        if ["\"", "'", ""].iter().any(|q| attributes.contains(&format!("id={q}{HTML_ELEMENT_ID}{q}"))) {
            return Some(&html[body..end]);
        }
        rest = end;
    }
    None
}

/// Checks that this program can read the format and version.
fn check_identity(format: Option<&str>, version: Option<&str>) -> Result<(), String> {
    let major = |v: &str| v.split('.').next().and_then(|m| m.parse::<u32>().ok());
    Err(match (format, version.map(|v| (v, major(v)))) {
        (Some(FORMAT), Some((_, Some(1)))) => return Ok(()),
        (Some(FORMAT), Some((v, Some(m)))) if m > 1 => {
            let newer = format!("is newer than this program reads ({SCHEMA_VERSION}); update machmeter");
            format!("record version {v} {newer}")
        }
        (Some(FORMAT), Some((v, _))) => format!("record version {v:?} is unknown, expected 1.x"),
        (Some(FORMAT), None) => "the record has no \"version\", expected 1.x".to_owned(),
        (Some(other), _) => format!("format is {other:?}, expected {FORMAT:?}"),
        (None, _) => format!("JSON, but not a machmeter record: no \"format\": {FORMAT:?} at the top"),
    })
}

/// The reason why `json` is not a record. Another format or version explains it better than the first wrong field.
fn explain(json: &str, error: &serde_json::Error, within: &str) -> String {
    let told = |what: &str, e: &serde_json::Error| {
        format!("{within}line {}, column {}: {what}: {}", e.line(), e.column(), without_place(e))
    };
    match serde_json::from_str::<serde_json::Value>(json) {
        Err(e) => told("broken JSON", &e),
        Ok(v) => {
            let part = |key: &str| v.get(key).and_then(serde_json::Value::as_str);
            let other = check_identity(part("format"), part("version")).err();
            other.unwrap_or_else(|| told("not a valid record", error))
        }
    }
}

fn without_place(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(before, _)| before).to_owned()
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
