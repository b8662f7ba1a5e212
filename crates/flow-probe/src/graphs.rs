//! Runs benchmark graphs: without timers for the wall time, then with a stamp at every transition for the table.

use machmeter_data::shape::DistributionRow;
use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Fact, Kind, Pair, Row};
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::part::PartContext;
use machmeter_flow::table::{Table, at_quantile};
use machmeter_flow::timer::{Spread, Sums};
use machmeter_flow::{Choice, Graph, Name, Program, Sampling, graphs};
use machmeter_sys::clock::{self, OrderedCounter, SourceId, TickSource};
use machmeter_sys::thread::{Usage, monotonic_ns};
use serde::{Deserialize, Serialize};

use crate::Params;
use crate::analyze::keys;
use crate::files::{self, Over};
use crate::kernels::Kernel;
use crate::predict::{Past, Predicted, predict};
use crate::profile::{Profiled, Profiles};

pub(crate) const PART: &str = "graphs";

pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) build: fn(Graph, &Over) -> Graph,
}

/// Intervals of the radar, of 3 ms each: a run of each graph takes 20 to 70 ms, so that many fit into the time.
const INTERVALS: u64 = 24;

pub(crate) const GRAPHS: &[Known] = &[
    Known {
        name: "rt_stap_easy",
        build: |g, _| {
            let p = graphs::rt_stap_easy::Parameters { intervals: INTERVALS, ..Default::default() };
            graphs::rt_stap_easy::graph(g, &p).0
        },
    },
    Known { name: "e_comm", build: |g, over| graphs::e_comm::graph(g, &over.radio).0 },
    Known { name: "noise_removal", build: |g, over| graphs::noise_removal::graph(g, &over.sound).0 },
];

/// What timed runs of a graph by a kernel said.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Timed {
    pub(crate) graph: String,
    pub(crate) kernel: String,
    pub(crate) granularity: u32,
    pub(crate) boxes: usize,
    pub(crate) schedules: usize,
    pub(crate) queues: usize,
    pub(crate) copied_bytes: u64,
    /// Of each run, in the order of [`Name::TEXTS`]: calls, and time without the timer's own part, ns.
    pub(crate) called: Vec<Vec<u64>>,
    pub(crate) total_ns: Vec<Vec<f64>>,
    /// How often others took the CPU, of each run without timers and with them.
    #[serde(default)]
    pub(crate) preempted: Vec<[u64; 2]>,
    /// The table of the last run.
    pub(crate) table: Table,
    pub(crate) broken: Vec<String>,
    /// Queues: name, most tokens in it, tokens discarded.
    pub(crate) occupancy: Vec<(String, u64, u64)>,
    /// Names with quantiles of single calls of the last run, ns.
    pub(crate) quantiles: Vec<DistributionRow>,
    pub(crate) profile: Profiled,
    pub(crate) predicted: Option<Predicted>,
}

pub(crate) const TIMED: Fact<Vec<Timed>> = Fact::named("graphs.timed");
/// Mean, deviation, least and greatest of Tt and Tpt, ns.
pub(crate) const CALIBRATION: Fact<[[f64; 4]; 2]> = Fact::named("graphs.calibration");

/// What is to be run: a row, and what its timed runs say.
struct Job<'a> {
    known: &'static Known,
    over: &'a Over,
    kernel: Kernel,
    row: Row,
    timed: Timed,
    profiles: Profiles,
}

const QUANTILES: [f64; 9] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0];

/// Lengths of single calls by name, of names that were called.
fn quantiles(sums: &Sums, ns_per_tick: f64) -> Vec<DistributionRow> {
    let of = |(name, sum): (&&str, &machmeter_flow::timer::Sum)| {
        let h = sum.histogram.as_ref()?;
        let at = |q: f64| (q, at_quantile(h, q) * ns_per_tick);
        // A logarithm has no place for what came out as nothing.
        let quantiles: Vec<(f64, f64)> = QUANTILES.map(at).into_iter().filter(|q| q.1 > 0.0).collect();
        let some = !quantiles.is_empty();
        some.then(|| DistributionRow { name: (*name).to_owned(), n: sum.called, quantiles })
    };
    Name::TEXTS.iter().zip(sums.all()).filter_map(of).collect()
}

impl<'a> Job<'a> {
    fn new(known: &'static Known, over: &'a Over, kernel: Kernel, granularity: u32) -> Self {
        let (graph, name) = (known.name.to_owned(), kernel.name());
        let timed = Timed { graph, kernel: name, granularity, ..Timed::default() };
        let mut row = Row::new(PART, "run", Kind::Latency).of_batches();
        (row.params, row.long_turns) = (keys(&timed), 1);
        let mut job = Self { known, over, kernel, row, timed, profiles: Profiles::default() };
        let g = job.graph();
        (job.timed.boxes, job.timed.schedules) = (g.box_count(), g.schedule_count());
        job.timed.queues = g.queue_count();
        job
    }

    fn graph(&self) -> Graph {
        (self.known.build)(Graph::new(self.known.name).fused(self.kernel.is_fused), self.over)
    }

    fn choice(&self) -> Choice {
        self.kernel.choice(self.timed.granularity)
    }

    fn program(&self) -> Result<Program, String> {
        Program::new(self.graph(), self.choice()).map_err(|e| e.to_string())
    }

