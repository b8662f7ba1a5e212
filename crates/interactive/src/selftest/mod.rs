//! Self-test: a task is kept from its CPU at known times, and its record is checked against the simulation on the log.
//!
//! Two disturbers: a real-time hog above a real-time task, and a controller that stops the task's process, without rights.
//! A check that the machine or the rights do not permit is "not shown", with the reason; never "pass".
//!
//! Only what was recorded in quiet is judged, by a third party (`witness`). Other points are recorded again while there is
//! time; the first recording with enough decides, so that repeats favor no outcome.

mod accounts;
mod disturbers;
mod judge;
mod lab;
mod point;
mod witness;

use machmeter_engine::{Progress, deadline};
use machmeter_sys::thread::monotonic_ns;

use lab::Lab;
use machmeter_engine::selftest::{Options, SelfCheck, State};
use point::{HOG, Point, STOPS};
type Outcome = (SelfCheck, Next);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing: it was judged, or cannot be here.
    Nothing,
    /// Another try may show what this one did not: the machine was not quiet.
    Again,
    /// It was refused, and so will be the others of its kind.
    GiveUp,
}
type Record = fn(&mut Lab<'_>, &Point) -> Outcome;
struct Tried {
    point: &'static Point,
    record: Record,
    check: SelfCheck,
    next: Next,
    tries: usize,
}

impl Tried {
    fn told(mut self) -> SelfCheck {
        if self.tries > 1 {
            let which = match self.next {
                Next::Nothing => format!("try {}, the first in quiet", self.tries),
                _ => format!("none of {} tries was in quiet", self.tries),
            };
            self.check.found = format!("{which}: {}", self.check.found);
        }
        self.check
    }
}

/// Runs all checks in order; a signal ends it early. Call it from a thread that lives on: tasks are tied to it.
/// Errors: one line, when there is no CPU to test on.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let mut lab = Lab::open(options, progress)?;
    progress.step("selftest interactive: a task alone");
    let mut alone = accounts::alone(&mut lab);
    let mut points: Vec<Tried> = Vec::new();
    let kinds: [(&str, &'static [Point], Record); 2] = [
        ("a real-time hog above a real-time task", &HOG, disturbers::hog),
        ("stopping and continuing a task, without rights", &STOPS, disturbers::stops),
    ];
    for (name, those, record) in kinds {
        progress.step(&format!("selftest interactive: {name}"));
        for point in those {
            if deadline::stop_requested() {
                break;
            }
            let (check, next) = record(&mut lab, point);
            points.push(Tried { point, record, check, next, tries: 1 });
            if next == Next::GiveUp {
                break;
            }
        }
    }
    let mut beside = None;
    if !deadline::stop_requested() {
        progress.step("selftest interactive: a task beside a spinning thread");
        beside = accounts::beside_a_spinner(&mut lab);
    }
    again(&mut lab, &mut points, &mut alone, options.until_ns);
    let mut checks = vec![alone];
    checks.extend(beside);
    checks.extend(points.into_iter().map(Tried::told));
    checks.extend(accounts::of_all(&lab));
    Ok(checks)
}

/// Records again what was recorded in noise, in rounds, each after another look at what a wake-up costs.
fn again(lab: &mut Lab<'_>, points: &mut [Tried], alone: &mut SelfCheck, until_ns: u64) {
    let late = |ns: u64| monotonic_ns() + ns > until_ns || deadline::stop_requested();
    loop {
        let open = points.iter().filter(|p| p.next == Next::Again).count();
        let unaccounted = accounts::spinner_is_open(lab);
        if (open == 0 && !unaccounted) || late(2 * lab.length_ns()) {
            return;
        }
        lab.progress.step(&format!(
            "selftest interactive: {open} points again, for which the machine was not quiet; {} s are left",
            (until_ns - monotonic_ns()) / 1_000_000_000
        ));
        let tried = accounts::alone(lab);
        if alone.state == State::NotShown {
            *alone = tried;
        }
        for tried in points.iter_mut().filter(|p| p.next == Next::Again) {
            if late(lab.length_ns()) {
                return;
            }
            (tried.check, tried.next) = (tried.record)(lab, tried.point);
            tried.tries += 1;
        }
        if unaccounted && !late(lab.length_ns()) {
            accounts::beside_a_spinner(lab);
        }
    }
}
