//! Takes a recording: processes of the tasks, loads one after the other, segments of every cell in rounds.

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::stream::Stream;
use machmeter_engine::{
    Attributes, Host, LoadError, LoadInfo, LoadRequest, ProbeError, RunningLoad, deadline,
};
use machmeter_stats::random::Random;
use machmeter_sys::cgroup::Group;
use machmeter_sys::counters;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::pressure::{self, Resource};
use machmeter_sys::topology::CpuSet;
use machmeter_sys::{guard, sched, thread};

use super::analyze::distinct;
use super::oracle::Summary;
use super::samples::{Cell, LoadNote, Samples, Segment, Setup};
use super::worker::{TaskProcess, TaskRequest};

/// From the order to begin until the first release, ns: the task's thread wakes, touches its memory, sleeps.
const LEAD_NS: u64 = 30_000_000;
/// Between a look at counters (0.2 ms of CPU) and the first release or the end, ns, so that it disturbs no job.
const APART_NS: u64 = 10_000_000;
/// A load works for this long before a task is measured under it, ns.
const SETTLE_NS: u64 = 250_000_000;
/// Time that a segment takes beside its length: the lead, the looks, the answer; ns.
const BESIDE_NS: u64 = 60_000_000;
/// Time that starting and ending a load takes, ns.
const LOAD_NS: u64 = SETTLE_NS + 350_000_000;
const SHORTEST_NS: u64 = 200_000_000;
/// A task that has not answered so long after the end of a segment is given up, ns.
const ANSWER_NS: u64 = 2_500_000_000;

#[derive(Debug, Clone)]
pub struct CellPlan {
    pub tasks: Vec<(String, Stream)>,
    /// Loads, each with whether it was asked for by name and so must be had.
    pub loads: Vec<(LoadRequest, bool)>,
    pub attributes: Attributes,
    /// Length of a segment, ns; those that the budget leaves no room for become shorter.
    pub segment_ns: u64,
    pub rounds: u32,
    /// Wall time for all, ns; none: as long as it takes.
    pub within_ns: Option<u64>,
}

impl CellPlan {
    /// Shortest time in which all cells can be recorded once, for so many tasks under the plan's loads, ns.
    pub fn least_ns(&self, tasks: usize) -> u64 {
        let segments = (tasks * self.loads.len()) as u64;
        segments * (SHORTEST_NS + BESIDE_NS) + self.loads_ns()
    }

    /// Time that starting and ending each load once takes, ns; that of no load takes none.
    fn loads_ns(&self) -> u64 {
        self.loads.iter().filter(|l| l.0.name != "none").count() as u64 * LOAD_NS
    }

    /// Chooses as many rounds as leave segments of four seconds within `within_ns`, one at least, and their length.
    pub fn fit(&mut self, tasks: usize, within_ns: u64) {
        let cells = (self.loads.len() * tasks) as u64;
        let loads_ns = self.loads_ns();
        let per_segment = |rounds: u64| {
            let fixed_ns = rounds * (cells * BESIDE_NS + loads_ns);
            within_ns.saturating_sub(fixed_ns) / (cells * rounds).max(1)
        };
        let rounds = (1..=40).rev().find(|r| per_segment(*r) >= 4_000_000_000).unwrap_or(1);
        self.rounds = rounds as u32;
        self.segment_ns = per_segment(rounds).max(SHORTEST_NS);
        self.within_ns = Some(within_ns);
    }
}

/// Records all cells of `plan`. What was recorded until something ended it is kept.
/// Errors: a task cannot be started as asked, or a load that was asked for by name cannot be had.
pub fn record_cells(
    host: &Host<'_>,
    plan: &CellPlan,
    on_segment: &mut dyn FnMut(&Cell, &Segment),
) -> Result<Samples, ProbeError> {
    let begun_ns = thread::monotonic_ns();
    let mut recorder = Recorder::open(host, plan, begun_ns)?;
    let mut random = Random::new(host.seed);
    let mut shuffled = |n: usize| {
        let mut all: Vec<usize> = (0..n).collect();
        random.shuffle(&mut all);
        all
    };
    let mut later = u64::from(plan.rounds) * plan.loads.len() as u64;
    'rounds: for _ in 0..plan.rounds {
        for load in shuffled(plan.loads.len()) {
            later -= 1;
            let tasks = shuffled(plan.tasks.len());
            if !recorder.under_load(load, &tasks, later, on_segment)? {
                break 'rounds;
            }
        }
    }
    recorder.close()
}

