//! Compile: a build as `make -j` runs it: processes, pipes, small files, computing; beside it a light burn, streaming
//! writes and reads of a device, of which the load of this name in interbench consists.

mod stages;
mod text;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use machmeter_engine::cpu_work::Spinner;
use machmeter_engine::load::{LoadError, LoadInfo};
use machmeter_engine::role::RoleError;
use machmeter_stats::random::Random;
use machmeter_sys::task_headroom::TaskHeadroom;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until, thread_cpu_ns};

pub(crate) use stages::BUILDER;
use stages::{End, Step};

use crate::read::{Order, Reader};
use crate::work::{LoadEntry, Work};
use crate::write::{Writer, allowed_bytes, cannot, check_budget, say_how};

/// Units between two links. A divisor of the number of units, so that no link sees a unit twice.
const UNITS_PER_LINK: usize = 16;

/// Jobs at most; a machine with more CPUs is busy enough with the rest.
const JOBS_MAX: usize = 256;

/// Tasks that a job needs at once: its own thread, the unit, three stages.
const TASKS_PER_JOB: u64 = 5;

/// Bytes of files apart from the source: objects of 40 to 200 kB that wait for a link, the image in two versions.
const OUTPUT_BYTES: u64 = 4 << 20;
/// Bytes that one more job adds: the object it writes, and its part of one more link that waits.
const JOB_BYTES: u64 = 256 << 10;

/// Least size of the files that are written and read beside it.
const BESIDE_BYTES: u64 = 64 << 10;

/// The light burn: CPU time in each period.
const BURN_NS: u64 = 5_000_000;
const BURN_PERIOD_NS: u64 = 20_000_000;

/// How often a job looks whether it shall stop while it waits for a process.
const LOOK_EVERY_NS: u64 = 50_000_000;

/// What a killed process may take to vanish.
const VANISH_WITHIN_NS: u64 = 500_000_000;

/// So many failures one after the other mean that it will not get better.
const FAILURES_IN_A_ROW: usize = 8;

pub(crate) static COMPILE: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "compile",
        description: "A build: processes, pipes and small files, one job per CPU, with some computation, writes and reads.",
        work: "units built",
        ..LoadEntry::USUAL.info
    },
    check: |request| check_budget(request, LEAST_BYTES),
    run: Some(run),
};

/// Bytes of files for the program and what is made of it, by `jobs` at once.
const fn program_bytes(jobs: usize) -> u64 {
    text::SOURCE_BYTES + OUTPUT_BYTES + jobs as u64 * JOB_BYTES
}

/// What one job and the files beside it take.
const LEAST_BYTES: u64 = program_bytes(1) + 2 * BESIDE_BYTES;

fn run(work: &Work) -> Result<(), LoadError> {
    let directory = work.directory()?;
    let allowed_bytes = allowed_bytes(&work.request.directory, work.request.disk_bytes)?;
    let jobs = jobs(work, allowed_bytes)?;
    let beside_bytes = (allowed_bytes - program_bytes(jobs)) / 2;
    let seed = work.request.seed;
    text::generate(directory, seed).map_err(|e| cannot(directory, &e))?;
    let build = Build { work, directory, state: Mutex::new(State::new(seed)) };
    work.ready();
    let ended = work.threads("mm-compile", jobs + 3, |thread| match thread {
        0 => write_beside(work, directory, beside_bytes),
        1 => read_beside(work, directory, beside_bytes),
        2 => {
            burn_beside(work);
            Ok(())
        }
        lane => build.job(lane),
    });
    build.say_failures();
    ended
}

