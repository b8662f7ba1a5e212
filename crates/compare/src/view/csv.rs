//! The comparison as CSV (RFC 4180), one line per metric, all numbers unrounded.

use machmeter_data::Better;

use crate::comparison::{ChangeScale, Comparison, Row, Verdict};

const HEADER: &str = "key,unit,better,a_value,a_low,a_high,a_n,b_value,b_low,b_high,b_n,scale,change,change_low,change_high,\
half_width,detectable,p,p_adjusted,p_rank,verdict,why,flags";

/// The comparison as CSV. Missing numbers are empty; metrics of one side only have the verdict `only_a` or `only_b`.
pub fn csv(c: &Comparison) -> String {
    let columns = HEADER.split(',').count();
    let mut out = format!("{HEADER}\r\n");
    for row in &c.rows {
        out.push_str(&line(&fields(row)));
    }
    for (verdict, keys) in [("only_a", &c.only_a), ("only_b", &c.only_b)] {
        for key in keys {
            let mut fields = vec![String::new(); columns];
            fields[0].clone_from(key);
            verdict.clone_into(&mut fields[columns - 3]);
            out.push_str(&line(&fields));
        }
    }
    out
}

fn fields(row: &Row) -> Vec<String> {
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let (verdict, why) = match &row.verdict {
        Verdict::Same => ("same", row.reasons.join("; ")),
        Verdict::Better => ("better", row.reasons.join("; ")),
        Verdict::Worse => ("worse", row.reasons.join("; ")),
        Verdict::Changed => ("changed", row.reasons.join("; ")),
        Verdict::Inconclusive { why } => ("inconclusive", why.clone()),
    };
    let better = match row.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "neither",
    };
    let scale = match row.scale {
        ChangeScale::Relative => "relative",
        ChangeScale::Absolute => "absolute",
    };
    let ci = row.change_ci.as_ref();
    let mut out = vec![row.key.clone(), row.unit.ucum().to_owned(), better.to_owned()];
    for side in [&row.a, &row.b] {
        out.push(number(side.value));
        out.push(number(side.ci.as_ref().map(|c| c.low)));
        out.push(number(side.ci.as_ref().map(|c| c.high)));
        out.push(side.n.to_string());
    }
    out.push(scale.to_owned());
    let low_high = [ci.map(|c| c.low), ci.map(|c| c.high)];
    for v in [
        row.change,
        low_high[0],
        low_high[1],
        row.half_width,
        row.detectable,
        row.p,
        row.p_adjusted,
        row.p_rank,
    ] {
        out.push(number(v));
    }
    out.extend([verdict.to_owned(), why, row.flags.join(" ")]);
    out
}

fn line(fields: &[String]) -> String {
    let quoted: Vec<String> = fields
        .iter()
        .map(|f| {
            if f.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", f.replace('"', "\"\""))
            } else {
                f.clone()
            }
        })
        .collect();
    format!("{}\r\n", quoted.join(","))
}
