//! The JSON Schemas in `schema/`: generated from the Rust types by the program itself, committed, and checked for drift.

use std::path::Path;

use anyhow::{Result, bail};

use crate::said;

/// Documents with a schema: argument of `machmeter schema`, file name.
const SCHEMAS: [(&str, &str); 9] = [
    ("record", "machmeter-result-1.0.schema.json"),
    ("comparison", "machmeter-comparison-1.0.schema.json"),
    ("interactive", "interactive-parameters.schema.json"),
    ("memory", "memory-parameters.schema.json"),
    ("noise", "noise-parameters.schema.json"),
    ("ops", "ops-parameters.schema.json"),
    ("mpi", "mpi-parameters.schema.json"),
    ("net", "net-parameters.schema.json"),
    ("sync", "sync-parameters.schema.json"),
];

/// What the program prints for `arguments`.
pub(crate) fn program(root: &Path, arguments: &[&str]) -> Result<String> {
    said(root, env!("CARGO"), &[&["run", "--quiet", "-p", "machmeter", "--"], arguments].concat(), &[])
}

/// Writes `text` to `path`, or checks that it stands there.
pub(crate) fn settle(path: &Path, text: &str, write: bool, chore: &str) -> Result<()> {
    if write {
        return Ok(std::fs::write(path, text)?);
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    if there != text {
        bail!("{} is out of date: run `cargo xtask {chore} --write` and commit it", path.display());
    }
    Ok(())
}

pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    for (what, file) in SCHEMAS {
        let text = program(root, &["schema", what])?;
        settle(&root.join("schema").join(file), &text, write, "schema")?;
    }
    println!("schema: {} documents {}", SCHEMAS.len(), if write { "written" } else { "up to date" });
    Ok(())
}