struct Recorder<'a> {
    host: &'a Host<'a>,
    plan: &'a CellPlan,
    begun_ns: u64,
    /// Before `task_group`, which is removed when no process of a task is left in it.
    processes: Vec<TaskProcess>,
    task_group: Option<Group>,
    samples: Samples,
}

impl<'a> Recorder<'a> {
    fn open(host: &'a Host<'a>, plan: &'a CellPlan, begun_ns: u64) -> Result<Self, ProbeError> {
        for (request, _) in plan.loads.iter().filter(|l| l.1) {
            host.loads.check(request).map_err(|e| ProbeError::Usage(e.to_string()))?;
        }
        let task_group = plan.attributes.make_group("tasks").map_err(ProbeError::Usage)?;
        host.begin()?;
        let mut processes = Vec::new();
        for (name, stream) in &plan.tasks {
            processes.push(start(name, stream, plan, host.seed, task_group.as_ref())?);
        }
        let of = |f: &dyn Fn(&TaskProcess) -> f64| processes.iter().map(f).fold(0.0, f64::max);
        let ready = processes.first().map(|p| &p.ready);
        let setup = Setup {
            task_policy: ready.map_or(String::new(), |r| r.policy.clone()),
            load_policy: load_policy(plan),
            cpus: host.cpus.len(),
            timer_slack_ns: ready.and_then(|r| r.timer_slack_ns),
            turns_per_ms: of(&|p| p.ready.turns_per_ms),
            calibration_ns: of(&|p| p.ready.calibration_ns as f64) as u64,
            ..Setup::default()
        };
        let samples = Samples { setup, ..Samples::default() };
        Ok(Self { host, plan, begun_ns, processes, task_group, samples })
    }

    /// Segments of `tasks` under one load, after which `later` loads come; false when the recording is over.
    fn under_load(
        &mut self,
        load: usize,
        tasks: &[usize],
        later: u64,
        on_segment: &mut dyn FnMut(&Cell, &Segment),
    ) -> Result<bool, ProbeError> {
        let (request, by_name) = &self.plan.loads[load];
        if self.is_out(&request.name) {
            return Ok(!deadline::stop_requested());
        }
        self.host.progress.step(&format!("interactive: load {}", request.name));
        let mut running = match self.host.loads.start(request) {
            Ok(running) => running,
            // With nothing measured so far there is nothing to lose by an error.
            Err(LoadError::Usage(why)) if *by_name && self.samples.cells.is_empty() => {
                return Err(ProbeError::Usage(why));
            }
            Err(LoadError::Usage(why) | LoadError::Cannot(why)) => {
                self.note(&request.name, |n| n.failure = Some(why.clone()));
                return Ok(true);
            }
        };
        guard::sleep_until(
            thread::monotonic_ns() + if running.processes().is_empty() { 0 } else { SETTLE_NS },
        );
        let mut going = true;
        for (k, &task) in tasks.iter().enumerate() {
            let tasks_left = (tasks.len() - k) as u64;
            let length_ns = self.length_ns(later, tasks_left).filter(|_| !deadline::stop_requested());
            let Some(length_ns) = length_ns else {
                going = false;
                break;
            };
            let segment = self.segment(task, running.as_mut(), length_ns);
            let cell = self.cell(task, load);
            cell.segments.push(segment);
            if let Some(segment) = cell.segments.last() {
                on_segment(cell, segment);
            }
        }
        let report = running.stop();
        self.note(&request.name, |n| {
            merge(&mut n.caveats, &report.caveats);
            merge(&mut n.side_effects, &report.side_effects);
            if report.failure.is_some() {
                n.failure.clone_from(&report.failure);
            }
        });
        Ok(going && !deadline::stop_requested())
    }

    /// A load that could not be had is not tried again.
    fn is_out(&self, load: &str) -> bool {
        let recorded = self.samples.cells.iter().any(|c| c.load == load && !c.segments.is_empty());
        !recorded && self.samples.loads.iter().any(|n| n.name == load && n.failure.is_some())
    }

