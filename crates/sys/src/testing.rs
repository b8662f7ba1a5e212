//! What tests ask about where they run and what they cause, and a process for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};

use crate::cgroup::Group;
use crate::process::fork::{Ended, PANICKED, fork_run, panic_text};
use crate::thread::Usage;

pub(crate) fn sleeper() -> Child {
    Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
}

/// Runs what changes the thread that it is on.
pub(crate) fn in_thread(work: impl FnOnce() + Send) {
    std::thread::scope(|s| s.spawn(work).join().unwrap());
}

/// Runs `work` in a process of a user without rights; only root can. Not on a thread: the kernel takes from all threads of a process
/// that changed its user the right to share open files, which other tests look at.
pub(crate) fn as_nobody(work: impl Fn()) {
    const NOBODY: libc::uid_t = 65_534;
    if !rustix::process::getuid().is_root() {
        return println!("skipped: needs root to drop rights");
    }
    let child = || {
        // SAFETY: the child has one thread.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        let Err(panic) = catch_unwind(AssertUnwindSafe(&work)) else { return 0 };
        eprintln!("without rights: {}", panic_text(panic.as_ref()));
        PANICKED
    };
    assert_eq!(fork_run(&child).unwrap().wait().unwrap(), Ended::Exited(0));
}

/// A group that limits so, where there may be one.
pub(crate) fn group(text: &str) -> Option<Group> {
    match Group::create(&text.parse().unwrap(), "test of groups") {
        Ok(group) => Some(group),
        Err(e) => {
            println!("skipped: {e}");
            let said = e.to_string();
            assert!(said.starts_with("control group with the ") || said.contains(" refused: "), "{e}");
            assert!(!said.contains('\n'), "{e}");
            None
        }
    }
}

/// Minor page faults of the calling thread during `work`.
pub(crate) fn faults(work: impl FnOnce()) -> u64 {
    let before = Usage::of_current_thread();
    work();
    Usage::of_current_thread().since(&before).minor_faults
}

/// Whether an emulator runs the tests, where own programs, copied pages and clocks differ; says so.
pub(crate) fn is_emulated() -> bool {
    let own =
        Command::new("/proc/self/exe").arg("--list").stdout(Stdio::null()).stderr(Stdio::null()).status();
    // There the link leads to the emulator, which does not know the option.
    let emulated = !own.is_ok_and(|status| status.success());
    if emulated {
        println!("skipped: an emulator runs this test");
    }
    emulated
}
