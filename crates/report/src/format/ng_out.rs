//! The eleven columns of Netgauge's `-x loggp` (`ng.out`), for scripts that read them; in us and us per byte, as there.

use std::io;

use machmeter_data::shape::CurveRow;
use machmeter_data::{Record, Shape, Table};

use super::ExportError;
use super::loggps::links;

/// Messages of a train.
const TRAIN: f64 = 16.0;

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let links = links(record, "ng-out")?;
    writeln!(out, "# {} {}: {}", record.tool.name, record.tool.version, record.run.started)?;
    writeln!(
        out,
        "# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G), in us and us per byte"
    )?;
    writeln!(
        out,
        "# L, o_s, o_r, g and G are of the range of sizes; 0 where they are not known; lsqu is not computed"
    )?;
    for link in &links {
        let name = link.name();
        writeln!(out, "# {name}")?;
        let of = |id: &str| -> Option<&CurveRow> {
            let curves = record.datasets.iter().filter(|d| d.id == id);
            curves
                .filter_map(|d| if let Shape::Curve(c) = &d.shape { Some(c) } else { None })
                .find_map(|c| c.rows.iter().find(|r| r.name == name))
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
            let us = |ns: Option<f64>| ns.unwrap_or(0.0) / 1e3;
            writeln!(
                out,
                "{bytes:.0} {TRAIN:.0} {:.6} {:.6} {:.6} {:.6} {:.6} {:.6} {:.6} {:.9} 0",
                round_trip_ns / 1e3,
                train_ns / 1e3,
                worked_ns / 1e3,
                us(range.latency_ns),
                us(range.send_ns),
                us(range.recv_ns),
                us(range.gap_ns.or(range.message_ns)),
                us(range.per_byte),
            )?;
        }
    }
    Ok(())
}