    fn note(&mut self, load: &str, change: impl FnOnce(&mut LoadNote)) {
        let position = self.samples.loads.iter().position(|n| n.name == load);
        let index = position.unwrap_or_else(|| {
            let info: Option<&LoadInfo> = self.host.loads.infos().into_iter().find(|i| i.name == load);
            self.samples.loads.push(LoadNote {
                name: load.to_owned(),
                work: info.map_or(String::new(), |i| i.work.to_owned()),
                unit: info.map_or(String::new(), |i| i.unit.ucum().to_owned()),
                ..LoadNote::default()
            });
            self.samples.loads.len() - 1
        });
        change(&mut self.samples.loads[index]);
    }

    /// Length of the next segment: as planned, or an equal share of the time left; `None` when that is too short.
    fn length_ns(&self, later: u64, tasks_left: u64) -> Option<u64> {
        let Some(within_ns) = self.plan.within_ns else { return Some(self.plan.segment_ns) };
        let spent_ns = thread::monotonic_ns() - self.begun_ns;
        let (all_loads, all_tasks) = (self.plan.loads.len() as u64, self.plan.tasks.len() as u64);
        let (rounds, loads) = (later / all_loads, later % all_loads);
        let segments = later * all_tasks + tasks_left;
        let this_round_ns = (loads * LOAD_NS).min(self.plan.loads_ns());
        let fixed_ns = segments * BESIDE_NS + rounds * self.plan.loads_ns() + this_round_ns;
        let share_ns = within_ns.saturating_sub(spent_ns + fixed_ns) / segments.max(1);
        let length_ns = share_ns.min(self.plan.segment_ns);
        (length_ns >= SHORTEST_NS.min(self.plan.segment_ns)).then_some(length_ns)
    }

    fn cell(&mut self, task: usize, load: usize) -> &mut Cell {
        let (name, stream) = &self.plan.tasks[task];
        let load = &self.plan.loads[load].0.name;
        let is_it = |c: &Cell| c.task == *name && c.load == *load;
        let index = self.samples.cells.iter().position(is_it).unwrap_or_else(|| {
            let (task, load, stream) = (name.clone(), load.clone(), stream.clone());
            self.samples.cells.push(Cell { task, load, stream, segments: Vec::new() });
            self.samples.cells.len() - 1
        });
        &mut self.samples.cells[index]
    }

    /// Records one segment. A task's process that died is started anew for the next one.
    fn segment(&mut self, task: usize, load: &mut dyn RunningLoad, length_ns: u64) -> Segment {
        let start_ns = thread::monotonic_ns() + LEAD_NS;
        let process = &mut self.processes[task];
        let mut trouble = process.go(start_ns, length_ns).err();
        guard::sleep_until(start_ns - APART_NS);
        let before = Around::look(load, &self.host.cpus);
        if trouble.is_none() {
            // One sleep: a rhythm of this process would be load none's.
            guard::sleep_until(start_ns + length_ns + APART_NS);
        }
        if deadline::stop_requested() {
            process.stop();
        }
        let mut segment = match process.collect(ANSWER_NS) {
            Ok(segment) => segment,
            Err(why) => {
                trouble.get_or_insert(why);
                Segment { start_ns, length_ns, ..Segment::default() }
            }
        };
        segment.start_ns -= self.begun_ns.min(segment.start_ns);
        before.until(&Around::look(load, &self.host.cpus), &mut segment);
        if let Some(why) = load.failure() {
            trouble.get_or_insert(format!("the load ended: {why}"));
        }
        if let Some(why) = &mut trouble
            && !self.processes[task].is_alive()
        {
            let (name, stream) = &self.plan.tasks[task];
            // Whoever killed it may kill the next one, too: what was recorded is kept, and the next segment tries again.
            match start(name, stream, self.plan, self.host.seed, self.task_group.as_ref()) {
                Ok(process) => self.processes[task] = process,
                Err(e) => *why = format!("{why}; {e}"),
            }
        }
        segment.trouble = both(trouble, segment.trouble);
        segment
    }

