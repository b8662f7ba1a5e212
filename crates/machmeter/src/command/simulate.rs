//! `machmeter simulate --pattern NAME --on RUN`: message passing on measured costs, quiet and with noise, up to a million ranks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use machmeter_data::Record;
use machmeter_data::quantity::{Unit, human, parse_duration_ns};
use machmeter_data::record::Machine as Host;
use machmeter_simulate::goal::{self, Goal};
use machmeter_simulate::machine::of_record;
use machmeter_simulate::montecarlo::{Share, What};
use machmeter_simulate::noise::{Machine, Starts};
use machmeter_simulate::patterns::{PATTERNS, Shape, find};
use machmeter_simulate::record::{Step, fill};
use machmeter_simulate::{Dialect, Params, SimulateError};
use machmeter_sys::affinity;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::guard::signals;
use machmeter_sys::oom::MemoryLeft;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::keep::{Keeping, keep};
use super::{CommandEntry, report};
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::session::{self, empty_record, warning};
use crate::state;

pub(crate) const ENTRY: CommandEntry = CommandEntry {
    name: "simulate",
    define,
    takes: &[
        "cpus", "output", "json", "csv", "md", "tag", "no_save", "dry_run", "quiet", "verbose", "color",
        "ascii",
    ],
    run,
};

/// Most ranks of a pattern.
const MAX_RANKS: u32 = 1 << 24;
/// Events per second of a CPU, for what is said before the start: 5 to 13 M were measured at 2.6 GHz.
const EVENTS_PER_SECOND: f64 = 5e6;
/// Share of the memory that is left that a simulation may take.
const MEMORY_SHARE: f64 = 0.8;
/// Name of the plan in the parameters of a record.
const PLAN: &str = "simulate";

/// Simulate message passing on measured costs, with noise
///
/// Runs a pattern, or a schedule in GOAL, on the link that `machmeter net` measured (--on), once quiet and, with --noise, in
/// runs that begin elsewhere in the gaps that `machmeter noise` recorded. A run's number is its seed: --part 2/8 computes a share of the
/// runs anywhere, --merge puts all shares together to the same bits:
/// machmeter simulate --pattern allreduce --ranks 2-1M --on last --noise vm.json --runs 20
#[derive(Args)]
struct Asked {
    /// A schedule in GOAL, text or binary
    #[arg(value_name = "FILE.goal", conflicts_with = "pattern")]
    schedule: Option<PathBuf>,
    /// binomial, ring, allreduce, ...; all: machmeter simulate --pattern list
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// Ranks, N or A-B in powers of 2; K is 2^10, M is 2^20
    #[arg(long, value_name = "A-B", default_value = "2-1024", value_parser = ladder)]
    ranks: Ladder,
    /// Bytes of a message
    #[arg(long, value_name = "N", default_value_t = 8)]
    bytes: u64,
    /// Bytes of a segment of a pipeline
    #[arg(long, value_name = "N", default_value_t = 4096)]
    segment: u64,
    /// Rounds of calculation and pattern
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    /// Calculation of each rank before each round
    #[arg(long, value_name = "DUR", default_value = "0s", value_parser = parse_duration_ns)]
    work: u64,
    /// Run with the parameters of links
    #[arg(long, value_name = "RUN")]
    on: Option<PathBuf>,
    /// Link of that run: shm, tcp, 'tcp back'
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Run with gaps, or period=1ms,duration=10us, or rate=100; rate is per second, with duration=10us and exponential
    #[arg(long, value_name = "RUN|SPEC")]
    noise: Option<String>,
    /// All machines are at one place of the noise
    #[arg(long, requires = "noise")]
    coincident: bool,
    /// Runs with noise
    #[arg(id = "runs", long = "runs", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    noisy_runs: u32,
    /// Share K of N of the runs
    #[arg(long, value_name = "K/N", value_parser = |s: &str| s.parse::<Share>())]
    part: Option<Share>,
    /// Put shares together
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with_all = ["schedule", "pattern", "on", "noise", "part"])]
    merge: Vec<PathBuf>,
    /// Rules: machmeter, or loggopsim as that simulator has them
    #[arg(long, default_value = "machmeter", value_parser = ["machmeter", "loggopsim"])]
    dialect: String,
}

type Ladder = Arc<[u32]>;

fn define() -> Command {
    Asked::augment_args(Command::new(ENTRY.name))
}

