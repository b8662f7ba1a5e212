//! Writes a comparison as CSV (RFC 4180), one line per metric, with unrounded numbers.

use machmeter_data::Interval;
use machmeter_data::metric::Population;
use machmeter_data::text::csv_field;

use crate::comparison::{Comparison, Row};

const HEADER: &str = "key,unit,better,population,a_value,a_low,a_high,a_runs,b_value,b_low,b_high,b_runs,scale,change,change_low,\
change_high,detectable,p,p_adjusted,p_rank,family,verdict,why";

/// A comparison as CSV. Missing numbers are empty; metrics on one side only have the verdict `only_a` or `only_b`.
pub fn csv(c: &Comparison) -> String {
    let empty = HEADER.split(',').count() - 3;
    let lone = |(verdict, keys): (&'static str, &'_ Vec<String>)| -> Vec<String> {
        keys.iter().map(|key| format!("{}{}{verdict},\r\n", csv_field(key), ",".repeat(empty + 1))).collect()
    };
    let rows = c.rows.iter().map(|row| line(&fields(row)));
    let lone = [("only_a", &c.only_a), ("only_b", &c.only_b)].into_iter().flat_map(lone);
    std::iter::once(format!("{HEADER}\r\n")).chain(rows).chain(lone).collect()
}

fn fields(row: &Row) -> Vec<String> {
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let bounds = |ci: &Option<Interval>| [ci.as_ref().map(|c| c.low), ci.as_ref().map(|c| c.high)];
    let [better, scale] = [format!("{:?}", row.better), format!("{:?}", row.scale)].map(|w| w.to_lowercase());
    let population = row.population.map_or("", Population::name).to_owned();
    let mut out = vec![row.key.clone(), row.unit.ucum().to_owned(), better, population];
    for side in [&row.a, &row.b] {
        let [low, high] = bounds(&side.ci);
        out.extend([side.value, low, high].map(number));
        out.push(side.runs.to_string());
    }
    out.push(scale);
    let [low, high] = bounds(&row.change_ci);
    out.extend([row.change, low, high, row.detectable, row.p, row.p_adjusted, row.p_rank].map(number));
    let why = row.verdict.why().map_or_else(|| row.reasons.join("; "), str::to_owned);
    out.extend([row.family.clone(), row.verdict.name().to_owned(), why]);
    out
}

fn line(fields: &[String]) -> String {
    fields.iter().map(|f| csv_field(f)).collect::<Vec<_>>().join(",") + "\r\n"
}
