//! Finds the files of one run from the paths that the user gives.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{atomic, bounded};

use super::columns::number_after;
use super::side::{self, SideFacts};
use super::{Input, Result, SourceFile, StoreError, sure};

/// Largest file, MiB; the largest FTQ run writes 34 MB.
const LARGEST_MIB: u64 = 512;

/// Loads the files of `paths`, their partners, and the side file of their prefix.
/// Errors: a path without files, a folder, an unreadable file.
pub(super) fn load(paths: &[PathBuf]) -> Result<Input> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        for file in files_of(path)? {
            if !found.contains(&file) {
                found.push(file);
            }
        }
    }
    sure(!found.is_empty(), || StoreError::new(Path::new("input"), "no file given"))?;
    let mut input = Input::default();
    for path in &found {
        input.known = input.known.or(side_facts(path)?);
        input.files.push(SourceFile::new(path, &bytes_of(path)?));
    }
    drop_second_names(&mut input.files);
    Ok(input)
}

/// `x_counts.dat` is the name in FTQ's documents for the file that programs write as `x_0_counts.dat`. If both exist with the same content (a link, or a
/// copy), they are one file; with different content they are two runs.
fn drop_second_names(files: &mut Vec<SourceFile>) {
    for suffix in ["_counts.dat", "_times.dat"] {
        let second = files.iter().position(|f| {
            let first = f.name().strip_suffix(suffix).map(|stem| format!("{stem}_0{suffix}"));
            let first = first.map(|name| f.path.with_file_name(name));
            files.iter().any(|other| Some(&other.path) == first.as_ref() && other.text == f.text)
        });
        if let Some(i) = second {
            files.remove(i);
        }
    }
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    let wrong = |what: &str| StoreError::new(path, what);
    sure(!path.is_dir(), || wrong("a directory; name the files in it, or their common prefix"))?;
    if path.exists() {
        return Ok(std::iter::once(path.to_owned()).chain(partner(path).filter(|p| p.exists())).collect());
    }
    // FTQ's documents use PREFIX_counts.dat, the program writes PREFIX_0_counts.dat.
    let prefix = prefix_of(path).unwrap_or_else(|| path.to_owned());
    let mut files = files_with_prefix(&prefix);
    sure(!files.is_empty(), || wrong("no such file, and no files of a known format have this prefix"))?;
    files.sort();
    Ok(files)
}

fn partner(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let other = |from: &str, to: &str| Some(format!("{}{to}", name.strip_suffix(from)?));
    let other = other("_counts.dat", "_times.dat").or_else(|| other("_times.dat", "_counts.dat"));
    Some(path.with_file_name(other?))
}

/// `x` for `x_0_counts.dat`, `x_counts.dat`, `x_0.dat`, `x.0`.
fn prefix_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let prefix = match name.strip_suffix("_counts.dat").or_else(|| name.strip_suffix("_times.dat")) {
        Some(stem) => number_after(stem, '_').map_or(stem, |(before, _)| before),
        None => match name.strip_suffix(".dat") {
            Some(stem) => number_after(stem, '_')?.0,
            None => number_after(name, '.')?.0,
        },
    };
    Some(path.with_file_name(prefix))
}

fn files_with_prefix(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(atomic::folder_of(prefix)) else { return Vec::new() };
    let paths = entries.filter_map(|e| Some(prefix.with_file_name(e.ok()?.file_name())));
    paths.filter(|p| prefix_of(p).as_deref() == Some(prefix) && p.is_file()).collect()
}

fn side_facts(path: &Path) -> Result<SideFacts> {
    let Some(side) = prefix_of(path).map(|p| side::path_of(&p)).filter(|p| p.is_file()) else {
        return Ok(SideFacts::default());
    };
    let facts: SideFacts = serde_json::from_slice(&bytes_of(&side)?)
        .map_err(|e| StoreError::new(&side, format!("not a side file of machmeter: {e}")))?;
    facts.check(&side)?;
    Ok(facts)
}

fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    bounded::read(path, LARGEST_MIB, "file of a known format")
}
