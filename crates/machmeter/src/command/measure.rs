//! Measuring: one probe by its verb, or the one-page characterization.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use machmeter_compare::include_earlier;
use machmeter_data::record::{Record, SummaryLine};
use machmeter_data::{CheckState, Metric, Table};
use machmeter_engine::part::run_together;
use machmeter_engine::probe::{Command, Destination, Outcome, Output, Page, Parameters, page_share_ns};
use machmeter_engine::{Entry, Host, ProbeError};
use machmeter_report::usual;
use machmeter_store::{date, history, json, text};
use machmeter_sys::guard::signals;

use super::reference;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Globals, Raw};
use crate::job;
use crate::output;
use crate::past;
use crate::progress::Reporter;
use crate::session::{self, CHARACTERIZE, Session, warning};
use crate::view;

/// Above this many rows, raw samples are stored only when asked for.
const MANY_ROWS: usize = 5_000_000;
/// Pages of at least this length look at what else runs on the machine, ns.
const LOOK_AROUND_FROM_NS: u64 = 5_000_000_000;
/// Earlier runs that are asked for what differs between runs, at most.
const ASK_RUNS: usize = 16;
/// Records that are opened to find them, at most: a tenth of a second.
const ASK_FILES: usize = 50;
const KEEP_RUNS: usize = 200;
/// Of their records and samples together.
const KEEP_BYTES: u64 = 1 << 30;

/// `machmeter PROBE`.
pub(crate) fn probe(
    registries: &Registries,
    entry: &'static Entry,
    globals: &Globals,
    matches: &ArgMatches,
) -> Result<Exit, Failure> {
    let given = Parameters::Given(matches);
    let by_level_ns = (entry.default_ns)(&given, globals.level)?;
    if !globals.dry_run
        && let Some(done) = (entry.attend)(&given)?
    {
        return Ok(if done { Exit::Fine } else { Exit::CannotMeasure });
    }
    let done = measured(registries, entry, globals, &given, by_level_ns);
    if done.is_err() {
        (entry.give_up)(&given)?;
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
) -> Result<Exit, Failure> {
    let destinations = (entry.destinations)(given)?;
    writable(&destinations)?;
    let total_ns = globals.time.unwrap_or(by_level_ns);
    let session = Session::begin(registries, globals, total_ns)?;
    let reporter = reporter(&session, globals, total_ns);
    let budget_ns = session.budget().left_ns();
    let Some(outcome) = session.run(budget_ns, &reporter, |host| (entry.run)(host, given))? else {
        let commands = (entry.commands)(given)?;
        return plan(globals, total_ns, &[entry.info.name], &effects(&commands, &destinations), &[]);
    };
    drop(reporter);
    Ok(finish(session, entry.info.name, vec![(entry, outcome)], globals, None))
}

fn reporter(session: &Session<'_>, globals: &Globals, total_ns: u64) -> Reporter {
    Reporter::new(globals, view::style(globals).width, total_ns, session.cpus())
}

/// Bare `machmeter`.
pub(crate) fn page(registries: &Registries, globals: &Globals) -> Result<Exit, Failure> {
    let total_ns = globals.time.unwrap_or(globals.level.page_seconds() * 1_000_000_000);
    let parts = match &globals.job {
        Some(path) => job::load(registries, path)?,
        None => job::everything(registries),
    };
    let names: Vec<&str> = parts.iter().map(|p| p.0.info.name).collect();
    let commands = job::commands(&parts)?;
    if let Some(first) = commands.first().filter(|_| !globals.allow_commands && !globals.dry_run) {
        return Err(Failure::usage(format!("the job runs a command: {first}"))
            .help("look at what it runs with --dry-run; give --allow-commands if that is wanted"));
    }
    let destinations = job::destinations(&parts)?;
    if let Some(first) = destinations.first().filter(|_| !globals.allow_commands && !globals.dry_run) {
        return Err(Failure::usage(format!("the job writes a file: {first}"))
            .help("look at what it writes with --dry-run; give --allow-commands if that is wanted"));
    }
    writable(&destinations)?;
    let mut session = Session::begin(registries, globals, total_ns)?;
    if total_ns >= LOOK_AROUND_FROM_NS && !globals.dry_run {
        session.look_around();
    }
    if !globals.quiet {
        output::say(&format!(
            "machmeter {}: {} s in {} part{} on CPU {}",
            env!("CARGO_PKG_VERSION"),
            total_ns / 1_000_000_000,
            names.len(),
            if names.len() == 1 { "" } else { "s" },
            session.cpus()
        ));
    }
    let reporter = reporter(&session, globals, total_ns);
    let (mut outcomes, mut refused) = (Vec::new(), Vec::new());
    // What a job names must be had.
    let mut planned = false;
    let mut keep = |indexes: &[usize], measured: Result<Option<Vec<Outcome>>, Failure>| match measured {
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
        // What parameters of a job need is not known before.
        let needs = |i: &usize| {
            let page = parts[*i].0.page;
            if globals.job.is_none() { (page.least_ns, page.weight) } else { (0, Page::EQUAL) }
        };
        let needs: Vec<(u64, u64)> = alone[n..].iter().chain(&pooled).map(needs).collect();
        let budget_ns = page_share_ns(session.budget().left_ns().saturating_sub(planned_ns), &needs);
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
        keep(&pooled, session.run(session.budget().left_ns(), &reporter, run))?;
    }
    drop(reporter);
    outcomes.sort_by_key(|(i, _)| *i);
    let outcomes: Vec<(&Entry, Outcome)> = outcomes.into_iter().map(|(i, o)| (parts[i].0, o)).collect();
    // One part that cannot be had must not cost the others; if there are no others, it is the failure.
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
    let name = globals.name.clone().unwrap_or_else(|| host_name().unwrap_or_else(|| "machine".to_owned()));
    let name = file_name(&name);
    // No name stands twice in that of a file.
    let name = name
        .strip_prefix("machmeter")
        .filter(|n| n.is_empty() || n.starts_with('-'))
        .map_or(format!("-{name}"), str::to_owned);
    let stem = format!("machmeter{name}-{}", date::now_stamp());
    Ok(finish(session, CHARACTERIZE, outcomes, globals, Some(stem.as_str()).filter(|_| globals.runs == 1)))
}

/// Record and report in this directory under `stem`, or under `stem-2`, `stem-3` and so on when runs of the same second have
/// that. An empty record holds the place.
fn free_files(stem: &str) -> [PathBuf; 2] {
    for n in 1..1000 {
        let stem = if n == 1 { stem.to_owned() } else { format!("{stem}-{n}") };
        let files = ["json", "html"].map(|e| PathBuf::from(format!("{stem}.{e}")));
        if files[1].symlink_metadata().is_ok() {
            continue;
        }
        match File::create_new(&files[0]) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            // What else is wrong is told when the record is written.
            _ => return files,
        }
    }
    // No second has a thousand runs; a name that nobody else chooses all the same.
    ["json", "html"].map(|e| PathBuf::from(format!("{stem}-{}.{e}", std::process::id())))
}

