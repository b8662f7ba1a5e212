//! Turns of collective operations, where there are several ranks.

use machmeter_data::Table;
use machmeter_engine::ProbeError;
use machmeter_stats::lateness::Turn;

use super::{Rows, missing, rows};
use crate::ranks::{COLLECTIVES, CollectiveSamples};
use crate::samples::Samples;

const NAME: &str = "noise_collectives";
const COLUMNS: [&str; 4] = ["operation", "last_rank", "cost_ticks", "delay_ticks"];

pub(super) fn table(samples: &Samples, notes: Vec<(String, String)>) -> Option<Table> {
    let mut rows = Rows::new(&COLUMNS);
    for c in &samples.collectives {
        let operation = COLLECTIVES.iter().position(|o| *o == c.collective).unwrap_or(0) as i64;
        for t in &c.turns {
            rows.push([operation, t.last as i64, t.cost.round() as i64, t.delay.round() as i64]);
        }
    }
    let mut table = rows.table(NAME, notes);
    table.name_codes("operation", COLLECTIVES.iter().map(|c| c.name().to_owned()));
    (!samples.collectives.is_empty()).then_some(table)
}

/// Errors: a column that is missing, an operation that is none.
pub(super) fn read(tables: &[Table]) -> Result<Vec<CollectiveSamples>, ProbeError> {
    let Some(table) = tables.iter().find(|t| t.name == NAME) else { return Ok(Vec::new()) };
    let mut all: Vec<CollectiveSamples> = Vec::new();
    for [operation, last, cost, delay] in rows(table, COLUMNS)? {
        let of = usize::try_from(operation).ok().and_then(|o| COLLECTIVES.get(o));
        let collective = *of.ok_or_else(|| missing(table, "operation"))?;
        let turn = Turn { cost: cost as f64, delay: delay as f64, last: usize::try_from(last).unwrap_or(0) };
        match all.iter_mut().find(|c| c.collective == collective) {
            Some(c) => c.turns.push(turn),
            None => all.push(CollectiveSamples { collective, turns: vec![turn] }),
        }
    }
    Ok(all)
}
