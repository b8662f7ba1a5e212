//! An operation that is repeated in a loop and counts, while it is timed, how often it did what it should.

use std::io;
use std::mem::take;
use std::sync::atomic::Ordering;

use machmeter_data::metric::{ParamValue, Params};
use machmeter_sys::pages::{Backing, Pages};

use crate::subject::{Estimator, Kind, Proof, Subject};

/// An operation to price: what its row is called, and the subject that is timed.
pub struct Planned<'a> {
    pub operation: String,
    /// Conditions; with the operation the key of the row.
    pub params: Params,
    pub kind: Kind,
    /// How its pairs become a cost.
    pub estimator: Estimator,
    /// Whether its operations are dependent additions, which no neighbor on the core can slow.
    pub is_core_clock: bool,
    /// Turns of the two batches of a pair; zeros if they are to be found, 0 and 1 for turns that are timed one by one.
    pub turns: (u64, u64),
    /// Operations per turn.
    pub per_turn: f64,
    /// Whether it belongs to the few that come first when time is short.
    pub first: bool,
    /// Why it cannot be priced.
    pub refused: Option<String>,
    pub subject: Box<dyn Subject + 'a>,
}

impl<'a> Planned<'a> {
    pub fn new(operation: &str, kind: Kind, subject: impl Subject + 'a) -> Self {
        Self {
            operation: operation.to_owned(),
            params: Params::new(),
            kind,
            estimator: Estimator::Batches,
            is_core_clock: false,
            turns: (0, 0),
            per_turn: 1.0,
            first: false,
            refused: None,
            subject: Box::new(subject),
        }
    }

    pub fn refused(operation: &str, why: &str) -> Self {
        let nothing = plan(operation, "nothing", || Ok(()));
        Self { refused: Some(why.to_owned()), ..nothing.first() }
    }

    #[must_use]
    pub fn first(self) -> Self {
        Self { first: true, ..self }
    }

    /// Of what the turns add, not of whole batches.
    #[must_use]
    pub fn of_differences(self) -> Self {
        Self { estimator: Estimator::Differences, ..self }
    }

    #[must_use]
    pub fn per_turn(self, operations: f64) -> Self {
        Self { per_turn: operations, ..self }
    }

    #[must_use]
    pub fn turns(self, turns: (u64, u64)) -> Self {
        Self { turns, ..self }
    }

    /// Each turn is timed by itself: it may sleep, or its cost has several states, which a mean hides.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        self.turns((0, 1))
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<ParamValue>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
}

/// A row that repeats `once`: see [`Repeated::returning`].
pub fn plan<'a>(
    operation: &str,
    what: &'static str,
    once: impl FnMut() -> io::Result<()> + 'a,
) -> Planned<'a> {
    Planned::new(operation, Kind::Latency, Repeated::returning(what, once))
}

/// The same with something that has to be made first; refused with the reason where it cannot be.
pub fn made<'a, T: 'a>(
    operation: &str,
    made: io::Result<T>,
    what: &'static str,
    mut once: impl FnMut(&mut T) -> io::Result<()> + 'a,
) -> Planned<'a> {
    match made {
        Ok(mut it) => plan(operation, what, move || once(&mut it)),
        Err(e) => Planned::refused(operation, &one_line(&e)),
    }
}

/// Memory that holds `word` everywhere.
pub fn filled(bytes: usize, word: u64) -> Result<Pages, String> {
    let pages = Pages::new(bytes, Backing::Unasked).map_err(|e| one_line(&e))?;
    pages.extent().atomics().iter().for_each(|w| w.store(word, Ordering::Relaxed));
    Ok(pages)
}

/// What loops say they did, and what a witness saw of it, over all visits.
pub struct Tally {
    what: &'static str,
    /// Done since the witness was asked last.
    pub due: u64,
    expected: u64,
    seen: u64,
}

impl Tally {
    pub fn of(what: &'static str) -> Self {
        Self { what, due: 0, expected: 0, seen: 0 }
    }

    /// The witness found `found` of what is due.
    pub fn settle(&mut self, found: u64) {
        let due = take(&mut self.due);
        self.add(due, found.min(due));
    }

    pub fn add(&mut self, expected: u64, seen: u64) {
        self.expected += expected;
        self.seen += seen;
    }

    pub fn proof(&self) -> Option<Proof> {
        Proof::of(self.what, self.expected, self.seen)
    }
}

pub struct Repeated<'a> {
    batch: Box<dyn FnMut(u64) -> io::Result<()> + 'a>,
    /// Counts operations that happened, besides the loop.
    witness: Option<fn() -> u64>,
    tried: bool,
    tally: Tally,
}

impl<'a> Repeated<'a> {
    /// `once` is one operation, which compares what it gets with what it should get (`what` says what that is).
    pub fn returning(what: &'static str, mut once: impl FnMut() -> io::Result<()> + 'a) -> Self {
        // The only place that calls `once`: a call and return after a system call cost 37 ns (AMD Zen 4).
        let batch = move |turns| {
            for _ in 0..turns {
                once()?;
            }
            Ok(())
        };
        Self { batch: Box::new(batch), witness: None, tried: false, tally: Tally::of(what) }
    }

    /// With a witness that is asked before and after each batch.
    #[must_use]
    pub fn witnessed(self, count: fn() -> u64) -> Self {
        Self { witness: Some(count), ..self }
    }
}

impl Subject for Repeated<'_> {
    /// Does it once, so that what the system refuses is told with its cause.
    fn prepare(&mut self) -> Result<(), String> {
        if !self.tried {
            (self.batch)(1).map_err(|e| one_line(&e))?;
            self.tried = true;
        }
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let before = self.witness.map(|count| count());
        if (self.batch)(turns).is_err() {
            return false;
        }
        let after = self.witness.map(|count| count());
        let seen = after.zip(before).map_or(turns, |(after, before)| after.saturating_sub(before));
        self.tally.add(turns, seen);
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

pub fn one_line(e: &io::Error) -> String {
    e.to_string().replace('\n', " ")
}