/// `64`, or `2-1M` as all powers of 2 from 2 on.
fn ladder(text: &str) -> Result<Ladder, String> {
    let number = |t: &str| {
        let (digits, scale) = match t.as_bytes().last() {
            Some(b'K' | b'k') => (&t[..t.len() - 1], 1 << 10),
            Some(b'M' | b'm') => (&t[..t.len() - 1], 1 << 20),
            _ => (t, 1),
        };
        let ranks = digits.parse::<u32>().ok().and_then(|n| n.checked_mul(scale));
        ranks.filter(|n| (2..=MAX_RANKS).contains(n))
    };
    let ends = match text.split_once('-') {
        Some((a, b)) => number(a).zip(number(b)),
        None => number(text).map(|n| (n, n)),
    };
    let (first, last) = ends
        .filter(|(a, b)| a <= b)
        .ok_or_else(|| format!("'{text}' is no number of ranks from 2 to 16M, nor a range such as 2-1M"))?;
    let doubled = std::iter::successors(Some(first), |n| Some(n * 2)).take_while(|n| *n < last);
    Ok(doubled.chain([last]).collect())
}

fn run(_: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    if asked.pattern.as_deref() == Some("list") {
        let line = |p: &machmeter_simulate::patterns::PatternInfo| {
            let names = [&[p.name], p.aliases].concat().join(", ");
            format!("{names:<32} {}", p.description)
        };
        output::print(&PATTERNS.iter().map(line).collect::<Vec<_>>().join("\n")).map_err(Failure::cannot)?;
        return Ok(Exit::Fine);
    }
    globals.output.iter().try_for_each(|path| view::ending(path, "json").map(|_| ()))?;
    if !asked.merge.is_empty() {
        let (plan, steps, machine) = merged(&asked.merge)?;
        return finish(&plan, None, &steps, machine, globals);
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
    let threads = affordable(&what, &ladder, runs.len() as u64 + 1, globals)?;
    if globals.dry_run {
        return Ok(Exit::Fine);
    }
    signals::install().map_err(Failure::cannot)?;
    let work = Work { what, params, noise, coincident: asked.coincident, ladder, runs };
    let steps = work.run(threads)?;
    finish(&plan, asked.part, &steps, of, globals)
}

fn read_schedule(path: &Path) -> Result<(Goal, String), Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let read = goal::read(&bytes).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let digest = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    Ok((read, digest))
}

/// What two shares must have in common.
fn plan(asked: &Asked, schedule: Option<&(Goal, String)>) -> Result<Value, Failure> {
    let (name, what) = match (&asked.pattern, schedule) {
        (Some(name), _) => {
            let names = || PATTERNS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
            let info = find(name).ok_or_else(|| {
                Failure::usage(format!("no pattern '{name}'")).help(format!("patterns: {}", names()))
            })?;
            (
                info.name.to_owned(),
                json!({ "ranks": asked.ranks[..], "bytes": asked.bytes, "segment": asked.segment,
                "rounds": asked.rounds, "work_ns": asked.work }),
            )
        }
        (None, Some((goal, digest))) => {
            let stem = asked.schedule.as_ref().and_then(|p| p.file_stem()).unwrap_or_default();
            (stem.to_string_lossy().into_owned(), json!({ "ranks": goal.ranks(), "sha256": digest }))
        }
        (None, None) => {
            return Err(
                Failure::usage("nothing to simulate").help("--pattern NAME, a file, or --merge RECORD...")
            );
        }
    };
    Ok(
        json!({ "pattern": name, "what": what, "dialect": asked.dialect, "runs": asked.noisy_runs, "coincident": asked.coincident }),
    )
}

/// Parameters, and the machine that they were measured on.
fn params(asked: &Asked, plan: &mut Value) -> Result<(Params, Host), Failure> {
    let dialect = if asked.dialect == "loggopsim" { Dialect::LogGopSim } else { Dialect::Machmeter };
    let Some(on) = &asked.on else {
        return Err(Failure::usage("no costs to simulate on").help("--on RUN, a run of machmeter net"));
    };
    let (record, _) = report::located(on)?;
    let of = of_record(&record, asked.link.as_deref(), dialect)
        .map_err(|e| Failure::usage(format!("--on {}: {e}", on.display())))?;
    plan["on"] = json!(record.id);
    plan["link"] = json!(of.name);
    plan["segments"] = json!(format!("{:?}", of.params.segments()));
    plan["assumptions"] = json!(of.assumptions);
    Ok((of.params, record.machine))
}

