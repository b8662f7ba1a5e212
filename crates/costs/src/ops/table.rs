//! Rows as metrics, as a table for people, and as warnings where there is no figure.

use machmeter_data::code::Code;
use machmeter_data::metric::{Params, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_data::shape::{Cell, TableRow};
use machmeter_data::{Dataset, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Cost, Row, Rows};

use super::cost::COST;
use crate::show;

pub(super) struct Priced<'a> {
    pub(super) row: &'a Row,
    pub(super) cost: Cost,
}

/// Rows of a part with their costs; not the one that stands for the whole part when it could not be measured.
pub(super) fn priced<'a>(rows: &'a Rows, part: &'a str) -> Vec<Priced<'a>> {
    let own = rows.part(part).filter(|r| r.operation != "part");
    own.map(|row| Priced { row, cost: rows.cost(row) }).collect()
}

/// The start of a program that stands for all: its words, and its cost where known.
pub(super) fn spawn(rows: &Rows) -> (&'static str, Option<Cost>) {
    let row = rows.rows.iter().find(|r| r.operation == "spawn");
    let words = match row.map(|r| r.text("program")).as_deref() {
        Some("machmeter") => "spawn machmeter",
        Some("given") => "spawn the program given",
        _ => "spawn /bin/true",
    };
    (words, row.map(|r| rows.cost(r)))
}

pub(super) fn metric(p: &Priced<'_>) -> Metric {
    let mut key: Params =
        params([("operation", p.row.operation.as_str().into()), ("kind", p.row.kind.name().into())]);
    key.extend(p.row.params.clone());
    p.cost.metric(&COST, key)
}

/// What a part says whose rows are prices: metrics, their table, and why there are none under the codes that rows fall under.
pub(super) fn analysis(
    rows: &Rows,
    part: &str,
    [title, caption]: [&str; 2],
    codes: &[Code],
    code_of: fn(&Row) -> Code,
) -> Analysis {
    let priced = priced(rows, part);
    if priced.is_empty() {
        return Analysis::default();
    }
    Analysis {
        metrics: priced.iter().map(metric).collect(),
        datasets: dataset(part, title, caption, &priced).into_iter().collect(),
        warnings: warnings(&priced, codes, code_of),
        ..Analysis::default()
    }
}

pub(super) fn name(row: &Row) -> String {
    let shown = |(name, value): (&String, &machmeter_data::metric::ParamValue)| match name.as_str() {
        "bytes" => human(value.to_string().parse().unwrap_or(0.0), Unit::Bytes),
        "stride_bytes" => format!("{value} B apart"),
        "chain" => format!("chain of {value}"),
        "allocator" => format!("malloc of {value}"),
        "buffer" => buffer(&value.to_string()),
        "code" | "program" => value.to_string(),
        _ => format!("{value} {name}"),
    };
    let conditions: Vec<String> = row.params.iter().map(shown).collect();
    if conditions.is_empty() {
        row.operation.clone()
    } else {
        format!("{} ({})", row.operation, conditions.join(", "))
    }
}

/// Where a buffer lies: `page`, or `page+16`.
fn buffer(place: &str) -> String {
    match place.strip_prefix("page+") {
        Some(bytes) => format!("buffer {bytes} B behind a page"),
        None => "page-aligned buffer".to_owned(),
    }
}

