//! Measures: one probe for its verb, or all probes for the one-page characterization.
//!
//! A session (see [`crate::session`]) captures the machine, runs the probes within the time limit, and makes the record.

use clap::ArgMatches;
use machmeter_compare::include_earlier;
use machmeter_data::Metric;
use machmeter_data::record::{Record, SummaryLine};
use machmeter_engine::part::run_together;
use machmeter_engine::probe::{Command, Destination, Outcome, Output, Page, Parameters, page_share_ns};
use machmeter_engine::{Entry, Host, ProbeError};
use machmeter_store::{atomic, date};
use machmeter_sys::guard::signals;

use super::keep::keep;
use crate::progress::Reporter;
use crate::session::{self, CHARACTERIZE, Session};
use crate::{Exit, Failure, Globals, Registries, Result, job, output, state, view};

/// Runs of at least this length also sample the other programs on the machine, ns.
const LOOK_AROUND_FROM_NS: u64 = 5_000_000_000;
/// Most earlier runs used for the variation between runs.
const ASK_RUNS: usize = 16;
/// Most records opened to find them; this takes about a tenth of a second.
const ASK_FILES: usize = 50;

/// `machmeter PROBE`.
pub(crate) fn probe(
    registries: &Registries,
    entry: &'static Entry,
    globals: &Globals,
    matches: &ArgMatches,
) -> Result<Exit> {
    let given = Parameters::Given(matches);
    let by_level_ns = (entry.default_ns)(&given, globals.level)?;
    attended(entry, &given, globals.dry_run, || measured(registries, entry, globals, &given, by_level_ns))
}

/// Returns the result of `measured`, unless this process assists another one that measures. A dry run never assists.
pub(crate) fn attended(
    entry: &Entry,
    given: &Parameters<'_>,
    dry_run: bool,
    measured: impl FnOnce() -> Result<Exit>,
) -> Result<Exit> {
    if !dry_run && let Some(done) = (entry.attend)(given)? {
        return Ok(if done { Exit::Fine } else { Exit::CannotMeasure });
    }
    let done = measured();
    if done.is_err() {
        (entry.give_up)(given)?;
    }
    done
}

/// Measures in a session of this process.
fn measured(
    registries: &Registries,
    entry: &'static Entry,
    globals: &Globals,
    given: &Parameters<'_>,
    by_level_ns: u64,
) -> Result<Exit> {
    let destinations = (entry.destinations)(given)?;
    writable(&destinations)?;
    let total_ns = globals.time.unwrap_or(by_level_ns);
    let session = Session::begin(registries, globals, total_ns)?;
    let reporter = reporter(&session, globals, total_ns);
    let budget_ns = session.budget.left_ns();
    let Some(outcome) = session.run(budget_ns, &reporter, |host| (entry.run)(host, given))? else {
        let commands = (entry.commands)(given)?;
        return plan(globals, total_ns, &[entry.info.name], &effects(&commands, &destinations), &[]);
    };
    drop(reporter);
    Ok(finish(session, entry.info.name, vec![(entry, outcome)], globals, None))
}

fn reporter(session: &Session<'_>, globals: &Globals, total_ns: u64) -> Reporter {
    Reporter::new(globals, view::style(globals).width, total_ns, &session.cpus)
}

