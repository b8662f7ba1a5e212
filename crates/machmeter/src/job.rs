//! Job files: the probes to run and their parameters, in TOML. A table per probe; its keys are the flags of the probe.

use std::path::Path;

use machmeter_engine::Entry;
use machmeter_engine::probe::{Command, Destination, Parameters};
use machmeter_store::bounded;
use serde_json::{Map, Value};

use crate::{Failure, Registries, Result};

/// A probe and its parameters; missing ones have the defaults of the command line.
pub(crate) type Part = (&'static Entry, Value);

/// All probes with the parameters and the order of the page.
pub(crate) fn everything(registries: &Registries) -> Vec<Part> {
    let mut probes: Vec<&'static Entry> = registries.probes.iter().filter(|p| p.page.weight > 0).collect();
    probes.sort_by_key(|p| p.page.place);
    let parameters = |p: &Entry| serde_json::from_str(p.page.parameters);
    probes.into_iter().map(|p| (p, parameters(p).unwrap_or_else(|_| Value::Object(Map::new())))).collect()
}

/// Largest job file, MiB; names and parameters of all probes take a few kilobytes.
const MOST_MIB: u64 = 1;

/// The parts of a job file, in the order of the registry.
/// Errors: an unreadable or invalid file, or an unknown probe: one line with the valid names.
pub(crate) fn load(registries: &Registries, path: &Path) -> Result<Vec<Part>> {
    let bytes = bounded::read(path, MOST_MIB, "job").map_err(Failure::usage)?;
    let parsed = String::from_utf8(bytes).map_err(Failure::usage).and_then(|text| parse(registries, &text));
    parsed.map_err(|f| Failure { what: format!("{}: {}", path.display(), f.what), ..f })
}

/// The programs and the files that the parts request.
/// Errors: invalid parameters of a probe.
pub(crate) fn asked_for(parts: &[Part]) -> Result<(Vec<Command>, Vec<Destination>)> {
    let (mut commands, mut destinations) = (Vec::new(), Vec::new());
    for (entry, value) in parts {
        commands.extend((entry.commands)(&Parameters::Job(value))?);
        destinations.extend((entry.destinations)(&Parameters::Job(value))?);
    }
    Ok((commands, destinations))
}

pub(crate) fn parse(registries: &Registries, text: &str) -> Result<Vec<Part>> {
    let tables: Map<String, Value> = toml::from_str(text).map_err(|e| Failure::usage(e.to_string()))?;
    let names: Vec<&str> = registries.probes.iter().map(|p| p.info.name).collect();
    if let Some(unknown) = tables.keys().find(|k| !names.contains(&k.as_str())) {
        return Err(
            Failure::usage(format!("no probe '{unknown}'")).help(format!("probes: {}", names.join(", ")))
        );
    }
    let parts: Vec<Part> =
        registries.probes.iter().filter_map(|p| Some((p, tables.get(p.info.name)?.clone()))).collect();
    if parts.is_empty() {
        return Err(
            Failure::usage("the job names no probe").help(format!("add a table, for example [{}]", names[0]))
        );
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_names_probes_and_their_parameters() {
        let r = Registries::default();
        let parts = parse(&r, "[noise]\nquantum = \"63\"\n").unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].1["quantum"], "63");
        assert!(parse(&r, "[nois]\n").unwrap_err().what.contains("no probe 'nois'"));
        assert!(parse(&r, "").unwrap_err().what.contains("names no probe"));
        assert!(parse(&r, "[noise\n").is_err());
    }
}