fn machine(noise: &str, plan: &mut Value) -> Result<Machine, Failure> {
    let wrong = |e: String| Failure::usage(format!("--noise {noise}: {e}"));
    if noise.contains('=') && !Path::new(noise).exists() {
        plan["noise"] = json!(noise);
        return described(noise).map_err(wrong);
    }
    let (record, path) = report::located(Path::new(noise))?;
    plan["noise"] = json!(record.id);
    let tables = report::tables(&record, &path)?;
    Machine::recorded(&tables)
        .map_err(|e| wrong(e.to_string()).help("machmeter noise --raw all records them"))
}

/// `period=1ms,duration=10us`, or `rate=100,duration=10us,exponential`.
fn described(text: &str) -> Result<Machine, String> {
    let (mut period_ns, mut rate, mut duration_ns, mut exponential) = (None, None, None, false);
    for word in text.split(',') {
        match word.split_once('=') {
            Some(("period", t)) => period_ns = Some(parse_duration_ns(t)?),
            Some(("duration", t)) => duration_ns = Some(parse_duration_ns(t)?),
            Some(("rate", t)) => {
                let parsed = t.parse::<f64>().ok().filter(|r| (1e-3..=1e9).contains(r));
                rate = Some(parsed.ok_or_else(|| format!("'{t}' is no rate per second from 0.001 to 1e9"))?);
            }
            None if word == "exponential" => exponential = true,
            _ => return Err(format!("'{word}' is none of period=, rate=, duration=, exponential")),
        }
    }
    let duration_ps = duration_ns.ok_or("no duration=")?.saturating_mul(1000);
    match (period_ns, rate) {
        (Some(ns), None) if !exponential => Machine::periodic(ns.saturating_mul(1000), duration_ps),
        (None, Some(rate)) => Machine::random((1e12 / rate) as u64, duration_ps, exponential),
        _ => return Err("period=, or rate= with exponential where durations vary".to_owned()),
    }
    .map_err(|e| e.to_string())
}

fn title(plan: &mut Value, asked: &Asked, noise: Option<&Machine>) {
    let text = |key: &str| plan[key].as_str().unwrap_or_default().to_owned();
    let size = if asked.pattern.is_some() { format!(" of {} B", asked.bytes) } else { String::new() };
    let mut title = format!("{}{size} on {} of {}", text("pattern"), text("link"), text("on"));
    if let Some(machine) = noise {
        let share = machine.cpus.iter().map(machmeter_simulate::noise::Trace::share).sum::<f64>();
        let share = 100.0 * share / machine.cpus.len().max(1) as f64;
        let cpus = machine.cpus.len();
        title.push_str(&format!(
            "; noise {} ({cpus} CPUs, {share:.3} % taken), {} runs",
            text("noise"),
            asked.noisy_runs
        ));
    }
    plan["title"] = json!(title);
}

fn what<'a>(asked: &Asked, schedule: Option<&'a Goal>) -> Result<What<'a>, Failure> {
    if let Some(goal) = schedule {
        return Ok(What::Schedule(goal));
    }
    let info = asked.pattern.as_deref().and_then(find).ok_or_else(|| Failure::usage("no pattern"))?;
    let shape = Shape { ranks: 2, bytes: asked.bytes, segment_bytes: asked.segment, seed: 1 };
    let calculation_ps = asked.work.saturating_mul(1000);
    let what = What::Pattern { info, shape, rounds: asked.rounds, calculation_ps };
    let last = asked.ranks[asked.ranks.len() - 1];
    if what.operations_of_rank(last) > u64::from(u32::MAX / 2) {
        let text = format!(
            "{} at {last} ranks in {} rounds: over 2^31 operations of a rank",
            info.name, asked.rounds
        );
        return Err(Failure::usage(text).help("fewer ranks, rounds or segments"));
    }
    Ok(what)
}

