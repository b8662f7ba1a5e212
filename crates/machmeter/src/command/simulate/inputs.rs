//! Interprets the options of a simulation: ranks, a schedule, costs, noise.

use std::path::Path;

use machmeter_data::Record;
use machmeter_data::quantity::{Unit, human, parse_bytes, parse_duration_ns};
use machmeter_data::record::Machine as Host;
use machmeter_simulate::goal::{self, Goal};
use machmeter_simulate::machine::{OfLink, of_record};
use machmeter_simulate::montecarlo::What;
use machmeter_simulate::noise::{Machine, Trace};
use machmeter_simulate::patterns::{PATTERNS, Shape, find};
use machmeter_simulate::{Dialect, Params};
use machmeter_store::bounded;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Asked, Ladder};
use crate::Failure;
use crate::command::report;

/// Most ranks of a pattern.
const MAX_RANKS: u64 = 1 << 24;

/// Largest schedule, MiB: twenty million operations as text.
const MOST_MIB: u64 = 1024;

/// Parses `64`, or `2-1M` as all powers of 2 from 2 on.
pub(super) fn ladder(text: &str) -> Result<Ladder, String> {
    let doubled = doublings(text, 2, MAX_RANKS);
    let doubled = doubled
        .ok_or_else(|| format!("'{text}' is not a number of ranks from 2 to 16M, or a range such as 2-1M"))?;
    Ok(doubled.map(|ranks| ranks as u32).collect())
}

/// For `8-1M` all doublings of the first number up to the last, and the last; for `64` only that. `None` unless within `least` and `most`.
pub(in crate::command) fn doublings(
    text: &str,
    least: u64,
    most: u64,
) -> Option<impl Iterator<Item = u64> + use<>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ends = parse_bytes(first.trim()).zip(parse_bytes(last.trim()));
    let (first, last) = ends.filter(|(a, b)| least <= *a && a <= b && *b <= most)?;
    let doubled = std::iter::successors(Some(first), |n| n.checked_mul(2)).take_while(move |n| *n < last);
    Some(doubled.chain([last]))
}

/// Names of the rows of a table, for messages.
pub(in crate::command) fn names_of<T>(rows: &[T], name: fn(&T) -> &str) -> String {
    rows.iter().map(name).collect::<Vec<_>>().join(", ")
}

pub(super) fn read_schedule(path: &Path) -> Result<(Goal, String), Failure> {
    let bytes = bounded::read(path, MOST_MIB, "schedule").map_err(Failure::usage)?;
    let read = goal::read(&bytes).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let digest = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    Ok((read, digest))
}

/// The plan, which the shares of a simulation must have in common.
pub(super) fn plan(asked: &Asked, schedule: Option<&(Goal, String)>) -> Result<Value, Failure> {
    let (name, what) = match (&asked.pattern, schedule) {
        (Some(name), _) => {
            let info = find(name).ok_or_else(|| {
                let known = names_of(PATTERNS, |p| p.name);
                Failure::usage(format!("no pattern '{name}'")).help(format!("patterns: {known}"))
            })?;
            let what = json!({ "ranks": asked.ranks[..], "bytes": asked.bytes, "segment": asked.segment,
                "rounds": asked.rounds, "work_ns": asked.work });
            (info.name.to_owned(), what)
        }
        (None, Some((goal, digest))) => {
            let stem = asked.schedule.as_ref().and_then(|p| p.file_stem()).unwrap_or_default();
            (stem.to_string_lossy().into_owned(), json!({ "ranks": goal.ranks(), "sha256": digest }))
        }
        (None, None) => {
            return Err(Failure::usage("nothing to simulate")
                .help("give --pattern NAME, a file, or --merge RECORD..."));
        }
    };
    Ok(
        json!({ "pattern": name, "what": what, "dialect": asked.dialect, "runs": asked.noisy_runs, "coincident": asked.coincident }),
    )
}

/// Parameters of the link, and the machine on which they were measured.
pub(super) fn params(asked: &Asked, plan: &mut Value) -> Result<(Params, Host), Failure> {
    let (record, of) = link(asked)?;
    plan["on"] = json!(record.id);
    plan["link"] = json!(of.name);
    plan["segments"] = json!(format!("{:?}", of.params.segments()));
    plan["assumptions"] = json!(of.assumptions);
    Ok((of.params, record.machine))
}