    fn close(mut self) -> Result<Samples, ProbeError> {
        let failure = self.samples.loads.iter().find_map(|l| Some((&l.name, l.failure.as_ref()?)));
        if let (Some((name, why)), true) = (failure, self.samples.cells.is_empty()) {
            return Err(ProbeError::Cannot(format!("nothing could be measured under load {name}: {why}")));
        }
        let task_of = |c: &Cell| self.plan.tasks.iter().position(|t| t.0 == c.task);
        let load_of = |c: &Cell| self.plan.loads.iter().position(|l| l.0.name == c.load);
        self.samples.cells.sort_by_key(|c| (task_of(c), load_of(c)));
        Ok(self.samples)
    }
}

/// What counters and the load say before and after a segment.
struct Around {
    at_ns: u64,
    work: u64,
    /// From the CPUs that are measured.
    steal_ns: Option<u64>,
    cpu_waits_ns: Option<u64>,
}

impl Around {
    fn look(load: &dyn RunningLoad, cpus: &CpuSet) -> Self {
        let times = counters::cpu_times().ok();
        Self {
            at_ns: thread::monotonic_ns(),
            work: load.work(),
            steal_ns: times.map(|t| cpus.iter().filter_map(|c| t.on_cpu(c)).map(|c| c.steal_ns).sum()),
            cpu_waits_ns: pressure::of_machine(&FsRoot::host(), Resource::Cpu).ok().map(|p| p.some.total_ns),
        }
    }

    /// Writes what came to pass until `after`.
    fn until(&self, after: &Self, segment: &mut Segment) {
        segment.load_ns = after.at_ns - self.at_ns;
        segment.load_work = after.work.saturating_sub(self.work);
        segment.steal_ns = self.steal_ns.zip(after.steal_ns).map(|(a, b)| b.saturating_sub(a));
        let waits_ns = self.cpu_waits_ns.zip(after.cpu_waits_ns).map(|(a, b)| b.saturating_sub(a));
        segment.cpu_pressure = waits_ns.map(|ns| ns as f64 / segment.load_ns.max(1) as f64);
    }
}

/// Policy of the loads: as asked for, or inherited from this program.
fn load_policy(plan: &CellPlan) -> String {
    let asked = plan.loads.first().and_then(|l| l.0.attributes.policy.clone());
    asked.or_else(|| sched::current().ok().map(|p| p.to_string())).unwrap_or_default()
}

fn start(
    name: &str,
    stream: &Stream,
    plan: &CellPlan,
    seed: u64,
    group: Option<&Group>,
) -> Result<TaskProcess, ProbeError> {
    let request = TaskRequest { stream: stream.clone(), attributes: plan.attributes.clone(), seed };
    let process =
        TaskProcess::start(&request).map_err(|e| ProbeError::Cannot(format!("task {name}: {e}")))?;
    if let Some(group) = group {
        group.add(process.ready.pid).map_err(|e| ProbeError::Usage(format!("task {name}: {e}")))?;
    }
    Ok(process)
}

fn merge(into: &mut Vec<String>, from: &[String]) {
    into.extend_from_slice(from);
    *into = distinct(into.drain(..));
}

/// Troubles of a segment as seen from here and as its task told.
fn both(seen: Option<String>, told: Option<String>) -> Option<String> {
    seen.into_iter().chain(told).reduce(|seen, told| format!("{seen}; {told}"))
}

pub(super) fn brief(cell: &Cell, segment: &Segment) -> String {
    let s = Summary::of(&cell.stream, &segment.jobs);
    let mut text = format!(
        "{} under {}: late {} on average, {} at most",
        cell.task,
        cell.load,
        human(s.mean_late_ns.unwrap_or(0.0), Unit::Nanoseconds),
        human(s.max_late_ns as f64, Unit::Nanoseconds)
    );
    if cell.stream.deadline_ns().is_some() {
        let met = s.miss_share.map_or(0.0, |missed| 1.0 - missed);
        text += &format!(", {} of deadlines met", human(met, Unit::One));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_tells_of_its_segment_is_kept() {
        let some = |t: &str| Some(t.to_owned());
        assert_eq!(both(None, some("no room")), some("no room"));
        assert_eq!(both(some("the load ended"), some("no room")), some("the load ended; no room"));
        assert_eq!(both(None, None), None);
    }
}
