//! Entries behind which somebody watches: for profiles, traces, and boxes that only seem to work.

use std::ptr::NonNull;
use std::rc::Rc;

use super::{Entry, Id, Place};
use crate::Outcome;
use crate::scheduler::Core;

/// Is told of each firing, in place of the box.
pub trait Watch {
    /// Does what [`Call::apply`] does, or lets it only seem so.
    fn fire(&self, call: &mut Call<'_>) -> Outcome;
}

/// Tokens whose values decide what other boxes do: a static output of a box, and its bytes a firing.
#[derive(Clone, Copy)]
pub(crate) struct Control {
    pub(crate) place: Id<Place>,
    pub(crate) firing_bytes: usize,
}

/// What stands in the table instead of an entry.
pub(crate) struct Watched {
    inner: Entry,
    control: Option<Control>,
    watch: Rc<dyn Watch>,
}

/// A firing that is about to happen.
pub struct Call<'a> {
    core: &'a Core,
    of: &'a Watched,
    first: u32,
    times: u32,
}

impl Call<'_> {
    /// Number of the box in the order of its graph.
    pub fn number(&self) -> usize {
        self.of.inner.number as usize
    }
    /// Firings that one apply does.
    pub fn times(&self) -> u32 {
        self.times
    }
    pub fn apply(&mut self) -> Outcome {
        // SAFETY: the node lives in the same program, and places have room for these firings: they are those of the loop.
        unsafe { (self.of.inner.apply)(self.of.inner.node, self.core, self.first, self.times) }
    }
    /// Tokens of these firings that decide what other boxes do, as bytes; `None` where the box gives none.
    pub fn control(&mut self) -> Option<&mut [u8]> {
        let c = self.of.control?;
        let first = self.core.places[c.place].get().wrapping_add(self.first as usize * c.firing_bytes);
        // SAFETY: the place of a static output has room for these firings, any bytes are tokens, and no apply runs: that needs
        // this value.
        Some(unsafe { std::slice::from_raw_parts_mut(first, self.times as usize * c.firing_bytes) })
    }
    /// Tokens written to and read from all queues so far.
    pub fn moved(&self) -> u64 {
        let written: u64 = self.core.queues.iter().map(|q| q.written.get()).sum();
        written + self.core.ends.iter().map(|e| e.read.get()).sum::<u64>()
    }
    /// Tokens in each queue.
    pub fn levels(&self) -> impl Iterator<Item = u64> {
        self.core.queues.iter().map(|q| q.written.get() - q.least_read.get())
    }
}

impl Watched {
    unsafe fn apply(p: NonNull<()>, core: &Core, first: u32, times: u32) -> Outcome {
        // SAFETY: `watch` pairs this function with a `Watched` that the program keeps.
        let of = unsafe { p.cast::<Self>().as_ref() };
        of.watch.fire(&mut Call { core, of, first, times })
    }
}

/// Puts somebody who watches before each box. `controls` by number of box.
pub(crate) fn watch(core: &mut Core, watch: &Rc<dyn Watch>, controls: &[Option<Control>]) {
    for s in core.schedules.iter_mut() {
        for e in &mut s.entries {
            let control = controls.get(e.number as usize).copied().flatten();
            let watched = Rc::new(Watched { inner: *e, control, watch: Rc::clone(watch) });
            *e = Entry { apply: Watched::apply, node: NonNull::from(&*watched).cast(), ..*e };
            core.watched.push(watched);
        }
    }
}