/// Runs bare `machmeter`.
pub(crate) fn page(registries: &Registries, globals: &Globals) -> Result<Exit> {
    let total_ns = globals.time.unwrap_or(globals.level.page_seconds() * 1_000_000_000);
    let parts = match &globals.job {
        Some(path) => job::load(registries, path)?,
        None => job::everything(registries),
    };
    let names: Vec<&str> = parts.iter().map(|p| p.0.info.name).collect();
    let (commands, destinations) = job::asked_for(&parts)?;
    let runs = commands.first().map(|first| ("runs", format!("a command: {first}")));
    let writes = destinations.first().map(|first| ("writes", format!("a file: {first}")));
    if let Some((does, what)) = runs.or(writes).filter(|_| !globals.allow_commands && !globals.dry_run) {
        let help = "with --dry-run, then give --allow-commands";
        return Err(
            Failure::usage(format!("the job {does} {what}")).help(format!("check what it {does} {help}"))
        );
    }
    writable(&destinations)?;
    let mut session = Session::begin(registries, globals, total_ns)?;
    if total_ns >= LOOK_AROUND_FROM_NS && !globals.dry_run {
        session.look_around();
    }
    let (version, total_s, n) = (env!("CARGO_PKG_VERSION"), total_ns / 1_000_000_000, names.len());
    let parts_of = if n == 1 { "part" } else { "parts" };
    globals.say(&format!("machmeter {version}: {total_s} s in {n} {parts_of} on CPU {}", session.cpus));
    let reporter = reporter(&session, globals, total_ns);
    let (mut outcomes, mut refused) = (Vec::new(), Vec::new());
    // A part of a job file that cannot be measured is an error.
    let mut planned = false;
    let mut keep = |indexes: &[usize], measured: Result<Option<Vec<Outcome>>>| match measured {
        Ok(found) => {
            planned |= found.is_none();
            let found = found.unwrap_or_default();
            indexes.iter().zip(&found).for_each(|(i, outcome)| reporter.ended(parts[*i].0, outcome));
            outcomes.extend(indexes.iter().copied().zip(found));
            Ok(())
        }
        Err(failure) if globals.job.is_some() => Err(failure),
        Err(failure) => {
            refused.push((indexes.iter().map(|i| names[*i]).collect::<Vec<_>>().join(", "), failure));
            Ok(())
        }
    };
    let (pooled, alone): (Vec<usize>, Vec<usize>) =
        (0..parts.len()).partition(|i| parts[*i].0.pooled.is_some());
    let mut planned_ns = 0;
    for (n, i) in alone.iter().enumerate() {
        let (entry, parameters) = &parts[*i];
        // The needs of a job's parameters are unknown in advance.
        let needs = |i: &usize| {
            let page = parts[*i].0.page;
            if globals.job.is_none() { (page.least_ns, page.weight) } else { (0, Page::EQUAL) }
        };
        let needs: Vec<(u64, u64)> = alone[n..].iter().chain(&pooled).map(needs).collect();
        let budget_ns = page_share_ns(session.budget.left_ns().saturating_sub(planned_ns), &needs);
        planned_ns += if globals.dry_run { budget_ns } else { 0 };
        let run =
            |host: &Host<'_>| (entry.run)(host, &Parameters::Job(parameters)).map(|outcome| vec![outcome]);
        keep(&[*i], session.run(budget_ns, &reporter, run))?;
    }
    if !pooled.is_empty() {
        let ready = |i: &usize| {
            let (entry, parameters) = &parts[*i];
            let pool = entry.pooled?;
            Some(pool(parameters).map(|verb| (verb, entry.page.weight)))
        };
        let verbs: Result<Vec<_>, ProbeError> = pooled.iter().filter_map(ready).collect();
        let run = |host: &Host<'_>| run_together(host, &verbs?);
        keep(&pooled, session.run(session.budget.left_ns(), &reporter, run))?;
    }
    drop(reporter);
    outcomes.sort_by_key(|(i, _)| *i);
    let outcomes: Vec<(&Entry, Outcome)> = outcomes.into_iter().map(|(i, o)| (parts[i].0, o)).collect();
    // A failed part must not affect the rest. Without any result, the last failure is returned.
    if outcomes.is_empty()
        && !planned
        && let Some((_, failure)) = refused.pop()
    {
        return Err(failure);
    }
    if planned {
        return plan(globals, total_ns, &names, &effects(&commands, &destinations), &refused);
    }
    for (part, failure) in &refused {
        session.leave_out(part, &failure.what);
    }
    let host = || machmeter_sys::facts::capture().text("private.hostname").map(str::to_owned);
    let name = file_name(&globals.name.clone().or_else(host).unwrap_or_else(|| "machine".to_owned()));
    // Keeps the word from occurring twice in the file name.
    let name = name
        .strip_prefix("machmeter")
        .filter(|n| n.is_empty() || n.starts_with('-'))
        .map_or(format!("-{name}"), str::to_owned);
    let stem = format!("machmeter{name}-{}", date::now_stamp());
    // Named files replace those of this directory.
    let has_stem = globals.runs == 1 && globals.output.is_empty();
    Ok(finish(session, CHARACTERIZE, outcomes, globals, has_stem.then_some(stem.as_str())))
}

