//! `loops_per_ms`: how often the spinning loop turns in a millisecond of CPU time. A job's length does not hang on it (the
//! thread's clock doses it), except under `-l`; it is kept so that a later run can tell a machine that has changed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use machmeter_engine::cpu_work::Spinner;
use machmeter_sys::thread;

use crate::failure::Failure;

/// Name of the file, in the state directory and in the current one.
pub(super) const FILE: &str = "interbench.loops_per_ms";
/// Calibrations of about 3 ms each, and the wall time after which no further one is begun, ns.
const CALIBRATIONS: usize = 9;
const WITHIN_NS: u64 = 400_000_000;
/// A saved value that differs by more is of another machine, frequency, or loop.
const TOLERANCE: f64 = 0.10;

/// What is used, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loops {
    pub(super) per_ms: u64,
    pub(super) said: Vec<String>,
}

/// Turns per ms of this machine now: the median of some calibrations, bounded in time.
pub(super) fn calibrate() -> u64 {
    let end_ns = thread::monotonic_ns() + WITHIN_NS;
    let mut rates: Vec<f64> = Vec::new();
    while rates.len() < CALIBRATIONS && (rates.is_empty() || thread::monotonic_ns() < end_ns) {
        rates.push(Spinner::calibrate().turns_per_ms());
    }
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2].round().max(1.0) as u64
}

/// The value to use: from `-l`; else a saved one (in `here`, then in `state`); else `measured`, which is saved in `state`.
pub(super) fn choose(
    given: Option<u64>,
    recalibrate: bool,
    measured: u64,
    here: &Path,
    state: Option<&Path>,
) -> Loops {
    let mut said = Vec::new();
    if let Some(per_ms) = given {
        said.push(format!("loops_per_ms specified from command line; this machine makes {measured}"));
        return Loops { per_ms, said };
    }
    if !recalibrate {
        for file in std::iter::once(here).chain(state).map(|dir| dir.join(FILE)) {
            match saved(&file) {
                Ok(Some(per_ms)) => {
                    said.push(format!("{per_ms} loops_per_ms read from file {}", file.display()));
                    if (per_ms as f64 / measured as f64 - 1.0).abs() > TOLERANCE {
                        said.push(format!(
                            "this loop now makes {measured} per ms: another machine or frequency, or interbench's own loop; \
                             jobs are dosed by CPU time all the same (-b renews the value, -l {per_ms} makes it the work)"
                        ));
                    }
                    return Loops { per_ms, said };
                }
                Ok(None) => {}
                Err(why) => said.push(why),
            }
        }
    }
    if let Some(state) = state {
        said.push(match keep(state, measured) {
            Ok(file) => format!("{measured} loops_per_ms saved to file {}", file.display()),
            Err(f) => f.what,
        });
    }
    Loops { per_ms: measured, said }
}

/// The value in a file; `None` when there is no file.
fn saved(file: &Path) -> Result<Option<u64>, String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(format!("{}: {e}; benchmarking anew", file.display())),
    };
    match text.trim().parse() {
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => Err(format!("{}: not a number of loops; benchmarking anew", file.display())),
    }
}

fn keep(state: &Path, per_ms: u64) -> Result<PathBuf, Failure> {
    let file = state.join(FILE);
    fs::create_dir_all(state)
        .map_err(|e| Failure::cannot(format!("{}: {e}; loops_per_ms not saved", state.display())))?;
    machmeter_store::text::write(&file, &format!("{per_ms}\n")).map_err(Failure::cannot)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_is_bounded_and_repeats() {
        let begun_ns = thread::monotonic_ns();
        let (a, b) = (calibrate() as f64, calibrate() as f64);
        assert!(thread::monotonic_ns() - begun_ns < 20_000_000_000);
        assert!((0.3..3.0).contains(&(a / b)), "{a} {b}");
    }

    #[test]
    fn the_command_line_wins_then_the_folder_then_the_state() {
        let dir = tempfile::tempdir().unwrap();
        let (here, state) = (dir.path().join("here"), dir.path().join("state"));
        fs::create_dir(&here).unwrap();
        let chosen = |given, anew, measured| choose(given, anew, measured, &here, Some(&state));
        let first = chosen(None, false, 1000);
        assert_eq!(first.per_ms, 1000);
        assert!(first.said[0].contains("saved to file"), "{first:?}");
        // Kept: the next run finds it, and says when the machine makes another number now.
        assert_eq!((chosen(None, false, 1050).per_ms, chosen(None, false, 1050).said.len()), (1000, 1));
        let changed = chosen(None, false, 2000);
        assert!(changed.per_ms == 1000 && changed.said[1].contains("-b renews"), "{changed:?}");
        assert_eq!(chosen(None, true, 2000).per_ms, 2000, "-b");
        assert_eq!(chosen(None, false, 2000).per_ms, 2000, "and kept");
        fs::write(here.join(FILE), "1847211").unwrap();
        assert_eq!(chosen(None, false, 2000).per_ms, 1_847_211);
        assert_eq!(chosen(Some(7), false, 2000).per_ms, 7);
        assert!(!here.join("interbench.read").exists());
        fs::write(here.join(FILE), "fast").unwrap();
        let broken = chosen(None, false, 3000);
        assert!(broken.per_ms == 2000 && broken.said[0].contains("not a number"), "{broken:?}");
    }

    #[test]
    fn a_state_directory_that_cannot_be_is_told_and_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let loops = choose(None, false, 5, dir.path(), Some(&file.join("state")));
        assert_eq!(loops.per_ms, 5);
        assert!(loops.said[0].contains("not saved"), "{loops:?}");
        assert_eq!(choose(None, false, 5, dir.path(), None), Loops { per_ms: 5, said: Vec::new() });
    }
}
