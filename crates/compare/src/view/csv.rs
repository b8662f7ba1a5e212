//! The comparison as CSV (RFC 4180), one line per metric, all numbers unrounded.

use machmeter_data::Interval;

use crate::comparison::{Comparison, Row};

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
    let bounds = |ci: &Option<Interval>| [ci.as_ref().map(|c| c.low), ci.as_ref().map(|c| c.high)];
    let better = format!("{:?}", row.better).to_lowercase();
    let scale = format!("{:?}", row.scale).to_lowercase();
    let mut out = vec![row.key.clone(), row.unit.ucum().to_owned(), better];
    for side in [&row.a, &row.b] {
        let [low, high] = bounds(&side.ci);
        out.extend([side.value, low, high].map(number));
        out.push(side.n.to_string());
    }
    out.push(scale);
    let [low, high] = bounds(&row.change_ci);
    let figures = [row.change, low, high, row.half_width, row.detectable, row.p, row.p_adjusted, row.p_rank];
    out.extend(figures.map(number));
    out.extend([row.verdict.name().to_owned(), row.why(), row.flags.join(" ")]);
    out
}

fn line(fields: &[String]) -> String {
    let is_plain = |f: &String| !f.contains([',', '"', '\n', '\r']);
    let quoted = |f: &String| if is_plain(f) { f.clone() } else { format!("\"{}\"", f.replace('"', "\"\"")) };
    fields.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}
