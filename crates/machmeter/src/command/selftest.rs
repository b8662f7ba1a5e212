//! `machmeter selftest PROBE`: injects known disturbances into this machine and checks the figures of the probe against them.

use clap::{ArgMatches, Args, FromArgMatches, builder::PossibleValuesParser};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Record, SummaryLine};
use machmeter_engine::selftest::{Options, SelfCheck, State};
use machmeter_sys::guard::signals;
use machmeter_sys::thread::monotonic_ns;

use super::measure;
use crate::output::{self, Lines};
use crate::session::Session;
use crate::{Exit, Failure, Globals, Registries, Result, view};

/// Inject known disturbances and check that a probe finds them
///
/// Injects known disturbances into this machine and compares the figures of the probe with the injectors' logs. Examples: stalls inside the
/// loop, a real-time thread above the meter or the task, a competitor on its CPU, a stopped and continued task, waits of known length,
/// broken locks, failing programs. As root it occupies one CPU in short pieces, and all CPUs for up to two seconds. With -t, the self-test
/// of interactive repeats recordings that other load disturbed, while there is time. Exit code 0: every check passed; 1: a check failed;
/// 3: no check failed, but some could not be shown here.
#[derive(Args)]
pub(super) struct Asked {
    /// Probe to test
    #[arg(value_name = "PROBE", value_parser = PossibleValuesParser::new(crate::PROBES.iter().map(|p| p.info.name)))]
    probe: String,
    /// Inject fewer and shorter disturbances, in less than half the time
    #[arg(long)]
    quick: bool,
}

pub(super) fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let Asked { probe: name, quick } = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let Some(test) = registries.probes.iter().find(|p| p.info.name == name).map(|p| p.selftest) else {
        return Err(Failure::usage(format!("no probe '{name}'")));
    };
    if globals.time.is_some() && !test.tries_again {
        let why = "it ends after its checks; --quick runs fewer";
        return Err(Failure::usage(format!("the self-test of {name} takes no -t: {why}")));
    }
    let given_ns = globals.time.unwrap_or(0);
    let within_ns = (test.within_s[usize::from(!quick)] * 1_000_000_000).max(given_ns);
    let session = Session::begin(registries, globals, within_ns)?;
    if globals.dry_run {
        return measure::plan(globals, within_ns, &[&format!("selftest {name}")], &[], &[]);
    }
    let options = Options {
        quick,
        cpu: session.cpus.iter().next_back(),
        seed: globals.seed,
        until_ns: monotonic_ns() + given_ns,
    };
    let checks = (test.run)(&options, &Lines { quiet: globals.quiet }).map_err(Failure::cannot)?;
    let (mut record, _) = session.end("selftest", Vec::new());
    describe(&mut record, &name, &checks);
    let mut trouble = Vec::new();
    for path in globals.output.iter().chain(globals.json.iter().filter(|p| p.as_os_str() != "-")) {
        trouble.extend(view::write(path, view::ending(path, "json").unwrap_or("json"), &record).err());
    }
    let shown = if globals.json.as_ref().is_some_and(|p| p.as_os_str() == "-") {
        machmeter_store::json::to_string(&record).map_err(Failure::cannot)?
    } else {
        page(&checks, record.run.wall_ns)
    };
    output::print(&shown).map_err(Failure::cannot)?;
    Ok(match (signals::stop_requested(), output::tell(&trouble)) {
        (Some(signal), _) => signal.into(),
        (None, Exit::Fine) => exit(&checks),
        (None, failed) => failed,
    })
}

fn count(checks: &[SelfCheck], state: State) -> usize {
    checks.iter().filter(|c| c.state == state).count()
}

fn exit(checks: &[SelfCheck]) -> Exit {
    match (count(checks, State::Fail), count(checks, State::NotShown)) {
        (0, 0) if checks.is_empty() => Exit::Inconclusive,
        (0, 0) => Exit::Fine,
        (0, _) => Exit::Inconclusive,
        _ => Exit::Finding,
    }
}