/// Says what it will take, and how many threads memory allows.
fn affordable(what: &What<'_>, ladder: &[u32], runs: u64, globals: &Globals) -> Result<usize, Failure> {
    let all: Vec<_> = ladder.iter().map(|ranks| what.estimate(*ranks)).collect();
    let events: u64 = all.iter().map(|e| e.events.saturating_mul(runs)).fold(0, u64::saturating_add);
    let largest = all.iter().map(|e| e.bytes).max().unwrap_or(0);
    let left = MemoryLeft::of_this_process(&FsRoot::host()).map_err(Failure::cannot)?;
    let allowed = (left.available_bytes as f64 * MEMORY_SHARE) as u64;
    if largest > allowed {
        let text = format!(
            "a run needs up to {}, of {} that are left",
            human(largest as f64, Unit::Bytes),
            human(left.available_bytes as f64, Unit::Bytes)
        );
        return Err(Failure::usage(text)
            .help("fewer ranks, or a machine with more memory: --part shares runs, not one of them"));
    }
    let (_, _, cpus) = session::cpus(&globals.cpus)?;
    affinity::set_mask(&cpus).map_err(Failure::cannot)?;
    let jobs = runs.saturating_mul(ladder.len() as u64).min(1 << 20) as usize;
    let threads = cpus.len().min((allowed / largest.max(1)) as usize).min(jobs).max(1);
    let seconds = events as f64 / EVENTS_PER_SECOND / threads as f64;
    let text = format!(
        "{:.3} M events, about {seconds:.0} s on {threads} CPUs, up to {}",
        events as f64 / 1e6,
        human(largest.saturating_mul(threads as u64) as f64, Unit::Bytes)
    );
    if globals.dry_run {
        output::print(&text).map_err(Failure::cannot)?;
    } else if !globals.quiet {
        output::say(&text);
    }
    Ok(threads)
}

struct Work<'a> {
    what: What<'a>,
    params: Params,
    noise: Option<Arc<Machine>>,
    coincident: bool,
    ladder: Ladder,
    runs: Vec<u64>,
}

