//! Rows as metrics, as a table for people, and as warnings where there is no figure.

use machmeter_data::code::Code;
use machmeter_data::metric::{Params, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_data::shape::{Cell, CostTable, Shape, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, MetricInfo};
use machmeter_engine::cost::{Cost, Row, Rows};

/// Heading of the probe's part of the page.
pub(super) const SECTION: &str = "OPERATIONS";

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

/// The metric of a row: operation, conditions and whether it is latency or throughput are its parameters.
pub(super) fn metric(info: &MetricInfo, p: &Priced<'_>) -> Metric {
    let mut key: Params =
        params([("operation", p.row.operation.as_str().into()), ("kind", p.row.kind.name().into())]);
    key.extend(p.row.params.clone());
    p.cost.metric(info, key)
}

/// Name of a row for people: operation and conditions.
pub(super) fn name(row: &Row) -> String {
    let shown = |(name, value): (&String, &machmeter_data::metric::ParamValue)| match name.as_str() {
        "bytes" => human(value.to_string().parse().unwrap_or(0.0), Unit::Bytes),
        "stride_bytes" => format!("{value} B apart"),
        "chain" => format!("chain of {value}"),
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

pub(super) fn dataset(part: &str, title: &str, caption: &str, priced: &[Priced<'_>]) -> Dataset {
    let columns = [
        TableColumn::new("cost", Unit::Nanoseconds),
        TableColumn::new("low, this run", Unit::Nanoseconds),
        TableColumn::new("high, this run", Unit::Nanoseconds),
        TableColumn::new("pairs", Unit::Count),
        TableColumn::new("kind", None),
        TableColumn::new("proof", None),
    ];
    let rows = priced.iter().map(table_row).collect();
    Dataset::new("ops.costs", title, caption, Shape::CostTable(CostTable { columns: columns.into(), rows }))
        .with_params(params([("part", part.into())]))
}

fn table_row(p: &Priced<'_>) -> TableRow {
    let text = |t: &str| Cell::Text(t.to_owned());
    let proof = || match &p.row.proof {
        Some(proof) => text(&format!("{} {}", proof.seen, proof.what)),
        None => Cell::Empty(()),
    };
    // Rounded to what the interval can carry, which keeps pages small.
    let number = |ns: f64| Cell::Number(format!("{ns:.4e}").parse().unwrap_or(ns));
    let cells = match &p.cost {
        Cost::Known(k) => vec![
            number(k.value_ns),
            number(k.low_ns),
            number(k.high_ns),
            Cell::Number(k.n as f64),
            text(p.row.kind.name()),
            proof(),
        ],
        Cost::Below { bound_ns, n } => vec![
            text("below resolution"),
            Cell::Empty(()),
            number(*bound_ns),
            Cell::Number(*n as f64),
            text(p.row.kind.name()),
            proof(),
        ],
        Cost::Unknown { why } => vec![
            text("unknown"),
            Cell::Empty(()),
            Cell::Empty(()),
            Cell::Number(p.row.pairs.len() as f64),
            text(p.row.kind.name()),
            text(why),
        ],
    };
    TableRow { name: name(p.row) + p.cost.mark(), cells }
}

/// Why a row has no figure; `None` if it has one.
pub(super) fn reason<'a>(p: &'a Priced<'_>) -> Option<&'a str> {
    match &p.cost {
        Cost::Unknown { why } => Some(why),
        _ => None,
    }
}

/// One warning for all rows that `select` picks and that have no figure; rows with the same reason are named together.
pub(super) fn warning(code: &Code, priced: &[Priced<'_>], select: impl Fn(&Row) -> bool) -> Option<Warning> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for p in priced.iter().filter(|p| select(p.row)) {
        let Some(why) = reason(p) else { continue };
        match reasons.iter_mut().find(|(w, _)| *w == why) {
            Some((_, names)) => names.push(name(p.row)),
            None => reasons.push((why, vec![name(p.row)])),
        }
    }
    let told: Vec<String> =
        reasons.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect();
    (!told.is_empty()).then(|| code.warning(told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_engine::cost::{Kind, Proof};

    const INFO: MetricInfo = crate::ops::cost::COST;
    const CODE: Code = Code { id: "W459", name: "", what: "", why: "", how: "", next: "do", undo: None };

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
        let priced = priced(&rows, "calls");
        let Shape::CostTable(t) = dataset("calls", "t", "c", &priced).shape else { panic!() };
        assert_eq!(t.rows[0].name, "shared (4.00 KiB) (core shared)");
        assert!(metric(&INFO, &priced[0]).is_shared());
    }

    #[test]
    fn known_bounded_and_unknown_rows_are_told_apart() {
        let mut unproven = row("unproven", 2_000);
        unproven.proof = Some(Proof::new("faults", 5, 4));
        let refused = row("refused", 2_000).refused("no space");
        let also = row("also", 2_000).refused("no space");
        let rows =
            Rows::in_nanoseconds(vec![row("known", 2_000), row("nothing", 1_000), unproven, refused, also]);
        let priced = priced(&rows, "calls");
        assert!(
            priced.iter().all(|p| metric(&INFO, p).params.keys().all(|k| INFO.params.contains(&k.as_str())))
        );
        assert_eq!(metric(&INFO, &priced[0]).key(), "ops.cost{bytes=4096,kind=latency,operation=known}");
        let Shape::CostTable(t) = dataset("calls", "t", "c", &priced).shape else { panic!() };
        assert_eq!(t.rows[0].name, "known (4.00 KiB)");
        assert_eq!(t.rows[0].cells[0], Cell::Number(100.0));
        let strided = Row::new("decades", "read", Kind::Throughput).with("stride_bytes", 64_i64);
        assert_eq!(name(&strided), "read (64 B apart)");
        for r in &t.rows[1..] {
            assert!(matches!(r.cells[0], Cell::Text(_)), "{r:?}");
        }
        let w = warning(&CODE, &priced, |r| r.operation != "unproven").unwrap();
        assert_eq!(w.text, "refused (4.00 KiB), also (4.00 KiB): no space");
        assert!(warning(&CODE, &priced, |r| r.operation == "nothing").is_none());
    }
}
