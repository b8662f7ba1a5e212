//! `machmeter reference add RECORD...`: adds the figures of records to the ranges of usual values.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use machmeter_report::usual;
use machmeter_store::reference::Machine;

use super::report;
use crate::{Exit, Failure, Globals, Registries, Result, output, state};

pub(super) fn define(name: &'static str) -> Command {
    let records = Arg::new("record")
        .value_name("RECORD")
        .num_args(1..)
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("last, last~N, a tag, a record, or a report");
    Command::new(name)
        .about("Extend the ranges of usual values with your own records")
        .subcommand_required(true)
        .subcommand(Command::new("add").about("Add the figures of records to the ranges").arg(records))
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let names = matches.subcommand_matches("add").and_then(|m| m.get_many::<PathBuf>("record"));
    let mut new = Vec::new();
    for name in names.into_iter().flatten() {
        new.push(machine(registries, name)?);
    }
    let mut kinds: Vec<String> = new.iter().map(|(_, m)| m.kind.clone()).collect();
    let records = new.len();
    kinds.sort();
    kinds.dedup();
    let store = state::history().map_err(Failure::usage)?.reference();
    let all = store.add(new).map_err(Failure::cannot)?;
    let mut text = format!("{records} records added\n");
    for kind in kinds {
        let of_kind = || all.values().filter(|m| m.kind == kind);
        let ranges = usual::grown(of_kind().map(|m| (m.kind.as_str(), m.figures.as_slice()))).len();
        let (machines, least) = (of_kind().count(), usual::MIN_MACHINES);
        let ranges = format!("{ranges} figures with a range (from {least} machines on)");
        text += &format!("{kind}: {machines} machines, {ranges}\n");
    }
    output::print(&text).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}

/// The ranges collected on this machine; empty if no history is readable.
pub(super) fn grown() -> Vec<usual::Entry> {
    let machines = state::past().ok().and_then(|h| h.reference().machines().ok()).unwrap_or_default();
    usual::grown(machines.values().map(|m| (m.kind.as_str(), m.figures.as_slice())))
}

/// Fingerprint and figures of the machine of a record.
fn machine(registries: &Registries, name: &Path) -> Result<(String, Machine)> {
    let (record, _) = report::located(name)?;
    let refused = |why: &str| Failure::usage(format!("{}: {why}", name.display()));
    if !record.complete {
        return Err(refused("the run is not complete"));
    }
    let is_digest = |f: &String| f.len() == 64 && f.bytes().all(|b| b.is_ascii_hexdigit());
    let fingerprint = record.machine.fingerprint.clone().filter(is_digest);
    let fingerprint = fingerprint.ok_or_else(|| refused("the record has no fingerprint of the machine"))?;
    let kind = usual::kind(&record)
        .ok_or_else(|| refused("the kind of machine is unknown (guest, server, desktop, laptop, board)"))?;
    let mut figures = usual::figures(&record).map_err(|e| refused(&e))?;
    let registered = |id: &str| registries.probes.iter().flat_map(|p| p.info.metrics()).any(|m| m.id == id);
    figures.retain(|(key, ..)| registered(key.split('{').next().unwrap_or_default()));
    if figures.is_empty() {
        return Err(Failure::usage("the record has no figure in its rows without a warning"));
    }
    Ok((fingerprint, Machine { kind: kind.to_owned(), figures }))
}
