//! The files of a run. Their paths are checked before the measurement, so that a mistyped path costs no measurement.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;

use clap::ArgMatches;
use machmeter_store::atomic::folder_of;
use machmeter_store::foreign::SideFacts;
use machmeter_store::foreign::write::{side_file, with_suffix};

use super::bench::Bench;
use crate::{Failure, Result};

/// The prefix given by `-o`, or `None` for stdout (`-s`), which takes the samples of one thread.
/// Errors: a usage error for several threads on stdout, else as [`prefix`].
pub(super) fn asked(name: &str, matches: &ArgMatches, threads: usize) -> Result<Option<PathBuf>> {
    let to_stdout = matches.get_flag("stdout");
    if to_stdout && threads > 1 {
        let what = format!("{name}: -s writes the samples of one thread, got {threads} threads");
        return Err(Failure::usage(what).help("leave out -s, or use -t 1"));
    }
    let given = matches.get_one::<OsString>("outname").filter(|_| !to_stdout);
    given.map(|given| prefix(name, given)).transpose()
}

/// The prefix, if files can be created with it.
/// Errors: a usage error for an impossible path (no such folder, no name after the last slash), else the error of the system.
pub(super) fn prefix(name: &str, given: &OsStr) -> Result<PathBuf> {
    let path = PathBuf::from(given);
    let shown = format!("{name}: -o {}", path.display());
    let bare = given.is_empty() || given.as_encoded_bytes().ends_with(b"/") || path.file_name().is_none();
    if bare {
        return Err(Failure::usage(format!(
            "{shown}: the prefix of the file names is missing after the directory"
        ))
        .help(format!("-o {}", path.join(name).display())));
    }
    let folder = folder_of(&path);
    let place = folder.display();
    let usage = |what: String| Err(Failure::usage(format!("{shown}: {what}")));
    let cannot = |what: String| Err(Failure::cannot(format!("{shown}: {what}")));
    match fs::metadata(folder) {
        Ok(m) if m.is_dir() => {}
        Ok(_) => return usage(format!("{place} is not a directory")),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            return cannot(format!("{place}: permission denied"));
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return usage(format!("the directory {place} does not exist"));
        }
        Err(e) => return usage(e.to_string()),
    }
    let trial = beside(&path, "trial");
    match File::create_new(&trial) {
        Ok(_) => {
            let _ = fs::remove_file(&trial);
            Ok(path)
        }
        Err(e) if e.kind() == ErrorKind::InvalidFilename => {
            usage("the name is too long for this file system".to_owned())
        }
        Err(e) => cannot(format!("cannot create a file in {place}: {e}")),
    }
}

/// Creates `PREFIX_counts.dat` and `PREFIX_times.dat`, names in FTQ's documents, as aliases of the files of thread 0. They are links, so that both always
/// agree; copies if the file system has no links.
pub(super) fn documented_names(prefix: &Path) -> Result<()> {
    for kind in ["counts", "times"] {
        let file = with_suffix(prefix, &format!("_0_{kind}.dat"));
        let alias = with_suffix(prefix, &format!("_{kind}.dat"));
        let Some(name) = file.file_name() else { continue };
        let temporary = beside(prefix, kind);
        let made = std::os::unix::fs::symlink(name, &temporary)
            .or_else(|_| fs::copy(&file, &temporary).map(|_| ()))
            .and_then(|()| fs::rename(&temporary, &alias));
        if let Err(e) = made {
            let _ = fs::remove_file(&temporary);
            return Err(Failure::cannot(format!("{}: {e}", alias.display())));
        }
    }
    Ok(())
}

/// Writes `PREFIX.machmeter.json` with the facts that the format cannot hold.
pub(super) fn side_facts(
    prefix: &Path,
    bench: &Bench,
    window_ticks: Option<u64>,
    lost_samples: Option<u64>,
) -> Result<()> {
    let facts = SideFacts {
        tick_hz: Some(bench.rate().hz()),
        window_ticks: window_ticks.and_then(|w| i64::try_from(w).ok()),
        cpus: bench.cpus.iter().filter_map(|c| i32::try_from(c).ok()).collect(),
        lost_samples,
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
    };
    side_file(prefix, &facts).map(|_| ()).map_err(Failure::cannot)
}

fn beside(path: &Path, kind: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!("_{kind}.{}.tmp", process::id()));
    path.with_file_name(name)
}
