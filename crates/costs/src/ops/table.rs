//! Rows as metrics, as a table for people, and as warnings where there is no figure.

use machmeter_data::code::Code;
use machmeter_data::metric::{Params, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_data::shape::{Cell, TableRow};
use machmeter_data::{Dataset, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::values_ns;
use machmeter_engine::cost::{Cost, Pair, Row, Rows};
use machmeter_engine::disturbance::sibling;
use machmeter_stats::quantile::sorted;
use machmeter_stats::regimes::Regime;

use super::cost::{COST, MODE, MODE_SHARE};
use crate::{modes, show};

/// Least ratio of two modes of a call: half, on a logarithm, of the least ratio seen between two states of one (0.97 and 1.23 us of
/// `stat`, 0.89 and 1.11 us of `mprotect`, by process on AMD Zen 3), so that their scatter does not join them.
const GAP: f64 = 1.12;

pub(super) struct Priced<'a> {
    pub(super) row: &'a Row,
    pub(super) cost: Cost,
    /// Of turns that were timed one by one while the core was not shared, in ascending order, ns; none of a row of batches.
    turns_ns: Vec<f64>,
    /// Two at least, or none.
    modes: Vec<Regime>,
}

impl<'a> Priced<'a> {
    fn of(rows: &Rows, row: &'a Row) -> Self {
        let is_single = (row.short_turns, row.long_turns) == (0, 1);
        let is_alone =
            |p: &&Pair| rows.whole_width().is_none_or(|whole| sibling::alone(p, whole) != Some(false));
        let alone: Vec<Pair> = row.pairs.iter().filter(|p| is_single && is_alone(p)).copied().collect();
        let turns_ns = values_ns(row, &alone, rows.ns_per_tick());
        // Another clock of the core is no mode of the call.
        let at_one_clock = rows.pairs_at_quick_clock(row, &alone);
        let modes = modes::modes(&values_ns(row, &at_one_clock, rows.ns_per_tick()), GAP);
        Self { row, cost: rows.cost(row), turns_ns: sorted(&turns_ns).unwrap_or_default(), modes }
    }

    /// Its cost, with the tail and the modes of single turns.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let key = key(self.row);
        let cost = self.cost.metric(&COST, key.clone());
        if cost.value.is_none() {
            return vec![cost];
        }
        let modes = modes::metrics(&self.modes, self.turns_ns.len(), [&MODE, &MODE_SHARE], &key);
        let cost = modes::with_tail(cost, &self.turns_ns);
        std::iter::once(cost).chain(modes).collect()
    }
}

/// Rows of a part with their costs; not the one that stands for the whole part when it could not be measured.
pub(super) fn priced<'a>(rows: &'a Rows, part: &'a str) -> Vec<Priced<'a>> {
    let own = rows.part(part).filter(|r| r.operation != "part");
    own.map(|row| Priced::of(rows, row)).collect()
}

/// The start of a program that stands for all: its words, and its cost where known.
pub(super) fn spawn(rows: &Rows) -> (&'static str, Option<&Row>) {
    let row = rows.rows.iter().find(|r| r.operation == "spawn");
    let words = match row.map(|r| r.text("program")).as_deref() {
        Some("machmeter") => "spawn machmeter",
        Some("given") => "spawn the program given",
        _ => "spawn /bin/true",
    };
    (words, row)
}

/// Parameters of the metrics of a row.
pub(super) fn key(row: &Row) -> Params {
    let mut key = params([("operation", row.operation.as_str().into()), ("kind", row.kind.name().into())]);
    key.extend(row.params.clone());
    key
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
        metrics: priced.iter().flat_map(Priced::metrics).collect(),
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
        "neighbors" if value.to_string() == "none" => "not merged with neighbors".to_owned(),
        "neighbors" => "merged with a neighbor".to_owned(),
        "scope" => format!("of the {value}"),
        "code" | "program" | "file_system" => value.to_string(),
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
        Cost::Known(k) => {
            let value = modes::words(&p.modes).map_or_else(|| number(k.value_ns), |words| text(&words));
            ([value, number(k.low_ns), number(k.high_ns)], k.n, proof())
        }
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
            pair.core.width = if i < 2 { 3.9 } else { 2.0 };
        }
        let mut rows = Rows::in_nanoseconds(vec![shared]);
        rows.restore_core(Some(1.0 / 3.9));
        rows.store_core();
        let a = analysis(&rows, "calls", ["t", "c"], &[], |_| NO_FIGURE);
        let Shape::CostTable(t) = &a.datasets[0].shape else { panic!() };
        assert_eq!(t.rows[0].name, "shared (4.00 KiB) (core shared)");
        assert!(a.metrics[0].is_shared());
    }

    #[test]
    fn calls_of_two_states_are_printed_with_their_shares() {
        // Processes take turns: 16 calls of 0.97 us, then 16 of 1.23 us, each with a scatter of 2 %.
        let single = |states: [u64; 2]| {
            let ticks =
                (0..256_u64).map(|i| (60, 60 + states[(i / 16 % 2) as usize] * (98 + i * 7 % 5) / 100));
            let row = Row::new("calls", "stat", Kind::Latency).with("file_system", "ext4").planted(1, ticks);
            Row { short_turns: 0, long_turns: 1, ..row }
        };
        let a = |states| {
            let rows = Rows::in_nanoseconds(vec![single(states)]);
            analysis(&rows, "calls", ["t", "c"], &[], |_| NO_FIGURE)
        };
        let two = a([970, 1_230]);
        let ids: Vec<&str> = two.metrics.iter().map(|m| m.id.as_str()).collect();
        assert_eq!(ids, ["ops.cost", "ops.mode", "ops.mode_share", "ops.mode", "ops.mode_share"]);
        let near = |m: &Metric, truth: f64| m.value.is_some_and(|v| (v / truth - 1.0).abs() < 0.02);
        assert!(near(&two.metrics[1], 970.0) && near(&two.metrics[3], 1_230.0) && near(&two.metrics[2], 0.5));
        assert!(two.metrics[0].max.is_some() && two.metrics[0].quantiles.contains_key("0.99"));
        let Shape::CostTable(t) = &two.datasets[0].shape else { panic!() };
        assert_eq!(t.rows[0].name, "stat (ext4)");
        assert!(
            matches!(&t.rows[0].cells[0], Cell::Text(text) if text.contains("(50 %) or 1.23 us (50 %)")),
            "{t:?}"
        );
        assert_eq!(a([970, 970]).metrics.len(), 1, "one state");
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
        let named = |key: &str, value: &str| name(&Row::new("calls", "x", Kind::Latency).with(key, value));
        assert_eq!(named("neighbors", "none"), "x (not merged with neighbors)");
        assert_eq!(
            [named("scope", "thread"), named("file_system", "ext4")],
            ["x (of the thread)", "x (ext4)"]
        );
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
