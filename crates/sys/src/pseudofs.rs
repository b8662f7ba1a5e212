//! Kernel file systems (tracefs, debugfs) reached without mounting them where others would see it.
//!
//! An existing mount is used if there is one. Otherwise `fsopen`, `fsconfig` and `fsmount` make a mount that is attached
//! nowhere and lives only as long as its file descriptor, so that nothing remains even after SIGKILL.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFs {
    Trace,
    /// debugfs: here only scheduler parameters are read from it.
    Debug,
}

impl KernelFs {
    fn name(self) -> &'static CStr {
        match self {
            Self::Trace => c"tracefs",
            Self::Debug => c"debugfs",
        }
    }

    /// Mount points in the order tried, each with a file that proves that the file system is there.
    fn mounts(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Trace => {
                &[("/sys/kernel/tracing", "instances"), ("/sys/kernel/debug/tracing", "instances")]
            }
            Self::Debug => &[("/sys/kernel/debug", "sched")],
        }
    }
}

/// Access to a kernel file system; dropping it closes a mount of our own.
#[derive(Debug)]
pub struct KernelMount {
    root: PathBuf,
    /// Keeps a detached mount alive; `None` when an existing mount is used.
    _mount: Option<OwnedFd>,
}

impl KernelMount {
    /// Opens `kind`.
    /// Errors: one line naming the file system and the reason: permission (needs `CAP_SYS_ADMIN`), absent from the kernel,
    /// or forbidden by lockdown.
    pub fn open(kind: KernelFs) -> io::Result<Self> {
        if let Some((root, _)) =
            kind.mounts().iter().find(|(at, proof)| fs::exists(Path::new(at).join(proof)).unwrap_or(false))
        {
            return Ok(Self { root: PathBuf::from(root), _mount: None });
        }
        Self::mount(kind)
    }

    /// Makes a mount of our own even if another exists.
    fn mount(kind: KernelFs) -> io::Result<Self> {
        let name = kind.name();
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
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;
    const NOSUID_NODEV_NOEXEC: libc::c_uint = 2 | 4 | 8;
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), FSOPEN_CLOEXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: this command takes no key and no value; the descriptor is open.
    let rc =
        unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: plain integers; the descriptor is an open, created file system context.
    owned(unsafe {
        libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, NOSUID_NODEV_NOEXEC)
    })
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor to us, and nobody else holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_mount_is_usable_and_seen_by_nobody() {
        let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
        match KernelMount::mount(KernelFs::Trace) {
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
