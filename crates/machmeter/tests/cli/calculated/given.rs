//! Planted figures and traced calls, for tests here and in the crate `simulate`.

use machmeter_data::metric::ParamValue;
use machmeter_data::trace::{EVENTS, OPERATIONS, SPANS};
use machmeter_data::{Column, Interval, Metric, MetricInfo, Record, Table, Unit, Values};

/// Adds a figure with a half-width of `reach` on both sides, in its unit; exact if `reach` is 0.
pub(crate) fn plant(
    record: &mut Record,
    id: &str,
    unit: Unit,
    keys: &[(&str, ParamValue)],
    value: f64,
    reach: f64,
) {
    let keys = keys.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let ci = Interval::new(0.95, value - reach, value + reach, "planted").filter(|_| reach > 0.0);
    let metric = Metric::new(&MetricInfo::of("", unit), keys, value, "planted", 9).with_ci(ci);
    record.metrics.push(Metric { id: id.to_owned(), ..metric });
}

/// Rank, operation, start, duration, bytes, peer, tag; ns.
pub(crate) type Row = (i32, &'static str, i64, i64, i64, i32, i32);

/// Calls over the world in any order, and the end of each rank.
pub(crate) fn tables(rows: &[Row], ends_ns: &[i64]) -> Vec<Table> {
    let column = |name: &str, values: Values| Column::new(name, Unit::Count, values);
    let ints = |name, of: fn(&Row) -> i32| column(name, rows.iter().map(of).collect::<Vec<_>>().into());
    let longs = |name, of: fn(&Row) -> i64| column(name, rows.iter().map(of).collect::<Vec<_>>().into());
    let columns = vec![
        ints("rank", |r| r.0),
        ints("thread", |_| 0),
        ints("operation", |r| OPERATIONS.iter().position(|o| o.name == r.1).unwrap() as i32),
        longs("start_ns", |r| r.2),
        longs("duration_ns", |r| r.3),
        longs("bytes", |r| r.4),
        ints("peer", |r| r.5),
        ints("tag", |r| r.6),
        ints("communicator", |_| 0),
    ];
    let mut events = Table::new(EVENTS, columns).unwrap();
    events.name_codes("operation", OPERATIONS.iter().map(|o| format!("MPI_{}", o.name)));
    let ranks: Vec<i32> = (0..ends_ns.len() as i32).collect();
    let spans = vec![column("rank", ranks.into()), column("end_ns", ends_ns.to_vec().into())];
    vec![events, Table::new(SPANS, spans).unwrap()]
}