impl Work<'_> {
    /// All runs over threads: quiet ones first, then run by run, so that what an interrupt leaves is whole runs. Each result has its place,
    /// whichever thread gives it.
    fn run(&self, threads: usize) -> Result<Vec<Step>, Failure> {
        let numbers: Vec<Option<u64>> =
            [None].into_iter().chain(self.runs.iter().copied().map(Some)).collect();
        let jobs: Vec<(usize, Option<u64>)> =
            numbers.iter().flat_map(|n| (0..self.ladder.len()).map(|step| (step, *n))).collect();
        let (next, results) = (AtomicUsize::new(0), Mutex::new(vec![None; jobs.len()]));
        let stop = || signals::stop_flag().load(Ordering::Relaxed);
        let worker = || {
            while !stop() {
                let job = next.fetch_add(1, Ordering::Relaxed);
                let Some((step, number)) = jobs.get(job).copied() else { break };
                let starts =
                    |seed| if self.coincident { Starts::Together(seed) } else { Starts::Apart(seed) };
                let noise = number.and_then(|seed| Some((self.noise.as_ref()?, starts(seed))));
                let result = self.what.simulate(self.ladder[step], &self.params, noise, &stop);
                let failed = result.is_err();
                results.lock().unwrap_or_else(PoisonError::into_inner)[job] = Some(result);
                if failed {
                    next.store(jobs.len(), Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(worker);
            }
            worker();
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut quiet = vec![None; self.ladder.len()];
        let mut noisy = vec![Vec::new(); self.ladder.len()];
        for ((step, number), result) in jobs.into_iter().zip(results) {
            match (result, number) {
                (Some(Ok(ps)), None) => quiet[step] = Some(ps),
                (Some(Ok(ps)), Some(number)) => noisy[step].push((number, ps)),
                (Some(Err(e)), _) if e != SimulateError::Stopped => {
                    let exit =
                        if matches!(e, SimulateError::Deadlock(_)) { Exit::Finding } else { Exit::Usage };
                    return Err(Failure {
                        exit,
                        ..Failure::usage(format!("{} ranks: {e}", self.ladder[step]))
                    });
                }
                _ => {}
            }
        }
        let whole = self.ladder.iter().zip(quiet).zip(noisy);
        Ok(whole
            .filter_map(|((ranks, quiet), runs)| Some(Step { ranks: *ranks, quiet_ps: quiet?, runs }))
            .collect())
    }
}

/// Steps with exact times: those of datasets are rounded.
fn steps_to_json(steps: &[Step]) -> Value {
    let of = |s: &Step| json!({ "ranks": s.ranks, "quiet_ps": s.quiet_ps, "runs": s.runs });
    steps.iter().map(of).collect()
}

fn steps_of(parameters: &Value) -> Option<Vec<Step>> {
    let of = |s: &Value| {
        let pair = |r: &Value| Some((r[0].as_u64()?, r[1].as_u64()?));
        Some(Step {
            ranks: u32::try_from(s["ranks"].as_u64()?).ok()?,
            quiet_ps: s["quiet_ps"].as_u64()?,
            runs: s["runs"].as_array()?.iter().map(pair).collect::<Option<_>>()?,
        })
    };
    parameters["steps"].as_array()?.iter().map(of).collect()
}

/// The plan that shares have in common, and the runs of all.
fn merged(names: &[PathBuf]) -> Result<(Value, Vec<Step>, Host), Failure> {
    let mut whole = None;
    for name in names {
        let (record, _) = report::located(name)?;
        let wrong = |what: String| Failure::usage(format!("--merge {}: {what}", name.display()));
        let plan = record.run.parameters.get(PLAN).map(|p| p["plan"].clone());
        let plan = plan.filter(Value::is_object).ok_or_else(|| wrong("no simulation".to_owned()))?;
        let own = steps_of(&record.run.parameters[PLAN])
            .ok_or_else(|| wrong("its steps cannot be read".to_owned()))?;
        let Some((common, all, _)) = &mut whole else {
            whole = Some((plan, own, record.machine));
            continue;
        };
        let differs = |key: &&String| common[key.as_str()] != plan[key.as_str()];
        if let Some(key) = common.as_object().into_iter().flat_map(|o| o.keys()).find(differs) {
            return Err(wrong(format!("a part of another plan: {key} differs")));
        }
        for own in own {
            match all.iter_mut().find(|s| s.ranks == own.ranks && s.quiet_ps == own.quiet_ps) {
                Some(step) => step.runs.extend(own.runs),
                None => {
                    return Err(wrong(format!(
                        "{} ranks are in no other part, or ended at another time",
                        own.ranks
                    )));
                }
            }
        }
    }
    let (plan, mut all, machine): (Value, Vec<Step>, _) =
        whole.ok_or_else(|| Failure::usage("--merge: no records"))?;
    let runs = plan["runs"].as_u64().filter(|_| plan["noise"].is_string()).unwrap_or(0);
    for step in &mut all {
        step.runs.sort_unstable();
        let numbers: Vec<u64> = step.runs.iter().map(|r| r.0).collect();
        if let Some(n) = (0..runs).find(|n| !numbers.contains(n)) {
            return Err(Failure::usage(format!(
                "--merge: run {n} of {runs} at {} ranks is in no part",
                step.ranks
            )));
        }
        if numbers.len() as u64 != runs {
            return Err(Failure::usage(format!("--merge: a run at {} ranks is in two parts", step.ranks)));
        }
    }
    Ok((plan, all, machine))
}

fn finish(
    plan: &Value,
    part: Option<Share>,
    steps: &[Step],
    machine: Host,
    globals: &Globals,
) -> Result<Exit, Failure> {
    let mut record: Record = empty_record();
    record.machine = machine;
    PLAN.clone_into(&mut record.run.verb);
    record.run.tags = globals.tag.iter().cloned().collect();
    let share = part.map(|p| format!("{}/{}", p.part, p.of));
    record
        .run
        .parameters
        .insert(PLAN.to_owned(), json!({ "plan": plan, "part": share, "steps": steps_to_json(steps) }));
    record.complete = signals::stop_requested().is_none();
    record.stopped_by = signals::stop_requested().map_or("end of simulation".to_owned(), |s| {
        format!("signal:{}", s.to_string().trim_start_matches("SIG"))
    });
    let text = |key: &str| plan[key].as_str();
    fill(
        &mut record,
        text("title").unwrap_or_default(),
        text("pattern").unwrap_or_default(),
        text("noise"),
        steps,
    );
    for assumed in plan["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        record.warn(warning(
            "W910",
            assumed.to_owned(),
            "measure the link again with more time, or choose another (--link)",
        ));
    }
    let to = Keeping { history: state::history(), outputs: Vec::new(), stem: None };
    Ok(keep(record, Vec::new(), to, globals))
}
