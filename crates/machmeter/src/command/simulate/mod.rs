//! `machmeter simulate --pattern NAME --on RUN`: simulates message passing on measured costs, quiet and with noise, for up to a million ranks.

mod inputs;
mod runs;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_data::Record;
use machmeter_data::quantity::{Unit, human, parse_duration_ns};
use machmeter_data::record::Machine as Host;
use machmeter_simulate::montecarlo::Share;
use machmeter_simulate::patterns::PATTERNS;
use machmeter_simulate::record::{Step, fill};
use machmeter_sys::affinity;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::guard::signals;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::topology::CpuSet;
use serde_json::{Value, json};

use super::keep::keep_figures;
use super::measure;
use crate::progress::Reporter;
use crate::session::{self, empty_record, stopped_by, warning};
use crate::{Exit, Failure, Globals, Registries, output, view};
pub(super) use inputs::{doublings, machine, names_of, taken};
use inputs::{ladder, params, plan, read_schedule, title, what};
pub(super) use runs::over_threads;
use runs::{Work, merged};

/// Events per second of a CPU, for the estimate before the start: 5 to 13 M were measured at 2.6 GHz.
pub(super) const EVENTS_PER_SECOND: f64 = 5e6;
/// Share of the free memory that a simulation may take.
const MEMORY_SHARE: f64 = 0.8;
/// Name of the plan in the parameters of a record.
const PLAN: &str = "simulate";

/// Simulate message passing on measured costs, with noise
///
/// Runs a pattern, or a schedule in GOAL, on a link measured by `machmeter net` (--on): once without noise and, with --noise, in several
/// runs. Each of these starts at a random place in the gaps recorded by `machmeter noise`. The number of a run is its seed: --part 2/8
/// computes a share of the runs on any machine, and --merge joins all shares with identical results:
/// machmeter simulate --pattern allreduce --ranks 2-1M --on last --noise vm.json --runs 20
#[derive(Args)]
pub(super) struct Asked {
    /// Schedule in GOAL, text or binary
    #[arg(value_name = "FILE.goal", conflicts_with = "pattern")]
    schedule: Option<PathBuf>,
    /// Pattern: binomial, ring, allreduce, ...; all: machmeter simulate --pattern list
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// Ranks, N or A-B in powers of 2; K is 2^10, M is 2^20
    #[arg(long, value_name = "A-B", default_value = "2-1024", value_parser = ladder)]
    ranks: Ladder,
    /// Bytes of a message
    #[arg(long, value_name = "N", default_value_t = 8)]
    bytes: u64,
    /// Bytes of a pipeline segment
    #[arg(long, value_name = "N", default_value_t = 4096)]
    segment: u64,
    /// Rounds of computation and pattern
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    /// Computation of each rank before each round
    #[arg(long, value_name = "DUR", default_value = "0s", value_parser = parse_duration_ns)]
    work: u64,
    /// Run with the parameters of links
    #[arg(long, value_name = "RUN")]
    on: Option<PathBuf>,
    /// Link of that run: shm, tcp, 'tcp back'
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Run with gaps, period=1ms,duration=10us, or rate=100,duration=10us (per second); append ,exponential for exponential durations
    #[arg(long, value_name = "RUN|SPEC")]
    noise: Option<String>,
    /// Start all machines at the same place of the noise
    #[arg(long, requires = "noise")]
    coincident: bool,
    /// Number of runs with noise
    #[arg(id = "runs", long = "runs", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    noisy_runs: u32,
    /// Compute share K of N of the runs
    #[arg(long, value_name = "K/N", value_parser = |s: &str| s.parse::<Share>())]
    part: Option<Share>,
    /// Costs and laws of MPI operations on simulated ranks
    #[arg(long, requires = "on", conflicts_with_all = ["schedule", "pattern", "noise", "part", "merge", "bytes", "segment", "rounds", "work"])]
    table: bool,
    /// Operations of the table: send, pingpong, bcast, ...; all by default
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "table")]
    ops: Vec<String>,
    /// Message sizes of the table, from and to
    #[arg(long, value_name = "FROM-TO", default_value = "8-1M", value_parser = table::range)]
    sizes: (u64, u64),
    /// Join shares
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with_all = ["schedule", "pattern", "on", "noise", "part"])]
    merge: Vec<PathBuf>,
    /// Rules of messages: machmeter, or loggopsim as in that simulator
    #[arg(long, default_value = "machmeter", value_parser = ["machmeter", "loggopsim"])]
    dialect: String,
}

type Ladder = Arc<[u32]>;

