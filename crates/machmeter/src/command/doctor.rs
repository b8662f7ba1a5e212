//! `machmeter doctor`: checks whether this machine is fit to be measured. It changes nothing.
//!
//! It captures facts twice, qualifies the clock, samples other processes, runs the checks of [`machmeter_doctor`], and prints a page or a record.

use std::path::Path;
use std::time::Duration;

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_data::CheckState::{self, Fail, NotApplicable, Pass, Unknown, Warn};
use machmeter_data::record::SummaryLine;
use machmeter_data::{Check, Facts, Hazard};
use machmeter_doctor::{self as doctor, ClockInput, Inputs, Live, live};
use machmeter_engine::Deadline;
use machmeter_report::terminal::{self, TerminalStyle, printable, push_wrapped};
use machmeter_sys::clock::{Qualification, qualify};
use machmeter_sys::mpi::{Flavor, Installed, installed};
use machmeter_sys::topology::CpuSet;
use machmeter_sys::{facts, guard, thread};

use super::measure;
use crate::globals::time;
use crate::session::{self, empty_record};
use crate::{Exit, Failure, Globals, Registries, Result, output, view};

const SAMPLE: Duration = Duration::from_millis(200);

/// Check whether this machine is fit to be measured; changes nothing
///
/// Checks clock, load, power management, virtualization, kernel settings, memory and permissions, and prints one line per problem. A check
/// without evidence is unknown, never a pass. -v shows all checks, the figures that they weaken, and what to do; `machmeter explain CODE`
/// explains one. Steal and interrupts need about 4 s between captures: --between 5. Checks the allowed CPUs only:
/// `taskset -c 2-3 machmeter doctor`.
#[derive(Args)]
pub(super) struct Asked {
    /// Time between the two captures
    #[arg(long = "between", value_name = "DUR", default_value = "1500ms", value_parser = time)]
    between_ns: u64,
}

pub(super) fn run(_: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let Asked { between_ns } = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let (_, _, cpus) = session::cpus(&globals.cpus)?;
    if globals.dry_run {
        return measure::plan(globals, between_ns, &["doctor"], &[], &[]);
    }
    guard::signals::install().map_err(Failure::cannot)?;
    // Before the captures, because this opens libraries and runs launchers.
    let mpis = mpi_lines();
    let budget = Deadline::start(between_ns);
    let before = facts::capture();
    let clock = qualify(&cpus.to_vec()).map_err(Failure::cannot)?;
    let sampled = live::sample(SAMPLE);
    while !budget.over() {
        thread::nanosleep_until(thread::monotonic_ns() + budget.left_ns().min(100_000_000));
    }
    let after = facts::capture();
    let found = all(&before, &after, &clock, &cpus, Some(&sampled));
    let failed = |c: &Check| c.state == Fail;
    let exit = if found.iter().any(failed) { Exit::Inconclusive } else { Exit::Fine };
    let text = if globals.json.is_some() {
        let mut record = empty_record();
        record.complete = true;
        "done".clone_into(&mut record.stopped_by);
        "doctor".clone_into(&mut record.run.verb);
        record.run.wall_ns = budget.spent_ns();
        record.clock = Some(machmeter_engine::host::clock_record(&clock));
        record.checks = found;
        record.summary.fitness = doctor::verdict(&record.checks);
        let lines: Vec<String> = mpis.iter().map(|m| format!("MPI: {m}")).collect();
        if !lines.is_empty() {
            record.summary.lines.push(SummaryLine { section: "DOCTOR".to_owned(), lines });
        }
        record.machine.changed = before.changed(&after);
        (record.machine.before, record.machine.after) = (before, after);
        machmeter_store::json::to_string(&record).map_err(Failure::cannot)?
    } else {
        let is_root = before.number("limits.euid") == Some(0.0);
        page(&found, &mpis, exit, is_root, globals.verbose > 0, &view::style(globals))
    };
    output::put(globals.json.as_deref().unwrap_or(Path::new("-")), &text).map_err(Failure::cannot)?;
    Ok(guard::stop_requested().map_or(exit, Exit::from))
}

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

/// The MPI libraries of this machine, each with its launcher.
fn mpi_lines() -> Vec<String> {
    let line = |mpi: Installed| {
        let launcher = mpi.launcher.map_or("no launcher found".to_owned(), |l| l.display().to_string());
        let abi = if mpi.flavor == Flavor::Standard { " (MPI 5 ABI)" } else { "" };
        format!("{}{abi}: {launcher}", mpi.version)
    };
    installed(None).unwrap_or_default().into_iter().map(line).collect()
}

