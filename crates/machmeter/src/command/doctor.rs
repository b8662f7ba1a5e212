//! `machmeter doctor`: is this machine fit to be measured? Looks, and changes nothing.

use std::time::Duration;

use clap::{ArgMatches, Command};
use machmeter_data::record::SummaryLine;
use machmeter_data::{Check, CheckState, Facts, Hazard};
use machmeter_doctor::{self as doctor, ClockInput, Inputs, Live, live};
use machmeter_engine::Deadline;
use machmeter_report::terminal::TerminalStyle;
use machmeter_sys::clock::{Qualification, qualify};
use machmeter_sys::topology::CpuSet;
use machmeter_sys::{facts, guard, thread};

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::session::{self, empty_record};
use crate::{output, view};

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "doctor", define, run };

/// Time between the two captures when none is given, ns.
const BETWEEN_NS: u64 = 1_500_000_000;
const SAMPLE: Duration = Duration::from_millis(200);

fn define() -> Command {
    Command::new(ENTRY.name).about("Is this machine fit to be measured? Changes nothing").long_about(
        "Checks clock, load, power management, virtualization, kernel settings, memory and rights, and says for each what was \
         seen, what it hurts, and what to do. What could not be seen is unknown, never a pass. -v shows passed checks too; \
         `machmeter explain CODE` tells more. Judging steal and interrupts needs about 4 s between captures: -t 5.",
    )
}

fn run(_registries: &Registries, globals: &Globals, _matches: &ArgMatches) -> Result<Exit, Failure> {
    guard::signals::install().map_err(Failure::cannot)?;
    let budget = Deadline::start(globals.time.unwrap_or(BETWEEN_NS));
    let (_, _, cpus) = session::cpus(&globals.cpus)?;
    let before = facts::capture();
    let clock = qualify(&cpus.to_vec()).map_err(Failure::cannot)?;
    let sampled = live::sample(SAMPLE);
    while !budget.over() {
        thread::nanosleep_until(thread::monotonic_ns() + budget.left_ns().min(100_000_000));
    }
    let after = facts::capture();
    let found = all(&before, &after, &clock, &cpus, Some(&sampled));
    let verdict = doctor::verdict(&found);
    let worst = found.iter().map(|c| c.state);
    let exit = if worst.clone().any(|s| s == CheckState::Fail) { Exit::Inconclusive } else { Exit::Fine };
    let text = if globals.json.is_some() {
        let mut record = empty_record();
        record.complete = true;
        "done".clone_into(&mut record.stopped_by);
        "doctor".clone_into(&mut record.run.verb);
        record.run.wall_ns = budget.spent_ns();
        record.clock = Some(machmeter_engine::host::clock_record(&clock));
        record.checks = found;
        let lines = vec![verdict.to_string()];
        record.summary.lines.push(SummaryLine { section: "DOCTOR".to_owned(), lines });
        record.machine.changed = before.changed(&after);
        (record.machine.before, record.machine.after) = (before, after);
        machmeter_store::json::to_string(&record).map_err(Failure::cannot)?
    } else {
        page(&found, &verdict.to_string(), globals)
    };
    let target = globals.json.as_ref().filter(|p| p.as_os_str() != "-");
    match target {
        Some(path) => machmeter_store::text::write(path, &text).map_err(Failure::cannot)?,
        None => output::print(&text).map_err(|e| Failure::cannot(format!("stdout: {e}")))?,
    }
    Ok(guard::stop_requested().map_or(exit, Exit::from))
}

/// All checks for a run between two captures.
pub(crate) fn all(
    before: &Facts,
    after: &Facts,
    clock: &Qualification,
    cpus: &CpuSet,
    live: Option<&Live>,
) -> Vec<Check> {
    let clock = ClockInput::from(clock);
    doctor::run(&Inputs { facts: before, later: Some(after), clock: Some(&clock), live, for_cpus: cpus })
}

fn page(found: &[Check], verdict: &str, globals: &Globals) -> String {
    let style = view::style(globals);
    let mut text = String::new();
    let mut hidden = 0;
    let rank = |s: CheckState| match s {
        CheckState::Fail => 0,
        CheckState::Warn => 1,
        CheckState::Unknown => 2,
        CheckState::NotApplicable => 3,
        CheckState::Pass => 4,
    };
    let mut sorted: Vec<&Check> = found.iter().collect();
    sorted.sort_by_key(|c| (rank(c.state), c.id.clone()));
    for c in sorted {
        if globals.verbose == 0 && matches!(c.state, CheckState::Pass | CheckState::NotApplicable) {
            hidden += 1;
            continue;
        }
        text.push_str(&line(c, &style));
    }
    if hidden > 0 {
        text.push_str(&format!(" ...   {hidden} more pass or cannot apply here (-v shows them)\n"));
    }
    text.push_str(&format!(" {verdict}\n"));
    text
}

/// A check as a line and, for what is not a pass, what it hurts and what to do.
fn line(c: &Check, style: &TerminalStyle) -> String {
    let (word, color) = match c.state {
        CheckState::Pass => ("PASS", "32"),
        CheckState::Warn => ("WARN", "33"),
        CheckState::Fail => ("FAIL", "31"),
        CheckState::Unknown => ("?   ", "36"),
        CheckState::NotApplicable => ("n/a ", "2"),
    };
    let word = if style.color { format!("\x1b[{color}m{word}\x1b[0m") } else { word.to_owned() };
    let limit = c.limit.as_ref().map_or(String::new(), |l| format!("  (limit {l})"));
    let mut text = format!(" {word}  {} {:<12} {}{limit}\n", c.id, c.name, c.observed);
    if matches!(c.state, CheckState::Warn | CheckState::Fail | CheckState::Unknown) {
        if c.state != CheckState::Unknown {
            text.push_str(&format!("{:25}weakens: {}\n", "", Hazard::names(&c.hazards)));
        }
        if let Some(next) = &c.next {
            text.push_str(&format!("{:25}next: {next}\n", ""));
        }
        if let Some(undo) = &c.undo {
            text.push_str(&format!("{:25}undo: {undo}\n", ""));
        }
    }
    text
}
