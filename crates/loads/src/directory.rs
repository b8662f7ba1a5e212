//! A load's own temporary directory: entered by nobody else, and removed by whoever outlives.
//!
//! A lock on the directory says that its load lives (flock(2)); the kernel drops it with the process, so a directory whose
//! lock can be had was left behind by a load that was killed together with its leader and its starter. Unlike a process
//! id this is also true between containers that share a directory.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use machmeter_engine::load::LoadError;
use machmeter_sys::process::pid_is_alive;
use machmeter_sys::thread::{effective_user, monotonic_ns, nanosleep_until};
use rustix::fs::{FlockOperation, Mode, OFlags};

const PREFIX: &str = "machmeter-load-";

/// A path for a directory of a load of this process in `parent`; nothing is made.
pub(crate) fn choose(parent: &Path) -> PathBuf {
    // The standard library seeds its hash tables from the system's random numbers.
    let random = RandomState::new().build_hasher().finish();
    parent.join(format!("{PREFIX}{}-{random:016x}", std::process::id()))
}

/// Makes the directory, which must not exist; returns the lock on it.
pub(crate) fn create(path: &Path) -> Result<File, LoadError> {
    let parent = path.parent().unwrap_or(path).display();
    let refused =
        |e: io::Error| LoadError::Usage(format!("directory {parent}: no files can be made there: {e}"));
    DirBuilder::new().mode(0o700).create(path).map_err(refused)?;
    let lock = open(path).map_err(refused)?;
    rustix::fs::flock(&lock, FlockOperation::LockShared)
        .or_else(|e| if e == rustix::io::Errno::NOTSUP { Ok(()) } else { Err(e) })
        .map_err(|e| refused(e.into()))?;
    // A sweep may have come between the two steps.
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
        Ok(lock)
    } else {
        Err(refused(io::Error::other("it was removed at once")))
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Removes the directory with all that is in it. Links are removed, never followed. Returns whether it is gone; tries
/// again until `deadline_ns`, since a process that is just dying may still add to it.
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

/// Removes control groups, which are directories that can be removed when their processes have ended, a moment after they
/// were killed. The last made goes first.
pub(crate) fn remove_groups(groups: &[PathBuf], deadline_ns: u64) {
    for group in groups.iter().rev() {
        while fs::remove_dir(group).is_err() && group.is_dir() && monotonic_ns() < deadline_ns {
            nanosleep_until(monotonic_ns() + 5_000_000);
        }
    }
}

/// Removes what loads left in `parent` when they, their leaders and their starters were killed at once.
pub(crate) fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_ours(&entry.file_name().to_string_lossy(), &path) && is_abandoned(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether it is a directory of this user, named as ours are, whose starter does not live.
fn is_ours(name: &str, path: &Path) -> bool {
    let starter = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')?.0.parse().ok());
    let ours = fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == effective_user());
    ours && starter.is_some_and(|pid| !pid_is_alive(pid))
}

fn is_abandoned(path: &Path) -> bool {
    open(path).is_ok_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_directory_is_private_and_removed_without_following_links() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let path = choose(parent.path());
        let own = create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(create(&path).is_err(), "what exists is not taken over");
        symlink(&outside, path.join("link")).unwrap();
        fs::create_dir(path.join("inner")).unwrap();
        fs::write(path.join("inner/file"), "y").unwrap();
        assert!(remove(&path, 0) && !path.exists() && outside.join("kept").exists());
        assert!(remove(&path, 0), "gone is gone");
        drop(own);
    }

    #[test]
    fn only_what_was_abandoned_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let named = |name: &str| parent.path().join(name);
        // Process ids end far below this number.
        let dead = named("machmeter-load-999999999-00000000000000aa");
        let locked = named("machmeter-load-999999998-00000000000000bb");
        let alive = choose(parent.path());
        let other = named("machmeter-load-notes");
        let link = named("machmeter-load-999999997-00000000000000cc");
        for d in [&dead, &alive, &other] {
            fs::create_dir(d).unwrap();
            fs::write(d.join("file"), "x").unwrap();
        }
        let lock = create(&locked).unwrap();
        symlink(&other, &link).unwrap();
        sweep(parent.path());
        assert!(!dead.exists());
        assert!(locked.exists() && alive.join("file").exists() && other.join("file").exists());
        assert!(fs::symlink_metadata(&link).is_ok());
        drop(lock);
        sweep(parent.path());
        assert!(!locked.exists());
    }

    #[test]
    fn a_parent_that_is_not_there_is_named() {
        let e = create(&choose(Path::new("/nowhere/at/all"))).unwrap_err();
        assert!(matches!(&e, LoadError::Usage(t) if t.contains("/nowhere/at/all")), "{e}");
    }
}
