//! The operations of the table, each with a witness of its own: the kernel's descriptors, the file afterwards, sums, memory.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::hint::black_box;
use std::io;
use std::iter::StepBy;
use std::mem::take;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice::Iter;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::subject::{Proof, Subject};
use machmeter_sys::kernel::Ready;
use machmeter_sys::stdio::{Stream, open_on};

use super::repeated::Tally;

/// Turns of the two batches of `fopen` and `fclose`: they use up streams, which are made and closed between pairs.
pub const STREAM_TURNS: (u64, u64) = (32, 96);
const STREAMS: usize = (2 * STREAM_TURNS.0 + STREAM_TURNS.1) as usize;
const MARK: u8 = b'x';
const OTHER: u8 = b'-';
const LINE: &CStr = c"24 characters in a line.";

/// Opens streams; they are closed between pairs.
pub struct Opens {
    path: CString,
    open: Vec<Stream>,
    tally: Tally,
}

impl Opens {
    pub fn new(path: CString) -> Self {
        let tally = Tally::of("streams that the kernel had open on the file");
        Self { path, open: Vec::with_capacity(STREAMS), tally }
    }

    fn close_all(&mut self) {
        self.tally.settle(open_on(&self.open, &self.path) as u64);
        self.open.clear();
    }
}

impl Subject for Opens {
    fn run(&mut self, turns: u64) -> bool {
        let before = self.open.len();
        for _ in 0..turns {
            let Ok(stream) = Stream::open(&self.path) else {
                // What failed is not priced, so it must not stand in for what is.
                self.open.truncate(before);
                return false;
            };
            self.open.push(stream);
        }
        self.tally.due += turns;
        true
    }

    fn partners_moved(&mut self) -> bool {
        self.close_all();
        true
    }

