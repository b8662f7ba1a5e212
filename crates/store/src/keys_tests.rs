//! Tests of the keys of earlier versions.
#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

use std::path::Path;

use machmeter_data::metric::params;
use machmeter_data::{MetricInfo, Unit};

use super::*;

/// A run of an earlier version: placements of CPUs 0 and 1, numbered by their share of the time, with the cost of a line transfer, ns.
fn old(by_share_ns: &[f64]) -> Record {
    let mut record = Record::default();
    for (number, ns) in (1_i64..).zip(by_share_ns) {
        for (from, to, kind, factor) in
            [(0_i64, 1_i64, "cas", 1.0), (1, 0, "cas", 1.02), (0, 1, "read_dirty", 2.0)]
        {
            let of = params([
                ("from", from.into()),
                ("to", to.into()),
                ("kind", kind.into()),
                (OLD, number.into()),
            ]);
            let info = MetricInfo::of("memory.core_to_core", Unit::Nanoseconds);
            record.metrics.push(Metric::new(&info, of, ns * factor, "median", 9));
        }
        let of = params([("from", 0_i64.into()), ("to", 1_i64.into()), (OLD, number.into())]);
        let info = MetricInfo::of("sync.regime_share", Unit::One);
        record.metrics.push(Metric::new(&info, of, 0.5, "time-share", 9));
    }
    record
}

fn read(mut record: Record) -> Vec<(String, f64)> {
    renew(&mut record);
    let mut keys: Vec<_> = record.metrics.iter().map(|m| (m.key(), m.value.unwrap())).collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    keys
}

#[test]
fn old_placements_join_by_cost_whichever_was_more_frequent() {
    let [a, b] = [&[27.0, 110.0][..], &[110.0, 27.0]].map(|ns| read(old(ns)));
    assert_eq!(a, b);
    assert!(
        a.contains(&("memory.core_to_core{from=0,kind=cas,placement=near,to=1}".to_owned(), 27.0)),
        "{a:?}"
    );
    assert!(
        a.contains(&("memory.core_to_core{from=0,kind=read_dirty,placement=far,to=1}".to_owned(), 220.0))
    );
    assert!(a.contains(&("sync.regime_share{from=0,placement=far,to=1}".to_owned(), 0.5)));
    let three = read(old(&[50.0, 110.0, 27.0]));
    assert!(three.iter().any(|(key, ns)| key.contains("placement=level 2 of 3") && *ns == 50.0), "{three:?}");
    // Without costs there is no order, so the old key stays.
    let mut none = old(&[27.0]);
    none.metrics.retain(|m| m.id == "sync.regime_share");
    assert_eq!(read(none)[0].0, "sync.regime_share{from=0,regime=1,to=1}");
}

#[test]
fn a_record_of_an_earlier_version_is_read_with_rows_that_find_their_figures() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/records/regimes.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"regime\""), "the fixture is of an earlier version");
    let record = crate::json::read(&path).unwrap();
    let placed = |m: &&Metric| is_placed(&m.id);
    assert!(record.metrics.iter().filter(placed).all(|m| m.params.contains_key(NEW)));
    let figures: Vec<_> =
        record.summary.rows.iter().flat_map(|r| &r.figures).filter(|f| is_placed(&f.id)).collect();
    assert!(figures.len() > 2 && figures.iter().all(|f| f.find(&record.metrics).is_some()), "{figures:?}");
}
