//! What tests ask about where they run and what they cause, and a process for them.

use std::process::{Child, Command, Stdio};

pub(crate) fn sleeper() -> Child {
    Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
}

use crate::thread::Usage;

/// Minor page faults of the calling thread during `work`.
pub(crate) fn faults(work: impl FnOnce()) -> u64 {
    let before = Usage::of_current_thread();
    work();
    Usage::of_current_thread().since(&before).minor_faults
}

/// Whether an emulator of another processor runs the tests: then a start of their own program starts the emulator, pages are copied at other times
/// and clocks are not steady. Says that the test is skipped.
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
