//! Exports metrics as comma-separated values (RFC 4180): one row per metric, one column per parameter. Numbers have all their digits, in the unit named
//! in the row.

use std::collections::BTreeSet;
use std::io;

use machmeter_data::metric::Population;
use machmeter_data::text::csv_field;
use machmeter_data::{Metric, Record, Table, finite};

use super::ExportError;
use crate::label;

/// A heading, and the function that reads its cell from a metric.
type Column = (&'static str, fn(&Metric) -> String);

const COLUMNS: [Column; 15] = [
    ("id", |m| m.id.clone()),
    ("unit", |m| m.unit.ucum().to_owned()),
    ("better", |m| format!("{:?}", m.better).to_lowercase()),
    ("value", |m| said(m.value)),
    ("ci_low", |m| said(m.ci.as_ref().map(|c| c.low))),
    ("ci_high", |m| said(m.ci.as_ref().map(|c| c.high))),
    ("ci_level", |m| said(m.ci.as_ref().map(|c| c.level))),
    ("ci_method", |m| said(m.ci.as_ref().map(|c| &c.method))),
    ("n", |m| m.n.to_string()),
    ("max", |m| said(m.max)),
    ("estimator", |m| m.estimator.clone()),
    ("quality", |m| label::quality(m.quality).to_owned()),
    ("flags", |m| m.flags.join(" ")),
    ("why", |m| said(m.why.as_ref())),
    ("population", |m| said(m.population.map(Population::name))),
];

fn said(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let params: BTreeSet<&String> = record.metrics.iter().flat_map(|m| m.params.keys()).collect();
    // A parameter with the name of a fixed column gets a prefix.
    let is_fixed = |p: &String| COLUMNS.iter().any(|(head, _)| head == p);
    let head = |p: &&String| if is_fixed(p) { format!("param_{p}") } else { (*p).clone() };
    let heads = COLUMNS.iter().map(|(head, _)| (*head).to_owned());
    line(out, heads.chain(params.iter().map(head)))?;
    for m in &record.metrics {
        let params = params.iter().map(|p| said(m.params.get(*p)));
        line(out, COLUMNS.iter().map(|(_, of)| of(m)).chain(params))?;
    }
    Ok(())
}

fn line(out: &mut dyn io::Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let quoted: Vec<String> = fields.map(|f| csv_field(&f)).collect();
    write!(out, "{}\r\n", quoted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reader that follows RFC 4180 to the letter, to test the writer.
    fn read(text: &str) -> Vec<String> {
        let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (quoted, c) {
                (true, '"') if chars.peek() == Some(&'"') => field.extend(chars.next()),
                (_, '"') => quoted = !quoted,
                (false, ',') => fields.push(std::mem::take(&mut field)),
                (_, c) => field.push(c),
            }
        }
        fields.push(field);
        fields
    }

    #[test]
    fn numbers_are_no_formulas() {
        for (field, written) in
            [("-0.5", "-0.5"), ("+1e-9", "+1e-9"), ("-1+cmd", "'-1+cmd"), ("@sum(a,b)", "\"'@sum(a,b)\"")]
        {
            assert_eq!(csv_field(field), written);
        }
    }

    proptest! {
        #[test]
        fn any_fields_come_back(fields in prop::collection::vec("[a\",\n\r ;x=]{0,8}", 1..6)) {
            let text = fields.iter().map(|f| csv_field(f)).collect::<Vec<_>>().join(",");
            let guarded = |f: &String| if f.starts_with('=') { format!("'{f}") } else { f.clone() };
            prop_assert_eq!(read(&text), fields.iter().map(guarded).collect::<Vec<_>>());
        }
    }
}