/// The page: the verdicts, a line per failed or doubtful check, the unknown checks, and the next step. With `verbose` it has all checks in full, with
/// advice.
fn page(
    checks: &[Check],
    mpis: &[String],
    exit: Exit,
    is_root: bool,
    verbose: bool,
    style: &TerminalStyle,
) -> String {
    let mut out = String::new();
    terminal::verdicts(&mut out, &doctor::verdict(checks), style);
    for mpi in mpis {
        push_wrapped(&mut out, style, &format!(" {:<11}", "MPI"), &" ".repeat(12), mpi, None);
    }
    out.push('\n');
    let of = |state| checks.iter().filter(move |c| c.state == state);
    if verbose {
        [Fail, Warn, Unknown, NotApplicable, Pass]
            .into_iter()
            .flat_map(of)
            .for_each(|c| in_full(&mut out, c, style));
    } else {
        let against: Vec<&Check> = of(Fail).chain(of(Warn)).collect();
        let (rights, others): (Vec<_>, Vec<_>) = against.into_iter().partition(|c| c.id.starts_with("E5"));
        let mut rows: Vec<Row> = others.into_iter().map(Row::of).collect();
        rows.extend(Row::of_rights(&rights, is_root));
        let name_width = rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        for row in &rows {
            row.push(&mut out, name_width, style);
        }
        let unseen: Vec<String> = of(Unknown).map(|c| format!("{} {}", c.name, c.id)).collect();
        if !unseen.is_empty() {
            let text = format!("not visible from here: {}", unseen.join(", "));
            push_wrapped(&mut out, style, " ?     ", "       ", &text, None);
        }
    }
    let (pass, elsewhere) = (of(Pass).count(), of(NotApplicable).count());
    out.push_str(&format!(" {pass} pass, {elsewhere} cannot apply here; exit code {}\n", exit.code()));
    if let Some(worst) = of(Fail).chain(of(Warn)).next().filter(|_| !verbose) {
        out.push_str(&format!(" How to fix: machmeter doctor -v, or machmeter explain {}\n", worst.id));
    }
    out
}

/// The word of a state, four characters wide.
fn word(state: CheckState, style: &TerminalStyle) -> String {
    match state {
        Pass => style.paint("32", "PASS"),
        Warn => style.paint("33", "WARN"),
        Fail => style.paint("31", "FAIL"),
        Unknown => "?   ".to_owned(),
        NotApplicable => "n/a ".to_owned(),
    }
}

struct Row {
    state: CheckState,
    name: String,
    /// The observation, the longest text first; the first that fits is printed.
    texts: Vec<String>,
    codes: String,
}

impl Row {
    fn of(c: &Check) -> Self {
        let with_limit = limit(c).map(|limit| format!("{} (limit {limit})", c.observed));
        let texts = with_limit.into_iter().chain([c.observed.clone()]).collect();
        Self { state: c.state, name: c.name.clone(), texts, codes: c.id.clone() }
    }

    /// A row for all missing rights together, with their consequences but without the reasons.
    fn of_rights(missing: &[&Check], is_root: bool) -> Option<Self> {
        let (first, last) = (missing.first()?, missing.last()?);
        // Locked memory (E502) matters least. It comes last, where a text may be cut.
        let (locked, others): (Vec<&Check>, Vec<&Check>) = missing.iter().partition(|c| c.id == "E502");
        let mut texts: Vec<&str> = others.into_iter().chain(locked).map(Check::in_brief).collect();
        texts.dedup();
        let codes = if missing.len() > 1 { format!("{}-{}", first.id, last.id) } else { first.id.clone() };
        let name = if is_root { "rights" } else { "not root" }.to_owned();
        Some(Self { state: Warn, name, texts: vec![texts.join(", ")], codes })
    }

    /// Adds one line if the text fits, without its limit if necessary; otherwise several lines.
    fn push(&self, out: &mut String, name_width: usize, style: &TerminalStyle) {
        let (plain, name) = (word(self.state, &TerminalStyle { color: false, ..*style }), &self.name);
        let first = format!(" {plain}  {name:<name_width$}  ");
        let room = style.width.saturating_sub(7 + name_width + 2 + 2 + self.codes.len()).max(20);
        let texts: Vec<String> = self.texts.iter().map(|t| printable(t)).collect();
        let mut lines = String::new();
        if let Some(text) = texts.iter().find(|t| t.chars().count() <= room) {
            lines += &format!("{first}{text:<room$}  {}\n", self.codes);
        } else {
            let text = format!("{} ({})", texts.last().map_or("", String::as_str), self.codes);
            push_wrapped(&mut lines, style, &first, &" ".repeat(9 + name_width), &text, None);
        }
        // Escape sequences take no columns.
        *out += &lines.replacen(&plain, &word(self.state, style), 1);
    }
}

/// The limit of a check, except for properties that a machine has or has not.
fn limit(c: &Check) -> Option<&str> {
    c.limit.as_deref().filter(|limit| *limit != "none")
}

