//! A private tracefs instance: its directory, its lock, its end.
//!
//! Instances survive their process. Ours stop and free their buffers with it, and a later start removes them (see
//! [`crate::abandoned`]).

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::abandoned::{lock, sweep_by};
use crate::fs_root::write_existing;
use crate::guard::Guard;
use crate::pseudofs::KernelMount;

const PREFIX: &str = "machmeter-";
const REMOVE_ATTEMPTS: u32 = 20;
const REMOVE_PAUSE_NS: u64 = 10_000_000;

/// A private instance; dropping it removes it.
#[derive(Debug)]
pub(super) struct Instance {
    dir: PathBuf,
    /// Dropped first, so that the directory is removed while the mount is still there.
    _guard: Guard,
    _lock: File,
    _mount: Arc<KernelMount>,
}

impl Instance {
    /// Makes a new instance, not recording.
    pub(super) fn create(mount: KernelMount) -> io::Result<Self> {
        let mount = Arc::new(mount);
        let instances = mount.path().join("instances");
        sweep_instances(&instances);
        let dir = make_dir(&instances, std::process::id())?;
        // Closing it, as the kernel does after SIGKILL, stops the trace and frees its buffers (trace/ftrace.rst).
        let freeing = File::options().write(true).open(dir.join("free_buffer")).ok();
        let undo = {
            let (dir, mount) = (dir.clone(), Arc::clone(&mount));
            move || {
                drop(freeing);
                remove(&dir);
                drop(mount);
            }
        };
        let guard = Guard::new("tracefs instance", undo);
        let lock = lock(&dir)?;
        let instance = Self { dir, _guard: guard, _lock: lock, _mount: mount };
        // A kernel without it leaves the instance to the next start.
        let _ = instance.write("options/disable_on_free", "1");
        Ok(instance)
    }

    pub(super) fn path(&self, leaf: &str) -> PathBuf {
        self.dir.join(leaf)
    }

    /// Reads a file in large steps: some files of tracefs (`events/header_page`) end early when read in small ones.
    pub(super) fn read(&self, leaf: &str) -> io::Result<String> {
        let mut file = File::open(self.path(leaf))?;
        let mut text = Vec::new();
        let mut step = vec![0_u8; 64 << 10];
        loop {
            match file.read(&mut step)? {
                0 => return String::from_utf8(text).map_err(io::Error::other),
                len => text.extend_from_slice(&step[..len]),
            }
        }
    }

    pub(super) fn write(&self, leaf: &str, text: &str) -> io::Result<()> {
        write_existing(&self.path(leaf), text)
    }
}

/// Several sessions of one process get `machmeter-PID`, `machmeter-PID-1` and so on.
fn make_dir(instances: &Path, pid: u32) -> io::Result<PathBuf> {
    for n in 0..64 {
        let name = if n == 0 { format!("{PREFIX}{pid}") } else { format!("{PREFIX}{pid}-{n}") };
        let dir = instances.join(name);
        match fs::create_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(()) => return Ok(dir),
        }
    }
    Err(io::Error::other("64 trace instances of this process exist already"))
}

/// Stops and removes an instance. A reader may hold it for a moment, hence the attempts.
fn remove(dir: &Path) {
    let _ = fs::write(dir.join("tracing_on"), "0");
    for _ in 0..REMOVE_ATTEMPTS {
        match fs::remove_dir(dir) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                crate::thread::nanosleep_until(crate::thread::monotonic_ns() + REMOVE_PAUSE_NS);
            }
            _ => return,
        }
    }
}

/// Removes instances whose process is gone; never touches any other.
pub(super) fn sweep_instances(instances: &Path) {
    sweep_by(instances, PREFIX, remove);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_vanishes_with_its_owner_and_stale_ones_at_the_next_start() {
        let mount = match KernelMount::of_tracefs() {
            Ok(mount) => mount,
            Err(e) => return println!("skipped: {e}"),
        };
        let instances = mount.path().join("instances");
        // Largest process numbers are never reached: stand-ins for a process that is gone.
        let stale = instances.join(format!("machmeter-{}", i32::MAX));
        let locked = instances.join(format!("machmeter-{}", i32::MAX - 1));
        let foreign = instances.join(format!("machmetertest-{}", std::process::id()));
        for dir in [&stale, &locked, &foreign] {
            if let Err(e) = fs::create_dir(dir) {
                return println!("skipped: {e}");
            }
        }
        let lock = lock(&locked).unwrap();
        let own = Instance::create(KernelMount::of_tracefs().unwrap()).unwrap();
        let own_dir = instances.join(own.path("").components().next_back().unwrap());
        let seen = (own_dir.exists(), stale.exists(), locked.exists(), foreign.exists());
        drop(lock);
        for dir in [&locked, &foreign] {
            fs::remove_dir(dir).unwrap();
        }
        assert_eq!(seen, (true, false, true, true));
        drop(own);
        assert!(!own_dir.exists());
    }
}
