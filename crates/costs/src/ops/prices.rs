//! Most rows are priced in a small process of one thread: forks and descriptors cost by memory and threads.
//! It inherits CPU and policy; each visit has a fresh one, since costs hang on addresses.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;

use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_engine::part::PartContext;
use machmeter_engine::role::{self, MessageReader, MessageWriter, Role, RoleError};
use machmeter_engine::sampling::{Bench, HostTiming, Pace, Sampler};
use machmeter_engine::{ProbeError, Worker, worker};
use machmeter_loops::ops::calls::SINGLE_TURNS_PER_VISIT;
use machmeter_loops::ops::repeated::one_line;
use machmeter_sys::clock::{SourceId, TickRate};
use machmeter_sys::process::Spawn;
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::planned::{affordable, benches};
use super::{Params, arithmetic, calls, decades, processes, table};

pub(super) const WORKER: Worker = Worker { name: "ops-prices", run };

/// What a visit may take: of the part's time one part in so many, and bounds, ns. The longest visits are nine starts of a program.
const VISIT_SHARE: u64 = 4;
const VISIT_NS: (u64, u64) = (300_000_000, 3_000_000_000);
/// What a start of the process may take on a busy machine, ns.
const READY_WITHIN_NS: u64 = 5_000_000_000;
/// Between looks whether the run is to stop, ns.
const LOOK_NS: u64 = 20_000_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Setting {
    part: String,
    source: SourceId,
    tick_hz: f64,
    seed: u64,
    start_ns: u64,
    exec_target: Option<String>,
    /// Number of the process, from 0: the places of its buffers and files.
    number: usize,
    files: Files,
}

/// Directories in which each process makes one of its own for the files that calls work on: no visit finds those of another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Files {
    /// Where files are made, or why there are none.
    pub(super) own: Result<PathBuf, String>,
    /// The same in memory (tmpfs), where that is another file system.
    pub(super) in_memory: Option<Result<PathBuf, String>>,
}

impl Files {
    /// No row of a part works on files.
    pub(super) fn none() -> Self {
        Self { own: Err("no row works on files".to_owned()), in_memory: None }
    }

    /// New directories for the process of this number.
    fn make(&self, number: usize) -> Self {
        let make = |parent: &Result<PathBuf, String>| {
            let path = parent.clone()?.join(number.to_string());
            let made = std::fs::create_dir(&path);
            made.map_err(|e| format!("no files in {}: {}", path.display(), one_line(&e)))?;
            Ok(path)
        };
        Self { own: make(&self.own), in_memory: self.in_memory.as_ref().map(make) }
    }

