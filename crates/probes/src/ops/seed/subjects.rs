//! The operations of the table.

use std::ffi::{CStr, CString};

use machmeter_engine::sampling::Subject;
use machmeter_sys::kernel::Ready;
use machmeter_sys::stdio::Stream;
use machmeter_sys::thread;

/// Turns of the two batches of `fopen` and `fclose`: they use up streams, which are made and closed between pairs.
pub(super) const STREAM_TURNS: (u64, u64) = (32, 96);
/// A warm-up, then a pair.
const STREAMS: usize = (2 * STREAM_TURNS.0 + STREAM_TURNS.1) as usize;
/// The line that is printed.
const LINE: &CStr = c"24 characters in a line.";

/// Opens streams; they are closed between pairs.
pub(super) struct Opens {
    path: CString,
    open: Vec<Stream>,
}

impl Opens {
    pub(super) fn new(path: CString) -> Self {
        Self { path, open: Vec::with_capacity(STREAMS) }
    }
}

impl Subject for Opens {
    fn run(&mut self, turns: u64) -> bool {
        for _ in 0..turns {
            match Stream::open(&self.path) {
                Ok(s) => self.open.push(s),
                Err(_) => return false,
            }
        }
        true
    }

    fn partners_moved(&mut self) -> bool {
        self.open.clear();
        true
    }

    fn leave(&mut self) {
        self.open.clear();
    }
}

/// Closes streams that hold one character each; they are opened between pairs.
pub(super) struct Closes {
    path: CString,
    open: Vec<Stream>,
}

impl Closes {
    pub(super) fn new(path: CString) -> Self {
        Self { path, open: Vec::with_capacity(STREAMS) }
    }
}

impl Subject for Closes {
    fn prepare(&mut self) -> Result<(), String> {
        while self.open.len() < STREAMS {
            let mut s =
                Stream::open(&self.path).map_err(|e| format!("{STREAMS} streams cannot be open: {e}"))?;
            s.print_char(b'x');
            self.open.push(s);
        }
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        (0..turns).all(|_| self.open.pop().is_some_and(Stream::close))
    }

    fn partners_moved(&mut self) -> bool {
        self.prepare().is_ok()
    }

    fn leave(&mut self) {
        self.open.clear();
    }
}

/// Prints into one stream: a character into its buffer, or a line that is written at once.
pub(super) struct Prints {
    path: CString,
    lines: bool,
    stream: Option<Stream>,
}

impl Prints {
    pub(super) fn new(path: CString, lines: bool) -> Self {
        Self { path, lines, stream: None }
    }
}

impl Subject for Prints {
    fn prepare(&mut self) -> Result<(), String> {
        let mut s = Stream::open(&self.path).map_err(|e| format!("no stream: {e}"))?;
        if self.lines {
            s.buffer_lines().map_err(|e| e.to_string())?;
        }
        self.stream = Some(s);
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let Some(s) = &mut self.stream else { return false };
        if self.lines {
            (0..turns).all(|_| s.print_line(LINE))
        } else {
            (0..turns).all(|_| s.print_char(b'x'))
        }
    }

    fn partners_moved(&mut self) -> bool {
        // Flushed, so that a disk that filled up meanwhile is noticed; then from the start, so that the file stays short.
        self.stream.as_mut().is_some_and(|s| {
            let kept = s.flushed_bytes().is_ok();
            s.rewind();
            kept
        })
    }

    fn leave(&mut self) {
        self.stream = None;
    }
}

/// Walks over memory, one area a turn and the next area in the next.
pub(super) struct Walks<'a> {
    areas: Vec<Ready<'a>>,
    next: usize,
}

impl<'a> Walks<'a> {
    /// `areas` must not be empty.
    pub(super) fn new(areas: Vec<Ready<'a>>) -> Self {
        Self { areas, next: 0 }
    }
}

impl Subject for Walks<'_> {
    fn run(&mut self, turns: u64) -> bool {
        if self.areas.is_empty() {
            return false;
        }
        for _ in 0..turns {
            std::hint::black_box(self.areas[self.next].run(1));
            self.next = (self.next + 1) % self.areas.len();
        }
        true
    }
}

/// Makes a thread and joins it.
pub(super) struct Threads;

impl Subject for Threads {
    fn run(&mut self, turns: u64) -> bool {
        (0..turns)
            .all(|i| thread::spawn_plain("mm-seed", move || i).ok().and_then(|t| t.join().ok()) == Some(i))
    }
}
