//! SIGINT, SIGTERM, SIGHUP and SIGXCPU: the first asks the program to stop, so that ordinary unwinding runs the guards and a result is
//! saved; a second one restores from the registry in a thread of its own and ends the process.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::thread::futex::{self, Flags};

use super::restore_all;

/// What asks the program to stop: keyboard, `kill`, a service manager, a closed terminal, `ulimit -t`.
const ASKING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGXCPU];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// The conventional exit code of a program ended by this signal: 128 + number (130, 143, 129, 152).
    pub fn exit_code(self) -> u8 {
        128 + self.0 as u8
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(signal_hook::low_level::signal_name(self.0).unwrap_or("a signal"))
    }
}

static STOP: AtomicBool = AtomicBool::new(false);
/// Number of the first signal; 0 until then, for which [`sleep_until`] waits.
static FIRST: AtomicU32 = AtomicU32::new(0);
static FIRST_AT_NS: AtomicI64 = AtomicI64::new(0);
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// `timeout` and shells may send one request twice, to the process and to its group; only a signal later than this counts as
/// the user's second. The kernel repeats SIGXCPU each second of CPU time.
const SECOND_AFTER_NS: i64 = 300_000_000;

/// The flag set by the first signal; for polling in loops (one relaxed load).
pub fn stop_flag() -> &'static AtomicBool {
    &STOP
}

pub fn stop_requested() -> Option<Signal> {
    STOP.load(Ordering::Acquire).then(|| Signal(FIRST.load(Ordering::Acquire) as i32))
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `deadline_ns`, or a signal asks to stop. Nothing wakes the thread in between.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = crate::thread::timespec(deadline_ns);
    while !STOP.load(Ordering::Acquire) && crate::thread::monotonic_ns() < deadline_ns {
        // A word that is not 0 any more ends it at once; errors are the deadline and other signals.
        let _ = futex::wait_bitset(&FIRST, Flags::PRIVATE, 0, Some(&deadline), NonZeroU32::MAX);
    }
}

/// Ignores SIGPIPE and SIGXFSZ: a closed pipe and a file at its size limit are then ordinary write errors.
pub fn ignore_those_of_writes() {
    for number in [libc::SIGPIPE, libc::SIGXFSZ] {
        // SAFETY: SIG_IGN is a valid disposition and replaces no handler of ours.
        unsafe { libc::signal(number, libc::SIG_IGN) };
    }
}

/// Installs the handlers once. Signals that were ignored at the start (`nohup`) stay so.
/// Errors: no handler, pipe or thread can be made.
pub fn install() -> io::Result<()> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let (second_signal, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    crate::thread::spawn_plain("machmeter-signal", move || restore_on_second(second_signal))?;
    // The write end must outlive every handler, that is, the process.
    let wake = wake.into_raw_fd();
    for signal in ASKING.into_iter().filter(|s| !is_ignored(*s)) {
        // SAFETY: the action touches atomics and calls clock_gettime, futex and write only, all async-signal-safe.
        unsafe { signal_hook::low_level::register(signal, move || on_signal(signal, wake)) }?;
    }
    *installed = true;
    Ok(())
}

fn is_ignored(number: i32) -> bool {
    // SAFETY: all bytes 0 are a valid `sigaction`.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null action only asks; the answer's place lives through the call.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

fn on_signal(number: i32, wake: RawFd) {
    let now_ns = crate::thread::monotonic_ns() as i64;
    if FIRST.compare_exchange(0, number as u32, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        FIRST_AT_NS.store(now_ns, Ordering::Release);
        STOP.store(true, Ordering::Release);
        let _ = futex::wake(&FIRST, Flags::PRIVATE, i32::MAX as u32);
    } else if number != libc::SIGXCPU && now_ns - FIRST_AT_NS.load(Ordering::Acquire) >= SECOND_AFTER_NS {
        let byte = number as u8;
        // SAFETY: one readable byte, and a pipe that stays open as long as the process.
        unsafe { libc::write(wake, (&raw const byte).cast(), 1) };
    }
}

fn restore_on_second(second_signal: OwnedFd) {
    let mut second_signal = File::from(second_signal);
    let mut number = [0_u8];
    while let Err(e) = second_signal.read_exact(&mut number) {
        if e.kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
    restore_all();
    // Exit handlers and destructors of a stuck program may hang, so they are not run.
    signal_hook::low_level::exit(128 + i32::from(number[0]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Guard;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};
    use std::sync::Arc;
    use std::time::Duration;

    const STUCK: &str = "guard::signals::tests::child_stuck_program";
    const POLITE: &str = "guard::signals::tests::child_polite_program";

    /// Runs only as a child of the tests below, which pass the marker file as the program's working directory.
    #[test]
    #[ignore = "child process of another test"]
    fn child_stuck_program() {
        install().unwrap();
        let _undo = Guard::new("marker", || std::fs::write("restored", "yes").unwrap());
        std::fs::write("ready", "").unwrap();
        std::thread::sleep(Duration::from_secs(20));
    }

    #[test]
    #[ignore = "child process of another test"]
    fn child_polite_program() {
        install().unwrap();
        install().unwrap();
        let undo = Guard::new("marker", || std::fs::write("restored", "yes").unwrap());
        std::fs::write("ready", "").unwrap();
        sleep_until(crate::thread::monotonic_ns() + 20_000_000_000);
        drop(undo);
        signal_hook::low_level::exit(stop_requested().unwrap().exit_code().into());
    }

    fn start(name: &str, dir: &std::path::Path) -> Child {
        // Tests in the background ignore SIGINT, those under nohup SIGHUP; the child would too, but for a handler here.
        for signal in ASKING {
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always).unwrap();
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", name])
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let became_ready = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            dir.join("ready").exists()
        });
        if !became_ready {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the child never became ready");
        }
        child
    }

    fn send(child: &Child, signal: i32) {
        // SAFETY: plain integers; the child is ours and not yet waited for.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
    }

    #[test]
    fn a_stuck_program_restores_on_the_second_signal() {
        if crate::testing::is_emulated() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut child = start(STUCK, dir.path());
        send(&child, libc::SIGINT);
        send(&child, libc::SIGINT);
        std::thread::sleep(Duration::from_millis(400));
        assert!(child.try_wait().unwrap().is_none(), "a doubled request is not a second one");
        assert!(!dir.path().join("restored").exists());
        send(&child, libc::SIGTERM);
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(143), None));
        assert!(dir.path().join("restored").exists());
    }

    #[test]
    fn a_sleeping_program_stops_on_the_first_signal_and_knows_which() {
        if crate::testing::is_emulated() {
            return;
        }
        for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
            let dir = tempfile::tempdir().unwrap();
            let mut child = start(POLITE, dir.path());
            send(&child, libc::SIGPIPE);
            send(&child, signal);
            assert_eq!(child.wait().unwrap().code(), Some(code));
            assert!(dir.path().join("restored").exists());
        }
    }
}
