//! A shared library that programs are to load before their own (`LD_PRELOAD`), written for as long as they run.
//!
//! It is a file in a directory of the caller's choice where possible: a shared directory serves all machines. The dynamic linker refuses
//! it on a file system that is mounted `noexec`, splits its path at spaces and colons, and a directory that every user may write to is
//! not safe. In these cases the library lives in memory: a sealed `memfd`, which programs on this machine reach as `/proc/PID/fd/N`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{process, ptr};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::DumpableBehavior;

/// Name of the file.
const NAME: &str = ".machmeter-recorder.so";

/// A library that programs can load until this is dropped.
#[derive(Debug)]
pub struct Preload {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Removed at the end.
    File,
    Memory {
        _kept_open: File,
        why: String,
    },
}

impl Preload {
    /// Writes `library` into `directory`, or into memory where the linker would not load it from there.
    /// Errors: why neither is possible.
    pub fn write(directory: &Path, library: &[u8]) -> io::Result<Self> {
        let why = match in_directory(directory, library) {
            Ok(path) => return Ok(Self { path, place: Place::File }),
            Err(why) => why.to_string(),
        };
        match in_memory(library) {
            Ok((path, memory)) => Ok(Self { path, place: Place::Memory { _kept_open: memory, why } }),
            Err(e) => Err(io::Error::other(format!("{}: {why}; in memory: {e}", directory.display()))),
        }
    }

    /// What `LD_PRELOAD` has to name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why other machines do not see the library; `None` if it is in the directory.
    pub fn why_in_memory(&self) -> Option<&str> {
        match &self.place {
            Place::File => None,
            Place::Memory { why, .. } => Some(why),
        }
    }
}

impl Drop for Preload {
    fn drop(&mut self) {
        if matches!(self.place, Place::File) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the library that a killed process left in `directory`.
pub fn remove_abandoned(directory: &Path) {
    let _ = fs::remove_file(directory.join(NAME));
}

fn in_directory(directory: &Path, library: &[u8]) -> io::Result<PathBuf> {
    let path = directory.join(NAME);
    if path.as_os_str().as_bytes().iter().any(|b| b" :$".contains(b)) {
        return Err(io::Error::other("LD_PRELOAD cannot hold its name"));
    }
    if fs::metadata(directory)?.mode() & 0o002 != 0 {
        return Err(io::Error::other("every user may write there"));
    }
    // Not through a link, and nothing is replaced.
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o500).open(&path)?;
    let written = file.write_all(library).and_then(|()| loadable(&file));
    if written.is_err() {
        let _ = fs::remove_file(&path);
    }
    written.map(|()| path)
}

fn in_memory(library: &[u8]) -> io::Result<(PathBuf, File)> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut memory = File::from(rustix::fs::memfd_create(c"machmeter-recorder", flags)?);
    memory.write_all(library)?;
    rustix::fs::fcntl_add_seals(
        &memory,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    loadable(&memory)?;
    // Programs of the same user may then not follow the link (proc(5)).
    if rustix::process::dumpable_behavior()? != DumpableBehavior::Dumpable {
        return Err(io::Error::other("this program has capabilities, and shares no open files"));
    }
    let number = std::os::fd::AsRawFd::as_raw_fd(&memory);
    Ok((PathBuf::from(format!("/proc/{}/fd/{number}", process::id())), memory))
}

/// Whether code of a file may be run, as the linker will ask. Errors: `noexec`, or what a security module answered.
fn loadable(file: &impl AsFd) -> io::Result<()> {
    let (bytes, access) = (4096, ProtFlags::READ | ProtFlags::EXEC);
    // SAFETY: a new mapping at a place that the kernel chooses; nothing of it is used.
    let mapped = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::PRIVATE, file, 0) };
    let mapped =
        mapped.map_err(|e| io::Error::other(format!("code cannot be run from there (noexec?): {e}")))?;
    // SAFETY: the mapping of above.
    let _ = unsafe { rustix::mm::munmap(mapped, bytes) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_serves_where_it_can_and_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let preload = Preload::write(directory.path(), b"library").unwrap();
        assert_eq!((preload.why_in_memory(), fs::read(preload.path()).unwrap()), (None, b"library".to_vec()));
        let path = preload.path().to_owned();
        assert!(path.starts_with(directory.path()));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o500);
        drop(preload);
        assert!(!path.exists());
    }

    #[test]
    fn memory_serves_where_a_file_cannot() {
        let parent = tempfile::tempdir().unwrap();
        let made = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (spaced, open, taken) = (made("a b"), made("open"), made("taken"));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let victim = parent.path().join("victim");
        symlink(&victim, taken.join(NAME)).unwrap();
        for (directory, why) in [(spaced, "LD_PRELOAD"), (open, "every user"), (taken, "exists")] {
            let preload = Preload::write(&directory, b"library").unwrap();
            assert!(preload.why_in_memory().unwrap().contains(why), "{preload:?}");
            assert_eq!(fs::read(preload.path()).unwrap(), b"library");
            assert!(
                OpenOptions::new()
                    .write(true)
                    .open(preload.path())
                    .and_then(|mut f| f.write_all(b"x"))
                    .is_err()
            );
        }
        assert!(!victim.exists());
    }
}
