//! Plain fork without exec: a copy of this program that does one piece of work on memory it shares with the original and
//! ends (Sequent's `m_fork`). Guards, buffers and exit handlers of the original are never run in the copy.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use super::group::kill_process;
use super::parent_death::die_with_parent;
use super::streams::ready;
use crate::thread::{monotonic_ns, nanosleep_until};

/// Exit code of a child whose work panicked; no other work should return it.
pub const PANICKED: u8 = 101;

/// Exit code of a child whose parent was gone before it began.
const ORPHAN: libc::c_int = 1;

/// Pause between two looks where the kernel has no descriptors for processes (before Linux 5.3).
const LOOK_NS: u64 = 500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exited(u8),
    Killed(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited(PANICKED) => f.write_str("panicked"),
            Self::Exited(code) => write!(f, "exited with {code}"),
            Self::Killed(libc::SIGKILL) => f.write_str("was killed by SIGKILL"),
            Self::Killed(libc::SIGSEGV) => f.write_str("was killed by SIGSEGV"),
            Self::Killed(libc::SIGXCPU) => f.write_str("was killed by SIGXCPU"),
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

/// A forked child. Dropping it kills and reaps it.
#[derive(Debug)]
#[must_use = "a dropped child is killed"]
pub struct Forked {
    pid: Pid,
    handle: Option<OwnedFd>,
    ended: Option<Ended>,
}

/// Forks; the child runs `work` and exits with what it returns ([`PANICKED`] if it panics, without a message). It dies with
/// the thread that called, gets no signals but those that cannot be blocked, and takes nothing down with it: no destructor
/// of the parent and no exit handler runs in it.
///
/// Only the calling thread exists in the child: work must not wait for another thread of the parent nor for a lock that one
/// may hold, and should allocate little. What it finds it writes into shared memory ([`crate::pages::Pages::shared`]).
pub fn fork_run(work: &dyn Fn() -> u8) -> io::Result<Forked> {
    silence_children();
    // Blocked across the fork, so that no handler of the parent ever runs in the child.
    let blocked = SignalsBlocked::new()?;
    let parent = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: the child runs on the copied stack of this thread only, and leaves through `_exit` in `child`.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => child(parent, work),
        -1 => {
            let e = io::Error::last_os_error();
            drop(blocked);
            Err(e)
        }
        _ => {
            drop(blocked);
            let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
            let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
            Ok(Forked { pid, handle, ended: None })
        }
    }
}

/// Whether this process is a child of [`fork_run`].
static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Makes panics in children silent: the parent tells. Set up before the first fork, since a child's lock of the
/// hook may be held for ever by a thread that panicked just then.
fn silence_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IN_CHILD.load(Ordering::Relaxed) {
                before(panic);
            }
        }));
    });
}

fn child(parent: i32, work: &dyn Fn() -> u8) -> ! {
    let code = if die_with_parent(parent).is_err() {
        ORPHAN
    } else {
        IN_CHILD.store(true, Ordering::Relaxed);
        libc::c_int::from(catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED))
    };
    // SAFETY: ends this process at once and runs nothing of the parent's.
    unsafe { libc::_exit(code) }
}

/// The kernel kills this process after `limit_ns` of real time without a sleep: a fuse.
pub fn limit_real_time(limit_ns: u64) {
    let us = Some((limit_ns / 1_000).max(1));
    let limit = rustix::process::Rlimit { current: us, maximum: us };
    // Only ever lowered here, which nothing forbids; without the limit the parent's kill remains.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Rttime, limit);
}

pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl Forked {
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits until it ends.
    /// Errors: the system's error (somebody else took its exit status).
    pub fn wait(&mut self) -> io::Result<Ended> {
        loop {
            if let Some(ended) = self.look(WaitOptions::empty())? {
                return Ok(ended);
            }
        }
    }

    /// As [`Self::wait`], until `until_ns` (monotonic); `None` when it still runs then.
    pub fn wait_until(&mut self, until_ns: u64) -> io::Result<Option<Ended>> {
        loop {
            if let Some(ended) = self.look(WaitOptions::NOHANG)? {
                return Ok(Some(ended));
            }
            let now_ns = monotonic_ns();
            if now_ns >= until_ns {
                return Ok(None);
            }
            match &self.handle {
                Some(handle) => drop(ready(handle.as_fd(), PollFlags::IN, Some(until_ns))),
                None => nanosleep_until(until_ns.min(now_ns + LOOK_NS)),
            }
        }
    }

    /// Kills it; [`Self::wait`] then returns soon.
    pub fn kill(&self) {
        if self.ended.is_none() {
            let _ = kill_process(self.pid());
        }
    }

    fn look(&mut self, options: WaitOptions) -> io::Result<Option<Ended>> {
        if self.ended.is_none() {
            let status = match rustix::process::waitpid(Some(self.pid), options) {
                Ok(status) => status.map(|(_, s)| s),
                Err(rustix::io::Errno::INTR) => None,
                Err(e) => return Err(e.into()),
            };
            self.ended = status.and_then(|s| match (s.exit_status(), s.terminating_signal()) {
                (Some(code), _) => Some(Ended::Exited(code as u8)),
                (_, Some(signal)) => Some(Ended::Killed(signal)),
                _ => None,
            });
        }
        Ok(self.ended)
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let _ = self.wait();
        }
    }
}