pub(super) fn run(_: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    if asked.pattern.as_deref() == Some("list") {
        if globals.json.is_some() {
            let one = |p: &machmeter_simulate::patterns::PatternInfo| json!({ "name": p.name, "aliases": p.aliases, "description": p.description });
            let all: Vec<Value> = PATTERNS.iter().map(one).collect();
            let text = serde_json::to_string_pretty(&all).map_err(Failure::cannot)?;
            output::put(globals.json.as_deref().unwrap_or(Path::new("-")), &text).map_err(Failure::cannot)?;
            return Ok(Exit::Fine);
        }
        let line = |p: &machmeter_simulate::patterns::PatternInfo| {
            let names = [&[p.name], p.aliases].concat().join(", ");
            format!("{names:<32} {}", p.description)
        };
        output::print(&PATTERNS.iter().map(line).collect::<Vec<_>>().join("\n")).map_err(Failure::cannot)?;
        return Ok(Exit::Fine);
    }
    view::writable(globals)?;
    if !asked.merge.is_empty() {
        let (plan, steps, machine) = merged(&asked.merge)?;
        if globals.dry_run {
            return measure::planned(globals, &format!("plan: shares to merge: {}", asked.merge.len()));
        }
        return Ok(finish(&plan, None, &steps, machine, globals));
    }
    if asked.table {
        return table::run(&asked, globals);
    }
    let schedule = asked.schedule.as_deref().map(read_schedule).transpose()?;
    let mut plan = plan(&asked, schedule.as_ref())?;
    let (params, of) = params(&asked, &mut plan)?;
    let noise = asked.noise.as_deref().map(|n| machine(n, &mut plan)).transpose()?.map(Arc::new);
    title(&mut plan, &asked, noise.as_deref());
    let what = what(&asked, schedule.as_ref().map(|s| &s.0))?;
    let ladder: Ladder = schedule.as_ref().map_or_else(|| asked.ranks.clone(), |s| [s.0.ranks()].into());
    let share = asked.part.unwrap_or(Share { part: 1, of: 1 });
    let runs: Vec<u64> =
        if noise.is_some() { share.runs(u64::from(asked.noisy_runs)).collect() } else { Vec::new() };
    let all: Vec<_> = ladder.iter().map(|ranks| what.estimate(*ranks)).collect();
    let of_one = all.iter().map(|e| e.events).fold(0, u64::saturating_add);
    let need = Need {
        events: of_one.saturating_mul(runs.len() as u64 + 1),
        largest_bytes: all.iter().map(|e| e.bytes).max().unwrap_or(0),
        jobs: (runs.len() + 1).saturating_mul(ladder.len()),
        events_per_second: EVENTS_PER_SECOND,
    };
    let threads = need.threads(globals)?;
    if !need.begins(threads, globals)? {
        return Ok(Exit::Fine);
    }
    let work = Work { what, params, noise, coincident: asked.coincident, ladder, runs };
    let steps = work.run(threads, &need.progress(threads, globals))?;
    Ok(finish(&plan, asked.part, &steps, of, globals))
}

/// Resources that a simulation needs.
pub(super) struct Need {
    pub(super) events: u64,
    /// Memory of the largest run.
    pub(super) largest_bytes: u64,
    pub(super) jobs: usize,
    pub(super) events_per_second: f64,
}

impl Need {
    /// Number of threads that fit into memory.
    pub(super) fn threads(&self, globals: &Globals) -> Result<usize, Failure> {
        let left = MemoryLeft::of_this_process(&FsRoot::host()).map_err(Failure::cannot)?;
        let allowed = (left.available_bytes as f64 * MEMORY_SHARE) as u64;
        if self.largest_bytes > allowed {
            let text = format!(
                "a run needs up to {} of memory, but only {} are free",
                human(self.largest_bytes as f64, Unit::Bytes),
                human(left.available_bytes as f64, Unit::Bytes)
            );
            return Err(Failure::usage(text)
                .help("use fewer ranks, or a machine with more memory: --part divides the set of runs, not a single run"));
        }
        let (_, _, cpus) = session::cpus(&globals.cpus)?;
        affinity::set_mask(&cpus).map_err(Failure::cannot)?;
        Ok(cpus.len().min((allowed / self.largest_bytes.max(1)) as usize).min(self.jobs).max(1))
    }

    fn seconds(&self, threads: usize) -> f64 {
        self.events as f64 / self.events_per_second / threads as f64
    }

    /// Progress of the jobs.
    pub(super) fn progress(&self, threads: usize, globals: &Globals) -> Reporter {
        let total_ns = (1e9 * self.seconds(threads)) as u64;
        Reporter::new(globals, view::style(globals).width, total_ns, &CpuSet::default())
    }

    /// Prints the estimated resources; returns false in a dry run.
    pub(super) fn begins(&self, threads: usize, globals: &Globals) -> Result<bool, Failure> {
        let text = format!(
            "{:.3} M events, about {:.0} s on {threads} CPUs, up to {}",
            self.events as f64 / 1e6,
            self.seconds(threads),
            human(self.largest_bytes.saturating_mul(threads as u64) as f64, Unit::Bytes)
        );
        if globals.dry_run {
            measure::planned(globals, &format!("plan: {text}"))?;
            return Ok(false);
        }
        globals.say(&text);
        signals::install().map_err(Failure::cannot)?;
        Ok(true)
    }
}

fn finish(plan: &Value, part: Option<Share>, steps: &[Step], machine: Host, globals: &Globals) -> Exit {
    let share = part.map(|p| format!("{}/{}", p.part, p.of));
    // Exact times, because those of datasets are rounded.
    let parameters = json!({ "plan": plan, "part": share, "steps": steps });
    let mut record = record_of(PLAN, parameters, machine, globals);
    let [title, pattern, noise] = ["title", "pattern", "noise"].map(|key| plan[key].as_str());
    fill(&mut record, title.unwrap_or_default(), pattern.unwrap_or_default(), noise, steps);
    let assumed = plan["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    warn_of(&mut record, assumed);
    keep_figures(record, globals)
}

/// A record of a simulation or prediction without its figures.
pub(super) fn record_of(verb: &str, parameters: Value, machine: Host, globals: &Globals) -> Record {
    let mut record: Record = empty_record();
    // The facts after the other run do not apply to this one.
    record.machine = Host { after: machmeter_data::Facts::default(), ..machine };
    verb.clone_into(&mut record.run.verb);
    record.run.tags = globals.tag.iter().cloned().collect();
    record.run.parameters.insert(verb.to_owned(), parameters);
    record.complete = signals::stop_requested().is_none();
    record.stopped_by = stopped_by("end of simulation");
    record
}

/// Warns about the assumptions on costs.
pub(super) fn warn_of<'a>(record: &mut Record, assumptions: impl IntoIterator<Item = &'a str>) {
    for assumed in assumptions {
        let next = "measure the link again with more time, or choose another link (--link)";
        record.warn(warning("W910", assumed.to_owned(), next));
    }
}
