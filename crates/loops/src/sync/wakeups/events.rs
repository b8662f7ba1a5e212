//! Events that one thread or process gives and another takes, in several ways.

use std::io;
use std::sync::atomic::Ordering;

use machmeter_sys::sync::{EventCounter, Monitor, Pipe, Semaphore, Sharing, Word};

use crate::team::Member;

/// An event that one member gives and the other member takes.
pub(super) trait Event: Sync {
    /// Gives one event. The other member takes it before the next one is given.
    fn give(&self) -> bool;

    /// Sleeps until there is an event, and takes it.
    fn take(&self) -> bool;

    /// Takes an event if there is one, without sleeping.
    fn poll(&self) -> bool;
}

machmeter_data::named! {
/// A way to give an event.
pub enum Way {
    /// A word and futex(2).
    Futex = "wake_futex",
    /// A byte through a pipe.
    Pipe = "wake_pipe",
    /// A mutex and a condition variable.
    Condvar = "wake_condvar",
    /// eventfd(2).
    EventFd = "wake_eventfd",
    /// A semaphore of the C library.
    Semaphore = "wake_semaphore",
} }

impl Way {
    /// Whether a member can poll without sleeping. (Polling under a mutex would block the giver.)
    pub const fn polls(self) -> bool {
        !matches!(self, Self::Condvar)
    }

    pub(super) fn make(self, sharing: Sharing, polls: bool) -> Result<Box<dyn Event>, String> {
        let event = match self {
            Self::Futex => of(
                Word::new(sharing),
                move |word| {
                    word.value().store(1, Ordering::Release);
                    // A member that polls does not sleep.
                    if !polls {
                        word.wake(1);
                    }
                    true
                },
                |word| {
                    while !is_set(word) {
                        word.wait(0, None);
                    }
                    true
                },
                is_set,
            ),
            Self::Condvar => of(
                Monitor::new(sharing),
                |monitor| {
                    let set = monitor.enter().map(|mut inside| inside.set(1)).is_some();
                    monitor.signal();
                    set
                },
                |monitor| {
                    let Some(mut inside) = monitor.enter() else { return false };
                    while inside.get() == 0 {
                        inside.wait();
                    }
                    inside.set(0);
                    true
                },
                |_| false,
            ),
            Self::Semaphore => {
                of(Semaphore::new(sharing), Semaphore::post, Semaphore::wait, Semaphore::try_wait)
            }
            Self::EventFd => {
                of(EventCounter::new(polls), EventCounter::give, EventCounter::take, EventCounter::take)
            }
            Self::Pipe => of(Pipe::new(polls), Pipe::give, Pipe::take, Pipe::take),
        };
        event.map_err(|e| e.to_string())
    }
}

/// Takes an event, by polling or by sleeping.
#[inline]
pub(super) fn receive(event: &dyn Event, member: &Member<'_>, polls: bool) -> bool {
    if polls { member.wait(|| event.poll()) } else { event.take() }
}

/// Takes the event if there is one: the word is 1 until then.
#[inline]
fn is_set(word: &Word) -> bool {
    word.value().load(Ordering::Acquire) == 1 && word.value().swap(0, Ordering::AcqRel) == 1
}

/// An object of the system with the functions that give, take and poll.
struct Of<O, G, T, P>(O, G, T, P);

fn of<O: Sync + 'static>(
    object: io::Result<O>,
    give: impl Fn(&O) -> bool + Sync + 'static,
    take: impl Fn(&O) -> bool + Sync + 'static,
    poll: impl Fn(&O) -> bool + Sync + 'static,
) -> io::Result<Box<dyn Event>> {
    Ok(Box::new(Of(object?, give, take, poll)))
}

impl<O, G, T, P> Event for Of<O, G, T, P>
where
    O: Sync,
    G: Fn(&O) -> bool + Sync,
    T: Fn(&O) -> bool + Sync,
    P: Fn(&O) -> bool + Sync,
{
    #[inline]
    fn give(&self) -> bool {
        self.1(&self.0)
    }

    #[inline]
    fn take(&self) -> bool {
        self.2(&self.0)
    }

    #[inline]
    fn poll(&self) -> bool {
        self.3(&self.0)
    }
}
