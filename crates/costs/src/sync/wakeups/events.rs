//! Ways to tell another thread or process that something happened.

use std::io;
use std::sync::atomic::Ordering;

use machmeter_engine::team::Member;
use machmeter_sys::sync::{EventCounter, Monitor, Pipe, Semaphore, Sharing, Word};

/// An event that one gives and the other takes.
pub(super) trait Event: Sync {
    /// Gives one event; the taker takes it before the next is given.
    fn give(&self) -> bool;

    /// Sleeps until there is one, and takes it.
    fn take(&self) -> bool;

    fn poll(&self) -> bool;
}

machmeter_data::named! { pub(super) enum Way {
    /// A word and futex(2).
    Futex = "wake_futex",
    /// A byte through a pipe.
    Pipe = "wake_pipe",
    Condvar = "wake_condvar",
    /// eventfd(2).
    EventFd = "wake_eventfd",
    Semaphore = "wake_semaphore",
} }

impl Way {
    /// Whether one can look without sleeping. (With a mutex, looking would be in the way of the giver.)
    pub(super) const fn polls(self) -> bool {
        !matches!(self, Self::Condvar)
    }

    pub(super) fn make(self, sharing: Sharing, polls: bool) -> Result<Box<dyn Event>, String> {
        let event = match self {
            Self::Futex => of(
                Word::new(sharing),
                move |word| {
                    word.value().store(1, Ordering::Release);
                    // Nobody is woken who does not sleep.
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

/// Takes an event, by looking again and again or by sleeping.
#[inline]
pub(super) fn receive(event: &dyn Event, member: &Member<'_>, polls: bool) -> bool {
    if polls { member.wait(|| event.poll()) } else { event.take() }
}

/// The word is 1 while there is an event, which is taken.
#[inline]
fn is_set(word: &Word) -> bool {
    word.value().load(Ordering::Acquire) == 1 && word.value().swap(0, Ordering::AcqRel) == 1
}

/// An object of the system with what gives, takes and looks.
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