/// Refuses files that could not be written now.
fn writable(destinations: &[Destination]) -> Result<(), Failure> {
    destinations.iter().try_for_each(|d| text::could_write(&d.path).map_err(Failure::usage))
}

/// What a run would do beside measuring.
fn effects(commands: &[Command], destinations: &[Destination]) -> Vec<String> {
    let runs = commands.iter().map(|c| format!("runs {c}"));
    runs.chain(destinations.iter().map(|d| format!("writes {d}"))).collect()
}

/// Says what a run would do.
pub(super) fn plan(
    globals: &Globals,
    total_ns: u64,
    parts: &[&str],
    effects: &[String],
    refused: &[(String, Failure)],
) -> Result<Exit, Failure> {
    let (_, allowed, cpus) = session::cpus(&globals.cpus)?;
    let mut text = format!(
        "plan: {} s, parts: {}; CPUs {cpus} of {allowed}, policy {}, level {}",
        total_ns as f64 / 1e9,
        parts.join(", "),
        globals.prio,
        globals.level
    );
    for effect in effects {
        text.push_str(&format!("; {effect}"));
    }
    for (part, failure) in refused {
        text.push_str(&format!("; without {part}: {}", failure.what));
    }
    if globals.json.is_none() {
        output::print(&text).map_err(Failure::cannot)?;
        return Ok(Exit::Fine);
    }
    // A reader of JSON gets a record in every outcome: this one holds the plan and no figure.
    let mut record = session::empty_record();
    "plan".clone_into(&mut record.stopped_by);
    globals.level.name().clone_into(&mut record.run.level);
    record.run.seed = globals.seed;
    record.run.tags = globals.tag.iter().cloned().collect();
    let lines = text.lines().map(str::to_owned).collect();
    record.summary.lines.push(SummaryLine { section: "PLAN".to_owned(), lines });
    Ok(output::tell(&view::show(&record, &[], globals, &[])))
}

fn host_name() -> Option<String> {
    machmeter_sys::facts::capture().text("private.hostname").map(str::to_owned)
}

/// Its beginning, where it is longer than files are named.
fn file_name(name: &str) -> String {
    name.chars()
        .take(100)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .collect()
}

