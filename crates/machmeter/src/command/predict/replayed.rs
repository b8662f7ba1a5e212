//! Runs a prediction of a traced run over threads, and reports its figures and their weaknesses.

use std::sync::Arc;

use machmeter_data::Record;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_simulate::predict::{Prediction, Times, Told, Variation, fill};
use machmeter_simulate::replay::{Calls, Replay, events, replay};
use serde_json::{Value, json};

use super::inputs::{Costs, costs, largest_measured, options, statements, traced};
use super::{Asked, MEASURE_THERE};
use crate::command::keep::keep_figures;
use crate::command::simulate::{EVENTS_PER_SECOND, Need, machine, over_threads, record_of, taken, warn_of};
use crate::progress::Reporter;
use crate::session::warning;
use crate::{Exit, Failure, Globals};

/// Memory per operation of a replay and of its run, bytes. The value follows from the structures, with room for their growth.
const BYTES_PER_EVENT: u64 = 200;

/// Least share of its time on a CPU for a traced thread without a warning. Predictions for ranks that always had a CPU were off by up to 0.11
/// (`bench/predict`), and a missing share of this size adds as much.
const LEAST_ON_CPU: f64 = 0.9;

pub(super) fn run(asked: &Asked, globals: &Globals) -> Result<Exit, Failure> {
    let Some(name) = &asked.run else {
        return Err(Failure::usage("nothing to predict")
            .help("machmeter predict RUN --on RECORD, with a RUN of machmeter trace"));
    };
    let (of_run, tables) = traced(name)?;
    let on = costs(asked)?;
    let wrong = |e: String| Failure::usage(format!("{}: {e}", name.display()));
    let calls = Calls::find(&tables).map_err(wrong)?;
    let options = options(asked, calls.ranks)?;
    let jobs = (1 + asked.variations().len()).saturating_mul(asked.runs as usize);
    let events = events(&calls, &options);
    let need = Need {
        events: events.saturating_mul(jobs as u64),
        largest_bytes: events.saturating_mul(BYTES_PER_EVENT),
        jobs,
        events_per_second: EVENTS_PER_SECOND,
    };
    let threads = need.threads(globals)?;
    let mut plan = json!({});
    let noise = asked.noise.as_deref().map(|n| machine(n, &mut plan)).transpose()?.map(Arc::new);
    let replay = replay(&calls, &options).map_err(wrong)?;
    let noisy = noise.clone().map(|machine| (machine, asked.coincident));
    let prediction = Prediction::new(&replay, &on.link, &on.sheet, noisy).map_err(|operation| {
        let names = asked.on.iter().chain(&asked.with).map(|p| p.display().to_string());
        Failure::usage(format!("--on {}: no cost of {operation}", names.collect::<Vec<_>>().join(", "))).help(
            format!(
                "measure it with machmeter mpi, or replay it as messages: --algorithm {operation}=PATTERN"
            ),
        )
    })?;
    if !need.begins(threads, globals)? {
        return Ok(Exit::Fine);
    }
    let progress = need.progress(threads, globals);
    let (times, varied) = simulated(asked, &prediction, replay.ranks(), threads, &progress)?;
    let split = times.as_ref().map(|t| {
        over_threads(&[t.median().0], 1, &progress, |_| replay.ranks(), |n, stop| prediction.split(*n, stop))
    });
    let split = split.transpose()?.and_then(|mut found| found.pop().flatten());
    drop(progress);
    let mut title = format!("{} on the link '{}' of {}", name.display(), on.link.name, on.name);
    if let (Some(machine), Some(name)) = (&noise, &asked.noise) {
        title.push_str(&format!("; {}", taken(machine, name)));
    }
    let algorithms: Value = asked.algorithm.iter().map(|(of, info)| json!([of, info.name])).collect();
    let parameters = json!({ "run": of_run.id, "on": on.record.id, "link": on.link.name, "noise": plan["noise"],
        "cpu_scale": asked.cpu_scale, "bytes_scale": asked.bytes_scale, "ranks": replay.ranks(), "runs": asked.runs,
        "coincident": asked.coincident, "algorithm": algorithms,
        "segments": format!("{:?}", on.link.params.segments()) });
    let mut record = record_of("predict", parameters, on.record.machine.clone(), globals);
    let traced_ns = calls.end_ns.iter().copied().max().unwrap_or(0) as f64;
    let told = Told {
        title: &title,
        traced_ns,
        ranks: replay.ranks(),
        times: times.as_ref(),
        split: split.as_ref(),
        priced: &replay.priced_operations(),
        varied: &varied,
        statements: &statements(&replay, &options, calls.ranks),
    };
    fill(&mut record, &told);
    warn(&mut record, asked, &of_run, &on, &prediction, &replay, calls.ranks);
    Ok(keep_figures(record, globals))
}

