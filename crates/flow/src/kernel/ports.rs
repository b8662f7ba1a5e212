//! Ports as boxes are given them: slices of memory behind places, readers and writers of queues.

use super::{Firings, Token};
use crate::graph::Binder;
use crate::scheduler::Core;
use crate::views::{In, Out, ReadPort, Reader, WritePort, Writer};

/// Ports of a box: one, a tuple or a vector of them.
pub trait Port: 'static {
    /// What apply is given.
    type View<'a>;
    /// Tells the graph of the ports and takes their numbers.
    fn bind(&mut self, to: &mut Binder<'_>);
    /// # Safety
    /// Only during an apply of the box that the port is of, with places that have room for these firings.
    unsafe fn view<'a>(&'a mut self, core: &'a Core, firing: Firings) -> Self::View<'a>;
}

impl<T: Token> Port for In<T> {
    type View<'a> = &'a [T];
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.place = to.input(self.edge, self.rate);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, firing: Firings) -> &'a [T] {
        let (first, n) = self.span(core, firing);
        // SAFETY: the place has room for the firings, holds tokens, and nobody writes to it during this apply.
        unsafe { std::slice::from_raw_parts(first, n) }
    }
}

impl<T: Token> Port for Out<T> {
    type View<'a> = &'a mut [T];
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.place = to.output(self.edge, self.rate);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, firing: Firings) -> &'a mut [T] {
        let (first, n) = self.span(core, firing);
        // SAFETY: the place has room for the firings, any bytes are tokens, and nobody else reaches it during this apply.
        unsafe { std::slice::from_raw_parts_mut(first, n) }
    }
}

impl<T: Token> Port for ReadPort<T> {
    type View<'a> = Reader<'a, T>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.end = to.reader(self.edge, self.least);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, _firing: Firings) -> Reader<'a, T> {
        Reader::open(core, self.end)
    }
}

impl<T: Token> Port for WritePort<T> {
    type View<'a> = Writer<'a, T>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.queue = to.writer(self.edge, self.least);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, _firing: Firings) -> Writer<'a, T> {
        Writer::open(core, self.queue)
    }
}

impl Port for () {
    type View<'a> = ();
    fn bind(&mut self, _to: &mut Binder<'_>) {}
    unsafe fn view<'a>(&'a mut self, _core: &'a Core, _firing: Firings) {}
}

macro_rules! port_tuples {
    ($(($($p:ident $i:tt)*))*) => { $(
        impl<$($p: Port),*> Port for ($($p,)*) {
            type View<'a> = ($($p::View<'a>,)*);
            fn bind(&mut self, to: &mut Binder<'_>) {
                $(self.$i.bind(to);)*
            }
            #[inline]
            unsafe fn view<'a>(&'a mut self, core: &'a Core, firing: Firings) -> Self::View<'a> {
                // SAFETY: as the caller promises.
                ($(unsafe { self.$i.view(core, firing) },)*)
            }
        }
    )* };
}
port_tuples!((A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 F 5));

/// A view of several ports of one kind, one at a time.
pub struct Many<'a, P> {
    ports: &'a mut [P],
    core: &'a Core,
    firing: Firings,
}

impl<P: Port> Many<'_, P> {
    #[allow(clippy::len_without_is_empty, reason = "a family of ports is never empty")]
    pub fn len(&self) -> usize {
        self.ports.len()
    }
    pub fn at(&mut self, index: usize) -> P::View<'_> {
        // SAFETY: made by `view` below, whose promise lasts as long as this value.
        unsafe { self.ports[index].view(self.core, self.firing) }
    }
}

impl<P: Port> Port for Vec<P> {
    type View<'a> = Many<'a, P>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        for p in self {
            p.bind(to);
        }
    }
    unsafe fn view<'a>(&'a mut self, core: &'a Core, firing: Firings) -> Many<'a, P> {
        Many { ports: self, core, firing }
    }
}
