//! Directories that outlive a process that was killed, and their removal at the next start.
//!
//! Their names hold the maker's process id, and the maker holds a lock on them (flock(2)) that the kernel drops with it.
//! Unlike the id alone this is also true between containers that share a directory.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::process::pid_is_alive;
use crate::thread::effective_user;

/// First parts of the names of temporary directories; the maker's process id and a dash follow.
pub const LOAD: &str = "machmeter-load-";
pub const CALLS: &str = "machmeter-calls-";
pub const TRACES: &str = "machmeter-trace-";

/// Removes what killed runs left on this machine: control groups, temporary directories and, as root, trace instances.
pub fn sweep_machine() {
    crate::trace::sweep();
    crate::cgroup::sweep();
    // Where probes make them unless told otherwise.
    sweep(Path::new("."), LOAD);
    let in_memory = crate::file_system::directory_in_memory();
    for directory in [Some(std::env::temp_dir()), in_memory].into_iter().flatten() {
        sweep(&directory, CALLS);
    }
    // Traces are worth keeping (`trace --collect`); the recorder beside them is not.
    sweep_by(&std::env::temp_dir(), TRACES, |directory| {
        crate::preload::remove_abandoned(directory);
        drop(fs::remove_dir(directory));
    });
}

/// A path in `parent` that nobody else chooses; nothing is made.
pub fn choose(parent: &Path, prefix: &str) -> PathBuf {
    // The standard library seeds its hash tables from the system's random numbers.
    let random = RandomState::new().build_hasher().finish();
    parent.join(format!("{prefix}{}-{random:016x}", std::process::id()))
}

/// Makes a directory that nobody else enters; returns the lock on it.
/// Errors: it exists already; the system's: not there, not writable, read-only, out of space or inodes.
pub fn create(path: &Path) -> io::Result<File> {
    DirBuilder::new().mode(0o700).create(path)?;
    let lock = lock(path)?;
    // A sweep may have come between the two steps.
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
        Ok(lock)
    } else {
        Err(io::Error::other("it was removed at once"))
    }
}

/// Says that the maker of a directory lives, until the file is closed.
pub fn lock(directory: &Path) -> io::Result<File> {
    let lock = open(directory)?;
    match rustix::fs::flock(&lock, FlockOperation::LockShared) {
        Err(e) if e != rustix::io::Errno::NOTSUP => Err(e.into()),
        _ => Ok(lock),
    }
}

fn open(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(directory, flags, Mode::empty())?))
}

/// Removes the directories in `parent` whose makers were killed, with all that is in them.
pub fn sweep(parent: &Path, prefix: &str) {
    sweep_by(parent, prefix, |directory| drop(fs::remove_dir_all(directory)));
}

pub(crate) fn sweep_by(parent: &Path, prefix: &str, remove: impl Fn(&Path)) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let maker = maker(&entry.file_name().to_string_lossy(), prefix);
        let is_of_this_user = |m: fs::Metadata| m.is_dir() && m.uid() == effective_user();
        if maker.is_some_and(|pid| !pid_is_alive(pid))
            && fs::symlink_metadata(&path).is_ok_and(is_of_this_user)
            && is_unlocked(&path)
        {
            remove(&path);
        }
    }
}

fn maker(name: &str, prefix: &str) -> Option<i32> {
    name.strip_prefix(prefix)?.split('-').next()?.parse().ok()
}

/// Whether nobody holds the lock: the maker may live in another process namespace, where its number is not ours to see.
pub fn is_unlocked(path: &Path) -> bool {
    open(path).is_ok_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_names_of_ours_have_a_maker() {
        assert_eq!(maker("machmeter-42", "machmeter-"), Some(42));
        assert_eq!(maker("machmeter-42-1", "machmeter-"), Some(42));
        assert_eq!(maker("machmeter-load-42-aa", LOAD), Some(42));
        assert_eq!(maker("machmeter-load-42-aa", "machmeter-"), None);
        assert_eq!(maker("foo-42", "machmeter-"), None);
    }

    #[test]
    fn only_what_was_abandoned_is_swept_and_no_link_is_followed() {
        let parent = tempfile::tempdir().unwrap();
        let named = |name: &str| parent.path().join(name);
        // Process ids end far below these numbers.
        let dead = named("machmeter-load-999999999-00000000000000aa");
        let locked = named("machmeter-load-999999998-00000000000000bb");
        let alive = choose(parent.path(), LOAD);
        let other = named("machmeter-load-notes");
        let link = named("machmeter-load-999999997-00000000000000cc");
        for d in [&dead, &alive, &other] {
            drop(create(d).unwrap());
            fs::write(d.join("file"), "x").unwrap();
        }
        assert_eq!(fs::metadata(&alive).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(create(&alive).is_err(), "what exists is not taken over");
        let lock = create(&locked).unwrap();
        symlink(&other, &link).unwrap();
        symlink(&other, dead.join("link")).unwrap();
        sweep(parent.path(), LOAD);
        assert!(!dead.exists());
        assert!(locked.exists() && alive.join("file").exists() && other.join("file").exists());
        assert!(fs::symlink_metadata(&link).is_ok());
        drop(lock);
        sweep(parent.path(), LOAD);
        assert!(!locked.exists());
    }
}
