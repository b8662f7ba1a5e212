//! Rows as tables of raw samples, and back. One format for every probe that measures costs.

use std::collections::BTreeMap;

use machmeter_data::Table;
use machmeter_data::quantity::Unit;
use machmeter_data::samples::{Column, Values};
use serde::{Deserialize, Serialize};

use super::{Facts, Kind, Pair, Proof, Row, Rows};
use crate::disturbance::Rejected;
use crate::disturbance::sibling::CoreLook;
use crate::probe::ProbeError;

/// What is told of a row beside its samples, as JSON in a cell.
#[derive(Serialize, Deserialize)]
struct Rest {
    params: machmeter_data::metric::Params,
    rejected: [u64; 4],
    proof: Option<(String, u64, u64)>,
    extras: BTreeMap<String, f64>,
    refused: Option<String>,
}

impl Rows {
    /// As two tables, `PROBE_rows` and `PROBE_pairs`.
    pub fn to_tables(&self, probe: &str) -> Vec<Table> {
        let text = |f: &dyn Fn(&Row) -> String| Values::Text(self.rows.iter().map(f).collect());
        let column = |name: &str, unit, values| Column { name: name.to_owned(), unit, values };
        let rest = |r: &Row| {
            let rest = Rest {
                params: r.params.clone(),
                rejected: [r.rejected.preempted, r.rejected.migrated, r.rejected.partner, r.rejected.failed],
                proof: r.proof.as_ref().map(|p| (p.what.clone(), p.expected, p.seen)),
                extras: r
                    .extras
                    .iter()
                    .filter(|(_, v)| v.is_finite())
                    .map(|(k, v)| (k.clone(), *v))
                    .collect(),
                refused: r.refused.clone(),
            };
            serde_json::to_string(&rest).unwrap_or_default()
        };
        let turns = |f: fn(&Row) -> u64| Values::I64(self.rows.iter().map(|r| f(r) as i64).collect());
        let rows = vec![
            column("part", Unit::One, text(&|r| r.part.clone())),
            column("operation", Unit::One, text(&|r| r.operation.clone())),
            column("kind", Unit::One, text(&|r| r.kind.name().to_owned())),
            column("short_turns", Unit::Count, turns(|r| r.short_turns)),
            column("long_turns", Unit::Count, turns(|r| r.long_turns)),
            column("per_turn", Unit::Count, Values::F64(self.rows.iter().map(|r| r.per_turn).collect())),
            column("rest", Unit::One, text(&rest)),
        ];
        let pairs: Vec<(i32, &Pair)> = self
            .rows
            .iter()
            .enumerate()
            .flat_map(|(i, r)| r.pairs.iter().map(move |p| (i as i32, p)))
            .collect();
        let i64s = |f: fn(&Pair) -> u64| Values::I64(pairs.iter().map(|(_, p)| f(p) as i64).collect());
        let f64s = |f: fn(&Pair) -> f64| Values::F64(pairs.iter().map(|(_, p)| f(p)).collect());
        let pairs = vec![
            column("row", Unit::Count, Values::I32(pairs.iter().map(|(i, _)| *i).collect())),
            column("at_ns", Unit::Nanoseconds, f64s(|p| p.at_ns)),
            column(
                "visit",
                Unit::Count,
                Values::I32(pairs.iter().map(|(_, p)| p.visit.cast_signed()).collect()),
            ),
            column("short_ticks", Unit::Ticks, i64s(|p| p.short_ticks)),
            column("long_ticks", Unit::Ticks, i64s(|p| p.long_ticks)),
            column("regime_ns", Unit::Nanoseconds, f64s(|p| p.regime_ns)),
            column("core_width", Unit::One, f64s(|p| p.core.width)),
            column("addition_ticks", Unit::Ticks, f64s(|p| p.core.addition_ticks)),
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
    pub fn from_tables(probe: &str, tables: &[Table]) -> Result<Self, ProbeError> {
        let wrong = |what: &str| ProbeError::Usage(format!("these samples are no {probe} samples: {what}"));
        let find = |name: String| {
            tables.iter().find(|t| t.name == name).ok_or_else(|| wrong(&format!("table {name} is missing")))
        };
        let (of_rows, of_pairs) = (find(format!("{probe}_rows"))?, find(format!("{probe}_pairs"))?);
        let text = |name: &str| match of_rows.column(name).map(|c| &c.values) {
            Some(Values::Text(v)) => Ok(v.clone()),
            _ => Err(wrong(&format!("column {name} is missing"))),
        };
        let i64s = |t: &Table, name: &str| {
            t.i64s(name).map(<[i64]>::to_vec).ok_or_else(|| wrong(&format!("column {name} is missing")))
        };
        let f64s = |t: &Table, name: &str| match t.column(name).map(|c| &c.values) {
            Some(Values::F64(v)) => Ok(v.clone()),
            _ => Err(wrong(&format!("column {name} is missing"))),
        };
        let note = |name: &str| of_rows.notes.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
        let tick_hz =
            note("tick_hz").and_then(|t| t.parse().ok()).filter(|hz: &f64| hz.is_finite() && *hz > 0.0);
        let mut out = Self {
            tick_hz: tick_hz.ok_or_else(|| wrong("no clock rate"))?,
            step_ticks: note("step_ticks").and_then(|t| t.parse().ok()).unwrap_or(1),
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
            out.rows.push(Row {
                part: parts[i].clone(),
                operation: operations[i].clone(),
                params: rest.params,
                kind: if kinds[i] == Kind::Latency.name() { Kind::Latency } else { Kind::Throughput },
                short_turns: short[i].max(0) as u64,
                long_turns: long[i].max(0) as u64,
                per_turn: per_turn[i],
                pairs: Vec::new(),
                rejected: Rejected { preempted, migrated, partner, failed },
                proof: rest.proof.map(|(what, expected, seen)| Proof { what, expected, seen }),
                extras: rest.extras,
                refused: rest.refused,
            });
        }
        let i32s =
            |name: &str| of_pairs.i32s(name).ok_or_else(|| wrong(&format!("column {name} is missing")));
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
