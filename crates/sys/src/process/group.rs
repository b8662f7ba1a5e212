//! Process groups and single processes from outside: signals, and what /proc says about them.

use std::fs;
use std::io;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::Stat;
use super::child::look_until;
use crate::fs_root::FsRoot;

/// Kills every process of the group `pid`. A group that is gone is no error; 0, 1 and negative numbers do nothing,
/// since they would name our own group or everything.
pub fn kill_group_of(pid: i32) {
    send_to_group(pid, Signal::KILL);
}

/// As [`kill_group_of`], but asks the processes to end (`SIGTERM`).
pub fn terminate_group_of(pid: i32) {
    send_to_group(pid, Signal::TERM);
}

fn send_to_group(pid: i32, signal: Signal) {
    if let Some(group) = (pid > 1).then(|| Pid::from_raw(pid)).flatten() {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Kills the processes of the calling process's group except itself, again and again until none is left or
/// `deadline_ns` (monotonic) has passed; returns whether none is left.
pub fn kill_rest_of_group(deadline_ns: u64) -> bool {
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    kill_others_of_group(group, std::process::id() as i32, deadline_ns)
}

/// As [`kill_rest_of_group`], for any group and any of its members.
pub(super) fn kill_others_of_group(group: i32, spared: i32, deadline_ns: u64) -> bool {
    let none_left = || {
        let rest = members(|p| p != spared && Stat::of(p).is_some_and(|s| s.group == group && s.is_live()));
        for pid in &rest {
            let _ = kill_process(*pid);
        }
        rest.is_empty().then_some(())
    };
    look_until(deadline_ns, none_left).is_some()
}

/// Takes the exit status of all ended children; not for processes that wait for children themselves.
pub fn reap_orphans() {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) | Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::All, look) {}
}

pub fn kill_process(pid: i32) -> io::Result<()> {
    send(pid, Signal::KILL)
}

/// Asks a process to end (`SIGTERM`).
pub fn terminate_process(pid: i32) -> io::Result<()> {
    send(pid, Signal::TERM)
}

/// Stops a process (`SIGSTOP`); it can't prevent that.
pub fn stop_process(pid: i32) -> io::Result<()> {
    send(pid, Signal::STOP)
}

/// Lets a stopped process go on (`SIGCONT`).
pub fn continue_process(pid: i32) -> io::Result<()> {
    send(pid, Signal::CONT)
}

/// Numbers below 1 would name more than one process.
fn send(pid: i32, signal: Signal) -> io::Result<()> {
    let one = (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(one, signal)?)
}

/// State of a process or thread as a letter (`R` running or runnable, `S` sleeping, `D` waiting for a device, `T`
/// stopped, `Z` ended but not yet reaped, ...); `None` when it is gone.
pub fn state_of(id: i32) -> Option<char> {
    Stat::of(id).map(|s| s.state)
}

/// Whether the process exists and has not ended (a zombie has).
pub fn pid_is_alive(pid: i32) -> bool {
    Stat::of(pid).is_some_and(|s| s.is_live())
}

/// All processes of the group `pid`, ascending, with those that ended but were not reaped.
pub fn processes_of_group(pid: i32) -> Vec<i32> {
    members(|p| Stat::of(p).is_some_and(|s| s.group == pid))
}

/// Live processes with `argument` as one of their arguments, ascending; for checks that nothing was left behind.
pub fn commands_with(argument: &str) -> Vec<i32> {
    members(|p| {
        let line = fs::read(format!("/proc/{p}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|a| a == argument.as_bytes()) && pid_is_alive(p)
    })
}

fn members(belongs: impl Fn(i32) -> bool) -> Vec<i32> {
    let pids = FsRoot::host().numbered("proc", "").into_iter();
    pids.map(|pid| pid as i32).filter(|pid| belongs(*pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_and_init_is_not_in_its_group() {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert!(pid_is_alive(me) && processes_of_group(group).contains(&me));
        assert!(matches!(state_of(me), Some('R' | 'S')));
        let name = std::env::args().next().unwrap();
        assert!(commands_with(&name).contains(&me));
    }

    #[test]
    fn numbers_that_name_more_than_one_process_are_refused() {
        for pid in [0, -1] {
            assert!(kill_process(pid).is_err());
            kill_group_of(pid);
        }
        kill_group_of(1);
        assert!(!pid_is_alive(i32::MAX) && state_of(i32::MAX).is_none());
    }
}
