//! A started worker: its pipes, waiting for it, and making sure that nothing of it stays.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{self, ExitStatus};

use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::group::{kill_group_of, kill_others_of_group, kill_process, processes_of_group};
use super::streams::TimedWriter;
use crate::thread::{monotonic_ns, nanosleep_until};

/// How long a dropped child may take to vanish after it was killed. A killed process that is still there then sits in the
/// kernel (a dying disk), and nobody can do more about it.
const VANISH_WITHIN_NS: u64 = 2_000_000_000;

/// First and longest pause between two looks at a child.
const LOOK_FIRST_NS: u64 = 200_000;
const LOOK_LAST_NS: u64 = 10_000_000;

/// A worker. Dropping it kills it with its group and waits, bounded, until it is gone.
#[derive(Debug)]
pub struct Child {
    inner: process::Child,
    leads_group: bool,
    pipes: Option<(TimedWriter, OwnedFd)>,
    ended: Option<ExitStatus>,
}

impl Child {
    pub(super) fn new(mut inner: process::Child, leads_group: bool) -> io::Result<Self> {
        let pipes = inner.stdin.take().zip(inner.stdout.take());
        // Made first, so that dropping it on an error ends the process.
        let mut child = Self { inner, leads_group, pipes: None, ended: None };
        if let Some((stdin, stdout)) = pipes {
            child.pipes = Some((TimedWriter::new(stdin.into())?, stdout.into()));
        }
        Ok(child)
    }

    /// Process id; also the id of its group if it leads one.
    pub fn pid(&self) -> i32 {
        self.inner.id() as i32
    }

    /// The worker's stdin, whose end ends the worker, and its stdout; `None` when they are not piped or were taken before.
    pub fn take_pipes(&mut self) -> Option<(TimedWriter, OwnedFd)> {
        self.pipes.take()
    }

    /// The exit status if the worker has ended. What is left of its group is killed first: while the ended leader is not
    /// yet reaped, the group's number can't belong to anybody else.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() && self.has_ended() {
            self.kill_group();
            self.reap(monotonic_ns() + VANISH_WITHIN_NS);
        }
        self.ended
    }

    /// As [`Child::try_wait`], but gives the worker `timeout_ns` to end; `None` when it still runs.
    pub fn wait(&mut self, timeout_ns: u64) -> Option<ExitStatus> {
        let deadline_ns = monotonic_ns().saturating_add(timeout_ns);
        look_until(deadline_ns, || self.try_wait())
    }

    /// Kills the worker and, if it leads a group, all of the group. Does nothing when the worker has been waited for.
    pub fn kill_group(&self) {
        if self.ended.is_some() {
            return;
        }
        if self.leads_group {
            kill_group_of(self.pid());
        }
        // It may not have a group of its own, or have left it.
        self.kill();
    }

    /// Kills the worker alone. Does nothing when it has been waited for.
    pub fn kill(&self) {
        if self.ended.is_none() {
            let _ = kill_process(self.pid());
        }
    }

    /// Whether the process is a zombie of ours; leaves it one.
    fn has_ended(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid()) else { return true };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(pid), look) {
                Ok(status) => return status.is_some(),
                Err(rustix::io::Errno::INTR) => {}
                // Somebody else has reaped it.
                Err(_) => return true,
            }
        }
    }

    /// Waits until the rest of the killed group is gone, then takes the leader's exit status.
    fn reap(&mut self, deadline_ns: u64) {
        let leader = self.pid();
        if self.leads_group {
            kill_others_of_group(leader, leader, deadline_ns);
            // Zombies of the group that became ours because we are a subreaper; the leader is left to `process::Child`.
            let others = processes_of_group(leader).into_iter().filter(|p| *p != leader);
            for pid in others.filter_map(Pid::from_raw) {
                let _ =
                    rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
        }
        self.ended = look_until(deadline_ns, || match self.inner.try_wait() {
            Ok(status) => status,
            // Reaped by somebody else: what it said is lost.
            Err(_) => Some(ExitStatus::default()),
        });
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.kill_group();
        let deadline_ns = monotonic_ns() + VANISH_WITHIN_NS;
        look_until(deadline_ns, || self.has_ended().then_some(()));
        self.reap(deadline_ns);
    }
}

/// Looks again and again, with growing pauses, until there is something or the deadline has passed (one last look then).
pub(super) fn look_until<T>(deadline_ns: u64, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut pause_ns = LOOK_FIRST_NS;
    loop {
        let now_ns = monotonic_ns();
        if let Some(found) = look() {
            return Some(found);
        }
        if now_ns >= deadline_ns {
            return None;
        }
        nanosleep_until(deadline_ns.min(now_ns + pause_ns));
        pause_ns = (pause_ns * 2).min(LOOK_LAST_NS);
    }
}