fn dataset(part: &str, title: &str, caption: &str, priced: &[Priced<'_>]) -> Option<Dataset> {
    let columns = [
        ("cost", show::NS),
        ("low, this run", show::NS),
        ("high, this run", show::NS),
        ("pairs", Some(Unit::Count)),
        ("kind", None),
        ("proof", None),
    ];
    let table = show::table(["ops.costs", title, caption], columns, priced.iter().map(table_row).collect());
    table.map(|t| t.with_params(params([("part", part.into())])))
}

fn table_row(p: &Priced<'_>) -> TableRow {
    let text = |t: &str| Cell::Text(t.to_owned());
    let proof = || match &p.row.proof {
        Some(proof) => text(&format!("{} {}", proof.seen, proof.what)),
        None => Cell::Empty(()),
    };
    let number = |ns: f64| Cell::Number(show::rounded(ns, 4));
    let (figures, n, proof) = match &p.cost {
        Cost::Known(k) => ([number(k.value_ns), number(k.low_ns), number(k.high_ns)], k.n, proof()),
        Cost::Below { bound_ns, n } => {
            ([text("below resolution"), Cell::Empty(()), number(*bound_ns)], *n, proof())
        }
        Cost::Unknown { why } => {
            ([text("unknown"), Cell::Empty(()), Cell::Empty(())], p.row.pairs.len(), text(why))
        }
    };
    let kind = text(p.row.kind.name());
    let cells = figures.into_iter().chain([Cell::Number(n as f64), kind, proof]).collect();
    TableRow { name: name(p.row) + p.cost.mark(), cells }
}

/// One warning of each of these codes for the rows that fall under it and have no figure; those with the same reason together.
pub(super) fn warnings(priced: &[Priced<'_>], codes: &[Code], code_of: fn(&Row) -> Code) -> Vec<Warning> {
    let warning = |code: &Code| {
        let unknown = |p: &Priced<'_>| match &p.cost {
            Cost::Unknown { why } if code_of(p.row) == *code => Some((why.clone(), name(p.row))),
            _ => None,
        };
        let unknown: Vec<(String, String)> = priced.iter().filter_map(unknown).collect();
        let told = show::distinct(unknown.iter().map(|(why, _)| why)).into_iter().map(|why| {
            let names: Vec<&str> = unknown.iter().filter(|u| u.0 == *why).map(|u| u.1.as_str()).collect();
            format!("{}: {why}", names.join(", "))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| code.warning(told.join("; ")))
    };
    codes.iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::Shape;
    use machmeter_engine::cost::{Kind, Proof};

    use crate::ops::cost::{NO_FIGURE, NO_FILES};

    fn row(operation: &str, long_ticks: u64) -> Row {
        let row = Row::new("calls", operation, Kind::Latency).with("bytes", 4_096_i64);
        row.planted(10, [(1_000, long_ticks); 20])
    }

    #[test]
    fn a_shared_core_is_marked_in_table_and_metric() {
        let mut shared = row("shared", 2_000);
        for (i, pair) in shared.pairs.iter_mut().enumerate() {
            pair.core.width = if i < 3 { 3.9 } else { 2.0 };
        }
        let mut rows = Rows::in_nanoseconds(vec![shared]);
        rows.restore_full_width(Some(1.0 / 3.9));
        rows.store_full_width();
        let a = analysis(&rows, "calls", ["t", "c"], &[], |_| NO_FIGURE);
        let Shape::CostTable(t) = &a.datasets[0].shape else { panic!() };
        assert_eq!(t.rows[0].name, "shared (4.00 KiB) (core shared)");
        assert!(a.metrics[0].is_shared());
    }

    #[test]
    fn known_bounded_and_unknown_rows_are_told_apart() {
        let mut unproven = row("unproven", 2_000);
        unproven.proof = Some(Proof::new("faults", 5, 4));
        let refused = row("refused", 2_000).refused("no space");
        let also = row("also", 2_000).refused("no space");
        let rows =
            Rows::in_nanoseconds(vec![row("known", 2_000), row("nothing", 1_000), unproven, refused, also]);
        let code_of = |r: &Row| if r.operation == "unproven" { NO_FILES } else { NO_FIGURE };
        let a = analysis(&rows, "calls", ["t", "c"], &[NO_FIGURE], code_of);
        assert!(a.metrics.iter().all(|m| m.params.keys().all(|k| COST.params.contains(&k.as_str()))));
        assert_eq!(a.metrics[0].key(), "ops.cost{bytes=4096,kind=latency,operation=known}");
        let Shape::CostTable(t) = &a.datasets[0].shape else { panic!() };
        assert_eq!(t.rows[0].name, "known (4.00 KiB)");
        assert_eq!(t.rows[0].cells[0], Cell::Number(100.0));
        let strided = Row::new("decades", "read", Kind::Throughput).with("stride_bytes", 64_i64);
        assert_eq!(name(&strided), "read (64 B apart)");
        let read = |buffer: &str| name(&Row::new("calls", "pread", Kind::Latency).with("buffer", buffer));
        let named = ["page", "page+16"].map(read);
        assert_eq!(named, ["pread (page-aligned buffer)", "pread (buffer 16 B behind a page)"]);
        for r in &t.rows[1..] {
            assert!(matches!(r.cells[0], Cell::Text(_)), "{r:?}");
        }
        let [warning] = &a.warnings[..] else { panic!("{:?}", a.warnings) };
        assert_eq!(warning.text, "refused (4.00 KiB), also (4.00 KiB): no space");
    }
}
