//! A wait for a CPU, and who had it meanwhile.

/// Who had the CPU that a followed thread waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A followed thread.
    Own(i32),
    /// Another thread, by its id.
    Other(i32),
    /// The idle task, although the thread was runnable and had been preempted: the kernel held it back.
    HeldBack,
    /// The idle task, after the thread was woken: the CPU still had to wake up.
    Waking,
}

/// A wait for a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The thread that waited.
    pub tid: i32,
    /// The CPU that it got.
    pub cpu: u16,
    /// Start, ns of the trace's clock.
    pub start_ns: u64,
    /// Duration, ns.
    pub ns: u64,
    /// Time per holder, ns.
    pub parts: Vec<(Holder, u64)>,
}

/// Who had the CPU during a wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parts {
    known: Vec<(Holder, u64)>,
    /// Time since the thread was held back last. If it is held back again, it was so in between, too: whoever ran then took nothing from it.
    since_held: Vec<(Holder, u64)>,
}

impl Parts {
    pub(super) fn add(&mut self, holder: Holder, ns: u64) {
        if holder != Holder::HeldBack {
            return add(&mut self.since_held, holder, ns);
        }
        let was_held = self.known.iter().any(|p| p.0 == Holder::HeldBack);
        for (other, ns) in std::mem::take(&mut self.since_held) {
            add(&mut self.known, if was_held { Holder::HeldBack } else { other }, ns);
        }
        add(&mut self.known, holder, ns);
    }

    pub(super) fn all(mut self) -> Vec<(Holder, u64)> {
        for (holder, ns) in self.since_held {
            add(&mut self.known, holder, ns);
        }
        self.known
    }
}

fn add(parts: &mut Vec<(Holder, u64)>, holder: Holder, ns: u64) {
    match parts.iter_mut().find(|p| p.0 == holder) {
        Some(part) => part.1 += ns,
        None if ns > 0 => parts.push((holder, ns)),
        None => {}
    }
}
