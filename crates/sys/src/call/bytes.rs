//! Copies and fills of bytes by the C library's functions, many in a row: called through pointers, so that no compiler leaves
//! one out, merges two or writes instructions instead.

use std::hint::black_box;
use std::ptr::from_ref;

use libc::{c_int, c_void, memcpy, memset};

/// `memcpy` of all of `from` to the beginning of `to`, `turns` times.
///
/// # Panics
/// Where `to` is shorter than `from`.
pub fn copy(to: &mut [u8], from: &[u8], turns: u64) {
    assert!(to.len() >= from.len(), "{} bytes do not fit into {}", from.len(), to.len());
    let call: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void = black_box(memcpy);
    let (to, source) = (to.as_mut_ptr().cast(), from_ref(from).cast());
    for _ in 0..turns {
        // SAFETY: both are live for the length of `from`, and a mutable slice overlaps with no other.
        unsafe { call(to, source, from.len()) };
    }
}

/// `memset` of all of `to`, `turns` times, each with another byte; the last one.
pub fn fill(to: &mut [u8], turns: u64) -> u8 {
    let call: unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void = black_box(memset);
    let start = to.as_mut_ptr().cast();
    let byte = |turn: u64| turn as u8 | 1;
    for turn in 0..turns {
        // SAFETY: the slice is live and writable for its length.
        unsafe { call(start, c_int::from(byte(turn)), to.len()) };
    }
    byte(turns.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_and_no_others_change() {
        let mut to = [0_u8; 8];
        copy(&mut to, &[1, 2, 3], 2);
        assert_eq!(to, [1, 2, 3, 0, 0, 0, 0, 0]);
        let last = fill(&mut to[2..5], 7);
        assert_eq!((last, to), (7, [1, 2, 7, 7, 7, 0, 0, 0]));
    }
}