/// Ends the session, stores the record everywhere it was asked for, shows it, and chooses the exit code. What fails to be
/// written in one place is still written in the others.
fn finish(
    session: Session<'_>,
    verb: &str,
    mut outcomes: Vec<(&Entry, Outcome)>,
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
    let (mut record, tables) = session.end(verb, outcomes);
    // Nobody who asked for an end waits for the history.
    if let Ok(history) = &history
        && signals::stop_requested().is_none()
        && record.metrics.iter().any(&lasting)
    {
        let earlier = past::like(history, &record, ASK_RUNS, ASK_FILES);
        include_earlier(&mut record, &earlier, lasting);
        for figure in record.summary.rows.iter_mut().flat_map(|r| &mut r.figures) {
            let of = |r: &Record| Some(figure.find(&r.metrics)?.value);
            figure.earlier = earlier.iter().rev().filter_map(of).collect();
        }
    }
    usual::fill(&reference::grown(), &mut record);
    let rows: usize = tables.iter().map(Table::rows).sum();
    let is_kept = globals.raw == Raw::All || (globals.raw == Raw::Auto && rows <= MANY_ROWS);
    let tables = if is_kept { tables } else { Vec::new() };
    let (made, mut trouble) = write_outputs(&mut record, outputs);
    let (mut saved, troubled) = write_all(&mut record, &tables, stem, &globals.output);
    saved.splice(..0, made);
    trouble.extend(troubled);
    if !globals.no_save {
        let kept = history.and_then(|h| {
            let kept = h.save(&mut record, &tables).map_err(|e| e.to_string());
            let _ = h.prune(KEEP_RUNS, KEEP_BYTES);
            kept
        });
        match kept {
            Ok(s) => {
                if globals.runs > 1 || (stem.is_none() && globals.output.is_empty()) {
                    saved.push(format!("run {} (machmeter report last)", s.name));
                }
            }
            Err(e) => record.warn(warning(
                "W901",
                format!("the run was not kept in the history: {e}"),
                "make the state directory writable, name a file with -o, or give --no-save",
            )),
        }
    }
    if globals.runs > 1 {
        trouble.extend(saved.iter().filter_map(|name| output::print(&format!("saved {name}")).err()));
    } else {
        trouble.extend(view::show(&record, &tables, globals, &saved));
    }
    // Codes of signals promise that the result was saved.
    match (output::tell(&trouble), signals::stop_requested()) {
        (Exit::Fine, None) => exit(&record, globals),
        (Exit::Fine, Some(signal)) => signal.into(),
        (failed, _) => failed,
    }
}

/// Writes the files that parameters ask for: what was written, and what went wrong.
fn write_outputs(record: &mut Record, outputs: Vec<Output>) -> (Vec<String>, Vec<String>) {
    let (mut saved, mut trouble) = (Vec::new(), Vec::new());
    for Output { path, content } in outputs {
        let written = content
            .map_err(|why| format!("{}: not written: {why}", path.display()))
            .and_then(|bytes| text::write(&path, &bytes).map(|()| bytes.len()).map_err(|e| e.to_string()));
        match written {
            Ok(bytes) => {
                record.run.side_effects.push(format!("wrote {:?}", path.to_string_lossy()));
                saved.push(format!("{} ({} kB)", path.display(), bytes.div_ceil(1000)));
            }
            Err(e) => trouble.push(e),
        }
    }
    (saved, trouble)
}

/// Writes the files of `stem` and those asked for: what was written, and what went wrong.
fn write_all(
    record: &mut Record,
    tables: &[Table],
    stem: Option<&str>,
    asked_for: &[PathBuf],
) -> (Vec<String>, Vec<String>) {
    let (mut saved, mut trouble) = (Vec::new(), Vec::new());
    let files = stem.map(free_files);
    for path in files.iter().flatten().chain(asked_for) {
        match write(record, tables, path) {
            Ok(name) => saved.push(name),
            Err(e) => trouble.push(e),
        }
    }
    // Record and report of one stem are one line.
    if let (Some([json, html]), [record, report, ..]) = (&files, saved.as_slice())
        && let Some(rest) = report.strip_prefix(&html.display().to_string())
        && record.starts_with(&json.display().to_string())
    {
        let line = format!("{record}, .html{rest}");
        saved.splice(..2, [line]);
    }
    if let Some([held, _]) = &files
        && held.metadata().is_ok_and(|m| m.len() == 0)
    {
        let _ = std::fs::remove_file(held);
    }
    (saved, trouble)
}

/// Writes one file in the form its ending asks for; names it.
fn write(record: &mut Record, tables: &[Table], path: &Path) -> Result<String, String> {
    let ending = view::ending(path, "json").unwrap_or("json");
    let mut beside = String::new();
    if ending == "json" {
        match history::save_as(record, tables, path) {
            Ok(saved) if saved.raw.is_empty() => {}
            Ok(saved) => beside = format!(", {} raw tables beside it", saved.raw.len()),
            Err(e) if tables.is_empty() => return Err(e.to_string()),
            // The figures are worth more than the samples: without room for all, keep the record.
            Err(e) => {
                json::write(record, path).map_err(|again| again.to_string())?;
                let text = format!("raw samples were not stored: {e}");
                record.warn(warning("W902", text, "free space, or give --raw none"));
            }
        }
    } else {
        text::write(path, &view::render(ending, record)?).map_err(|e| e.to_string())?;
    }
    let size = path.metadata().map_or(String::new(), |m| format!(" ({} kB)", m.len().div_ceil(1000)));
    Ok(format!("{}{size}{beside}", path.display()))
}

/// The exit code of a run that was not stopped and is written.
fn exit(record: &Record, globals: &Globals) -> Exit {
    if globals.strict && record.checks.iter().any(|c| c.state == CheckState::Fail) {
        return Exit::Inconclusive;
    }
    if record.complete { Exit::Fine } else { Exit::Partial }
}