/// A check in full; unless it passed, with the weakened figures and advice.
fn in_full(out: &mut String, c: &Check, style: &TerminalStyle) {
    const INDENT: &str = "             ";
    let limit = limit(c).map_or(String::new(), |l| format!(" (limit {l})"));
    let text = printable(&format!("{}: {}{limit}", c.name, c.observed));
    let (mut head, plain) = (String::new(), word(c.state, &TerminalStyle { color: false, ..*style }));
    push_wrapped(&mut head, style, &format!(" {plain}  {}  ", c.id), INDENT, &text, None);
    *out += &head.replacen(&plain, &word(c.state, style), 1);
    let weakens = (c.state == Fail && !c.of_machine).then(|| Hazard::names(&c.hazards));
    for (title, text) in [("weakens", &weakens), ("do", &c.next), ("undo", &c.undo)] {
        if let Some(text) = text {
            push_wrapped(out, style, INDENT, INDENT, &printable(&format!("{title}: {text}")), None);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn check(id: &str, state: CheckState, observed: &str) -> Check {
        let (facts, for_cpus) = (&Facts::default(), &CpuSet::default());
        let nothing = Inputs { facts, later: None, clock: None, live: None, for_cpus };
        let (observed, next) = (observed.to_owned(), Some("what to do".to_owned()));
        Check { state, observed, next, ..doctor::find(id).unwrap().check(&nothing) }
    }

    #[test]
    fn a_check_has_a_line_and_what_belongs_together_shares_one() {
        let load = "a thread waited for a CPU 59 % of the last 10 s: cc1 36 %, a program with a\u{1b}[2J name 16 %, ld 9 %";
        let brief = |c: Check, brief: &str| Check { brief: Some(brief.to_owned()), ..c };
        let policy = check("E501", Warn, "no real-time policy (highest priority 0, no CAP_SYS_NICE)");
        let names =
            [("E503", "perf_event_paranoid 2 without CAP_PERFMON"), ("E504", "tracefs: permission denied")]
                .map(|(id, why)| {
                    brief(check(id, Warn, &format!("no names of culprits ({why})")), "no names of culprits")
                });
        let checks = [
            check("E101", Pass, "rdtsc"),
            check("E104", Fail, load),
            check("E111", Warn, "runs under kvm: worst-case latencies depend on the host"),
            check("E114", Unknown, "no product name"),
            check("E201", NotApplicable, "the host decides"),
            check("E202", Unknown, "hidden"),
            brief(policy, "no real-time policy"),
            check("E502", Warn, "8.00 MiB lockable"),
        ];
        let checks = checks.into_iter().chain(names).collect::<Vec<_>>();
        for width in [80, 100] {
            let style = TerminalStyle { width, ..TerminalStyle::default() };
            let mpis = ["Open MPI 4.1.4: /usr/bin/mpirun".to_owned()];
            let text = page(&checks, &mpis, Exit::Inconclusive, false, false, &style);
            assert!(text.is_ascii() && text.lines().all(|l| l.len() <= width), "{text}");
            let row = |begin: &str, end: &str| {
                let found = |l: &&str| l.starts_with(begin) && l.ends_with(end);
                assert_eq!(text.lines().filter(found).count(), 1, "{begin} ... {end}: {text}");
            };
            row(" VERDICT     no latency under 1 ms", "");
            row(" FAIL  load             a thread waited", "");
            row(" WARN  virtual machine  runs under kvm: worst-case latencies depend on the host", "");
            row(" WARN  not root         no real-time policy, no names of culprits", "");
            // Nothing is cut: a long text continues on the next line.
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for whole in
                ["a program with a [2J name 16 %, ld 9 % (E104)", "E111", "8.00 MiB lockable", "E501-E504"]
            {
                assert!(flat.contains(whole), "{whole}: {text}");
            }
            row(" ?     not visible from here: burst credits E114, SMT siblings E202", "");
            row(" 1 pass, 1 cannot apply here; exit code 3", "");
            row(" How to fix: machmeter doctor -v, or machmeter explain E104", "");
            assert!(!text.contains("what to do"), "hints are asked for: {text}");
            let full = page(&checks, &[], Exit::Inconclusive, false, true, &style);
            assert_eq!(full.matches("do: what to do").count(), checks.len(), "{full}");
            assert!(full.is_ascii() && full.lines().all(|l| l.len() <= width), "{full}");
            let parts = ["PASS  E101", "weakens: preemption, shared core"];
            assert!(parts.iter().all(|part| full.contains(part)), "{full}");
        }
        let color = TerminalStyle { color: true, ..TerminalStyle::default() };
        let plain = page(&checks, &[], Exit::Fine, false, false, &TerminalStyle::default());
        let painted = page(&checks, &[], Exit::Fine, false, false, &color);
        let codes = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"];
        assert_eq!(codes.iter().fold(painted, |text, code| text.replace(code, "")), plain);
    }
}