/// Rejects files that cannot be written.
fn writable(destinations: &[Destination]) -> Result<()> {
    destinations.iter().try_for_each(|d| atomic::could_replace(&d.what).map_err(Failure::usage))
}

/// Side effects of a run: commands and files.
fn effects(commands: &[Command], destinations: &[Destination]) -> Vec<String> {
    let runs = commands.iter().map(|c| format!("runs {c}"));
    runs.chain(destinations.iter().map(|d| format!("writes {d}"))).collect()
}

/// Prints the plan of a run.
pub(super) fn plan(
    globals: &Globals,
    total_ns: u64,
    parts: &[&str],
    effects: &[String],
    refused: &[(String, Failure)],
) -> Result<Exit> {
    let (_, allowed, cpus) = session::cpus(&globals.cpus)?;
    let (total_s, parts) = (total_ns as f64 / 1e9, parts.join(", "));
    let Globals { prio, level, .. } = globals;
    let mut text =
        format!("plan: {total_s} s, parts: {parts}; CPUs {cpus} of {allowed}, policy {prio}, level {level}");
    for effect in effects {
        text.push_str(&format!("; {effect}"));
    }
    for (part, failure) in refused {
        text.push_str(&format!("; without {part}: {}", failure.what));
    }
    planned(globals, &text)
}

/// Prints a plan of one line, or as a record under `--json`.
pub(super) fn planned(globals: &Globals, text: &str) -> Result<Exit> {
    if globals.json.is_none() {
        output::print(text).map_err(Failure::cannot)?;
        return Ok(Exit::Fine);
    }
    // `--json` gives a record in every outcome; this one has the plan and no figures.
    let mut record = session::empty_record();
    "plan".clone_into(&mut record.stopped_by);
    globals.level.name().clone_into(&mut record.run.level);
    record.run.seed = globals.seed;
    record.run.tags = globals.tag.iter().cloned().collect();
    let lines = text.lines().map(str::to_owned).collect();
    record.summary.lines.push(SummaryLine { section: "PLAN".to_owned(), lines });
    Ok(output::tell(&view::show(&record, &[], globals, &[])))
}

/// The name with safe characters only, cut to 100 characters.
fn file_name(name: &str) -> String {
    name.chars()
        .take(100)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .collect()
}

/// Ends the session with the outcomes of the probes, includes the variation of earlier runs, and keeps the record.
fn finish(
    session: Session<'_>,
    verb: &str,
    mut outcomes: Vec<(&'static Entry, Outcome)>,
    globals: &Globals,
    stem: Option<&str>,
) -> Exit {
    let outputs: Vec<Output> = outcomes.iter_mut().flat_map(|o| std::mem::take(&mut o.1.outputs)).collect();
    let history = session.history.clone();
    let probes: Vec<&Entry> = outcomes.iter().map(|(e, _)| *e).collect();
    let lasting = |m: &Metric| {
        let reports = |e: &&&Entry| e.info.metrics().any(|i| i.id == m.id);
        probes.iter().find(reports).is_some_and(|e| (e.info.lasting)(m))
    };
    let (mut record, tables) = session.end(verb, outcomes.into_iter().map(|(e, o)| (e.info, o)).collect());
    // After a stop request, the run does not read the history.
    if let Ok(history) = &history
        && signals::stop_requested().is_none()
        && record.metrics.iter().any(&lasting)
    {
        let earlier = state::like(history, &record, ASK_RUNS, ASK_FILES);
        include_earlier(&mut record, &earlier, lasting);
        for figure in record.summary.rows.iter_mut().flat_map(|r| &mut r.figures) {
            let of = |r: &Record| Some(figure.find(&r.metrics)?.value);
            figure.earlier = earlier.iter().rev().filter_map(of).collect();
        }
    }
    keep(record, tables, history, outputs, stem, globals)
}
