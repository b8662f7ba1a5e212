//! The system call, its attributes, and the reason when it is refused.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::Refused;

/// Why there are no context-switch records: the setting or limit that refused them.
pub(super) fn unavailable(why: impl std::fmt::Display) -> Refused {
    Refused(format!("context-switch records are not available: {why}"))
}

pub(super) fn no_ring(pages: usize, e: &io::Error) -> Refused {
    let why = match e.raw_os_error() {
        Some(libc::EPERM) => {
            "locked memory of this user is used up (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK); ask for fewer pages"
        }
        Some(libc::EINVAL) => "the number of pages must be a power of two",
        _ => &e.to_string(),
    };
    Refused(format!("context-switch records: the ring buffer of {pages} pages cannot be mapped: {why}"))
}

/// `struct perf_event_attr` as of version 3 (96 bytes), the first with `use_clockid`'s field.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Attr {
    kind: u32,
    size_bytes: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
}

const _: () = assert!(size_of::<Attr>() == 96);

const TYPE_SOFTWARE: u32 = 1;
const COUNT_SW_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CPU: u64 = 1 << 7;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK_ID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const FLAG_CLOEXEC: u64 = 1 << 3;
/// Reading the descriptor tells the number of lost records (Linux 6.0).
const FORMAT_LOST: u64 = 1 << 4;

#[derive(Debug)]
pub(super) struct Event {
    pub(super) fd: OwnedFd,
    /// Whether reading the descriptor gives the value and the number of lost records.
    pub(super) counts_lost: bool,
}

/// Opens the switch records of the calling thread; stamped by `clock_id`, or by the kernel's own clock.
pub(super) fn open_switch_event(clock_id: Option<libc::clockid_t>) -> Result<Event, Refused> {
    let clock_flag = if clock_id.is_some() { USE_CLOCK_ID } else { 0 };
    let attr = Attr {
        kind: TYPE_SOFTWARE,
        size_bytes: size_of::<Attr>() as u32,
        config: COUNT_SW_DUMMY,
        sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU,
        read_format: FORMAT_LOST,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | SAMPLE_ID_ALL | CONTEXT_SWITCH | clock_flag,
        clock_id: clock_id.unwrap_or(0),
        ..Attr::default()
    };
    let opened = match open(&attr) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            open(&Attr { read_format: 0, ..attr }).map(|fd| Event { fd, counts_lost: false })
        }
        other => other.map(|fd| Event { fd, counts_lost: true }),
    };
    opened.map_err(|e| unavailable(refusal(&e, paranoid().as_deref(), filtered())))
}

fn open(attr: &Attr) -> io::Result<OwnedFd> {
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    let attr = std::ptr::from_ref(attr);
    // SAFETY: `attr` is initialized, states its own size and is only read; the rest are plain integers.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attr, this_thread, any_cpu, no_group, FLAG_CLOEXEC)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn paranoid() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok().map(|t| t.trim().to_owned())
}

/// Whether a seccomp filter watches the calling thread.
fn filtered() -> bool {
    crate::sched::cause::Rights::read().is_ok_and(|rights| rights.seccomp_mode == 2)
}

/// The reason in words. The kernel answers EACCES for `perf_event_paranoid` and security modules; filters answer EPERM or ENOSYS.
fn refusal(error: &io::Error, paranoid: Option<&str>, filtered: bool) -> String {
    let level = paranoid.and_then(|p| p.parse::<i32>().ok());
    match (error.raw_os_error(), level) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level >= 3 => {
            format!(
                "kernel.perf_event_paranoid is {level}, which forbids all events to users; set it to 2 or run as root"
            )
        }
        (Some(libc::EPERM | libc::ENOSYS | libc::EACCES), _) if filtered => {
            "a seccomp filter of this process forbids perf_event_open (container run time); allow it there"
                .to_owned()
        }
        (Some(libc::ENOSYS), _) => "this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned(),
        (Some(libc::EINVAL), _) => "this kernel is older than 4.3 and has no switch records".to_owned(),
        (Some(libc::EACCES | libc::EPERM), _) => format!(
            "refused although kernel.perf_event_paranoid is {}; a security module may forbid it",
            paranoid.unwrap_or("unknown")
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => "too many open files".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_setting_the_filter_or_the_kernel() {
        let of = |code, paranoid, filtered| refusal(&io::Error::from_raw_os_error(code), paranoid, filtered);
        assert!(of(libc::EACCES, Some("3"), false).contains("perf_event_paranoid is 3"));
        assert!(of(libc::EACCES, Some("4"), true).contains("perf_event_paranoid is 4"));
        assert!(of(libc::EPERM, Some("2"), true).contains("seccomp"));
        assert!(of(libc::ENOSYS, None, false).contains("CONFIG_PERF_EVENTS"));
        assert!(of(libc::EACCES, Some("2"), false).contains("security module"));
        assert!(of(libc::EINVAL, Some("2"), false).contains("4.3"));
    }
}