/// All signals of the calling thread are held back while it lives.
pub(crate) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a set of signals is plain data, for which all zeros are valid.
        let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut before = all;
        // SAFETY: a live, writable set.
        unsafe { libc::sigfillset(&raw mut all) };
        // SAFETY: both sets are live.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) } {
            0 => Ok(Self { before }),
            e => Err(io::Error::from_raw_os_error(e)),
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was in force.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Pages;
    use crate::process::{pid_is_alive, state_of};

    const PATIENCE_NS: u64 = 20_000_000_000;

    #[test]
    fn children_work_on_shared_memory_and_their_end_is_told() {
        let pages = Pages::shared(4_096).unwrap();
        let words = pages.extent().atomics();
        let mut children: Vec<Forked> = (0..3_u8)
            .map(|i| {
                let work = || {
                    words[usize::from(i)].store(u64::from(i) + 40, Ordering::Release);
                    i
                };
                fork_run(&work).unwrap()
            })
            .collect();
        for (i, c) in children.iter_mut().enumerate() {
            assert_eq!(c.wait().unwrap(), Ended::Exited(i as u8));
            assert_eq!(c.wait_until(0).unwrap(), Some(Ended::Exited(i as u8)), "asked twice, answered alike");
            assert_eq!(words[i].load(Ordering::Acquire), i as u64 + 40);
            assert_eq!(state_of(c.pid()), None, "reaped");
        }
    }

    #[test]
    fn panics_and_signals_are_ends_with_a_cause() {
        let mut c = fork_run(&|| panic!("on purpose")).unwrap();
        assert_eq!(c.wait().unwrap(), Ended::Exited(PANICKED));
        let mut c = fork_run(&|| {
            let _ = kill_process(rustix::process::getpid().as_raw_nonzero().get());
            0
        })
        .unwrap();
        let ended = c.wait_until(monotonic_ns() + PATIENCE_NS).unwrap().unwrap();
        assert_eq!(ended.to_string(), "was killed by SIGKILL");
    }

    /// What another thread of the parent does at the moment of the fork stays half done in the child for ever.
    #[test]
    fn children_end_whatever_other_threads_do_while_they_are_forked() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _ = catch_unwind(|| panic!("on purpose"));
                    }
                });
            }
            for i in 0..100_u8 {
                let mut child = fork_run(&|| if i % 2 == 0 { i } else { panic!("in the child") }).unwrap();
                let ended = child.wait_until(monotonic_ns() + PATIENCE_NS).unwrap();
                stop.store(i == 99 || ended.is_none(), Ordering::Relaxed);
                assert_eq!(ended, Some(Ended::Exited(if i % 2 == 0 { i } else { PANICKED })), "{i}");
            }
        });
    }

    #[test]
    fn a_child_that_hangs_is_waited_for_in_vain_and_killed_by_drop() {
        let mut c = fork_run(&|| {
            nanosleep_until(monotonic_ns() + 60_000_000_000);
            0
        })
        .unwrap();
        let begin_ns = monotonic_ns();
        assert_eq!(c.wait_until(begin_ns + 20_000_000).unwrap(), None);
        assert!(monotonic_ns() >= begin_ns + 20_000_000);
        let pid = c.pid();
        assert!(pid_is_alive(pid));
        drop(c);
        assert!(state_of(pid).is_none(), "neither running nor waiting to be reaped");
    }

    #[test]
    fn destructors_of_the_parent_do_not_run_in_the_child() {
        struct Leaves<'a>(&'a std::sync::atomic::AtomicU64);
        impl Drop for Leaves<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::AcqRel);
            }
        }
        let pages = Pages::shared(4_096).unwrap();
        let count = &pages.extent().atomics()[0];
        let leaves = Leaves(count);
        fork_run(&|| 0).unwrap().wait().unwrap();
        assert_eq!(count.load(Ordering::Acquire), 0);
        drop(leaves);
        assert_eq!(count.load(Ordering::Acquire), 1);
    }
}