type All = (Option<Times>, Vec<(Variation, Times)>);

/// Simulates run by run, each with all variations, so that an interrupt leaves complete runs. Variations draw the same costs and noise.
fn simulated(
    asked: &Asked,
    prediction: &Prediction<'_>,
    ranks: u32,
    threads: usize,
    progress: &Reporter,
) -> Result<All, Failure> {
    let count = if prediction.differs() { u64::from(asked.runs) } else { 1 };
    let changes: Vec<Option<Variation>> =
        [None].into_iter().chain(asked.variations().into_iter().map(Some)).collect();
    let jobs: Vec<(u64, Option<Variation>)> =
        (0..count).flat_map(|run| changes.iter().map(move |change| (run, *change))).collect();
    let given = over_threads(
        &jobs,
        threads,
        progress,
        |_| ranks,
        |(run, change), stop| prediction.time(*run, *change, stop),
    )?;
    let done = |place: usize| {
        let own = given.iter().skip(place).step_by(changes.len()).enumerate();
        Times::of(own.filter_map(|(run, ps)| Some((run as u64, (*ps)?))))
    };
    let of = |(i, change): (usize, &Option<Variation>)| Some(((*change)?, done(i)?));
    Ok((done(0), changes.iter().enumerate().filter_map(of).collect()))
}

fn warn(
    record: &mut Record,
    asked: &Asked,
    of_run: &Record,
    on: &Costs,
    prediction: &Prediction<'_>,
    replay: &Replay,
    traced_ranks: u32,
) {
    warn_of(record, on.link.assumptions.iter().map(String::as_str));
    let mut say = |code: &str, text: String, next: &str| {
        record.warn(Warning { changes: true, ..warning(code, text, next) });
    };
    for line in prediction.outside().lines(&on.sheet) {
        say("W911", line, MEASURE_THERE);
    }
    let largest = largest_measured(&on.record, &on.link);
    if let (Some(asked), Some(measured)) = (replay.largest_bytes, largest)
        && asked > measured
    {
        let [asked, measured] = [asked, measured].map(|b| human(b as f64, Unit::Bytes));
        let text = format!(
            "messages of {asked} exceed the measured sizes (up to {measured}): their times are extrapolated"
        );
        say("W911", text, "measure larger messages");
    }
    if !replay.left_out.is_empty() {
        let all: Vec<String> = replay.left_out.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let text = format!("not replayed: {}", all.join(", "));
        say(
            "W912",
            text,
            "their time counts as 0: compare a replay with the costs of the traced machine to the traced time",
        );
    }
    let guesses = [
        (replay.guesses.receives, "receives from any rank"),
        (replay.guesses.waits, "waits for one of several requests"),
        (replay.guesses.starts, "starts of persistent requests"),
    ];
    let guesses: Vec<String> =
        guesses.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !guesses.is_empty() {
        let text = format!("matched by the order of calls: {}", guesses.join(", "));
        say(
            "W913",
            text,
            "none if each rank takes messages in order of arrival; else trace with named ranks",
        );
    }
    let priced = replay.priced_operations();
    if asked.variations().iter().any(|v| v.factor != 1.0) && !priced.is_empty() {
        let text = format!("--vary does not change the measured cost of {}", priced.join(", "));
        say(
            "W915",
            text,
            "replay it as messages: --algorithm OP=PATTERN; machmeter simulate --pattern list prints the patterns",
        );
    }
    let on_cpu = of_run.metric("mpi.on_cpu", &[]).and_then(|m| m.value);
    if let Some(share) = on_cpu.filter(|share| *share < LEAST_ON_CPU) {
        let text = format!(
            "traced threads had a CPU for only {:.0} % of the time (mpi.on_cpu): a run may take up to {:.1} times as long as predicted, beyond the interval",
            100.0 * share,
            1.0 / share
        );
        say("W916", text, "trace with one CPU per rank and no other load: mpirun --bind-to core, chrt -f 1");
    }
    let cpus = |record: &Record| record.machine.before.number("cpu.count");
    let shared = [(of_run, traced_ranks, "traced"), (&on.record, replay.ranks(), "of the costs")];
    for (machine, ranks, which) in shared {
        if let Some(cpus) = cpus(machine).filter(|cpus| f64::from(ranks) > *cpus) {
            let text = format!(
                "{ranks} ranks, but the machine {which} has {cpus} CPUs: the prediction gives each rank its own CPU"
            );
            say("W914", text, "trace at most one rank per CPU");
        }
    }
}
