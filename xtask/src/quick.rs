//! The checks for the desk: format, lints and unit tests of the crates that changed since `main`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::said;

/// Runs them, as `make quick`.
pub(crate) fn check(root: &Path) -> Result<()> {
    run(root, &["fmt", "--all", "--check"])?;
    let base = base(root)?;
    let changed = said(root, "git", &["diff", "--name-only", &base], &[])?;
    let new = said(root, "git", &["ls-files", "--others", "--exclude-standard"], &[])?;
    let packages = packages(changed.lines().chain(new.lines()));
    if packages.is_empty() {
        println!("quick: no crate changed since {base}");
        return Ok(());
    }
    println!("quick: {}", packages.iter().cloned().collect::<Vec<_>>().join(", "));
    let chosen: Vec<&str> = packages.iter().flat_map(|p| ["-p", p.as_str()]).collect();
    run(root, &[&["clippy", "--locked", "--all-targets"], &chosen[..], &["--", "-D", "warnings"]].concat())?;
    // The recorder and the chores are tested, too; test programs that run the whole meter are for `make test`.
    run(root, &[&["test", "--locked", "--lib", "--bins"], &chosen[..]].concat())
}

/// The commit at which this branch left `main`; on `main` itself that of the remote, or else the last commit.
fn base(root: &Path) -> Result<String> {
    let found = |name: &str| said(root, "git", &["merge-base", "HEAD", name], &[]).ok();
    let base =
        ["origin/main", "main"].into_iter().find_map(found).context("quick: this repository has no main")?;
    Ok(base.trim().to_owned())
}

/// Packages that own these files.
fn packages<'a>(files: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let package = |file: &str| {
        let mut parts = file.split('/');
        match (parts.next()?, parts.next()?) {
            ("crates", "machmeter") => Some("machmeter".to_owned()),
            ("crates", name) => Some(format!("machmeter-{name}")),
            ("xtask", _) => Some("xtask".to_owned()),
            _ => None,
        }
    };
    files.filter_map(package).collect()
}

fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let ended = Command::new(env!("CARGO")).args(arguments).current_dir(root).status().context("cargo")?;
    ensure!(ended.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_the_packages_that_own_them() {
        let files = [
            "README.md",
            "crates/sys/src/lib.rs",
            "crates/machmeter/tests/cli/main.rs",
            "xtask/src/main.rs",
            "crates/sys/Cargo.toml",
        ];
        let owners: Vec<String> = packages(files.into_iter()).into_iter().collect();
        assert_eq!(owners, ["machmeter", "machmeter-sys", "xtask"]);
    }
}
