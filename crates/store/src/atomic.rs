//! Replacing a file in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Writes `path` through `fill` so that a reader sees the old file or the whole new one, never a part.
///
/// The bytes go to a file beside `path`, are forced to disk, and are renamed over it. A symbolic link is followed; a
/// device or pipe (`/dev/stdout`) is written directly, since it must not be replaced by a file.
///
/// # Errors
/// What the system answered; the file beside `path` is removed and `path` itself is as it was.
pub(crate) fn replace<T>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T, StoreError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(m) if m.is_dir() => return Err(StoreError::new(path, "cannot write: it is a folder")),
        Ok(m) if !m.is_file() => return write_directly(path, &target, fill),
        _ => {}
    }
    let temporary = name_beside(&target);
    let written = write_new(&temporary, fill)
        .and_then(|value| fs::rename(&temporary, &target).map(|()| value))
        .map_err(|e| StoreError::io(path, "write", &e));
    match written {
        Ok(value) => {
            sync_folder(&target);
            Ok(value)
        }
        Err(e) => {
            // It may not exist at all; the first error is the one to tell.
            let _ = fs::remove_file(&temporary);
            Err(e)
        }
    }
}

fn write_new<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let mut out =
        BufWriter::with_capacity(1 << 17, OpenOptions::new().write(true).create_new(true).open(path)?);
    let value = fill(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(value)
}

fn write_directly<T>(
    path: &Path,
    target: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T, StoreError> {
    let write = || {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(target)?);
        let value = fill(&mut out)?;
        out.flush()?;
        Ok(value)
    };
    write().map_err(|e| StoreError::io(path, "write", &e))
}

/// A name in the folder of `target` that no other process or thread uses, hidden from `*` patterns.
fn name_beside(target: &Path) -> PathBuf {
    let n = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    target.with_file_name(format!(".{name}.{}-{n}.tmp", process::id()))
}

/// Makes the rename itself durable. Some file systems refuse to sync a folder; the file's content is safe by then.
fn sync_folder(target: &Path) {
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if let Ok(f) = File::open(folder) {
        let _ = f.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        replace(&path, |w| w.write_all(b"old")).unwrap();
        let full = replace(&path, |w| {
            w.write_all(&vec![b'x'; 300_000])?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        });
        let text = full.unwrap_err().to_string();
        assert!(text.contains("no space left") && text.lines().count() == 1, "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_followed_and_a_device_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        let null = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        replace(&null, |w| w.write_all(b"gone")).unwrap();
        assert!(!fs::metadata(&null).unwrap().is_file());
        // The real full device answers as a full disk does.
        std::os::unix::fs::symlink("/dev/full", dir.path().join("full")).unwrap();
        let e = replace(&dir.path().join("full"), |w| w.write_all(b"x")).unwrap_err();
        assert!(e.to_string().contains("no space left"), "{e}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let e = replace(Path::new("/nonexistent-folder/r.json"), |w| w.write_all(b"x")).unwrap_err();
        assert_eq!(e.to_string(), "/nonexistent-folder/r.json: cannot write: the folder does not exist");
    }
}
