//! What starting something that does nothing costs, and switching threads, all on one CPU.
//! Failed starts are quick (lmbench once priced one), so every thread writes a word and exit codes are looked at.
//! Children may run first: a pair is disturbed where CPU time of process and children falls short of wall time.

pub(super) mod selftest;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::disturbance::Disturbance;
use machmeter_engine::disturbance::sibling::CoreLook;
use machmeter_engine::experiment::{BenchCell, Cell, CellList, Visit};
use machmeter_engine::sampling::{HostTiming, Mark, Pace, Sampler, Timing};
use machmeter_engine::{Analysis, ProbeError};
use machmeter_sys::affinity::current_cpu;
use machmeter_sys::call::family_cpu_ns;
use machmeter_sys::thread::monotonic_ns;

use super::Params;
use super::cost::NO_FIGURE;
use super::planned::{affordable, benches};
use super::prices;
use super::table;
use machmeter_engine::part::{Part, PartContext};
use machmeter_loops::ops::switch::{self, Switches};

pub(super) use machmeter_loops::ops::processes::{starts, threads};

const PART_NAME: &str = "processes";
/// Few, because a pair of the slowest rows takes several ms.
const PAIRS_PER_VISIT: usize = 2;
const PACE: Pace = Pace::of(Pace::BATCH_NS, PAIRS_PER_VISIT);

machmeter_data::code! { NOT_STARTED = "W445" "processes not measured",
    what: "Threads or processes could not be started, or ended wrongly; their rows have no figure.",
    why: "A start that fails is faster than one that works, so its time would be a wrong cost.",
    how: "Exit codes of all children, and a word that each thread writes.",
    next: "Check the limits on processes (ulimit -u, pids.max of the control group), and the program given with --exec-target.",
}

pub(super) const PART: Part<Params> = Part {
    codes: &[NOT_STARTED],
    selftest: &[("what calls did", selftest::proofs), ("programs that fail", selftest::failing)],
    ..Part::of(PART_NAME, 25, measure, analyze)
};

/// Time of others in a pair that is not held against it: a share, and ns beside it (interrupts).
const OTHERS_SHARE: f64 = 0.1;
const OTHERS_NS: f64 = 30_000.0;

/// Time of the host, on which a pair is disturbed when others had the CPU, or when it is another CPU.
pub(super) struct Sharing {
    host: HostTiming,
    began_ns: u64,
    used_ns: u64,
}

impl Sharing {
    pub(super) fn new(host: HostTiming) -> Self {
        Self { host, began_ns: 0, used_ns: 0 }
    }
}

impl Timing for Sharing {
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        self.host.time(work)
    }

    fn ticks(&mut self) -> u64 {
        self.host.ticks()
    }

    fn mark(&mut self) -> Mark {
        (self.began_ns, self.used_ns) = (monotonic_ns(), family_cpu_ns());
        Mark { cpu: current_cpu(), ..Mark::default() }
    }

    fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    fn look_at_core(&mut self) -> CoreLook {
        self.host.look_at_core()
    }

    fn disturbed_since(&mut self, mark: Mark) -> Option<Disturbance> {
        let wall_ns = monotonic_ns().saturating_sub(self.began_ns);
        let used_ns = family_cpu_ns().saturating_sub(self.used_ns);
        if used_by_others(wall_ns, used_ns) {
            Some(Disturbance::Preempted)
        } else if current_cpu() != mark.cpu {
            Some(Disturbance::Migrated)
        } else {
            None
        }
    }
}

fn used_by_others(wall_ns: u64, used_ns: u64) -> bool {
    wall_ns.saturating_sub(used_ns) as f64 > OTHERS_SHARE * wall_ns as f64 + OTHERS_NS
}

fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let no_cpu = || ProbeError::Cannot("there is no CPU to measure on".to_owned());
    let cpu = at.host.cpus.first().ok_or_else(no_cpu)?;
    let starts = prices::cells(PART_NAME, at, params, prices::Files::none(), PACE)?;
    let threads = [threads(false).first(), threads(true), Switches::plan(cpu, at.policy)];
    let threads = benches(PART_NAME, threads.into());
    let timing = Sharing::new(HostTiming::new(at.host.source()));
    let mut sampler = Sampler::new(timing, at.host.rate, at.host.seed);
    sampler.start_ns = at.start_ns;
    let sampler = Rc::new(RefCell::new(sampler));
    let mut cells: CellList<'_> = starts.into_iter().collect();
    for bench in affordable(threads, PACE.visit_ns(), at.left_ns()) {
        cells.push(OnSharedCpu { cell: BenchCell { bench, pace: PACE }, sampler: Rc::clone(&sampler) });
    }
    at.run(cells);
    Ok(())
}

/// A cell on the time that knows what others used.
struct OnSharedCpu<'a> {
    cell: BenchCell<'a>,
    sampler: Rc<RefCell<Sampler>>,
}

impl Cell for OnSharedCpu<'_> {
    fn rows(&self) -> &[Row] {
        self.cell.rows()
    }

    fn expected_ns(&self) -> u64 {
        self.cell.expected_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        self.cell.visit(&mut Visit { sampler: &mut self.sampler.borrow_mut(), ..*visit });
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        Box::new(self.cell).into_rows()
    }
}

fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let caption = "Starting something that does nothing and waiting for its end, and handing the CPU to another thread; all on one CPU.";
    let code_of = |r: &Row| if r.operation == switch::OPERATION { NO_FIGURE } else { NOT_STARTED };
    let codes = [NOT_STARTED, NO_FIGURE];
    table::analysis(rows, PART_NAME, ["Threads and processes", caption], &codes, code_of)
}
