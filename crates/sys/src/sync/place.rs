//! A place in shared memory for one object of the C library.

use std::io;
use std::marker::PhantomData;

use crate::pages::Pages;

/// Zeroed memory for a `T` at a fixed address, at the start of a shared page of its own.
#[derive(Debug)]
pub(super) struct Place<T> {
    pages: Pages,
    of: PhantomData<T>,
}

// SAFETY: the objects kept here are made to be used by several threads at once; this type only gives their address.
unsafe impl<T> Send for Place<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Place<T> {}

impl<T> Place<T> {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { pages: Pages::shared(size_of::<T>())?, of: PhantomData })
    }

    /// Address of the object, the same in processes forked later.
    #[inline]
    pub(super) fn pointer(&self) -> *mut T {
        self.pages.extent().address().cast()
    }
}
