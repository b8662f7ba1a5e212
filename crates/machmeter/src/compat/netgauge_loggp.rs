//! Netgauge's `-x loggp` with the net probe: a line per size, and the eleven columns of `ng.out`. It needs no MPI; under an MPI launcher, the link is that
//! of two ranks.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use machmeter_engine::Entry;
use machmeter_engine::host::Silent;
use machmeter_engine::probe::Parameters;
use machmeter_report::format::by_name;
use serde_json::json;

use super::{file, time};
use crate::command::attended;
use crate::session::Session;
use crate::{Exit, Failure, Globals, Registries, Result, output};

pub(super) fn define(name: &'static str) -> Command {
    let text = |short: char, long: &'static str, value: &'static str, help: &'static str| {
        Arg::new(long).short(short).long(long).value_name(value).help(help)
    };
    Command::new(name)
        .about("Netgauge's LogGP parameters of a link between two CPUs (-x loggp)")
        .arg(text('x', "comm_pattern", "PATTERN", "loggp; -x noise is `selfish`").required(true))
        .arg(text('m', "mode", "MODE", "Transport of `machmeter net`, in place of MPI").default_value("shm"))
        .arg(
            text('s', "size", "MIN-MAX", "Message sizes, bytes; in equal ratios, not in steps of 1 KiB")
                .default_value("1-131072"),
        )
        .arg(file("output", "FILE", "File to write, - for stdout").default_value("ng.out"))
        .arg(time("Run time"))
}

pub(super) fn run(name: &str, registries: &Registries, matches: &ArgMatches) -> Result<Exit> {
    let given = |id: &str| matches.get_one::<String>(id).map_or("", String::as_str);
    if given("comm_pattern") != "loggp" {
        return Err(Failure::usage(format!("{name}: -x {}: only loggp is supported", given("comm_pattern")))
            .help("`machmeter compat selfish` is -x noise"));
    }
    // Under an MPI launcher, the link is that of its first two ranks.
    let is_launched = machmeter_sys::mpi::launched().is_some_and(|l| l.size > 1);
    let (name, params) = if is_launched {
        ("mpi", json!({ "parts": ["loggps"], "sizes": given("size"), "launches": 1 }))
    } else {
        ("net", json!({ "transports": [given("mode")], "sizes": given("size") }))
    };
    let entry = registries.probes.iter().find(|p| p.info.name == name);
    let entry = entry.ok_or_else(|| Failure::cannot("no probe of links"))?;
    let parameters = Parameters::Job(&params);
    attended(entry, &parameters, false, || measure(registries, matches, entry, &parameters))
}

fn measure(
    registries: &Registries,
    matches: &ArgMatches,
    entry: &'static Entry,
    parameters: &Parameters<'_>,
) -> Result<Exit> {
    let format = by_name("ng-out").ok_or_else(|| Failure::cannot("no format of Netgauge"))?;
    let none = Globals::augment_args(Command::new("")).get_matches_from([entry.info.name]);
    let defaults = Globals::from_arg_matches(&none).map_err(Failure::usage)?;
    let time_ns = matches.get_one::<u64>("time").copied().unwrap_or(10_000_000_000);
    let session = Session::begin(registries, &defaults, time_ns)?;
    let budget_ns = session.budget.left_ns();
    let outcome = session.run(budget_ns, &Silent, |host| (entry.run)(host, parameters))?;
    let (record, tables) =
        session.end(entry.info.name, outcome.map(|o| (entry.info, o)).into_iter().collect());
    let mut text = Vec::new();
    (format.write)(&record, &tables, &mut text).map_err(Failure::cannot)?;
    let text = String::from_utf8_lossy(&text);
    let file = matches.get_one::<OsString>("output").cloned().unwrap_or_default();
    output::put(Path::new(&file), &text).map_err(Failure::cannot)?;
    if file != "-" {
        output::print(&lines(&text)).map_err(Failure::cannot)?;
    }
    Ok(if record.complete { Exit::Fine } else { Exit::Partial })
}

/// Netgauge's line for each size, with the bandwidth in GB/s.
fn lines(columns: &str) -> String {
    let line = |text: &str| {
        let cells: Vec<f64> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [size, .., l, o_s, o_r, g, per_byte, _] = cells[..] else { return None };
        let rate = if per_byte > 0.0 { format!("{:.3} GB/s", 1e-3 / per_byte) } else { "-".to_owned() };
        Some(format!(" L={l:.6}  s={size}  o_s={o_s:.6}  o_r={o_r:.6}  g={g:.6}  G={per_byte:.6} ({rate})\n"))
    };
    columns.lines().filter(|l| !l.starts_with('#')).filter_map(line).collect()
}
