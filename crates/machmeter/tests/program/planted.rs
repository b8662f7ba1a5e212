//! Records of known costs, for verbs that calculate with stored records.

use machmeter_data::metric::ParamValue;
use machmeter_data::record::{Run, Tool};
use machmeter_data::{Interval, Metric, MetricInfo, Record, Table, Unit};

use super::Lab;

pub(crate) fn record(id: &str) -> Record {
    let tool = Tool { name: "machmeter".to_owned(), version: "1".to_owned(), ..Tool::default() };
    Record::new(id.to_owned(), tool, Run::default())
}

/// Adds a figure that is known to `reach`, in its unit, on both sides; exactly where that is 0.
pub(crate) fn plant(
    record: &mut Record,
    id: &'static str,
    unit: Unit,
    keys: &[(&str, ParamValue)],
    value: f64,
    reach: f64,
) {
    let keys = keys.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let ci = Interval::new(0.95, value - reach, value + reach, "planted").filter(|_| reach > 0.0);
    record.metrics.push(Metric::new(&MetricInfo::of(id, unit), keys, value, "planted", 9).with_ci(ci));
}

/// Stores a record under this name in the working directory.
pub(crate) fn save(lab: &Lab, mut record: Record, tables: &[Table], name: &str) {
    machmeter_store::history::save_as(&mut record, tables, &lab.work().join(name)).unwrap();
}
