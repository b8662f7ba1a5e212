//! Kinds of file systems, as the kernel names them: what a call on a file costs depends on the kind.

use std::path::{Path, PathBuf};

use crate::fs_root::FsRoot;

/// Directories that may lie in memory, the most likely first.
const IN_MEMORY: [&str; 2] = ["/dev/shm", "/tmp"];
/// The kind of those that do.
pub const TMPFS: &str = "tmpfs";

/// Kind of the file system that holds `path` (`ext4`, `overlay`, `tmpfs`); `None` if the path or its mount is not known.
pub fn kind_of(path: &Path) -> Option<String> {
    let mounts = FsRoot::host().read("proc/self/mountinfo").ok()?;
    kind_in(&mounts, &path.canonicalize().ok()?).map(str::to_owned)
}

/// A directory in memory (tmpfs); `None` if the system has none at the usual places.
pub fn directory_in_memory() -> Option<PathBuf> {
    IN_MEMORY.into_iter().map(PathBuf::from).find(|path| kind_of(path).as_deref() == Some(TMPFS))
}

/// The mount that covers `path` is the one with the longest mount point; of several on one point it is the last.
fn kind_in<'m>(mountinfo: &'m str, path: &Path) -> Option<&'m str> {
    let mount = |line: &'m str| {
        let (before, after) = line.split_once(" - ")?;
        let at = before.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&at).then_some((at.len(), after.split(' ').next()?))
    };
    mountinfo.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_last_mount_point_decides() {
        let mounts = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /tmp rw - tmpfs tmpfs rw
24 22 0:22 / /tmp rw - xfs /dev/vdb rw
25 24 0:23 / /tmp/a\\040b rw - btrfs /dev/vdc rw
";
        for (path, kind) in [
            ("/home/x", "ext4"),
            ("/tmp", "xfs"),
            ("/tmpfiles", "ext4"),
            ("/tmp/a b/c", "btrfs"),
            ("/tmp/a", "xfs"),
        ] {
            assert_eq!(kind_in(mounts, Path::new(path)), Some(kind), "{path}");
        }
        assert_eq!(kind_in("", Path::new("/")), None);
    }

    #[test]
    fn this_machine_names_the_kind_of_procfs() {
        assert_eq!(kind_of(Path::new("/proc/self/..")).as_deref(), Some("proc"));
        assert_eq!(kind_of(Path::new("/nowhere/at/all")), None);
        if let Some(memory) = directory_in_memory() {
            assert_eq!(kind_of(&memory).as_deref(), Some(TMPFS));
        }
    }
}