/// Jobs at once: as asked for or one per CPU, as far as there is room for their processes and their files.
fn jobs(work: &Work, allowed_bytes: u64) -> Result<usize, LoadError> {
    let asked = work.threads_or_one_per_cpu()?.min(JOBS_MAX);
    if allowed_bytes < LEAST_BYTES {
        return Err(LoadError::Cannot(format!(
            "{}: {allowed_bytes} bytes are allowed (the budget, at most 5 % of the free space), but {LEAST_BYTES} are \
             needed: choose another directory",
            work.request.directory.display()
        )));
    }
    let mut jobs = asked.min(1 + ((allowed_bytes - LEAST_BYTES) / JOB_BYTES) as usize);
    let mut limit = format!("{allowed_bytes} bytes of files");
    // Half of the room, as the rest of the machine wants to start something, too.
    if let Some(room) = TaskHeadroom::now()
        && room.tasks / 2 / TASKS_PER_JOB < jobs as u64
    {
        jobs = (room.tasks / 2 / TASKS_PER_JOB) as usize;
        limit = room.limit;
    }
    if jobs == 0 {
        return Err(LoadError::Cannot(format!("the limit does not allow the processes of one job: {limit}")));
    }
    if jobs < asked {
        work.caveat(format!(
            "only {jobs} of {asked} jobs run, to leave processes for other programs: {limit}"
        ));
    }
    Ok(jobs)
}

fn write_beside(work: &Work, directory: &Path, file_bytes: u64) -> Result<(), LoadError> {
    let mut writer = Writer::create(directory, file_bytes, work.request.seed)?;
    writer.write_next()?;
    say_how(work, &writer.file, "written", None, |t| t.written_bytes);
    while !work.stopped() {
        writer.write_next()?;
    }
    Ok(())
}

fn read_beside(work: &Work, directory: &Path, file_bytes: u64) -> Result<(), LoadError> {
    let seed = work.request.seed;
    let reader = Reader::prepare(directory, file_bytes, seed, Order::Random, &|| work.stopped())?;
    let Some(mut reader) = reader else { return Ok(()) };
    while !work.stopped() {
        reader.read_next()?;
    }
    Ok(())
}

fn burn_beside(work: &Work) {
    let mut spinner = Spinner::calibrate();
    while !work.stopped() {
        let next_ns = monotonic_ns() + BURN_PERIOD_NS;
        spinner.burn(thread_cpu_ns(), BURN_NS, &|| work.stopped());
        nanosleep_until(next_ns);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    unit: usize,
    turn: usize,
}

struct State {
    random: Random,
    order: Vec<usize>,
    turn: usize,
    /// For each link that is not due yet: units that are done, and turns of those that did not fail.
    links: HashMap<usize, (usize, Vec<usize>)>,
    failures: u64,
    in_a_row: usize,
    first_failure: Option<String>,
}

impl State {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            order: (0..text::UNITS).collect(),
            turn: 0,
            links: HashMap::new(),
            failures: 0,
            in_a_row: 0,
            first_failure: None,
        }
    }

    /// What to build next: all units in random order, again and again.
    fn next(&mut self) -> Task {
        let at = self.turn % self.order.len();
        if at == 0 {
            self.random.shuffle(&mut self.order);
        }
        self.turn += 1;
        Task { unit: self.order[at], turn: self.turn - 1 }
    }

    /// Notes the end of a unit; returns the turns to link when it was the last one of its link.
    fn done(&mut self, task: Task, well: bool) -> Option<Vec<usize>> {
        let link = task.turn / UNITS_PER_LINK;
        let (done, turns) = self.links.entry(link).or_default();
        *done += 1;
        if well {
            turns.push(task.turn);
        }
        if *done < UNITS_PER_LINK {
            return None;
        }
        self.links.remove(&link).map(|(_, turns)| turns)
    }

    /// Notes a failure; `Err` when it is one too many.
    fn failed(&mut self, why: String) -> Result<(), LoadError> {
        self.failures += 1;
        self.in_a_row += 1;
        let ended = if self.in_a_row < FAILURES_IN_A_ROW {
            Ok(())
        } else {
            Err(LoadError::Cannot(format!("{FAILURES_IN_A_ROW} steps of the build failed in a row: {why}")))
        };
        self.first_failure.get_or_insert(why);
        ended
    }
}

