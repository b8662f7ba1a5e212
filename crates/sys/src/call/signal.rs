//! A signal of our own: installing a handler, and catching what is sent to the calling thread.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{number, zero};

static CAUGHT: AtomicU64 = AtomicU64::new(0);
static IN_USE: Mutex<()> = Mutex::new(());

extern "C" fn on_signal(_: libc::c_int) {
    // Only the thread that sends the signal catches it, one at a time, so that no locked addition is needed.
    CAUGHT.store(CAUGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// A handler that counts, for a real-time signal that nothing else in this program uses. There is one at a time; making a
/// second waits for the first. Dropping it restores what was there.
#[derive(Debug)]
pub struct Handler {
    signal: libc::c_int,
    before: libc::sigaction,
    _in_use: MutexGuard<'static, ()>,
}

impl Handler {
    pub fn install() -> io::Result<Self> {
        let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        // Away from the first few, which thread libraries keep for themselves.
        let signal = libc::SIGRTMIN() + 7;
        let before = set(signal, &counting())?;
        Ok(Self { signal, before, _in_use: in_use })
    }

    /// `sigaction` once more. Errors: the system's, or another handler than ours was there.
    #[inline]
    pub fn reinstall(&self) -> io::Result<()> {
        let action = counting();
        if set(self.signal, &action)?.sa_sigaction == action.sa_sigaction {
            Ok(())
        } else {
            Err(io::Error::other("another handler was installed meanwhile"))
        }
    }

    /// Sends the signal to the calling thread (`tgkill(2)`); it is caught before this returns.
    #[inline]
    pub fn raise(&self, thread: i32) -> io::Result<()> {
        // SAFETY: integers only; the handler touches one atomic.
        let rc = unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, self.signal) };
        number(rc).map(|_| ())
    }

    /// Signals caught so far in this process.
    pub fn caught() -> u64 {
        CAUGHT.load(Ordering::Relaxed)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let _ = set(self.signal, &self.before);
    }
}

#[inline]
fn counting() -> libc::sigaction {
    // SAFETY: sigaction consists of integers and an optional function pointer, for which all zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    action
}

#[inline]
fn set(signal: libc::c_int, action: &libc::sigaction) -> io::Result<libc::sigaction> {
    // SAFETY: as in `counting`.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: live actions; the handler, if one is set, is async-signal-safe.
    zero(unsafe { libc::sigaction(signal, std::ptr::from_ref(action), &raw mut before) })?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_sent_is_caught_and_the_old_action_comes_back() {
        let handler = Handler::install().unwrap();
        let before = Handler::caught();
        let thread = crate::thread::tid();
        for _ in 0..1_000 {
            handler.raise(thread).unwrap();
            handler.reinstall().unwrap();
        }
        assert_eq!(Handler::caught() - before, 1_000);
        set(handler.signal, &handler.before).unwrap();
        assert!(handler.reinstall().unwrap_err().to_string().contains("another handler"));
        let signal = handler.signal;
        drop(handler);
        let found = set(signal, &counting()).unwrap();
        assert_eq!(found.sa_sigaction, libc::SIG_DFL);
        set(signal, &found).unwrap();
    }
}
