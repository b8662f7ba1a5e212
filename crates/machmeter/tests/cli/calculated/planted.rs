//! Records with known costs, for verbs that calculate with stored records.

use machmeter_data::metric::ParamValue;
use machmeter_data::record::{Run, Tool};
use machmeter_data::{Record, Table, Unit};

use super::given::plant;
use crate::program::Lab;

pub(crate) fn record(id: &str) -> Record {
    let tool = Tool { name: "machmeter".to_owned(), version: "1".to_owned(), ..Tool::default() };
    Record::new(id.to_owned(), tool, Run::default())
}

/// Adds a link: o 100 ns, L 500 ns, g 200 ns, G 0.5 ns/B, each with the relative half-width `reach`.
pub(crate) fn plant_link(record: &mut Record, probe: &str, keys: &[(&str, ParamValue)], reach: f64) {
    let costs = [("latency", 500.0), ("overhead_send", 100.0), ("overhead_recv", 100.0)];
    for (figure, ns) in costs.into_iter().chain([("gap", 200.0), ("message_time", 200.0)]) {
        plant(record, &format!("{probe}.{figure}"), Unit::Nanoseconds, keys, ns, reach * ns);
    }
    plant(record, &format!("{probe}.gap_per_byte"), Unit::NanosecondsPerByte, keys, 0.5, 0.0);
}

/// Stores a record under this name in the working directory.
pub(crate) fn save(lab: &Lab, mut record: Record, tables: &[Table], name: &str) {
    machmeter_store::history::save_as(&mut record, tables, &lab.work().join(name)).unwrap();
}
