//! Kernel file systems (tracefs, debugfs) reached without mounting them where others would see it.
//!
//! An existing mount is used if there is one. Otherwise `fsopen`, `fsconfig` and `fsmount` make a mount that is attached
//! nowhere and lives only as long as its file descriptor, so that nothing remains even after SIGKILL.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const TRACEFS: &CStr = c"tracefs";

/// Access to a kernel file system; dropping it closes a mount of our own.
#[derive(Debug)]
pub struct KernelMount {
    root: PathBuf,
    /// Keeps a detached mount alive; `None` when an existing mount is used.
    _mount: Option<OwnedFd>,
}

impl KernelMount {
    /// Errors: one line with the reason: no permission, absent, or forbidden by lockdown.
    pub fn of_tracefs() -> io::Result<Self> {
        Self::open(TRACEFS, "instances", &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"])
    }

    /// As [`Self::of_tracefs`]; here only scheduler parameters are read from it.
    pub fn of_debugfs() -> io::Result<Self> {
        Self::open(c"debugfs", "sched", &["/sys/kernel/debug"])
    }

    /// `proof` is a file that shows that the file system is there.
    fn open(name: &CStr, proof: &str, mounts: &[&str]) -> io::Result<Self> {
        let there = |at: &&&str| fs::exists(Path::new(at).join(proof)).unwrap_or(false);
        match mounts.iter().find(there) {
            Some(root) => Ok(Self { root: PathBuf::from(root), _mount: None }),
            None => Self::mount(name),
        }
    }

    /// Makes a mount of our own even if another exists.
    fn mount(name: &CStr) -> io::Result<Self> {
        let mount = detached(name).map_err(|e| {
            let why = match e.raw_os_error() {
                Some(libc::EPERM) => "needs root (CAP_SYS_ADMIN)".to_owned(),
                Some(libc::ENODEV) => "this kernel has none".to_owned(),
                Some(libc::ENOSYS) => "not mounted, and the kernel is older than 5.2".to_owned(),
                _ => e.to_string(),
            };
            io::Error::new(e.kind(), format!("{}: {why}", name.to_string_lossy()))
        })?;
        Ok(Self { root: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), _mount: Some(mount) })
    }

    /// The root directory; valid in this process while `self` lives.
    pub fn path(&self) -> &Path {
        &self.root
    }
}

fn detached(name: &CStr) -> io::Result<OwnedFd> {
    let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_mount_is_usable_and_seen_by_nobody() {
        let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
        match KernelMount::mount(TRACEFS) {
            Ok(mount) => {
                assert!(mount.path().join("instances").is_dir());
                assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
            }
            Err(e) => {
                println!("skipped: {e}");
                assert!(e.to_string().starts_with("tracefs: "));
            }
        }
    }
}
