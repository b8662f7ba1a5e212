//! The functions of the C library that the recorder calls beside those behind `std`.
//!
//! They are declared here, so that one call of the compiler builds the recorder without another crate. Types and values are those of
//! 64-bit Linux (`long`, `off_t` and `rlim_t` have 64 bits); the tests compare them with crate `libc`.

use std::ffi::{c_char, c_int, c_void};

pub(crate) const CLOCK_REALTIME: c_int = 0;
pub(crate) const CLOCK_MONOTONIC: c_int = 1;
pub(crate) const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
pub(crate) const RLIMIT_FSIZE: c_int = 1;
pub(crate) const RLIM_INFINITY: u64 = u64::MAX;
pub(crate) const EINTR: c_int = 4;
pub(crate) const PROT_READ: c_int = 1;
pub(crate) const PROT_WRITE: c_int = 2;
pub(crate) const MAP_SHARED: c_int = 1;
pub(crate) const MAP_FAILED: *mut c_void = usize::MAX as *mut c_void;
pub(crate) const RTLD_LAZY: c_int = 1;
pub(crate) const RTLD_NOLOAD: c_int = 4;
pub(crate) const RTLD_DEFAULT: *mut c_void = std::ptr::null_mut();
pub(crate) const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// `struct timespec`.
#[repr(C)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

/// `struct rlimit`.
#[repr(C)]
pub(crate) struct Limit {
    pub(crate) current: u64,
    pub(crate) most: u64,
}

/// `Dl_info`.
#[repr(C)]
pub(crate) struct SymbolInfo {
    pub(crate) file: *const c_char,
    pub(crate) base: *mut c_void,
    pub(crate) symbol: *const c_char,
    pub(crate) address: *mut c_void,
}

unsafe extern "C" {
    pub(crate) fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    pub(crate) fn getrlimit(resource: c_int, limit: *mut Limit) -> c_int;
    pub(crate) fn posix_fallocate(descriptor: c_int, offset: i64, bytes: i64) -> c_int;
    pub(crate) fn mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        descriptor: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    pub(crate) fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_values_are_those_of_the_c_library() {
        let ours = [
            CLOCK_REALTIME,
            CLOCK_MONOTONIC,
            CLOCK_THREAD_CPUTIME_ID,
            RLIMIT_FSIZE,
            EINTR,
            PROT_READ,
            PROT_WRITE,
            MAP_SHARED,
            RTLD_LAZY,
            RTLD_NOLOAD,
        ];
        let of_c = [
            libc::CLOCK_REALTIME,
            libc::CLOCK_MONOTONIC,
            libc::CLOCK_THREAD_CPUTIME_ID,
            libc::RLIMIT_FSIZE as c_int,
            libc::EINTR,
            libc::PROT_READ,
            libc::PROT_WRITE,
            libc::MAP_SHARED,
            libc::RTLD_LAZY,
            libc::RTLD_NOLOAD,
        ];
        assert_eq!(ours, of_c);
        assert_eq!(
            [MAP_FAILED, RTLD_DEFAULT, RTLD_NEXT],
            [libc::MAP_FAILED, libc::RTLD_DEFAULT, libc::RTLD_NEXT]
        );
        assert_eq!(RLIM_INFINITY, libc::RLIM_INFINITY);
        assert_eq!(size_of::<Time>(), size_of::<libc::timespec>());
        assert_eq!(size_of::<Limit>(), size_of::<libc::rlimit>());
        assert_eq!(size_of::<SymbolInfo>(), size_of::<libc::Dl_info>());
        assert_eq!(size_of::<libc::off_t>(), size_of::<i64>());
    }
}
