//! The C library's buffered streams, as a C program uses them: `fopen`, `fprintf`, `fclose`. They are what the seed's table of
//! operations times; Rust's own files have other costs.

use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;

/// An open stream for writing.
#[derive(Debug)]
pub struct Stream {
    file: NonNull<libc::FILE>,
}

// SAFETY: streams may be used from any thread (they lock themselves); the value is the only handle.
unsafe impl Send for Stream {}

impl Stream {
    /// `fopen(path, "w+")`: fully buffered.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &CStr) -> io::Result<Self> {
        // SAFETY: both strings end with NUL and live through the call.
        let file = unsafe { libc::fopen(path.as_ptr(), c"w+".as_ptr()) };
        NonNull::new(file).map(|file| Self { file }).ok_or_else(io::Error::last_os_error)
    }

    /// From now on a line is written when it ends, as on a terminal (`setvbuf`). To be called before the first output.
    ///
    /// # Errors
    /// The library's refusal.
    pub fn buffer_lines(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open; a null buffer lets the library use its own.
        let done = unsafe { libc::setvbuf(self.file.as_ptr(), std::ptr::null_mut(), libc::_IOLBF, 4_096) };
        if done == 0 { Ok(()) } else { Err(io::Error::other("the stream cannot be buffered by lines")) }
    }

    /// `fprintf(stream, "%c", c)`; whether it was taken.
    #[inline]
    pub fn print_char(&mut self, c: u8) -> bool {
        // SAFETY: the stream is open, and the format takes one int.
        unsafe { libc::fprintf(self.file.as_ptr(), c"%c".as_ptr(), libc::c_int::from(c)) == 1 }
    }

    /// `fprintf(stream, "%s\n", text)`; whether all of it was taken.
    #[inline]
    pub fn print_line(&mut self, text: &CStr) -> bool {
        // SAFETY: the stream is open, and the format takes one string, which lives through the call.
        let written = unsafe { libc::fprintf(self.file.as_ptr(), c"%s\n".as_ptr(), text.as_ptr()) };
        written == text.to_bytes().len() as libc::c_int + 1
    }

    /// Bytes written so far (`ftell` after `fflush`).
    ///
    /// # Errors
    /// The system's, a full disk for one.
    pub fn flushed_bytes(&mut self) -> io::Result<u64> {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.file.as_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the stream is open.
        u64::try_from(unsafe { libc::ftell(self.file.as_ptr()) }).map_err(|_| io::Error::last_os_error())
    }

    /// Back to the start; what was written will be overwritten.
    pub fn rewind(&mut self) {
        // SAFETY: the stream is open.
        unsafe { libc::rewind(self.file.as_ptr()) };
    }

    /// `fclose`; whether everything could be written.
    #[inline]
    pub fn close(self) -> bool {
        let file = self.file;
        std::mem::forget(self);
        // SAFETY: the only handle, which is gone now.
        unsafe { libc::fclose(file.as_ptr()) == 0 }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the only handle; it is not used after this.
        let _ = unsafe { libc::fclose(self.file.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::file::c_path;

    #[test]
    fn what_is_printed_arrives_and_lines_arrive_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut full = Stream::open(&c_path(&path).unwrap()).unwrap();
        assert!(full.print_char(b'x') && full.print_char(b'y'));
        assert_eq!(std::fs::read(&path).unwrap(), b"", "buffered");
        assert_eq!(full.flushed_bytes().unwrap(), 2);
        assert!(full.close());
        assert_eq!(std::fs::read(&path).unwrap(), b"xy");
        let mut lines = Stream::open(&c_path(&path).unwrap()).unwrap();
        lines.buffer_lines().unwrap();
        assert!(lines.print_line(c"a line"));
        assert_eq!(std::fs::read(&path).unwrap(), b"a line\n");
        lines.rewind();
        assert!(lines.print_line(c"A") && lines.close());
        assert_eq!(std::fs::read(&path).unwrap(), b"A\nline\n");
    }

    #[test]
    fn a_stream_that_cannot_be_had_or_kept_says_so() {
        assert!(Stream::open(c"/nowhere/at/all").is_err());
        if let Ok(mut full) = Stream::open(c"/dev/full") {
            assert!(full.print_char(b'x'), "goes into the buffer");
            assert!(full.flushed_bytes().is_err());
            drop(full);
            let mut full = Stream::open(c"/dev/full").unwrap();
            full.print_char(b'x');
            assert!(!full.close());
        }
    }
}
