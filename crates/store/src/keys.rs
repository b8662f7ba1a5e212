//! Converts keys of earlier versions to the present ones, so that old and new runs join.
//!
//! Earlier versions numbered the placements of CPUs by their share of the time (`regime=1` had the largest). Two runs may then give one number to different
//! placements. The present names order placements by cost.

use std::collections::BTreeMap;

use machmeter_data::metric::ParamValue;
use machmeter_data::{Metric, Params, Record};
use machmeter_stats::regimes::level_name;

/// Metrics with a placement.
const PLACED: [&str; 2] = ["memory.core_to_core", "sync.regime_share"];
const OLD: &str = "regime";
const NEW: &str = "placement";

/// A pair of CPUs, independent of direction.
type Couple = [String; 2];

/// Renames the keys in metrics and rows. A pair without costs of its placements keeps its numbers.
pub(crate) fn renew(record: &mut Record) {
    let costs = costs(&record.metrics);
    let name = |params: &Params| {
        let (couple, number) = numbered(params)?;
        let by_number = costs.get(&couple)?;
        let own_ns = by_number.get(&number)?;
        let cheaper = by_number.iter().filter(|(n, ns)| (**ns, **n) < (*own_ns, number)).count();
        Some(level_name(cheaper, by_number.len()))
    };
    let renamed = |params: &mut Params| {
        if let Some(name) = name(params) {
            params.remove(OLD);
            params.insert(NEW.to_owned(), ParamValue::Text(name));
        }
    };
    record.metrics.iter_mut().filter(|m| is_placed(&m.id)).for_each(|m| renamed(&mut m.params));
    let figures = record.summary.rows.iter_mut().flat_map(|row| &mut row.figures);
    figures.filter(|f| is_placed(&f.id)).for_each(|f| renamed(&mut f.params));
}

fn is_placed(id: &str) -> bool {
    PLACED.contains(&id)
}

fn numbered(params: &Params) -> Option<(Couple, i64)> {
    let ParamValue::Int(number) = params.get(OLD)? else { return None };
    let mut couple = [params.get("from")?.to_string(), params.get("to")?.to_string()];
    couple.sort();
    Some((couple, *number))
}

/// Cost of a line transfer by pair and number of the placement, ns: the lower of both directions.
fn costs(metrics: &[Metric]) -> BTreeMap<Couple, BTreeMap<i64, f64>> {
    let mut out: BTreeMap<Couple, BTreeMap<i64, f64>> = BTreeMap::new();
    let is_cas =
        |m: &&Metric| is_placed(&m.id) && m.params.get("kind").is_some_and(|k| k.to_string() == "cas");
    for m in metrics.iter().filter(is_cas) {
        let Some((value_ns, (couple, number))) = m.value.zip(numbered(&m.params)) else { continue };
        let least_ns = out.entry(couple).or_default().entry(number).or_insert(value_ns);
        *least_ns = least_ns.min(value_ns);
    }
    out
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