    /// A run without timers, one with them, and one that is watched. Ticks of the first.
    fn once(
        &mut self,
        source: SourceId,
        ns_per_tick: f64,
        (sampling, all): (Sampling, bool),
        at_ns: f64,
        seed: u64,
    ) -> Result<u64, String> {
        let mut plain = self.program()?;
        let ticks = || clock::now(source).map_err(|e| e.to_string());
        let preempted = |since: &Usage| Usage::of_current_thread().since(since).involuntary_switches;
        let usage = Usage::of_current_thread();
        let begin = ticks()?;
        plain.run(Sampling::Never, u64::MAX, seed);
        let took = ticks()?.saturating_sub(begin);
        let without = preempted(&usage);
        drop(plain);
        let mut timed = self.program()?;
        timed.log().calibrate();
        let usage = Usage::of_current_thread();
        timed.run(sampling, u64::MAX, seed);
        self.timed.preempted.push([without, preempted(&usage)]);
        let sums = timed.log().sums();
        self.timed.called.push(sums.all().iter().map(|s| s.called).collect());
        self.timed.total_ns.push(sums.all().iter().map(|s| s.total_ticks() * ns_per_tick).collect());
        self.timed.table = Table::new(Name::TEXTS, &sums, ns_per_tick, all);
        self.timed.quantiles = quantiles(&sums, ns_per_tick);
        drop(sums);
        // Laws are of whole runs: of turns here and there counts do not balance.
        if matches!(sampling, Sampling::Always) {
            self.timed.broken = timed.broken_laws();
        }
        self.timed.copied_bytes = timed.copied_bytes();
        self.timed.occupancy =
            timed.queues().map(|(name, most, _, gone)| (name.to_owned(), most, gone)).collect();
        drop(timed);
        let (graph, choice) = (self.graph(), self.choice());
        self.profiles.once(graph, choice, ns_per_tick, at_ns, seed)?;
        Ok(took)
    }
}

/// Length of a tick of the counter that timers read, ns: by the calibrated clock where that is the same counter, else beside the system's.
fn ns_per_tick(at: &PartContext<'_>) -> f64 {
    if at.host.source() != SourceId::MonotonicRaw {
        return at.host.rate.ns_per_tick();
    }
    let (begin_ns, begin) = (monotonic_ns(), OrderedCounter::now());
    while monotonic_ns() < begin_ns + 10_000_000 {
        std::hint::spin_loop();
    }
    (monotonic_ns() - begin_ns) as f64 / (OrderedCounter::now() - begin).max(1) as f64
}

pub(crate) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let (graphs, kernels, granularities) = (params.graphs()?, params.kernels()?, params.granularities()?);
    let asked = (params.sampling()?, params.all);
    let past = params.predict_from.as_deref().map(|name| Past::open(at.host, name)).transpose()?;
    let over = Over::of(params)?;
    let mut jobs = Vec::new();
    for known in graphs {
        for kernel in &kernels {
            let past = past.as_ref().map(|p| p.of(known.name, *kernel)).transpose()?;
            for granularity in &granularities {
                let mut job = Job::new(known, &over, *kernel, *granularity);
                let predicted = past.as_ref().map(|past| predict(past, &|| job.graph(), job.choice()));
                job.timed.predicted = predicted.transpose().map_err(ProbeError::Cannot)?;
                jobs.push(job);
            }
        }
    }
    at.host.begin()?;
    files::run_once(at, params, &over);
    let ns_per_tick = ns_per_tick(at);
    let calibration = machmeter_flow::timer::Log::new(Name::TEXTS).calibrate();
    let in_ns = |s: Spread| [s.mean, s.deviation, s.least, s.most].map(|ticks| ticks * ns_per_tick);
    at.facts.set(&CALIBRATION, [calibration.own, calibration.pair].map(in_ns));
    let until_ns = monotonic_ns() + at.left_ns();
    // Each at least once; then in turn, so that an hour's disturbance colors all alike.
    let mut round = 0;
    while round == 0 || (monotonic_ns() < until_ns && !stop_requested()) {
        for job in &mut jobs {
            let open = job.row.refused.is_none() && (round == 0 || monotonic_ns() < until_ns);
            if !open || stop_requested() {
                continue;
            }
            let at_ns = monotonic_ns().saturating_sub(at.start_ns) as f64;
            let visit = job.row.next_visit();
            match job.once(at.host.source(), ns_per_tick, asked, at_ns, at.host.seed) {
                Ok(ticks) => job.row.pairs.push(Pair { at_ns, long_ticks: ticks, visit, ..Pair::default() }),
                Err(why) => job.row.refused = Some(why),
            }
        }
        round += 1;
        if jobs.iter().all(|j| j.row.refused.is_some()) {
            break;
        }
    }
    for job in &mut jobs {
        job.timed.profile = job.profiles.together();
    }
    at.facts.set(&TIMED, jobs.iter().map(|j| j.timed.clone()).collect());
    let mut told: Vec<&str> = Vec::new();
    for job in jobs {
        // Single firings of each graph once: by the first kernel and granularity.
        if !told.contains(&job.known.name) {
            told.push(job.known.name);
            at.rows.extend(job.profiles.firings);
        }
        at.rows.push(job.row.reached());
    }
    Ok(())
}