    /// Removes those of a process that is gone. What cannot be removed goes with the directories of the run.
    fn remove(&self, number: usize) {
        for parent in [Some(&self.own), self.in_memory.as_ref()].into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir_all(parent.join(number.to_string()));
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Open(Setting),
    /// A visit of a row, with the turns of its batches if they are known.
    Visit {
        row: usize,
        turns: (u64, u64),
        pace: Pace,
        until_ns: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// The rows there are, and whether they belong to the first.
    Rows(Vec<(Row, bool)>),
    /// What a visit adds to a row.
    Visited(Box<Row>),
}

/// The rows of a part that there is time for, as cells that the process visits.
pub(super) fn cells(
    part: &str,
    at: &PartContext<'_>,
    params: &Params,
    files: Files,
    pace: Pace,
) -> Result<Vec<Priced>, ProbeError> {
    let limit_ns = (at.left_ns() / VISIT_SHARE).clamp(VISIT_NS.0, VISIT_NS.1);
    let setting = Setting {
        part: part.to_owned(),
        source: at.host.source(),
        tick_hz: at.host.rate.hz(),
        seed: at.host.seed,
        start_ns: at.start_ns,
        exec_target: params.exec_target.clone(),
        number: 0,
        files,
    };
    let mut process = Process { setting, limit_ns, role: None, visited: Vec::new(), rows: Vec::new() };
    process.start().map_err(|e| ProbeError::Cannot(process.said(&e)))?;
    let rows = process.rows.iter().cloned().enumerate().map(|(n, (row, first))| ((n, row), first));
    let rows = affordable(rows.collect(), pace.visit_ns(), at.left_ns());
    let process = Rc::new(RefCell::new(process));
    let cell = |(n, row): (usize, Row)| {
        let is_single = (row.short_turns, row.long_turns) == (0, 1);
        let pace = if is_single { Pace::one_by_one(SINGLE_TURNS_PER_VISIT) } else { pace };
        Priced { process: Rc::clone(&process), n, row, pace }
    };
    Ok(rows.into_iter().map(cell).collect())
}

pub(super) struct Priced {
    process: Rc<RefCell<Process>>,
    n: usize,
    row: Row,
    pace: Pace,
}

impl Cell for Priced {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn expected_ns(&self) -> u64 {
        self.pace.visit_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let mut process = self.process.borrow_mut();
        if let Some(seen) = process.visit(self.n, &mut self.row, &self.pace, visit.until_ns) {
            add(&mut self.row, seen);
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![self.row]
    }
}

struct Process {
    setting: Setting,
    limit_ns: u64,
    role: Option<Role<Request, Reply>>,
    /// Rows that the process that runs has visited.
    visited: Vec<usize>,
    rows: Vec<(Row, bool)>,
}

impl Process {
    /// What a visit found; `None` where the row is refused or the run is to stop.
    fn visit(&mut self, n: usize, row: &mut Row, pace: &Pace, until_ns: u64) -> Option<Row> {
        if row.refused.is_some() {
            return None;
        }
        // What an operation costs depends on where its process got memory, by 5 to 30 %.
        if self.visited.contains(&n) {
            self.role = None;
        }
        let turns = (row.short_turns, row.long_turns);
        let request = Request::Visit { row: n, turns, pace: *pace, until_ns };
        row.refused = match self.start().and_then(|()| self.ask(&request, self.limit_ns)) {
            Ok(Some(Reply::Visited(seen))) => {
                self.visited.push(n);
                return Some(*seen);
            }
            Ok(_) => None,
            Err(RoleError::Late) => {
                let given = self.setting.exec_target.clone().filter(|_| row.text("program") == "given");
                let (what, limit_ms) = (given.unwrap_or_else(|| table::name(row)), self.limit_ns / 1_000_000);
                Some(format!("{what} did not end within {limit_ms} ms and was killed with all its processes"))
            }
            Err(e) => Some(self.said(&e)),
        };
        // Kills it with its group; the next visit has a fresh one.
        self.role = None;
        None
    }

    fn said(&self, e: &RoleError) -> String {
        format!("the process that measures {} {e}", self.setting.part)
    }

    fn start(&mut self) -> Result<(), RoleError> {
        if self.role.is_none() {
            self.visited.clear();
            if let Some(before) = self.setting.number.checked_sub(1) {
                self.setting.files.remove(before);
            }
            self.role = Some(Role::start(Spawn::worker(WORKER.name).new_group().die_with_parent())?);
            let open = Request::Open(self.setting.clone());
            self.setting.number += 1;
            if let Some(Reply::Rows(rows)) = self.ask(&open, READY_WITHIN_NS)? {
                self.rows = rows;
            }
        }
        Ok(())
    }

    /// The reply; `None` when the run is to stop.
    fn ask(&mut self, request: &Request, within_ns: u64) -> Result<Option<Reply>, RoleError> {
        let Some(role) = &mut self.role else { return Ok(None) };
        let until_ns = monotonic_ns().saturating_add(within_ns);
        role.send(request)?;
        loop {
            let now_ns = monotonic_ns();
            match role.receive(until_ns.min(now_ns.saturating_add(LOOK_NS))) {
                Err(RoleError::Late) if stop_requested() => return Ok(None),
                Err(RoleError::Late) if now_ns < until_ns => {}
                replied => return replied.map(Some),
            }
        }
    }
}

/// Adds a visit to its row: the only one of its process.
fn add(row: &mut Row, seen: Row) {
    (row.short_turns, row.long_turns) = (seen.short_turns, seen.long_turns);
    // Each process counts its own visits.
    let visit = row.next_visit();
    row.pairs.extend(seen.pairs.into_iter().map(|p| Pair { visit, ..p }));
    row.rejected.add(seen.rejected);
    row.refused = seen.refused;
    if let Some(proof) = seen.proof {
        row.prove(&proof.what, proof.expected, proof.seen);
    }
}

fn run(_: &[OsString]) -> u8 {
    let Ok((mut requests, replies)) = role::starter() else { return 1 };
    let Ok(Request::Open(setting)) = requests.next(None) else { return 1 };
    let Ok(rate) = TickRate::from_hz(setting.tick_hz) else { return 1 };
    let (timing, seed) = (HostTiming::new(setting.source), setting.seed);
    let shares_cpu = setting.part == processes::PART.name;
    let mut sampler = if shares_cpu {
        Sampler::new(processes::Sharing::new(timing), rate, seed)
    } else {
        Sampler::new(timing, rate, seed)
    };
    sampler.start_ns = setting.start_ns;
    let files = setting.files.make(setting.number);
    let part = setting.part.as_str();
    let work = |benches: Vec<(Bench<'_>, bool)>| serve(part, sampler, benches, requests, replies);
    if shares_cpu {
        work(benches(part, processes::starts(setting.exec_target.as_deref(), worker::NOTHING.name)))
    } else if part == arithmetic::PART.name {
        arithmetic::with_all(seed, |planned| work(benches(part, planned)))
    } else if part == decades::PART.name {
        decades::with_all(&files.own, work)
    } else {
        calls::with_all(&files, setting.number, |planned| work(benches(part, planned)))
    }
}

fn serve(
    part: &str,
    mut sampler: Sampler,
    mut benches: Vec<(Bench<'_>, bool)>,
    mut requests: MessageReader<Request>,
    mut replies: MessageWriter<Reply, File>,
) -> u8 {
    for (bench, _) in &mut benches {
        part.clone_into(&mut bench.row.part);
    }
    let mut reply = Reply::Rows(benches.iter().map(|(bench, first)| (bench.row.clone(), *first)).collect());
    loop {
        // A starter that does not read is gone: the end of its requests follows.
        let _ = replies.send(&reply);
        reply = match requests.next(None) {
            Ok(Request::Visit { row, turns, pace, until_ns }) if row < benches.len() => {
                let (bench, _) = &mut benches[row];
                (bench.row.short_turns, bench.row.long_turns) = turns;
                sampler.visit(bench, &pace, until_ns);
                bench.row.proof = bench.subject.proof();
                Reply::Visited(Box::new(bench.row.clone()))
            }
            Err(RoleError::Ended(_)) => return 0,
            _ => return 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_engine::cost::{Estimator, Kind, Proof};
    use machmeter_engine::disturbance::Rejected;

    /// Chains and the empty loop ask for a cycle, and the inherited MiB for what it adds to a fork.
    const OF_DIFFERENCES: [&str; 3] = ["add", "empty_loop", "fork_per_mib"];

    #[test]
    fn every_row_of_the_catalog_keeps_its_estimator() {
        let files = Files::none();
        let check = |benches: Vec<(Bench<'_>, bool)>| {
            assert!(benches.len() > 7);
            for (Bench { row, .. }, _) in benches {
                let is_difference = OF_DIFFERENCES.contains(&row.operation.as_str());
                let estimator = if is_difference { Estimator::Differences } else { Estimator::Batches };
                crate::testing::assert_keeps(&row, estimator);
                let is_long_chain = row.operation == "add" && row.int("chain") >= Some(4);
                assert_eq!(row.is_core_clock, is_long_chain, "{:?}", row.params);
            }
        };
        arithmetic::with_all(1, |planned| check(benches("arithmetic", planned)));
        calls::with_all(&files, 0, |planned| check(benches("calls", planned)));
        check(benches("processes", processes::starts(None, worker::NOTHING.name)));
        decades::with_all(&files.own, check);
    }

    #[test]
    fn visits_add_up_however_many_processes_made_them() {
        let mut row = Row::new("calls", "pipe", Kind::Latency);
        for visit in 1..=3_u64 {
            let mut seen = row.clone();
            (seen.short_turns, seen.long_turns) = (40, 80);
            let pair = Pair { short_ticks: visit, visit: 1, ..Pair::default() };
            seen.pairs = vec![pair];
            seen.rejected = Rejected { preempted: visit, ..Rejected::default() };
            seen.proof = Some(Proof::new("bytes", 10 * visit, 9 * visit));
            // As it comes through the pipe.
            let text = serde_json::to_string(&Reply::Visited(Box::new(seen))).unwrap();
            let Reply::Visited(seen) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
            add(&mut row, *seen);
        }
        assert_eq!((row.short_turns, row.long_turns, row.rejected.preempted), (40, 80, 6));
        assert!(row.pairs.iter().zip(1..=3).all(|(p, n)| (p.short_ticks, p.visit) == (u64::from(n), n)));
        assert_eq!(row.proof.as_ref().map(|p| (p.expected, p.seen)), Some((60, 54)));
        let refused =
            Row { refused: Some("No such file".to_owned()), ..Row::new("calls", "x", Kind::Latency) };
        add(&mut row, refused);
        assert!(row.refused.is_some() && row.pairs.len() == 3);
    }
}
