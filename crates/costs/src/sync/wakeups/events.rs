//! Ways to tell another thread or process that something happened.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A word and futex(2).
    Futex,
    Condvar,
    Semaphore,
    /// eventfd(2).
    EventFd,
    /// A byte through a pipe.
    Pipe,
}

impl Way {
    pub(super) const ALL: [Self; 5] =
        [Self::Futex, Self::Pipe, Self::Condvar, Self::EventFd, Self::Semaphore];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Futex => "wake_futex",
            Self::Condvar => "wake_condvar",
            Self::Semaphore => "wake_semaphore",
            Self::EventFd => "wake_eventfd",
            Self::Pipe => "wake_pipe",
        }
    }

    /// Whether one can look without sleeping. (With a mutex, looking would be in the way of the giver.)
    pub(super) const fn polls(self) -> bool {
        !matches!(self, Self::Condvar)
    }

    /// Makes one.
    ///
    /// # Errors
    /// The system's: one line.
    pub(super) fn make(self, sharing: Sharing, polls: bool) -> Result<Box<dyn Event>, String> {
        let event: std::io::Result<Box<dyn Event>> = match self {
            Self::Futex => Word::new(sharing).map(|word| Box::new(OnWord { word, polls }) as Box<dyn Event>),
            Self::Condvar => Monitor::new(sharing).map(|m| Box::new(m) as Box<dyn Event>),
            Self::Semaphore => Semaphore::new(sharing).map(|s| Box::new(s) as Box<dyn Event>),
            Self::EventFd => EventCounter::new(polls).map(|e| Box::new(e) as Box<dyn Event>),
            Self::Pipe => Pipe::new(polls).map(|p| Box::new(p) as Box<dyn Event>),
        };
        event.map_err(|e| e.to_string())
    }
}

/// Takes an event, by looking again and again or by sleeping.
#[inline]
pub(super) fn receive(event: &dyn Event, member: &Member<'_>, polls: bool) -> bool {
    if polls { member.wait(|| event.poll()) } else { event.take() }
}

/// 1 while there is an event. Nobody is woken who does not sleep.
struct OnWord {
    word: Word,
    polls: bool,
}

impl Event for OnWord {
    #[inline]
    fn give(&self) -> bool {
        self.word.value().store(1, Ordering::Release);
        if !self.polls {
            self.word.wake(1);
        }
        true
    }

    #[inline]
    fn take(&self) -> bool {
        while !self.poll() {
            self.word.wait(0, None);
        }
        true
    }

    #[inline]
    fn poll(&self) -> bool {
        let word = self.word.value();
        word.load(Ordering::Acquire) == 1 && word.swap(0, Ordering::AcqRel) == 1
    }
}

impl Event for Monitor {
    #[inline]
    fn give(&self) -> bool {
        let Some(mut inside) = self.enter() else { return false };
        inside.set(1);
        drop(inside);
        self.signal();
        true
    }

    #[inline]
    fn take(&self) -> bool {
        let Some(mut inside) = self.enter() else { return false };
        while inside.get() == 0 {
            inside.wait();
        }
        inside.set(0);
        true
    }

    fn poll(&self) -> bool {
        let Some(mut inside) = self.enter() else { return false };
        let there = inside.get() == 1;
        inside.set(0);
        there
    }
}

impl Event for Semaphore {
    #[inline]
    fn give(&self) -> bool {
        self.post()
    }

    #[inline]
    fn take(&self) -> bool {
        self.wait()
    }

    #[inline]
    fn poll(&self) -> bool {
        self.try_wait()
    }
}

impl Event for EventCounter {
    #[inline]
    fn give(&self) -> bool {
        Self::give(self)
    }

    #[inline]
    fn take(&self) -> bool {
        Self::take(self)
    }

    #[inline]
    fn poll(&self) -> bool {
        Self::take(self)
    }
}

impl Event for Pipe {
    #[inline]
    fn give(&self) -> bool {
        Self::give(self)
    }

    #[inline]
    fn take(&self) -> bool {
        Self::take(self)
    }

    #[inline]
    fn poll(&self) -> bool {
        Self::take(self)
    }
}
