//! Metrics as comma-separated values (RFC 4180): one row per metric, numbers with all digits in the unit named, a column per
//! parameter.

use std::collections::BTreeSet;
use std::io;

use machmeter_data::metric::Population;
use machmeter_data::{Record, Table, finite};

use super::ExportError;
use crate::label;

const HEADS: [&str; 15] = [
    "id",
    "unit",
    "better",
    "value",
    "ci_low",
    "ci_high",
    "ci_level",
    "ci_method",
    "n",
    "max",
    "estimator",
    "quality",
    "flags",
    "why",
    "population",
];

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let params: BTreeSet<&String> = record.metrics.iter().flat_map(|m| m.params.keys()).collect();
    // A parameter that is called as one of the fixed columns is told from it.
    let head = |p: &&String| if HEADS.contains(&p.as_str()) { format!("param_{p}") } else { (*p).clone() };
    let heads = HEADS.iter().map(|h| (*h).to_owned());
    line(out, &heads.chain(params.iter().map(head)).collect::<Vec<_>>())?;
    for m in &record.metrics {
        let number = |v: Option<f64>| v.map_or_else(String::new, |v| format!("{v}"));
        let ci = m.ci.as_ref();
        let mut fields = vec![
            m.id.clone(),
            m.unit.ucum().to_owned(),
            format!("{:?}", m.better).to_lowercase(),
            number(m.value),
            number(ci.map(|c| c.low)),
            number(ci.map(|c| c.high)),
            number(ci.map(|c| c.level)),
            ci.map_or_else(String::new, |c| c.method.clone()),
            m.n.to_string(),
            number(m.max),
            m.estimator.clone(),
            label::quality(m.quality).to_owned(),
            m.flags.join(" "),
            m.why.clone().unwrap_or_default(),
            m.population.map_or("", Population::name).to_owned(),
        ];
        let value = |p: &&String| m.params.get(*p).map_or_else(String::new, ToString::to_string);
        fields.extend(params.iter().map(value));
        line(out, &fields)?;
    }
    Ok(())
}

fn line(out: &mut dyn io::Write, fields: &[String]) -> io::Result<()> {
    let quoted: Vec<String> = fields.iter().map(|f| quote(f)).collect();
    write!(out, "{}\r\n", quoted.join(","))
}

/// A field, quoted if it must be: quotes are doubled, line breaks kept (RFC 4180, section 2).
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ') {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reader by the letter of RFC 4180, as the other side of the law below.
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

    proptest! {
        #[test]
        fn any_fields_come_back(fields in prop::collection::vec("[a\",\n\r ;x=]{0,8}", 1..6)) {
            let text = fields.iter().map(|f| quote(f)).collect::<Vec<_>>().join(",");
            prop_assert_eq!(read(&text), fields);
        }
    }
}
