//! The worker's side: ending when the starter is gone.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::lines::{LineReader, ReadError};

/// The kernel shall kill the calling process when the thread that started it ends (prctl(2), `PR_SET_PDEATHSIG`; kept
/// over exec, not inherited by children).
///
/// # Errors
/// [`io::ErrorKind::NotFound`] when the parent is no longer `expected_parent`, so that the caller must end by itself;
/// else the system's error. Allocates nothing: it may run between fork and exec.
pub fn die_with_parent(expected_parent: i32) -> io::Result<()> {
    // SAFETY: an integer argument; touches no memory of ours.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // A parent that ended before the call above sends no signal any more.
    // SAFETY: takes no argument and cannot fail.
    let parent = unsafe { libc::getppid() };
    // Inside a process namespace of its own the child sees 0 for a parent outside.
    if parent == expected_parent || parent == 0 { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Orphans below the calling process become its children instead of init's, so that it can reap them (prctl(2),
/// `PR_SET_CHILD_SUBREAPER`).
///
/// # Errors
/// The system's error.
pub fn become_subreaper() -> io::Result<()> {
    let yes: libc::c_ulong = 1;
    // SAFETY: an integer argument; touches no memory of ours.
    let rc = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, yes) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What came through the life line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A line.
    Line(String),
    /// Nothing in time.
    Nothing,
    /// The starter closed it or is gone.
    End,
}

/// The lines that the starter writes to this worker's stdin.
#[derive(Debug)]
pub struct LifeLine {
    lines: Receiver<String>,
}

impl LifeLine {
    /// The next line, waiting at most `timeout_ns`.
    pub fn next(&self, timeout_ns: u64) -> Received {
        match self.lines.recv_timeout(Duration::from_nanos(timeout_ns)) {
            Ok(line) => Received::Line(line),
            Err(RecvTimeoutError::Timeout) => Received::Nothing,
            Err(RecvTimeoutError::Disconnected) => Received::End,
        }
    }
}

/// Takes stdin over: a thread of its own reads its lines, and runs `on_end` when it ends, whatever the rest of the process
/// is doing. Call it once, before anything else reads stdin. The thread has the caller's policy, so call it before that
/// is changed.
///
/// # Errors
/// The system's error when stdin is closed or there is no thread to give.
pub fn life_line(on_end: impl FnOnce() + Send + 'static) -> io::Result<LifeLine> {
    let (sender, lines) = channel();
    let mut parts = Some((sender, on_end));
    listen(move |line| match line {
        Some(line) => {
            // A worker that no longer listens still wants to know about the end.
            let _ = parts.as_ref().map(|(sender, _)| sender.send(line));
        }
        None => {
            if let Some((sender, on_end)) = parts.take() {
                drop(sender);
                on_end();
            }
        }
    })?;
    Ok(LifeLine { lines })
}

/// As [`life_line`], but calls `on_line` with each line and, once, with `None` at the end.
///
/// # Errors
/// As [`life_line`].
pub fn listen(mut on_line: impl FnMut(Option<String>) + Send + 'static) -> io::Result<()> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    crate::thread::spawn_plain("machmeter-life", move || {
        let mut reader = LineReader::new(stdin);
        loop {
            match reader.next(None) {
                Ok(Some(line)) => on_line(Some(line)),
                Err(ReadError::NotText) => {}
                Ok(None) | Err(_) => break,
            }
        }
        on_line(None);
    })?;
    Ok(())
}

/// The worker's stdout as a file that no child of it inherits; stdout itself becomes `/dev/null`. So the starter sees the
/// end of it when the worker ends, not when the last of its descendants does.
///
/// # Errors
/// The system's error.
pub fn take_stdout() -> io::Result<File> {
    let ours = io::stdout().as_fd().try_clone_to_owned()?;
    let null = File::options().write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open; that stdout now means another file is the purpose.
    if unsafe { libc::dup2(null.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(File::from(ours))
}
