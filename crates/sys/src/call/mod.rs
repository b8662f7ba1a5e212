//! Single operations of the operating system, thin enough to be timed: each is one or a few system calls without anything
//! around them, and says whether it did what it should. Who times them counts that as proof.
//!
//! Calls that the C library answers from memory (`getpid` once, `clock_gettime` by the vDSO) go through `syscall(2)` where
//! the name says so.

pub mod bytes;
pub mod event;
pub mod file;
pub mod map;
pub mod signal;
pub mod task;

use std::io;

use libc::c_long;

use crate::thread;

/// `Ok` for 0, else the error of the last call of this thread.
#[inline]
fn zero(rc: i32) -> io::Result<()> {
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `Ok` for 0, else the error of that code.
#[inline]
pub(crate) fn checked(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// The number a call gave, or the error for a negative one.
#[inline]
fn number(rc: c_long) -> io::Result<usize> {
    usize::try_from(rc).map_err(|_| io::Error::last_os_error())
}

/// `Ok` if `seen` is what was expected, else an error that says both.
#[inline]
fn expect(what: &str, seen: i64, expected: i64) -> io::Result<()> {
    if seen == expected { Ok(()) } else { Err(differs(what, seen, expected)) }
}

#[cold]
fn differs(what: &str, seen: i64, expected: i64) -> io::Error {
    io::Error::other(format!("{what}: {seen} instead of {expected}"))
}

/// `getppid` through the kernel: the least that a system call can do.
#[inline]
pub fn parent_by_call() -> i32 {
    // SAFETY: takes no argument and touches no memory.
    unsafe { libc::syscall(libc::SYS_getppid) as i32 }
}

/// The same by the instruction itself. The C library's function returns to its caller after the kernel has emptied the
/// predictor of returns, which costs each time.
#[inline(always)]
pub fn parent_by_instruction() -> i32 {
    let parent: c_long;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: getppid takes no argument and touches no memory; the kernel changes rax, rcx and r11 only.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") libc::SYS_getppid => parent, out("rcx") _, out("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: getppid takes no argument and touches no memory; the kernel changes x0 only.
    unsafe {
        std::arch::asm!("svc 0", in("x8") libc::SYS_getppid, out("x0") parent, options(nostack));
    }
    parent as i32
}

/// `gettid` through the kernel.
#[inline]
pub fn thread_by_call() -> i32 {
    // SAFETY: takes no argument and touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// `CLOCK_MONOTONIC` through the kernel, never by the vDSO, ns.
#[inline]
pub fn monotonic_by_call_ns() -> io::Result<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live, writable timespec.
    let rc = unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    number(rc)?;
    Ok(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// CPU time of this process and of its children that were waited for (in steps of a microsecond), ns.
pub fn family_cpu_ns() -> u64 {
    thread::clock_ns(rustix::time::ClockId::ProcessCPUTime) + thread::children_cpu_ns()
}

#[inline]
pub fn yield_cpu() -> io::Result<()> {
    // SAFETY: takes no argument and touches no memory.
    zero(unsafe { libc::sched_yield() })
}

/// `getrandom` through the kernel (the C library may answer from a vDSO); fails if it gave less than asked for.
#[inline]
pub fn random_by_call(into: &mut [u8]) -> io::Result<()> {
    // SAFETY: the buffer is live and writable for its length.
    let rc = unsafe { libc::syscall(libc::SYS_getrandom, into.as_mut_ptr(), into.len(), 0) };
    expect("random bytes", number(rc)? as i64, into.len() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_calls_say_what_other_witnesses_say() {
        let parent = std::os::unix::process::parent_id() as i32;
        assert_eq!((parent_by_call(), parent_by_instruction()), (parent, parent));
        assert_eq!(thread_by_call(), thread::tid());
        let (a, b) = (monotonic_by_call_ns().unwrap(), thread::monotonic_ns());
        assert!(b >= a && b - a < 1_000_000_000, "{a} {b}");
        yield_cpu().unwrap();
        let before_ns = family_cpu_ns();
        let until_ns = thread::thread_cpu_ns() + 3_000_000;
        while thread::thread_cpu_ns() < until_ns {}
        assert!(family_cpu_ns() >= before_ns + 2_000_000);
        let mut bytes = [0_u8; 64];
        random_by_call(&mut bytes).unwrap();
        assert!(bytes.iter().any(|b| *b != 0));
    }
}