fn verdict(checks: &[SelfCheck]) -> String {
    let [pass, fail, not_shown] =
        [State::Pass, State::Fail, State::NotShown].map(|state| count(checks, state));
    format!("{pass} passed, {fail} failed, {not_shown} not shown on this machine")
}

/// The checks as text, grouped by the injected disturbance.
fn page(checks: &[SelfCheck], wall_ns: u64) -> String {
    let mut lines = Vec::new();
    let mut what = None;
    for c in checks {
        if what != Some(&c.what) {
            lines.extend(what.map(|_| String::new()));
            lines.push(c.what.clone());
            what = Some(&c.what);
        }
        lines.push(format!("  {:<9} {}", c.state.name(), c.id));
        lines.push(format!("            truth {}", c.truth));
        lines.push(format!("            found {}", c.found));
        if c.state != State::Info {
            lines.push(format!("            bar   {}", c.bar));
        }
    }
    lines.push(String::new());
    lines.push(format!("{} ({})", verdict(checks), human(wall_ns as f64, Unit::Nanoseconds)));
    lines.join("\n") + "\n"
}

/// Writes the checks into a record, one finding each.
fn describe(record: &mut Record, probe: &str, checks: &[SelfCheck]) {
    record.findings.extend(checks.iter().map(|c| Finding {
        id: format!("selftest.{probe}.{}", c.id),
        verdict: c.state.name().to_lowercase().replace(' ', "_"),
        text: c.what.clone(),
        evidence: vec![
            format!("truth: {}", c.truth),
            format!("found: {}", c.found),
            format!("bar: {}", c.bar),
        ],
    }));
    let worst = |state: State| {
        checks
            .iter()
            .filter(move |c| c.state == state)
            .map(|c| format!("{} {}: {}", c.state.name(), c.id, c.found))
    };
    let mut lines = vec![verdict(checks)];
    lines.extend(worst(State::Fail));
    lines.extend(worst(State::NotShown));
    lines.push(match exit(checks) {
        Exit::Fine => format!("The {probe} probe found everything that was injected."),
        Exit::Finding => format!(
            "The {probe} probe missed a bar: do not trust its figures on this machine until the cause is known."
        ),
        _ => format!("The {probe} probe missed no bar, but some checks could not be shown here."),
    });
    record.summary.lines.push(SummaryLine { section: "SELFTEST".to_owned(), lines });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, state: State) -> SelfCheck {
        let [id, what, truth, found, bar] =
            [id, "stalls", "10 stalls", "9 in a gap", "at least 99 %"].map(str::to_owned);
        SelfCheck { id, what, truth, found, bar, state }
    }

    #[test]
    fn not_shown_is_never_a_pass() {
        let of = |states: &[State]| exit(&states.iter().map(|s| check("a", *s)).collect::<Vec<_>>());
        assert_eq!(of(&[State::Pass, State::Info]), Exit::Fine);
        assert_eq!(of(&[State::Pass, State::NotShown]), Exit::Inconclusive);
        assert_eq!(of(&[State::Fail, State::NotShown]), Exit::Finding);
        assert_eq!(of(&[]), Exit::Inconclusive, "a test that did nothing shows nothing");
    }

    #[test]
    fn every_check_stands_on_the_page_and_in_the_record() {
        let checks = [check("a", State::Pass), check("b", State::Fail), check("c", State::NotShown)];
        let text = page(&checks, 1_000_000_000);
        for part in ["pass      a", "FAIL      b", "not shown c", "1 passed, 1 failed, 1 not shown"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let mut record = crate::session::empty_record();
        describe(&mut record, "noise", &checks);
        let verdicts: Vec<&str> = record.findings.iter().map(|f| f.verdict.as_str()).collect();
        assert_eq!(verdicts, ["pass", "fail", "not_shown"]);
        assert!(record.summary.lines[0].lines.last().unwrap().contains("missed a bar"));
    }
}
