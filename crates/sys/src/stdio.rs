//! The C library's buffered streams, as a C program uses them: `fopen`, `fprintf`, `fclose`. They are what Howell's table of
//! operations times; Rust's own files have other costs.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use crate::buffer::Buffer;
use crate::mirror::page_bytes;

#[derive(Debug)]
pub struct Stream {
    file: NonNull<libc::FILE>,
    /// What it writes from, where that is not memory of the library.
    buffer: Option<Buffer>,
}

// SAFETY: streams may be used from any thread (they lock themselves); the value is the only handle.
unsafe impl Send for Stream {}

impl Stream {
    /// `fopen(path, "w+")`: fully buffered.
    pub fn open(path: &CStr) -> io::Result<Self> {
        // SAFETY: both strings end with NUL and live through the call.
        let file = unsafe { libc::fopen(path.as_ptr(), c"w+".as_ptr()) };
        NonNull::new(file).map(|file| Self { file, buffer: None }).ok_or_else(io::Error::last_os_error)
    }

    /// Writes from a page of its own from now on: when it is full, or (`by_lines`) when a line ends, as on a terminal (`setvbuf`).
    /// To be called before the first output. Errors: no memory, or the library refuses.
    pub fn buffer_in_page(&mut self, by_lines: bool) -> io::Result<()> {
        let mode = if by_lines { libc::_IOLBF } else { libc::_IOFBF };
        let buffer = self.buffer.insert(Buffer::new(page_bytes(), 0)?);
        // SAFETY: the stream is open, and `self` keeps the buffer until it is closed.
        let done =
            unsafe { libc::setvbuf(self.file.as_ptr(), buffer.as_mut_ptr().cast(), mode, buffer.len()) };
        if done == 0 { Ok(()) } else { Err(io::Error::other("the stream takes no buffer")) }
    }

    /// `fprintf(stream, "%c", c)`; whether it was taken.
    #[inline]
    pub fn print_char(&mut self, c: u8) -> bool {
        // SAFETY: the stream is open, and the format takes one int.
        unsafe { libc::fprintf(self.file.as_ptr(), c"%c".as_ptr(), libc::c_int::from(c)) == 1 }
    }

    /// `fprintf(stream, "%c", c)` so many times; whether all were taken. From eight places in turn: called from a
    /// single one, it took a quarter longer in some processes (5 of 49), perhaps by foreseeing of branches.
    pub fn print_chars(&mut self, c: u8, times: u64) -> bool {
        let mut taken = true;
        for _ in 0..times / 8 {
            taken &= self.print_char(c);
            taken &= self.print_char(c);
            taken &= self.print_char(c);
            taken &= self.print_char(c);
            taken &= self.print_char(c);
            taken &= self.print_char(c);
            taken &= self.print_char(c);
            taken &= self.print_char(c);
        }
        for _ in 0..times % 8 {
            taken &= self.print_char(c);
        }
        taken
    }

    /// `fprintf(stream, "%s\n", text)`; whether all of it was taken.
    #[inline]
    pub fn print_line(&mut self, text: &CStr) -> bool {
        // SAFETY: the stream is open, and the format takes one string, which lives through the call.
        let written = unsafe { libc::fprintf(self.file.as_ptr(), c"%s\n".as_ptr(), text.as_ptr()) };
        written == text.to_bytes().len() as libc::c_int + 1
    }

    /// Bytes written since the start or [`Self::rewind`]: the descriptor's offset after `fflush`.
    pub fn flushed_bytes(&mut self) -> io::Result<u64> {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.file.as_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(rustix::fs::tell(self.descriptor())?)
    }

    /// The next output goes to this offset (`fseek`).
    pub fn seek(&mut self, offset_bytes: usize) -> io::Result<()> {
        let offset = libc::c_long::try_from(offset_bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the stream is open.
        let done = unsafe { libc::fseek(self.file.as_ptr(), offset, libc::SEEK_SET) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream is open.
        let descriptor = unsafe { libc::fileno(self.file.as_ptr()) };
        // SAFETY: it stays open as long as `self` is borrowed, since closing takes the stream.
        unsafe { BorrowedFd::borrow_raw(descriptor) }
    }

    /// Back to the start; what was written will be overwritten.
    pub fn rewind(&mut self) {
        // SAFETY: the stream is open.
        unsafe { libc::rewind(self.file.as_ptr()) };
    }

    /// `fclose`; whether everything could be written.
    #[inline]
    pub fn close(mut self) -> bool {
        let (file, buffer) = (self.file, self.buffer.take());
        std::mem::forget(self);
        // SAFETY: the only handle, which is gone now; its buffer lives on.
        let done = unsafe { libc::fclose(file.as_ptr()) == 0 };
        drop(buffer);
        done
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the only handle; it is not used after this.
        let _ = unsafe { libc::fclose(self.file.as_ptr()) };
    }
}

/// How many of these streams the kernel has open on the file at `path`, each by a descriptor of its own.
pub fn open_on(streams: &[Stream], path: &CStr) -> usize {
    let Ok(file) = rustix::fs::stat(path) else { return 0 };
    let mut descriptors = BTreeSet::new();
    let mut of_file = |s: &&Stream| {
        rustix::fs::fstat(s.descriptor()).is_ok_and(|f| (f.st_dev, f.st_ino) == (file.st_dev, file.st_ino))
            && descriptors.insert(s.descriptor().as_raw_fd())
    };
    streams.iter().filter(|s| of_file(s)).count()
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
        assert!(full.print_chars(b'z', 21));
        assert_eq!(full.flushed_bytes().unwrap(), 23);
        assert!(full.close());
        assert_eq!(std::fs::read(&path).unwrap(), [&b"xy"[..], &[b'z'; 21]].concat());
        let mut lines = Stream::open(&c_path(&path).unwrap()).unwrap();
        lines.buffer_in_page(true).unwrap();
        assert!(lines.print_line(c"a line"));
        assert_eq!(std::fs::read(&path).unwrap(), b"a line\n");
        lines.rewind();
        assert!(lines.print_line(c"A") && lines.close());
        assert_eq!(std::fs::read(&path).unwrap(), b"A\nline\n");
        let name = c_path(&path).unwrap();
        let mut both = [Stream::open(&name).unwrap(), Stream::open(&name).unwrap()];
        assert_eq!((open_on(&both, &name), open_on(&both, c"/dev/null"), open_on(&[], &name)), (2, 0, 0));
        for (i, s) in both.iter_mut().enumerate() {
            s.seek(2 * i).unwrap();
            assert!(s.print_char(b'x'));
        }
        assert_eq!(both[1].flushed_bytes().unwrap(), 3);
        both[1].rewind();
        assert_eq!(both[1].flushed_bytes().unwrap(), 0, "from the start again");
        drop(both);
        assert_eq!(std::fs::read(&path).unwrap(), b"x\0x");
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
