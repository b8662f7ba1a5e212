//! Rows as tables of raw samples, and back. One format for every probe that measures costs.

use std::collections::BTreeMap;

use machmeter_data::Table;
use machmeter_data::quantity::Unit;
use machmeter_data::samples::{Column, Values};
use serde::{Deserialize, Serialize};

use super::{Estimator, Facts, Kind, Pair, Proof, Row, Rows};
use crate::disturbance::Rejected;
use crate::disturbance::sibling::CoreLook;
use crate::probe::ProbeError;

/// Columns of a row that have no table column, as JSON.
#[derive(Serialize, Deserialize)]
struct Rest {
    #[serde(default = "before_declared")]
    estimator: Estimator,
    #[serde(default)]
    is_core_clock: bool,
    params: machmeter_data::metric::Params,
    rejected: [u64; 4],
    proof: Option<(String, u64, u64)>,
    extras: BTreeMap<String, f64>,
    refused: Option<String>,
}

/// Rows of versions that chose the estimator by the cost.
fn before_declared() -> Estimator {
    Estimator::Differences
}

impl Rest {
    fn of(r: &Row) -> Self {
        let finite = r.extras.iter().filter(|(_, v)| v.is_finite());
        Self {
            estimator: r.estimator,
            is_core_clock: r.is_core_clock,
            params: r.params.clone(),
            rejected: [r.rejected.preempted, r.rejected.migrated, r.rejected.partner, r.rejected.failed],
            proof: r.proof.as_ref().map(|p| (p.what.clone(), p.expected, p.seen)),
            extras: finite.map(|(k, v)| (k.clone(), *v)).collect(),
            refused: r.refused.clone(),
        }
    }
}

fn column<T, V>(of: &[T], name: &str, unit: Unit, value: impl Fn(&T) -> V) -> Column
where
    Values: From<Vec<V>>,
{
    Column::new(name, unit, of.iter().map(value).collect::<Vec<V>>())
}

impl Rows {
    /// As two tables, `PROBE_rows` and `PROBE_pairs`.
    pub fn to_tables(&self, probe: &str) -> Vec<Table> {
        let r = &self.rows;
        let rows = vec![
            column(r, "part", Unit::One, |r| r.part.clone()),
            column(r, "operation", Unit::One, |r| r.operation.clone()),
            column(r, "kind", Unit::One, |r| r.kind.name().to_owned()),
            column(r, "short_turns", Unit::Count, |r| r.short_turns as i64),
            column(r, "long_turns", Unit::Count, |r| r.long_turns as i64),
            column(r, "per_turn", Unit::Count, |r| r.per_turn),
            column(r, "rest", Unit::One, |r| serde_json::to_string(&Rest::of(r)).unwrap_or_default()),
        ];
        let numbered = r.iter().enumerate();
        let p: Vec<(i32, &Pair)> =
            numbered.flat_map(|(i, r)| r.pairs.iter().map(move |p| (i as i32, p))).collect();
        let pairs = vec![
            column(&p, "row", Unit::Count, |p| p.0),
            column(&p, "at_ns", Unit::Nanoseconds, |p| p.1.at_ns),
            column(&p, "visit", Unit::Count, |p| p.1.visit.cast_signed()),
            column(&p, "short_ticks", Unit::Ticks, |p| p.1.short_ticks as i64),
            column(&p, "long_ticks", Unit::Ticks, |p| p.1.long_ticks as i64),
            column(&p, "regime_ns", Unit::Nanoseconds, |p| p.1.regime_ns),
            column(&p, "core_width", Unit::One, |p| p.1.core.width),
            column(&p, "addition_ticks", Unit::Ticks, |p| p.1.core.addition_ticks),
        ];
        let mut tables: Vec<Table> = [(format!("{probe}_rows"), rows), (format!("{probe}_pairs"), pairs)]
            .into_iter()
            .filter_map(|(name, columns)| Table::new(&name, columns).ok())
            .collect();
        for t in &mut tables {
            t.notes.push(("tick_hz".to_owned(), self.tick_hz.to_string()));
        }
        if let Some(t) = tables.last_mut() {
            t.name_codes("row", self.rows.iter().map(|r| format!("{}: {}", r.part, r.operation)));
        }
        if let Some(t) = tables.first_mut() {
            t.notes.push(("step_ticks".to_owned(), self.step_ticks.to_string()));
            t.notes.extend(self.facts.notes());
        }
        tables
    }

