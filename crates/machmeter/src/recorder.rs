//! The recorder of MPI calls: a shared library (crate `machmeter-pmpi`) that `build.rs` compiles and this program embeds.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use machmeter_data::deflated::inflate;
use machmeter_store::atomic;

use crate::{Failure, Result};

/// The library in zlib form; empty if the compiler could not build it (musl without a linker for shared libraries).
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.zlib"));
/// Last line of a recorder, behind the part that the dynamic linker reads.
const MARK: &str = env!("RECORDER_MARK");

/// The library in the form for the dynamic linker.
pub(crate) fn library() -> Result<Vec<u8>> {
    match inflate(LIBRARY) {
        Ok(library) if !library.is_empty() => Ok(library),
        Ok(_) => Err(Failure::cannot("this program was built without the recorder of MPI calls")
            .help("build it for a target with glibc, or with a linker for shared libraries")),
        Err(why) => Err(Failure::cannot(format!("the embedded recorder of MPI calls is damaged: {why}"))),
    }
}

/// Writes the library to a new file, or over another recorder.
pub(crate) fn write(path: &Path) -> Result<()> {
    let library = library()?;
    let refused = |e: &dyn std::fmt::Display| Failure::usage(format!("--recorder {}: {e}", path.display()));
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Ok(m) if m.is_file() && is_recorder(path).map_err(|e| refused(&e))? => {}
        Ok(_) => {
            return Err(refused(&"the file exists and is not a recorder")
                .help("name a new file; machmeter overwrites only recorders"));
        }
        Err(e) => return Err(refused(&e)),
    }
    atomic::could_replace(path).map_err(|e| refused(&e))?;
    atomic::write(path, &library).map_err(Failure::cannot)
}

/// True if a file is a recorder of any version.
fn is_recorder(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(4).read_to_end(&mut head)?;
    let mark_bytes = MARK.len() as u64 + 1;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(mark_bytes)))?;
    let mut tail = Vec::new();
    file.take(mark_bytes).read_to_end(&mut tail)?;
    Ok(head == b"\x7fELF" && tail.trim_ascii_end() == MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_one_for_this_machine_and_names_all_operations() {
        let library = library().unwrap();
        let program = fs::read("/proc/self/exe").unwrap();
        // Class, byte order and version; then type 3 (shared) and the machine.
        assert_eq!(
            (&library[..7], &library[16..20]),
            (&program[..7], &[&[3, 0], &program[18..20]].concat()[..])
        );
        let text = String::from_utf8_lossy(&library);
        for operation in machmeter_data::trace::OPERATIONS {
            let (c, fortran) = (operation.name, operation.name.to_lowercase());
            for name in [format!("\0PMPI_{c}\0"), format!("\0pmpi_{fortran}_f08ts_\0")] {
                assert!(text.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn only_a_recorder_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("recorder.so");
        for _ in 0..2 {
            write(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), library().unwrap());
        }
        let refused = |path: &Path| {
            let failure = write(path).unwrap_err();
            assert_eq!(failure.exit.code(), 2, "{}", failure.what);
            failure.what
        };
        for other in [b"".as_slice(), b"\x7fELF", MARK.as_bytes(), &fs::read("/proc/self/exe").unwrap()] {
            fs::write(&path, other).unwrap();
            assert!(refused(&path).contains("is not a recorder"));
            assert_eq!(fs::read(&path).unwrap(), other);
        }
        assert!(refused(directory.path()).contains("is not a recorder"));
        refused(&directory.path().join("nothere/recorder.so"));
    }
}
