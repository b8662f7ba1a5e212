//! The role of a rank that this program started under a launcher: rank 0 measures and answers, the others follow.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use machmeter_engine::cost::Row;
use machmeter_engine::role::{MessageWriter, starter};
use machmeter_engine::{Progress, Worker};
use machmeter_sys::mpi::{launched, launcher};
use machmeter_sys::process;
use serde::{Deserialize, Serialize};

use crate::ensemble::{Ensemble, GAVE_UP, Leader};
use crate::launch::{Plan, measure};
use crate::run::setup;
use crate::stage::Shared;

pub(crate) const WORKER: Worker = Worker { name: "mpi-rank", run };

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) library: String,
    pub(crate) ranks: usize,
    /// CPU of each rank, as its system counts; -1 where unknown.
    pub(crate) cpus: Vec<i64>,
    pub(crate) clock_bound_ns: f64,
    /// The same without ranks that share the clock of rank 0: by how much stamps of ranks may be apart.
    #[serde(default)]
    pub(crate) clocks_off_ns: f64,
    /// The machine of each rank, by its number; names are kept apart.
    #[serde(default)]
    pub(crate) machines: Vec<usize>,
}

impl About {
    /// With the names of the machines. Collective.
    pub(crate) fn of(ensemble: &Ensemble) -> Result<(Self, Vec<String>), String> {
        let cpus = ensemble.cpus()?;
        let (machines, names) = ensemble.machines()?;
        let about = Self {
            library: ensemble.session.version().to_owned(),
            ranks: ensemble.control.size(),
            cpus,
            clock_bound_ns: ensemble.clock_bound_ns(|_| true),
            clocks_off_ns: ensemble.clock_bound_ns(|clock| !clock.is_shared()),
            machines,
        };
        Ok((about, names))
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Started(About),
    Step(String),
    /// What is new of a row, with its number.
    Row(usize, Box<Row>),
    /// It is over; with the reason where it ended before.
    Ended(Option<String>),
}

type Replies = Mutex<MessageWriter<Reply, std::fs::File>>;

/// Steps go to the starter, between samples.
struct Told<'r>(&'r Replies);

impl Progress for Told<'_> {
    fn step(&self, text: &str) {
        send(self.0, &Reply::Step(text.to_owned()));
    }

    fn figure(&self, _text: &str) {}
}

/// A starter that is gone ends its ranks by itself.
fn send(replies: &Replies, reply: &Reply) {
    let _ = replies.lock().unwrap_or_else(PoisonError::into_inner).send(reply);
}

fn run(arguments: &[OsString]) -> u8 {
    let lib = arguments.first().map(Path::new);
    // A launcher that is killed takes its ranks along.
    let _ = process::die_with_parent(std::os::unix::process::parent_id() as i32);
    let Some(launched) = launched() else { return 1 };
    let bound = launcher::bind(&launched).map(drop);
    if launched.rank != 0 {
        return u8::from(bound.and_then(|()| follow(lib)).is_err());
    }
    let Ok((mut requests, replies)) = starter::<Plan, Reply>() else { return 1 };
    let replies = Mutex::new(replies);
    let done = bound.and_then(|()| {
        let plan = requests.next(None).map_err(|e| format!("the starter {e}"))?;
        lead(lib, &plan, &replies)
    });
    let failed = done.is_err();
    send(&replies, &Reply::Ended(done.err()));
    u8::from(failed)
}

fn lead(lib: Option<&Path>, plan: &Plan, replies: &Replies) -> Result<(), String> {
    let ensemble = Ensemble::start(lib, || Some(setup(plan)))?;
    // They are all on this machine.
    let (about, _) = About::of(&ensemble)?;
    let stage = Shared::new(Leader::of(ensemble));
    send(replies, &Reply::Started(about));
    measure(&stage, plan, &Told(replies), &mut |index, row| send(replies, &Reply::Row(index, Box::new(row))))
}

/// Takes part as a rank beside 0 until rank 0 ends it.
pub(crate) fn follow(lib: Option<&Path>) -> Result<(), String> {
    let ensemble = Ensemble::start(lib, || None)?;
    ensemble.cpus()?;
    ensemble.machines()?;
    ensemble.follow()
}

/// What a rank beside 0 of somebody's launcher does instead of the session: it follows rank 0, and prints nothing.
pub(crate) fn attend(lib: Option<&Path>) -> Option<bool> {
    // Rank 0 tells why it gave up.
    let followed = |_| follow(lib).map_or_else(|why| why == GAVE_UP, |()| true);
    launched().filter(|l| l.rank != 0).map(followed)
}

/// Ends the ranks of a launcher where rank 0 has to give up before it led them.
pub(crate) fn give_up(lib: Option<&Path>) {
    if launched().is_some_and(|l| l.rank == 0 && l.size > 1) && !HAS_LED.load(Ordering::Relaxed) {
        let _ = Ensemble::start(lib, || None);
    }
}

/// Whether this process has started MPI.
pub(crate) static HAS_LED: AtomicBool = AtomicBool::new(false);
