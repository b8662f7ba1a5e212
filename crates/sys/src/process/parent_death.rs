//! The worker's side: ending when the starter is gone.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::process::Signal;

/// The kernel shall kill this process when the thread that started it ends (`PR_SET_PDEATHSIG`; kept over exec).
/// Errors: [`io::ErrorKind::NotFound`] when the parent is another already. Allocates nothing, as after a fork.
pub fn die_with_parent(expected_parent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that ended before the call above sends no signal any more. Inside a process namespace of its own the child
    // sees none for a parent outside.
    let is_other = rustix::process::getppid().is_some_and(|p| p.as_raw_nonzero().get() != expected_parent);
    if is_other { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
}

/// Orphans below this process become its children, so that it can reap them (`PR_SET_CHILD_SUBREAPER`).
pub fn become_subreaper() -> io::Result<()> {
    // Any process number means yes.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The worker's stdout as a file that no child of it inherits; stdout itself becomes `/dev/null`. So the starter sees the
/// end of it when the worker ends, not when the last of its descendants does.
pub fn take_stdout() -> io::Result<File> {
    let ours = io::stdout().as_fd().try_clone_to_owned()?;
    let null = File::options().write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open; that stdout now means another file is the purpose.
    if unsafe { libc::dup2(null.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(File::from(ours))
}
