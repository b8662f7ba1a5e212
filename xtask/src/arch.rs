//! The architecture: each crate may use only crates of lower layers, and none of its own layer.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{files, none, said};

/// Crates by layer, lowest first, without `machmeter-`. A crate that is not named here fails the check.
const LAYERS: [&str; 6] = [
    "data",
    "sys stats",
    "loops model flow",
    "engine",
    "noise interactive costs net mpi flow-probe loads doctor compare report simulate store",
    "machmeter pmpi machine-code",
];

/// Crates that must not use anything above the first two layers, wherever they stand: they work on records, and must not
/// be able to measure. Models are pure functions, which a simulation may use.
const RECORDS_ONLY: [&str; 4] = ["compare", "report", "simulate", "store"];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|l| l.split(' ').any(|own| own == name))
}

/// Why an edge is not allowed; `None` if it is.
fn objection(from: &str, to: &str) -> Option<String> {
    let [from, to] = [from, to].map(|name| name.strip_prefix("machmeter-").unwrap_or(name));
    let (Some(a), Some(b)) = (layer(from), layer(to)) else {
        return Some(format!("{from} -> {to}: a crate without a layer; add it to LAYERS with an ADR"));
    };
    if b >= a {
        return Some(format!("{from} (L{a}) -> {to} (L{b}): only lower layers may be used"));
    }
    if from == "pmpi" {
        return Some(format!(
            "{from} -> {to}: one call of the compiler builds the recorder, without other crates"
        ));
    }
    let measures = b > 1 || to == "sys";
    if RECORDS_ONLY.contains(&from) && measures && (from, to) != ("simulate", "model") {
        return Some(format!("{from} -> {to}: it works on records and may use only data and stats"));
    }
    None
}

fn edges(metadata: &Value) -> Result<Vec<(String, String)>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut edges = Vec::new();
    for p in packages.iter().filter(|p| p["name"] != "xtask") {
        let used = p["dependencies"].as_array().into_iter().flatten().filter(|d| d["kind"] != "dev");
        let used = used.filter_map(|d| d["name"].as_str()).filter(|to| names.contains(to));
        edges.extend(used.map(|to| (p["name"].as_str().unwrap_or_default().to_owned(), to.to_owned())));
    }
    Ok(edges)
}

/// Checks the workspace.
pub(crate) fn check(root: &Path) -> Result<()> {
    let listed = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let metadata: Value = serde_json::from_str(&said(root, env!("CARGO"), &listed, &[])?)?;
    let edges = edges(&metadata)?;
    let wrong: Vec<String> = edges.iter().filter_map(|(a, b)| objection(a, b)).collect();
    none(&wrong, "the architecture is broken")?;
    println!("architecture: {} edges, all downward", edges.len());
    unsafe_stays_home(root)?;
    buffers_have_a_place(root)
}

/// Unsafe code is allowed in `sys`, in the recorder `pmpi`, in `kernel.rs` files and in modules of theirs only.
fn unsafe_stays_home(root: &Path) -> Result<()> {
    let search = ["grep", "-nE", r"\bunsafe (\{|fn|impl|extern)", "--", "*.rs"];
    // Code 1: nothing was found.
    let text = said(root, "git", &search, &[1])?;
    // The recorder is loaded into MPI programs and called by C: see decision 30.
    let homes = ["crates/sys/", "crates/pmpi/", "xtask/"];
    let home = |l: &str| {
        homes.iter().any(|h| l.starts_with(h)) || l.contains("/kernel.rs:") || l.contains("/kernel/")
    };
    let strayed: Vec<String> = text.lines().filter(|l| !home(l)).map(str::to_owned).collect();
    none(&strayed, "unsafe code outside sys, pmpi and kernel.rs")
}

/// Sources of timed calls, and of the messages of `net` and `mpi`.
const COPYING: [&str; 8] = [
    "crates/loops/src/ops/*.rs",
    "crates/loops/src/net/*.rs",
    "crates/loops/src/mpi/*.rs",
    "crates/net/src/near.rs",
    "crates/net/src/far.rs",
    "crates/sys/src/call/*.rs",
    "crates/sys/src/link/*.rs",
    "crates/sys/src/stdio.rs",
];

/// No timed call copies to or from the heap, which puts blocks where it likes: such a buffer is a `machmeter_sys::buffer::Buffer`.
fn buffers_have_a_place(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for path in files(root, &COPYING)?.iter().filter(|p| !p.ends_with("tests.rs")) {
        let text = std::fs::read_to_string(path)?;
        let timed = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        let shown = path.strip_prefix(root).unwrap_or(path).display();
        let heap = timed.lines().zip(1..).filter(|(line, _)| on_the_heap(line));
        found.extend(heap.map(|(line, n)| format!("{shown}:{n}: {}", line.trim())));
    }
    none(&found, "buffers of timed calls on the heap")
}

/// Whether a line makes or names a heap buffer of bytes, or a vector of equal elements.
fn on_the_heap(line: &str) -> bool {
    let repeated = |after: &str| after.split_once(']').is_some_and(|(elements, _)| elements.contains("; "));
    line.contains("Vec<u8>") || line.split("vec![").skip(1).any(repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_buffers_are_seen() {
        for line in [
            "page: Vec<u8>,",
            "let mut page = vec![0_u8; 4 << 10];",
            "let (a, b) = (vec![1, 2], vec![0.0; n]);",
        ] {
            assert!(on_the_heap(line), "{line}");
        }
        for line in
            ["receive_ns: Vec<f64>,", "vec![plan(a), plan(b)]", "let event = [0_u8; 8];", "message: Buffer,"]
        {
            assert!(!on_the_heap(line), "{line}");
        }
    }

    #[test]
    fn wrong_edges_are_named() {
        for (from, to, why) in [
            ("machmeter-report", "machmeter-store", "neighbors do not see each other"),
            ("machmeter-stats", "machmeter-engine", "upward"),
            ("machmeter-compare", "machmeter-engine", "records only"),
            ("machmeter-store", "machmeter-sys", "records only"),
            ("machmeter-simulate", "machmeter-engine", "it cannot measure"),
            ("machmeter-noise", "machmeter-attic", "no layer"),
            ("machmeter-interactive", "machmeter-noise", "probes do not see each other"),
            ("machmeter-pmpi", "machmeter-data", "it uses no crate"),
        ] {
            assert!(objection(from, to).is_some(), "{why}");
        }
        assert!(objection("machmeter-noise", "machmeter-engine").is_none());
        assert!(objection("machmeter-simulate", "machmeter-model").is_none());
    }
}
