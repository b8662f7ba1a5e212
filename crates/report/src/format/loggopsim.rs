//! Exports options for `LogGOPSim` and its successor ATLAHS: one line per link, in ns. A second line is in ps if G is not a whole number of ns.

use std::io;

use machmeter_data::{Record, Table};

use super::ExportError;
use super::loggps::{Link, links};

/// Relative rounding error of G above which a comment states it.
const ROUNDED: f64 = 0.01;

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let links = links(record, "loggopsim")?;
    writeln!(out, "# {} {}: {}", record.tool.name, record.tool.version, record.run.started)?;
    let said = "L, o and g are those of the smallest messages, G is that of the largest; o is the mean of both ends.";
    writeln!(out, "# {said}")?;
    links.iter().try_for_each(|link| one(link, out))
}

fn one(link: &Link, out: &mut dyn io::Write) -> Result<(), ExportError> {
    let name = link.name();
    let first = &link.ranges[0];
    writeln!(out, "\n# {name}")?;
    if first.latency_ns.is_none() {
        writeln!(out, "# warning: L cannot be separated from the overheads; 0 is written")?;
    }
    let overheads = [first.send_ns, first.recv_ns];
    let o_ns = match overheads {
        [Some(send), Some(recv)] => f64::midpoint(send, recv),
        [one, other] => {
            writeln!(out, "# warning: an overhead was not measured; the other one, or 0, is written")?;
            one.or(other).unwrap_or(0.0)
        }
    };
    if first.gap_ns.is_none() {
        writeln!(out, "# warning: the CPUs limit the rate; g is the time per message, an upper bound")?;
    }
    let g_ns = first.gap_ns.or(first.message_ns).unwrap_or(0.0);
    let per_byte = link.per_byte().unwrap_or(0.0);
    let l_ns = first.latency_ns.unwrap_or(0.0);
    // A sender waits for messages above S. Without a threshold, S is the largest number, so it never waits.
    let s_bytes = link.threshold_bytes.unwrap_or(f64::from(u32::MAX));
    let whole = |scale: f64, per_byte: String| {
        let [l, o, g] = [l_ns, o_ns, g_ns].map(|ns| ns * scale);
        format!("-L {l:.0} -o {o:.0} -g {g:.0} -G {per_byte} -S {s_bytes:.0}")
    };
    if per_byte > 0.0 && (per_byte.round() / per_byte - 1.0).abs() > ROUNDED {
        let why = format!("LogGOPSim requires whole numbers, but G is {per_byte:.4} ns/B");
        writeln!(out, "# warning: {why}; in ps:")?;
        writeln!(out, "{}", whole(1e3, format!("{:.0}", per_byte * 1e3)))?;
        writeln!(out, "# in ns, for programs that accept a fraction (ATLAHS):")?;
    }
    writeln!(out, "{}", whole(1.0, format!("{per_byte:.4}")))?;
    Ok(())
}
