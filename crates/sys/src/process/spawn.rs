//! Starting this program again as a worker.

use std::ffi::OsStr;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::child::Child;
use super::parent_death::die_with_parent;
use super::{WORKER_ARGUMENT, program};
use crate::task_headroom::TaskHeadroom;

/// Descriptors below this one are stdin, stdout and stderr.
const FIRST_FREE_FD: RawFd = 3;

/// What a worker is started with. Without [`Spawn::piped`] it has neither stdin nor stdout;
/// stderr is always the starter's own.
///
/// A worker inherits the calling thread's CPUs, policy and nice value.
#[derive(Debug)]
#[must_use = "nothing runs before start()"]
pub struct Spawn<'fd> {
    command: Command,
    new_group: bool,
    die_with_parent: bool,
    passed: Vec<RawFd>,
    fds_live: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> Spawn<'fd> {
    /// This program as `__worker ROLE`.
    pub fn worker(role: &str) -> Self {
        Self::by(Command::new(program()), role)
    }

    /// As [`Self::worker`], started by `launcher` (`mpirun -n 2`), which gets this program and its arguments as last ones.
    pub fn worker_under(mut launcher: Command, role: &str) -> Self {
        // What /proc/self/exe is to the launcher is the launcher.
        launcher.arg(std::fs::read_link(program()).unwrap_or_else(|_| program()));
        Self::by(launcher, role)
    }

    fn by(mut command: Command, role: &str) -> Self {
        command.args([WORKER_ARGUMENT, role]).stdin(Stdio::null()).stdout(Stdio::null());
        Self { command, new_group: false, die_with_parent: false, passed: Vec::new(), fds_live: PhantomData }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Makes the worker the leader of a process group of its own.
    pub fn new_group(mut self) -> Self {
        self.command.process_group(0);
        self.new_group = true;
        self
    }

    /// The kernel kills the worker when the *thread* that called [`Spawn::start`] ends (prctl(2), `PR_SET_PDEATHSIG`),
    /// so start it from a thread that outlives it.
    pub fn die_with_parent(mut self) -> Self {
        self.die_with_parent = true;
        self
    }

    /// Stdin and stdout are pipes held by [`Child`].
    pub fn piped(mut self) -> Self {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        self
    }

    /// User and group.
    pub fn user(mut self, id: u32) -> Self {
        self.command.uid(id).gid(id);
        self
    }

    /// Keeps `fd` open in the worker under the same number.
    pub fn pass_fd(mut self, fd: BorrowedFd<'fd>) -> Self {
        self.passed.push(fd.as_raw_fd());
        self
    }

    pub fn start(mut self) -> io::Result<Child> {
        if let Some(fd) = self.passed.iter().find(|fd| **fd < FIRST_FREE_FD) {
            let why = format!(
                "descriptor {fd} can't be passed to a worker: 0 to 2 are its stdin, stdout and stderr"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        // Only when there is something to do: without it the standard library need not copy this process.
        if self.die_with_parent || !self.passed.is_empty() {
            prepare(&mut self.command, self.die_with_parent, self.passed);
        }
        let spawned = self.command.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(e.kind(), format!("{} is not there: mount /proc", program().display()))
            }
            _ => TaskHeadroom::explain(e),
        });
        Child::new(spawned?, self.new_group)
    }
}

/// Keeps a descriptor that the starter passed from being passed on to children; false if it is not open.
pub(crate) fn keep_passed(fd: RawFd) -> bool {
    // SAFETY: integer arguments; nothing of ours is touched, and a closed descriptor is an error.
    fd >= FIRST_FREE_FD && unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == 0
}

fn prepare(command: &mut Command, dies_with_parent: bool, passed: Vec<RawFd>) {
    let starter = rustix::process::getpid().as_raw_nonzero().get();
    let between_fork_and_exec = move || {
        for fd in &passed {
            // SAFETY: an integer argument on a descriptor that the borrow in `Spawn` keeps open.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        match dies_with_parent.then(|| die_with_parent(starter)) {
            // Nobody is left to take the error, and the standard library would abort with a message of its own.
            // SAFETY: ends this process at once and runs nothing of it.
            Some(Err(e)) if e.kind() == io::ErrorKind::NotFound => unsafe { libc::_exit(1) },
            Some(outcome) => outcome,
            None => Ok(()),
        }
    };
    // SAFETY: the closure makes system calls only and allocates nothing (an error from an OS code holds no memory).
    unsafe { command.pre_exec(between_fork_and_exec) };
}
