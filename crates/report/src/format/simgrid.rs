//! Exports properties of a `SimGrid` platform: overheads by size (`smpi/os`, `smpi/or`), factors of bandwidth and latency, thresholds, and a link.

use std::io;

use machmeter_data::{Record, Table};

use super::ExportError;
use super::loggps::{Link, Range, links};

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let links = links(record, "simgrid")?;
    writeln!(out, "<?xml version='1.0'?>")?;
    writeln!(out, "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">")?;
    writeln!(out, "<!-- {} {}: {} -->", record.tool.name, record.tool.version, record.run.started)?;
    // A document has one platform. Sockets between machines come first, because they are the usual link of a cluster.
    let chosen = links.iter().find(|l| l.transport == "tcp").unwrap_or(&links[0]);
    let others: Vec<String> = links.iter().map(Link::name).filter(|n| *n != chosen.name()).collect();
    if !others.is_empty() {
        let choose = "To choose: export --metric 'net.*transport=shm*'";
        writeln!(out, "<!-- Other links of the record: {}. {choose} -->", others.join(", "))?;
    }
    one(chosen, out)
}

/// `from:value;...` for the ranges that have a value; the first begins at 0.
fn by_size(link: &Link, value: impl Fn(&Range) -> Option<String>) -> String {
    let found: Vec<_> = link.ranges.iter().filter_map(|r| Some((r.from_bytes, value(r)?))).collect();
    let text =
        |(i, (from, value)): (usize, &(u64, String))| format!("{}:{value}", if i == 0 { 0 } else { *from });
    found.iter().enumerate().map(text).collect::<Vec<_>>().join(";")
}

fn one(link: &Link, out: &mut dyn io::Write) -> Result<(), ExportError> {
    let name = link.name();
    let Some(per_byte) = link.per_byte() else {
        let needs = "a time per byte of this link, but it is below the resolution";
        return Err(ExportError::NoFigures { format: "simgrid", needs });
    };
    let first = &link.ranges[0];
    let latency_s = first.latency_ns.unwrap_or(0.0) * 1e-9;
    writeln!(out, "<platform version=\"4.1\"><!-- {name} -->")?;
    if first.latency_ns.is_none() {
        writeln!(out, "  <!-- L cannot be separated from the overheads; 0 is written -->")?;
    }
    writeln!(out, "  <config>")?;
    let mut prop = |id: &str, value: String| -> io::Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        writeln!(out, "    <prop id=\"{id}\" value=\"{value}\"/>")
    };
    // An overhead with a fixed part only, s.
    let overhead = |ns: f64| format!("{:.5e}:0", ns * 1e-9);
    let factor = |own: f64| format!("{:.4}", per_byte / own);
    prop("smpi/os", by_size(link, |r| r.send_ns.map(overhead)))?;
    prop("smpi/or", by_size(link, |r| r.recv_ns.map(overhead)))?;
    prop("network/bandwidth-factor", by_size(link, |r| r.per_byte.filter(|g| *g > 0.0).map(factor)))?;
    prop("network/latency-factor", "0:1".to_owned())?;
    if let Some(bytes) = link.threshold_bytes {
        prop("smpi/async-small-thresh", format!("{bytes:.0}"))?;
        prop("smpi/send-is-detached-thresh", format!("{bytes:.0}"))?;
    }
    writeln!(out, "  </config>")?;
    writeln!(out, "  <zone id=\"machine\" routing=\"Full\">")?;
    writeln!(out, "    <host id=\"near\" speed=\"1Gf\"/><host id=\"far\" speed=\"1Gf\"/>")?;
    let rate = 1e9 / per_byte;
    writeln!(out, "    <link id=\"link\" bandwidth=\"{rate:.0}Bps\" latency=\"{latency_s:.5e}s\"/>")?;
    writeln!(out, "    <route src=\"near\" dst=\"far\"><link_ctn id=\"link\"/></route>")?;
    writeln!(out, "  </zone>\n</platform>")?;
    Ok(())
}
