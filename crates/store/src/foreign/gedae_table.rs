//! Published tables of a dataflow kernel, as CSV with the columns of Barnes' characterization of the Gedae kernel. The reader only parses them into the flow
//! probe's table, whose analysis computes and checks the figures.
//!
//! ```text
//! # GRAPH on PROCESSOR
//! # share of the overhead, copies: 18 %
//! Timer,Called,Total,Mean,Stdv,Min,Max,Perc,PerFire
//! apply,667628,1.737e+01,...
//! ```

use serde_json::{Value, json};

use super::columns::all;
use super::trains::cost_tables;
use super::{Imported, Input, Reader, Result, SourceFile, sure};

pub(super) const READER: Reader = Reader {
    name: "gedae-table",
    description: "published profile of a dataflow kernel: Timer, Called, Total, Mean, Stdv, Min, Max, Perc, PerFire, in s, tables after '# GRAPH on PROCESSOR'",
    sniff: |input| all(input, |f| f.text.lines().any(is_header)),
    fill,
};

const COLUMNS: [&str; 9] = ["timer", "called", "total", "mean", "stdv", "min", "max", "perc", "perfire"];
/// Most rows of all tables; the call tree has 43 names.
const MOST_ROWS: usize = 10_000;

fn cells(line: &str) -> Vec<&str> {
    line.split([',', '\t', ';']).map(str::trim).collect()
}

fn is_header(line: &str) -> bool {
    cells(line).iter().map(|c| c.to_lowercase()).eq(COLUMNS)
}

#[derive(Default)]
struct Section {
    graph: String,
    processor: String,
    rows: Vec<Value>,
    claims: Vec<(String, f64)>,
}

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let mut sections: Vec<Section> = Vec::new();
    for file in &input.files {
        parse(file, &mut sections)?;
    }
    sections.retain(|s| !s.rows.is_empty());
    let n: usize = sections.iter().map(|s| s.rows.len()).sum();
    let wrong = || input.fault(format!("{n} rows below the header, 1 to {MOST_ROWS} expected"));
    sure((1..=MOST_ROWS).contains(&n), wrong)?;
    let published: Vec<Value> = sections
        .iter()
        .map(|s| json!({ "graph": s.graph, "processor": s.processor, "claims": s.claims, "table": { "rows": s.rows } }))
        .collect();
    out.assume("times are in s; names with -req, -nreq, -state or a blank equal the names without them");
    let row = json!({ "params": {}, "rejected": [0, 0, 0, 0], "extras": {} }).to_string();
    let facts = [("fact.graphs.published", Value::from(published).to_string())];
    cost_tables(out, ["flow", "graphs"], vec![("published", row)], &facts);
    Ok(())
}

fn parse(file: &SourceFile, sections: &mut Vec<Section>) -> Result<()> {
    for (i, line) in file.text.lines().enumerate() {
        let fault = |what: String| file.fault_at(i + 1, what);
        if let Some(comment) = line.trim().strip_prefix('#') {
            if let Some((graph, processor)) = comment.trim().split_once(" on ") {
                let (graph, processor) = (graph.trim().to_owned(), processor.trim().to_owned());
                sections.push(Section { graph, processor, ..Section::default() });
            } else if let Some(claim) = comment.trim().strip_prefix("share of the overhead,")
                && let (Some((group, share)), Some(s)) = (claim.split_once(':'), sections.last_mut())
            {
                let share = share.trim().trim_end_matches('%').trim();
                let share =
                    share.parse().map_err(|_| fault(format!("'{share}' is not a share in percent")))?;
                s.claims.push((group.trim().to_owned(), share));
            }
            continue;
        }
        if line.trim().is_empty() || is_header(line) {
            continue;
        }
        let cells = cells(line);
        let (n, expected) = (cells.len(), COLUMNS.len());
        sure(n == expected, || fault(format!("{n} columns, {expected} expected")))?;
        let number = |at: usize| -> Result<f64> {
            let text = cells[at].trim_end_matches('%');
            let value = text.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
            value.ok_or_else(|| fault(format!("{} '{}' is not a number from 0 on", COLUMNS[at], cells[at])))
        };
        let ns = |at: usize| number(at).map(|s| s * 1e9);
        if sections.is_empty() {
            sections.push(Section { graph: file.name().to_owned(), ..Section::default() });
        }
        let row = json!({
            "name": cells[0], "called": number(1)? as u64, "total_ns": ns(2)?, "mean_ns": ns(3)?,
            "deviation_ns": ns(4)?, "least_ns": ns(5)?, "most_ns": ns(6)?, "percent": number(7)?,
            "per_firing_ns": ns(8)?, "correction": null, "p50_ns": null, "p99_ns": null, "tail": null,
        });
        if let Some(s) = sections.last_mut() {
            s.rows.push(row);
        }
    }
    Ok(())
}
