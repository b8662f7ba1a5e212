//! Buffers that timed calls copy from and to: memory of their own, at a known place of a page.
//!
//! The place decides the price. On AMD Zen 3 a copy by `rep movsb` takes up to 28 times as long if its destination lies 1 to 16 bytes
//! behind its source modulo 4096. The kernel copies from the start of a page, and the heap puts large blocks 16 bytes behind one.
//! So a buffer begins at a page, or a stated number of bytes behind it, and lies on another page in each visit: a run then
//! includes the prices of several places.

use std::io;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::mirror::page_bytes;
use crate::region::Region;

/// Pages at which a buffer may begin: as many as a cache way of 64 KiB holds (512 KiB of 8 ways), the colors of that cache.
const PLACES: usize = 16;

/// Elements at a known place of a page, in memory that holds nothing else.
#[derive(Debug)]
pub struct Buffer<T: Copy = u8> {
    /// None while it has no elements.
    region: Option<Region>,
    value: T,
    count: usize,
    behind_bytes: usize,
    /// Number of the page at which it begins, below [`PLACES`].
    place: usize,
}

impl<T: Copy> Buffer<T> {
    /// `count` elements of this value, from the start of a page on.
    /// Errors: no memory, or the limits on it.
    pub fn new(count: usize, value: T) -> io::Result<Self> {
        Self::behind(0, count, value)
    }

    /// The same, `behind_bytes` behind the start of a page.
    /// Errors: as [`Self::new`]; a whole page or more, or a place where such elements cannot lie.
    pub fn behind(behind_bytes: usize, count: usize, value: T) -> io::Result<Self> {
        if behind_bytes >= page_bytes() || !behind_bytes.is_multiple_of(align_of::<T>()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut buffer = Self { behind_bytes, ..Self::empty(value) };
        buffer.resize(count)?;
        Ok(buffer)
    }

    /// Without elements, for [`Self::resize`].
    pub const fn empty(value: T) -> Self {
        Self { region: None, value, count: 0, behind_bytes: 0, place: 0 }
    }

    /// With `count` elements from now on: what was there before, or the value.
    /// Errors: as [`Self::new`].
    pub fn resize(&mut self, count: usize) -> io::Result<()> {
        let others_bytes = (PLACES - 1) * page_bytes() + self.behind_bytes;
        let room_bytes = self.region.as_ref().map_or(0, |r| r.bytes() - others_bytes);
        if count > room_bytes / size_of::<T>().max(1) {
            let bytes = count.checked_mul(size_of::<T>()).and_then(|b| b.checked_add(others_bytes));
            let region = Region::new(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
            // SAFETY: inside the region, whose size is at least all of that.
            let first = unsafe { region.start().add(self.behind_bytes) }.cast::<MaybeUninit<T>>();
            let elements = (region.bytes() - self.behind_bytes) / size_of::<T>().max(1);
            // SAFETY: writable memory that only this function reaches; aligned, since the region begins at a page.
            unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), elements) }
                .fill(MaybeUninit::new(self.value));
            self.region = Some(region);
        }
        self.count = count;
        Ok(())
    }

    /// Moves to the page of this visit; contents stay where they are.
    pub fn move_to(&mut self, visit: usize) {
        self.place = visit % PLACES;
    }

    /// Moves to the next page.
    pub fn move_on(&mut self) {
        self.move_to(self.place + 1);
    }

    fn start(&self) -> *mut T {
        let offset_bytes = self.place * page_bytes() + self.behind_bytes;
        let start = self.region.as_ref().map(|r| r.start().as_ptr().wrapping_add(offset_bytes));
        start.map_or(NonNull::dangling().as_ptr(), <*mut u8>::cast)
    }
}

impl<T: Copy> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: inside the region at each place, aligned, and written when the region was made; else no element at all.
        unsafe { std::slice::from_raw_parts(self.start(), self.count) }
    }
}

impl<T: Copy> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_where_they_should_at_each_visit() {
        for behind_bytes in [0, 16, page_bytes() - 8] {
            let mut buffer = Buffer::behind(behind_bytes, 1_000, 7_u8).unwrap();
            let mut begins = std::collections::BTreeSet::new();
            for visit in 0..2 * PLACES {
                buffer.move_to(visit);
                assert_eq!(buffer.as_ptr().addr() % page_bytes(), behind_bytes);
                assert!(buffer.len() == 1_000 && buffer.iter().all(|b| *b == 7));
                begins.insert(buffer.as_ptr().addr());
            }
            assert_eq!(begins.len(), PLACES);
        }
        assert!(Buffer::behind(page_bytes(), 1, 0_u8).is_err() && Buffer::behind(4, 1, 0.0_f64).is_err());
        assert!(Buffer::new(usize::MAX, 0.0_f64).is_err());
    }

    #[test]
    fn a_longer_buffer_holds_its_value_everywhere_and_a_shorter_one_what_was_written() {
        let mut words = Buffer::new(10, 0.5_f64).unwrap();
        words.move_on();
        words[3] = 2.0;
        for count in [5, 10, 1_000_000] {
            words.resize(count).unwrap();
            assert_eq!(words.len(), count);
            assert!(words.iter().all(|w| *w == 0.5 || *w == 2.0));
        }
        assert_eq!(words[999_999], 0.5);
        words.resize(4).unwrap();
        words[3] = 4.0;
        words.move_on();
        words.resize(600).unwrap();
        assert!(words[..4].iter().all(|w| *w == 0.5), "the page of another visit");
    }
}