/// The link in the record of costs.
pub(super) fn link(asked: &Asked) -> Result<(Record, OfLink), Failure> {
    let dialect = if asked.dialect == "loggopsim" { Dialect::LogGopSim } else { Dialect::Machmeter };
    let Some(on) = &asked.on else {
        return Err(
            Failure::usage("no costs for the simulation").help("give --on RUN, a run of machmeter net")
        );
    };
    let (record, _) = report::located(on)?;
    let of = of_record(&record, asked.link.as_deref(), dialect)
        .map_err(|e| Failure::usage(format!("--on {}: {e}", on.display())))?;
    Ok((record, of))
}

pub(in crate::command) fn machine(noise: &str, plan: &mut Value) -> Result<Machine, Failure> {
    let wrong = |e: String| Failure::usage(format!("--noise {noise}: {e}"));
    if noise.contains('=') && !Path::new(noise).exists() {
        plan["noise"] = json!(noise);
        return described(noise).map_err(wrong);
    }
    let (record, tables) = report::with_tables(Path::new(noise))?;
    plan["noise"] = json!(record.id);
    Machine::recorded(&tables).map_err(|e| wrong(e).help("record the gaps with machmeter noise --raw all"))
}

/// Parses `period=1ms,duration=10us`, or `rate=100,duration=10us,exponential`.
pub(super) fn described(text: &str) -> Result<Machine, String> {
    let (mut period_ns, mut rate, mut duration_ns, mut exponential) = (None, None, None, false);
    for word in text.split(',') {
        match word.split_once('=') {
            Some(("period", t)) => period_ns = Some(parse_duration_ns(t)?),
            Some(("duration", t)) => duration_ns = Some(parse_duration_ns(t)?),
            Some(("rate", t)) => {
                let parsed = t.parse::<f64>().ok().filter(|r| (1e-3..=1e9).contains(r));
                rate =
                    Some(parsed.ok_or_else(|| format!("'{t}' is not a rate per second from 0.001 to 1e9"))?);
            }
            None if word == "exponential" => exponential = true,
            _ => return Err(format!("'{word}' is not one of period=, rate=, duration=, exponential")),
        }
    }
    let duration_ps = duration_ns.ok_or("duration= is missing")?.saturating_mul(1000);
    match (period_ns, rate) {
        (Some(ns), None) if !exponential => Machine::periodic(ns.saturating_mul(1000), duration_ps),
        (None, Some(rate)) => Machine::random((1e12 / rate) as u64, duration_ps, exponential),
        _ => Err("give period=, or rate= (with exponential for exponential durations)".to_owned()),
    }
}

pub(super) fn title(plan: &mut Value, asked: &Asked, noise: Option<&Machine>) {
    let text = |key: &str| plan[key].as_str().unwrap_or_default().to_owned();
    let size = if asked.pattern.is_some() { format!(" of {} B", asked.bytes) } else { String::new() };
    let mut title = format!("{}{size} on {}", text("pattern"), of_link(asked, &text("link")));
    if let (Some(machine), Some(name)) = (noise, &asked.noise) {
        title.push_str(&format!("; {}, {} runs", taken(machine, name), asked.noisy_runs));
    }
    plan["title"] = json!(title);
}

/// `the link 'shm there' of net.json`.
pub(super) fn of_link(asked: &Asked, link: &str) -> String {
    let on = asked.on.as_ref().map_or_else(String::new, |p| p.display().to_string());
    format!("the link '{link}' of {on}")
}

/// `noise of vm.json, 2 CPUs, 1.94 % taken`.
pub(in crate::command) fn taken(machine: &Machine, name: &str) -> String {
    let cpus = machine.cpus.len();
    let share = machine.cpus.iter().map(Trace::share).sum::<f64>() / cpus.max(1) as f64;
    format!("noise of {name}, {cpus} CPUs, {} taken", human(share, Unit::One))
}

pub(super) fn what<'a>(asked: &Asked, schedule: Option<&'a Goal>) -> Result<What<'a>, Failure> {
    if let Some(goal) = schedule {
        return Ok(What::Schedule(goal));
    }
    let info = asked.pattern.as_deref().and_then(find).ok_or_else(|| Failure::usage("no pattern"))?;
    let shape = Shape { ranks: 2, bytes: asked.bytes, segment_bytes: asked.segment, seed: 1 };
    let calculation_ps = asked.work.saturating_mul(1000);
    let what = What::Pattern { info, shape, rounds: asked.rounds, calculation_ps };
    let last = asked.ranks[asked.ranks.len() - 1];
    if what.operations_of_rank(last) > u64::from(u32::MAX / 2) {
        let (name, rounds) = (info.name, asked.rounds);
        let text = format!("{name} at {last} ranks in {rounds} rounds: more than 2^31 operations per rank");
        return Err(Failure::usage(text).help("use fewer ranks, rounds or segments"));
    }
    Ok(what)
}