struct Build<'w> {
    work: &'w Work,
    directory: &'w Path,
    state: Mutex<State>,
}

impl Build<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self, lane: usize) -> Result<(), LoadError> {
        let count = self.work.count(lane);
        while !self.work.stopped() {
            let task = self.state().next();
            let directory = self.directory.to_owned();
            let step = Step::Unit { directory: directory.clone(), unit: task.unit, turn: task.turn };
            let Some(ended) = self.process(&step) else { return Ok(()) };
            let well = ended.is_ok();
            if let Err(why) = ended {
                stages::discard(self.directory, task.turn);
                self.state().failed(why)?;
            } else {
                count.add(1);
                self.state().in_a_row = 0;
            }
            let due = self.state().done(task, well);
            if let Some(turns) = due
                && let Some(Err(why)) = self.process(&Step::Link { directory, turns })
            {
                self.state().failed(why)?;
            }
        }
        Ok(())
    }

    /// Runs a process of the build to its end; kills it, with what is below it, and gives `None` when it is time to stop.
    fn process(&self, step: &Step) -> Option<Result<(), String>> {
        let mut role = match stages::start(step, &[]) {
            Ok(role) => role,
            Err(e) => return Some(Err(format!("cannot start a process: {e}"))),
        };
        let end = loop {
            match role.receive(monotonic_ns() + LOOK_EVERY_NS) {
                Err(RoleError::Late) if !self.work.stopped() => {}
                end => break end,
            }
        };
        if matches!(end, Err(RoleError::Late)) {
            role.kill();
        }
        let gone = role.peer_mut().wait(VANISH_WITHIN_NS).is_some();
        let why = match end {
            Ok(End::Done) if gone => return Some(Ok(())),
            // Those that are being killed now did nothing wrong.
            _ if self.work.stopped() => return None,
            Ok(End::Failed(why)) => why,
            Ok(End::NobodyReads) => "the reader of a stage is gone".to_owned(),
            Ok(End::Done) => "a process of the build does not end".to_owned(),
            Err(e) => format!("a process of the build {e}"),
        };
        Some(Err(why))
    }

    fn say_failures(&self) {
        let state = self.state();
        if let Some(why) = &state.first_failure {
            self.work.caveat(format!("failed steps of the build: {}, the first one: {why}", state.failures));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_comes_once_a_round_and_a_link_is_due_when_all_of_it_is_done() {
        let mut state = State::new(4);
        for _ in 0..3 {
            let mut units: Vec<usize> = Vec::new();
            let tasks: Vec<Task> = (0..text::UNITS).map(|_| state.next()).collect();
            let mut linked = 0;
            // The last job of a link is not the last one that was begun.
            for task in tasks.iter().rev() {
                units.push(task.unit);
                if let Some(turns) = state.done(*task, task.unit != 5) {
                    linked += turns.len();
                    assert!(turns.iter().all(|t| t / UNITS_PER_LINK == turns[0] / UNITS_PER_LINK));
                }
            }
            units.sort_unstable();
            assert_eq!(units, (0..text::UNITS).collect::<Vec<_>>());
            assert_eq!((linked, state.links.len()), (text::UNITS - 1, 0), "the failed one is not linked");
        }
    }

    #[test]
    fn some_failures_are_borne_and_many_in_a_row_end_it() {
        let mut state = State::new(4);
        for i in 0..3 * FAILURES_IN_A_ROW {
            assert!(state.failed(format!("why {i}")).is_ok());
            state.in_a_row = if i % 2 == 0 { state.in_a_row } else { 0 };
        }
        assert_eq!(state.first_failure.as_deref(), Some("why 0"));
        state.in_a_row = FAILURES_IN_A_ROW - 1;
        let e = state.failed("disk full".to_owned()).unwrap_err().to_string();
        assert!(e.contains("disk full"), "{e}");
    }
}
