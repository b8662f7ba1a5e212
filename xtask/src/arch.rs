//! The architecture: each crate may use only crates of lower layers, and none of its own layer.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Crates by layer, lowest first. A crate that is not named here fails the check.
const LAYERS: [&[&str]; 5] = [
    &["machmeter-data"],
    &["machmeter-sys", "machmeter-stats"],
    &["machmeter-engine", "machmeter-model"],
    &[
        "machmeter-noise",
        "machmeter-interactive",
        "machmeter-costs",
        "machmeter-net",
        "machmeter-loads",
        "machmeter-doctor",
        "machmeter-compare",
        "machmeter-report",
        "machmeter-store",
    ],
    &["machmeter"],
];

/// Crates that must not use anything above the first two layers, wherever they stand: they work on records, and must not
/// be able to measure.
const RECORDS_ONLY: [&str; 3] = ["machmeter-compare", "machmeter-report", "machmeter-store"];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|l| l.contains(&name))
}

/// Why an edge is not allowed; `None` if it is.
fn objection(from: &str, to: &str) -> Option<String> {
    let (Some(a), Some(b)) = (layer(from), layer(to)) else {
        return Some(format!("{from} -> {to}: a crate without a layer; add it to LAYERS with an ADR"));
    };
    if b >= a {
        return Some(format!("{from} (L{a}) -> {to} (L{b}): only lower layers may be used"));
    }
    if RECORDS_ONLY.contains(&from) && (b > 1 || to == "machmeter-sys") {
        return Some(format!("{from} -> {to}: it works on records and may use only data and stats"));
    }
    None
}

/// Normal dependencies among the crates of the workspace.
fn edges(metadata: &Value) -> Result<Vec<(String, String)>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut edges = Vec::new();
    for p in packages {
        let from = p["name"].as_str().unwrap_or_default();
        if from == "xtask" {
            continue;
        }
        for d in p["dependencies"].as_array().into_iter().flatten() {
            let to = d["name"].as_str().unwrap_or_default();
            let is_dev = d["kind"].as_str() == Some("dev");
            if names.contains(&to) && !is_dev {
                edges.push((from.to_owned(), to.to_owned()));
            }
        }
    }
    Ok(edges)
}

/// Checks the workspace.
pub(crate) fn check(root: &Path) -> Result<()> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata could not be run")?;
    let metadata: Value = serde_json::from_slice(&out.stdout).context("cargo metadata gave no JSON")?;
    let edges = edges(&metadata)?;
    let wrong: Vec<String> = edges.iter().filter_map(|(a, b)| objection(a, b)).collect();
    if !wrong.is_empty() {
        bail!("the architecture is broken:\n  {}", wrong.join("\n  "));
    }
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (a, b) in &edges {
        uses.entry(a).or_default().push(b.trim_start_matches("machmeter-"));
    }
    println!("architecture: {} edges, all downward", edges.len());
    unsafe_stays_home(root)
}

/// Unsafe code is allowed in `sys` and in `kernel.rs` files only.
fn unsafe_stays_home(root: &Path) -> Result<()> {
    let out = Command::new("git")
        .args(["grep", "-nE", r"\bunsafe (\{|fn|impl|extern)", "--", "*.rs"])
        .current_dir(root)
        .output()
        .context("git grep could not be run")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let strayed: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with("crates/sys/") && !l.contains("/kernel.rs:"))
        .filter(|l| !l.starts_with("xtask/"))
        .collect();
    if strayed.is_empty() {
        Ok(())
    } else {
        bail!("unsafe code outside sys and kernel.rs:\n  {}", strayed.join("\n  "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_its_architecture() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn wrong_edges_are_named() {
        assert!(
            objection("machmeter-report", "machmeter-store").is_some(),
            "neighbors do not see each other"
        );
        assert!(objection("machmeter-stats", "machmeter-engine").is_some(), "upward");
        assert!(objection("machmeter-compare", "machmeter-engine").is_some(), "records only");
        assert!(objection("machmeter-store", "machmeter-sys").is_some(), "records only");
        assert!(objection("machmeter-noise", "machmeter-attic").is_some(), "no layer");
        assert!(
            objection("machmeter-interactive", "machmeter-noise").is_some(),
            "probes do not see each other"
        );
        assert!(objection("machmeter-noise", "machmeter-engine").is_none());
    }
}