    fn leave(&mut self) {
        self.close_all();
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

/// Closes streams of one character, opened between pairs, each at its own place: the file tells how many.
pub struct Closes {
    path: CString,
    open: Vec<Stream>,
    tally: Tally,
}

impl Closes {
    pub fn new(path: CString) -> Self {
        let tally = Tally::of("characters in the file after closing");
        Self { path, open: Vec::with_capacity(STREAMS), tally }
    }

    /// Reads the file, which the next stream that is opened empties.
    fn settle(&mut self) {
        if self.tally.due > 0 {
            let path = PathBuf::from(OsStr::from_bytes(self.path.to_bytes()));
            let written = fs::read(path).unwrap_or_default();
            self.tally.settle(written.iter().map(|b| u64::from(*b == MARK)).sum());
        }
    }
}

impl Subject for Closes {
    fn prepare(&mut self) -> Result<(), String> {
        if self.open.len() == STREAMS {
            return Ok(());
        }
        let opened = |at: usize, character: u8| -> io::Result<Stream> {
            let mut s = Stream::open(&self.path)?;
            s.seek(at)?;
            s.print_char(character);
            Ok(s)
        };
        let refused = |e: io::Error| format!("{STREAMS} streams cannot be open: {e}");
        while self.open.len() < STREAMS {
            self.open.push(opened(self.open.len(), MARK).map_err(refused)?);
        }
        // The first to be closed would pay for the file's first block, which whoever opens it gives back.
        if opened(STREAMS, OTHER).map_err(refused)?.close() {
            Ok(())
        } else {
            Err("a stream cannot be closed".to_owned())
        }
    }

    fn run(&mut self, turns: u64) -> bool {
        // Where opening them again failed: what is not there cannot be closed.
        if (self.open.len() as u64) < turns {
            return false;
        }
        let closed = (0..turns).all(|_| self.open.pop().is_some_and(Stream::close));
        self.tally.due += if closed { turns } else { 0 };
        closed
    }

    fn partners_moved(&mut self) -> bool {
        self.settle();
        self.prepare().is_ok()
    }

    fn leave(&mut self) {
        self.settle();
        self.open.clear();
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

/// Prints into one stream: a character into its buffer, or a line that is written at once.
pub struct Prints {
    path: CString,
    lines: bool,
    stream: Option<Stream>,
    tally: Tally,
}

impl Prints {
    pub fn new(path: CString, lines: bool) -> Self {
        Self { path, lines, stream: None, tally: Tally::of("bytes that the kernel took for the file") }
    }

    /// Flushed, so that a full disk is noticed; then rewound. What could not be kept is not priced.
    fn settle(&mut self) -> bool {
        let Some(s) = &mut self.stream else { return false };
        let written = s.flushed_bytes();
        s.rewind();
        match written {
            Ok(bytes) => self.tally.settle(bytes),
            Err(_) => self.tally.due = 0,
        }
        written.is_ok()
    }
}

impl Subject for Prints {
    fn prepare(&mut self) -> Result<(), String> {
        let mut s = Stream::open(&self.path).map_err(|e| format!("no stream: {e}"))?;
        s.buffer_in_page(self.lines).map_err(|e| e.to_string())?;
        self.stream = Some(s);
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let Some(s) = &mut self.stream else { return false };
        let (printed, each_bytes) = if self.lines {
            ((0..turns).all(|_| s.print_line(LINE)), LINE.to_bytes().len() as u64 + 1)
        } else {
            (s.print_chars(MARK, turns), 1)
        };
        self.tally.due += if printed { turns * each_bytes } else { 0 };
        printed
    }

    fn partners_moved(&mut self) -> bool {
        self.settle()
    }

    fn leave(&mut self) {
        self.settle();
        self.stream = None;
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

/// A stretch of memory of which a turn reads or writes every word that is a step from the one before.
pub struct Area<'a> {
    pub ready: Ready<'a>,
    /// The words from the first that is touched to the last.
    pub memory: &'a [AtomicU64],
}

/// From one word that is touched to the next, bytes: a cache line, Howell's `blk_size`.
pub const STEP_BYTES: usize = 64;

impl<'a> Area<'a> {
    fn touched(&self) -> StepBy<Iter<'a, AtomicU64>> {
        self.memory.iter().step_by(STEP_BYTES / 8)
    }
}

/// Reads memory, an area a turn. All words must be ones, so that the sum is a count.
pub struct Reads<'a> {
    areas: Vec<Area<'a>>,
    next: usize,
    words: u64,
    tally: Tally,
}

impl<'a> Reads<'a> {
    /// `areas` must not be empty, and all of one size.
    pub fn new(areas: Vec<Area<'a>>) -> Self {
        let words = areas.first().map_or(0, |a| a.touched().count() as u64);
        Self { areas, next: 0, words, tally: Tally::of("words in the sum of what was read") }
    }
}

impl Subject for Reads<'_> {
    fn run(&mut self, turns: u64) -> bool {
        if self.areas.is_empty() {
            return false;
        }
        let mut sum = 0_u64;
        for _ in 0..turns {
            sum = sum.wrapping_add(black_box(self.areas[self.next].ready.run(1)));
            self.next = (self.next + 1) % self.areas.len();
        }
        let due = turns * self.words;
        // A larger sum is as wrong as a smaller one.
        self.tally.add(due, if sum > due { 0 } else { sum });
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

/// Writes memory, an area a turn: its first word, which is another in each visit, must stand everywhere.
pub struct Writes<'a> {
    areas: Vec<Area<'a>>,
    next: usize,
    visit: u64,
    turns: u64,
    tally: Tally,
}

impl<'a> Writes<'a> {
    /// `areas` must not be empty.
    pub fn new(areas: Vec<Area<'a>>) -> Self {
        let tally = Tally::of("words that hold what was written last");
        Self { areas, next: 0, visit: 1, turns: 0, tally }
    }
}

impl Subject for Writes<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        (self.visit, self.turns) = (self.visit + 1, 0);
        for area in &self.areas {
            area.memory[0].store(self.visit, Ordering::Relaxed);
        }
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        if self.areas.is_empty() {
            return false;
        }
        for _ in 0..turns {
            black_box(self.areas[self.next].ready.run(1));
            self.next = (self.next + 1) % self.areas.len();
        }
        self.turns += turns;
        true
    }

    fn leave(&mut self) {
        let all = self.areas.len();
        let visited = take(&mut self.turns).min(all as u64) as usize;
        for back in 1..=visited {
            let area = &self.areas[(self.next + all - back) % all];
            // The first says what is written, so it shows nothing.
            let written = area.touched().skip(1);
            let due = written.clone().count() as u64;
            let held = written.filter(|w| w.load(Ordering::Relaxed) == self.visit).count();
            self.tally.add(due, held as u64);
        }
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

#[cfg(test)]
mod tests;
