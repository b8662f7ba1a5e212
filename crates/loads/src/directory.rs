//! A load's own temporary directory: entered by nobody else, and removed by whoever outlives.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use machmeter_engine::load::LoadError;
use machmeter_sys::abandoned;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

/// Makes the directory, which must not exist; returns the lock on it.
pub(crate) fn create(path: &Path) -> Result<File, LoadError> {
    let parent = path.parent().unwrap_or(path).display();
    abandoned::create(path)
        .map_err(|e| LoadError::Usage(format!("directory {parent}: cannot create files there: {e}")))
}

/// Removes the directory; follows no links. Whether it is gone; until `deadline_ns`, since a dying process may add to it.
pub(crate) fn remove(path: &Path, deadline_ns: u64) -> bool {
    loop {
        match fs::remove_dir_all(path) {
            Ok(()) => return true,
            Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
                return true;
            }
            Err(_) if monotonic_ns() >= deadline_ns => return false,
            Err(_) => nanosleep_until(monotonic_ns() + 5_000_000),
        }
    }
}

/// Removes control groups, which is possible a moment after their processes were killed. The last made goes first.
pub(crate) fn remove_groups(groups: &[PathBuf], deadline_ns: u64) {
    for group in groups.iter().rev() {
        while fs::remove_dir(group).is_err() && group.is_dir() && monotonic_ns() < deadline_ns {
            nanosleep_until(monotonic_ns() + 5_000_000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_sys::abandoned::{LOAD, choose};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_is_removed_without_following_links() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let path = choose(parent.path(), LOAD);
        let own = create(&path).unwrap();
        symlink(&outside, path.join("link")).unwrap();
        fs::create_dir(path.join("inner")).unwrap();
        fs::write(path.join("inner/file"), "y").unwrap();
        assert!(remove(&path, 0) && !path.exists() && outside.join("kept").exists());
        assert!(remove(&path, 0), "gone is gone");
        drop(own);
    }

    #[test]
    fn a_parent_that_is_not_there_is_named() {
        let e = create(&choose(Path::new("/nowhere/at/all"), LOAD)).unwrap_err();
        assert!(matches!(&e, LoadError::Usage(t) if t.contains("/nowhere/at/all")), "{e}");
    }
}
