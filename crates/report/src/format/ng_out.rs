//! Exports the eleven columns of Netgauge's `-x loggp` (`ng.out`) for scripts that read them; in us and us per byte, as in Netgauge.

use std::io;

use machmeter_data::shape::CurveRow;
use machmeter_data::{Record, Table};

use super::ExportError;
use super::loggps::links;

/// Number of messages in a train.
const TRAIN: f64 = 16.0;

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let links = links(record, "ng-out")?;
    writeln!(out, "# {} {}: {}", record.tool.name, record.tool.version, record.run.started)?;
    for said in [
        "size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G), in us and us per byte",
        "L, o_s, o_r, g and G are those of the range of sizes, 0 if unknown; lsqu is not computed",
    ] {
        writeln!(out, "# {said}")?;
    }
    for link in &links {
        let name = link.name();
        writeln!(out, "# {name}")?;
        let of = |id: &str| -> Option<&CurveRow> {
            let mut curves = record.datasets(id).filter_map(|d| d.shape.curve());
            curves.find_map(|c| c.rows.iter().find(|r| r.name == name))
        };
        let family = if link.transport == "mpi" { "mpi" } else { "net" };
        let curves = ["one_way", "time_per_message"].map(|curve| of(&format!("{family}.{curve}")));
        let [Some(one_way), Some(gaps)] = curves else { continue };
        for (i, bytes) in gaps.x.iter().enumerate() {
            let Some(at) = one_way.x.iter().position(|x| x.to_bits() == bytes.to_bits()) else { continue };
            let round_trip_ns = 2.0 * one_way.y[at];
            let train_ns = round_trip_ns + (TRAIN - 1.0) * gaps.y[i];
            let range = link.ranges.iter().rev().find(|r| r.from_bytes as f64 <= *bytes);
            let range = range.unwrap_or(&link.ranges[0]);
            let worked_ns = round_trip_ns + (TRAIN - 1.0) * (range.send_ns.unwrap_or(0.0) + round_trip_ns);
            let parameters =
                [range.latency_ns, range.send_ns, range.recv_ns, range.gap_ns.or(range.message_ns)];
            let trips = [round_trip_ns, train_ns, worked_ns].map(Some);
            let us = |ns: Option<f64>| ns.unwrap_or(0.0) / 1e3;
            let times: String =
                trips.iter().chain(&parameters).map(|ns| format!(" {:.6}", us(*ns))).collect();
            writeln!(out, "{bytes:.0} {TRAIN:.0}{times} {:.9} 0", us(range.per_byte))?;
        }
    }
    Ok(())
}
