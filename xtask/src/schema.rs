//! The JSON Schemas in `schema/`: generated from the Rust types by the program itself, committed, and checked for drift.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::{said, settled};

/// Documents with a schema: argument of `machmeter schema`, beginning of the file's name.
const DOCUMENTS: [(&str, &str); 2] =
    [("record", "machmeter-result-1.0"), ("comparison", "machmeter-comparison-1.0")];
/// Probes with a schema of their parameters.
const PROBES: [&str; 7] = ["interactive", "memory", "noise", "ops", "mpi", "net", "sync"];

/// What the program prints for `arguments`.
pub(crate) fn program(root: &Path, arguments: &[&str]) -> Result<String> {
    said(root, env!("CARGO"), &[&["run", "--quiet", "-p", "machmeter", "--"], arguments].concat(), &[])
}

/// Writes `text` to `path`, or checks that it stands there.
pub(crate) fn settle(path: &Path, text: &str, write: bool, chore: &str) -> Result<()> {
    if write {
        return Ok(std::fs::write(path, text)?);
    }
    let (there, shown) = (std::fs::read_to_string(path).unwrap_or_default(), path.display());
    ensure!(there == text, "{shown} is out of date: run `cargo xtask {chore} --write` and commit it");
    Ok(())
}

pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    let of_probes = PROBES.map(|probe| (probe, format!("{probe}-parameters")));
    let all: Vec<_> =
        DOCUMENTS.map(|(what, name)| (what, name.to_owned())).into_iter().chain(of_probes).collect();
    for (what, name) in &all {
        let text = program(root, &["schema", what])?;
        settle(&root.join(format!("schema/{name}.schema.json")), &text, write, "schema")?;
    }
    println!("schema: {} documents {}", all.len(), settled(write));
    Ok(())
}
