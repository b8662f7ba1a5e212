//! First touches of pages, with the kernel's count of faults as proof that each was one.

use std::fs::File;
use std::io;

use crate::subject::{Kind, Proof, Subject};
use machmeter_sys::call::map::{Untouched, page_bytes};
use machmeter_sys::pages::HUGE_PAGE_BYTES;
use machmeter_sys::thread::Usage;

use super::calls::{PAIRS_PER_VISIT, SINGLE_TURNS_PER_VISIT, WARMING_TURNS};
use super::repeated::{Planned, one_line};

/// Bytes of a mapped file from one touch to the next: as many as a fault maps by default, so that each touch is one fault.
pub const FILE_STEP_BYTES: usize = 64 << 10;

/// Touches of the short batch; the long one has twice as many.
const SMALL_TURNS: usize = 256;
/// Steps that a visit touches: a short batch to warm up, then pairs.
const SMALL_STEPS: usize = SMALL_TURNS * (1 + 3 * PAIRS_PER_VISIT);
/// Steps of a visit whose touches are timed one by one.
const SINGLE_STEPS: usize = WARMING_TURNS + SINGLE_TURNS_PER_VISIT;

/// Untouched memory that is touched step by step and renewed between visits.
pub struct Touches {
    memory: Untouched,
    is_huge: bool,
    /// What was touched since the last renewal.
    touched: u64,
    tally: Tally,
}

impl Touches {
    pub const FILE_STEPS: usize = SINGLE_STEPS;

    pub fn small<'a>() -> Planned<'a> {
        let turns = SMALL_TURNS as u64;
        Self::plan("page_fault_4k", page_bytes(), Untouched::small(SMALL_STEPS)).turns((turns, 2 * turns))
    }

    /// Anonymous huge pages, if they are granted.
    pub fn huge<'a>() -> Planned<'a> {
        Self::plan("page_fault_huge", HUGE_PAGE_BYTES, Untouched::huge(SINGLE_STEPS)).one_by_one()
    }

    /// A mapped file in the page cache.
    pub fn file<'a>(file: &File) -> Planned<'a> {
        let memory = Untouched::file(file, Self::FILE_STEPS * FILE_STEP_BYTES, FILE_STEP_BYTES);
        Self::plan("page_fault_file", page_bytes(), memory).one_by_one()
    }

    fn new(memory: Untouched, is_huge: bool) -> Self {
        Self { memory, is_huge, touched: 0, tally: Tally::default() }
    }

    /// The row. Its turns are to be set, because memory to be touched is limited.
    fn plan<'a>(operation: &str, bytes: usize, memory: io::Result<Untouched>) -> Planned<'a> {
        match memory {
            Ok(memory) => {
                let touches = Self::new(memory, bytes == HUGE_PAGE_BYTES);
                Planned::new(operation, Kind::Latency, touches).with("bytes", bytes)
            }
            Err(e) => Planned::refused(operation, &one_line(&e)),
        }
    }
}

impl Subject for Touches {
    fn prepare(&mut self) -> Result<(), String> {
        self.touched = 0;
        self.memory.renew().map_err(|e| one_line(&e))
    }

    fn run(&mut self, turns: u64) -> bool {
        let before = Usage::of_current_thread();
        let touched = self.memory.touch(turns);
        let faults = Usage::of_current_thread().since(&before);
        if touched {
            self.touched += turns;
            self.tally.touches += turns;
            self.tally.faults += faults.minor_faults + faults.major_faults;
        }
        touched
    }

    fn leave(&mut self) {
        if self.is_huge {
            // Untimed: whoever was given a huge page takes no fault on its second small page.
            let small = self.memory.second_touch_faults();
            self.tally.granted += self.touched.saturating_sub(small);
        }
        // Gives the memory back while others are measured.
        let _ = self.memory.renew();
    }

    fn proof(&mut self) -> Option<Proof> {
        (self.tally.touches > 0).then(|| self.tally.proof(self.is_huge))
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    touches: u64,
    faults: u64,
    /// Touches that were served by a huge page.
    granted: u64,
}

impl Tally {
    fn proof(self, huge: bool) -> Proof {
        let Self { touches, faults, granted } = self;
        if huge {
            // Touches are timed one by one, so that one small page of a visit moves no quantile of the others.
            let seen = if granted + 1 >= touches { touches } else { granted };
            return Proof::new("huge pages granted, or all but one", touches, seen);
        }
        // A few more come from elsewhere (page migration); many more would mean that a touch is not one fault.
        let excess = faults.saturating_sub(touches + touches / 50 + 2);
        let seen = faults.min(touches).saturating_sub(excess);
        Proof::new("touches with one fault each", touches, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_touch_must_be_one_fault_and_of_a_huge_page_the_only_one() {
        let proof = |touches, faults| Tally { touches, faults, granted: 0 }.proof(false);
        for (touches, faults) in [(1_000, 1_000), (1_000, 1_015)] {
            let p = proof(touches, faults);
            assert_eq!(p.seen, p.expected);
        }
        // Groups of pages served by one fault, and several faults for one touch.
        for (touches, faults) in [(16_384, 421), (1_000, 999), (1_000, 2_000), (10, 0)] {
            let p = proof(touches, faults);
            assert!(p.seen < p.expected, "{touches} {faults}: {p:?}");
        }
        // Granted huge pages are those without a second fault.
        for (granted, is_proof) in [(26, true), (25, true), (24, false)] {
            let p = Tally { touches: 26, faults: 26, granted }.proof(true);
            assert!((p.seen == p.expected) == is_proof && p.what.contains("granted"));
        }
    }

    #[test]
    fn a_visit_never_runs_out_of_untouched_memory() {
        let mut touches = Touches::new(Untouched::small(SMALL_STEPS).unwrap(), false);
        for _ in 0..2 {
            touches.prepare().unwrap();
            assert!(touches.run(SMALL_TURNS as u64));
            for _ in 0..PAIRS_PER_VISIT {
                assert!(touches.run(SMALL_TURNS as u64) && touches.run(2 * SMALL_TURNS as u64));
            }
            assert!(!touches.run(1), "no more than that is kept");
            touches.leave();
        }
        let p = touches.proof().unwrap();
        assert_eq!((p.seen, p.expected), (p.expected, 2 * SMALL_STEPS as u64));
    }
}