    /// From the tables of [`Self::to_tables`].
    pub fn from_tables<'t>(probe: &str, tables: &'t [Table]) -> Result<Self, ProbeError> {
        let wrong = |what: &str| ProbeError::Usage(format!("these samples are not {probe} samples: {what}"));
        let find = |name: String| {
            tables.iter().find(|t| t.name == name).ok_or_else(|| wrong(&format!("table {name} is missing")))
        };
        let (of_rows, of_pairs) = (find(format!("{probe}_rows"))?, find(format!("{probe}_pairs"))?);
        let missing = |name: &str| wrong(&format!("column {name} is missing"));
        let text = |name| of_rows.texts(name).ok_or_else(|| missing(name));
        let i64s = |t: &'t Table, name| t.i64s(name).ok_or_else(|| missing(name));
        let f64s = |t: &'t Table, name| t.f64s(name).ok_or_else(|| missing(name));
        let i32s = |name| of_pairs.i32s(name).ok_or_else(|| missing(name));
        let tick_hz = of_rows.note("tick_hz").and_then(|t| t.parse().ok());
        let mut out = Self {
            tick_hz: tick_hz
                .filter(|hz: &f64| hz.is_finite() && *hz > 0.0)
                .ok_or_else(|| wrong("no clock rate"))?,
            step_ticks: of_rows.note("step_ticks").and_then(|t| t.parse().ok()).unwrap_or(1),
            rows: Vec::new(),
            facts: Facts::of_notes(&of_rows.notes),
        };
        let (parts, operations, kinds, rests) =
            (text("part")?, text("operation")?, text("kind")?, text("rest")?);
        let (short, long) = (i64s(of_rows, "short_turns")?, i64s(of_rows, "long_turns")?);
        let per_turn = f64s(of_rows, "per_turn")?;
        for i in 0..of_rows.rows() {
            let rest: Rest = serde_json::from_str(&rests[i]).map_err(|e| wrong(&format!("row {i}: {e}")))?;
            let [preempted, migrated, partner, failed] = rest.rejected;
            let kind = if kinds[i] == Kind::Latency.name() { Kind::Latency } else { Kind::Throughput };
            out.rows.push(Row {
                estimator: rest.estimator,
                is_core_clock: rest.is_core_clock,
                params: rest.params,
                short_turns: short[i].max(0) as u64,
                long_turns: long[i].max(0) as u64,
                per_turn: per_turn[i],
                rejected: Rejected { preempted, migrated, partner, failed },
                proof: rest.proof.map(|(what, expected, seen)| Proof { what, expected, seen }),
                extras: rest.extras,
                refused: rest.refused,
                ..Row::new(&parts[i], &operations[i], kind)
            });
        }
        let (rows, visits) = (i32s("row")?, i32s("visit")?);
        let (at, regime) = (f64s(of_pairs, "at_ns")?, f64s(of_pairs, "regime_ns")?);
        let (short, long) = (i64s(of_pairs, "short_ticks")?, i64s(of_pairs, "long_ticks")?);
        let (widths, additions) = (f64s(of_pairs, "core_width")?, f64s(of_pairs, "addition_ticks")?);
        for (i, row) in rows.iter().enumerate() {
            let Some(row) = usize::try_from(*row).ok().and_then(|r| out.rows.get_mut(r)) else {
                return Err(wrong(&format!("pair {i} is of no row")));
            };
            row.pairs.push(Pair {
                at_ns: at[i],
                visit: u32::try_from(visits[i]).unwrap_or(0),
                short_ticks: short[i].max(0) as u64,
                long_ticks: long[i].max(0) as u64,
                regime_ns: regime[i],
                core: CoreLook { width: widths[i], addition_ticks: additions[i] },
            });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fact;
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let mut row = Row::new("ladder", "chase", Kind::Latency).with("stride_bytes", 64_i64).per_turn(16.0);
        row.pairs = vec![
            Pair {
                at_ns: 1.5,
                visit: 2,
                short_ticks: 7,
                long_ticks: 19,
                regime_ns: 24.0,
                core: CoreLook { width: 3.5, addition_ticks: 0.7 }
            };
            3
        ];
        row.rejected.preempted = 4;
        row = row.of_batches().core_clock();
        row.proof = Some(Proof::new("faults", 8, 8));
        row.extras.insert("share_max".to_owned(), 0.5);
        let refused = Row::new("ops", "exec", Kind::Throughput).refused("no such file");
        let mut rows = Rows { tick_hz: 2.5e9, step_ticks: 26, rows: vec![row, refused], ..Rows::default() };
        rows.facts.set(&Fact::named("ladder.sizes_bytes"), vec![32_768_u64, 1 << 20]);
        let tables = rows.to_tables("memory");
        assert_eq!(Rows::from_tables("memory", &tables).unwrap(), rows);
        assert!(Rows::from_tables("ops", &tables).unwrap_err().to_string().contains("ops_rows is missing"));
        assert!(Rows::from_tables("memory", &tables[..1]).is_err());
    }
}
