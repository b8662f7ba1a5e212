//! Self-test: operations that take a known time, additions that take a known number of cycles, programs that fail, and a
//! thousand operations that cost next to nothing beside busy neighbors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use machmeter_engine::cost::{Cost, Kind, Row, Rows};
use machmeter_engine::probe::parameters;
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::{Analysis, Probe, Progress, budget};
use machmeter_stats::quantile::median_of;
use machmeter_sys::kernel::{self, Ready};
use machmeter_sys::pages::{Backing, Pages};
use machmeter_sys::thread::monotonic_ns;

use super::arithmetic::{CHAINS, PART as ARITHMETIC};
use super::info::COST;
use super::processes::PART as PROCESSES;
use super::{Ops, PARTS, Params};
use machmeter_engine::selftest::machine::{Busy, Machine, Order, Steal};
use machmeter_engine::selftest::{self, SelfCheck, State, ends_in_time};

pub use machmeter_engine::selftest::Options;

/// Runs all checks in order. Ends early, with what was done so far, when a signal asks to stop.
///
/// # Errors
/// In one line, when there is no CPU or no clock to test on.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let parts: [(&str, selftest::Part); 6] = [
        ("operations of known length", planted),
        ("additions of known cost", known),
        ("a thousand costs of next to nothing", nothing),
        ("what calls did", proofs),
        ("programs that fail", failing),
        ("real-time on all CPUs", bounds),
    ];
    selftest::run("ops", &parts, options, progress)
}

/// Waits by the clock, and writes down how long each wait was.
struct Stall {
    length_ns: u64,
    log_ns: Vec<f64>,
}

impl Subject for Stall {
    fn run(&mut self, turns: u64) -> bool {
        let mut begin_ns = monotonic_ns();
        for _ in 0..turns {
            let mut now_ns = begin_ns;
            while now_ns - begin_ns < self.length_ns {
                now_ns = monotonic_ns();
            }
            if self.log_ns.len() < self.log_ns.capacity() {
                self.log_ns.push((now_ns - begin_ns) as f64);
            }
            // Each wait begins where the one before ended, so that the log leaves nothing out.
            begin_ns = now_ns;
        }
        true
    }
}

/// Error that a cost may have beside its own interval.
const WRONG: f64 = 0.01;
/// Steps of the clock on both ends, ns.
const STEPS_NS: f64 = 40.0;

fn planted(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let what = "waits by the clock, priced like any operation";
    let bar = "1 % and 40 ns";
    let slice_ns = if options.quick { 200_000_000 } else { 1_000_000_000 };
    let mut checks = Vec::new();
    for length_ns in [1_000, 10_000, 100_000, 2_000_000] {
        let id = format!("planted.{}us", length_ns / 1_000);
        let stall = Stall { length_ns, log_ns: Vec::with_capacity(1 << 20) };
        let sampled = machine.sample(|sampler| {
            let mut row = Row::new("selftest", "stall", Kind::Latency);
            let mut stall = stall;
            let pace = Pace {
                settle_ns: 0,
                batch_ns: Pace::BATCH_NS,
                pairs_per_visit: 5,
                rounds: usize::MAX,
                until_ns: monotonic_ns() + slice_ns,
            };
            let mut benches = [Bench::new(row.clone(), Logged(&mut stall))];
            sampler.interleave(&mut benches, &pace);
            row = benches[0].row.clone();
            drop(benches);
            (row, stall.log_ns)
        });
        let (ns_per_tick, step) = machine.tick();
        checks.push(match sampled {
            Err(why) => SelfCheck::not_shown(&id, what, bar, why),
            Ok((row, log_ns)) => match (Cost::of(&row, ns_per_tick, step), median_of(&log_ns)) {
                (Cost::Known(k), Some(truth_ns)) => SelfCheck {
                    id,
                    what: what.to_owned(),
                    truth: format!("{truth_ns:.0} ns, median of {} waits", log_ns.len()),
                    found: format!("{:.0} ns [{:.0}, {:.0}], n {}", k.value_ns, k.low_ns, k.high_ns, k.n),
                    bar: bar.to_owned(),
                    state: State::of(
                        k.value_ns >= truth_ns * (1.0 - WRONG)
                            && k.value_ns <= truth_ns * (1.0 + WRONG) + STEPS_NS,
                    ),
                },
                (cost, _) => SelfCheck::not_shown(&id, what, bar, format!("{cost:?}")),
            },
        });
    }
    checks
}

/// A stall that is looked at afterwards.
struct Logged<'s>(&'s mut Stall);

impl Subject for Logged<'_> {
    fn run(&mut self, turns: u64) -> bool {
        self.0.run(turns)
    }
}

/// Runs some parts as a user would.
fn measured(
    machine: &Machine<'_>,
    budget_ns: u64,
    request: &serde_json::Value,
) -> Result<(Rows, Analysis), String> {
    let params: Params = parameters::<Ops>(request).map_err(|e| e.to_string())?;
    let order = Order { cpus: machine.here(), policy: None, budget_ns };
    let rows = machine.measure::<Ops>(order, &params).0.map_err(|e| e.to_string())?.samples;
    let analysis = Ops::analyze(&params, &rows, machine.seed);
    Ok((rows, analysis))
}

fn known(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    const TRIES: usize = 3;
    let (id, what) = ("known.additions", "chains of dependent additions, 1 to 64 a turn");
    let bar =
        "slope within 1 % of the longest chain's, intercept within 0.1 cycles, no chain 1 % off the line";
    let budget_ns = if options.quick { 2_000_000_000 } else { 6_000_000_000 };
    let steal = Steal::watch();
    let mut told = String::new();
    for _ in 0..TRIES {
        match measured(machine, budget_ns, &serde_json::json!({"parts": [ARITHMETIC.name]})) {
            Err(why) => return vec![SelfCheck::not_shown(id, what, bar, why)],
            Ok((_, analysis)) => {
                let Some(finding) = analysis.findings.into_iter().find(|f| f.id == "ops.known_costs") else {
                    return vec![SelfCheck::not_shown(id, what, bar, "no finding")];
                };
                told = finding.text;
                if finding.verdict == "holds" || budget::stop_requested() {
                    break;
                }
            }
        }
    }
    let holds = told.contains("come out right");
    let stolen = steal.told(&machine.here()).filter(|_| !holds);
    vec![SelfCheck {
        id: id.to_owned(),
        what: what.to_owned(),
        truth: "as many cycles as additions".to_owned(),
        found: stolen.as_ref().map_or_else(|| told.clone(), |why| format!("{told} {why}")),
        bar: bar.to_owned(),
        state: if stolen.is_some() { State::NotShown } else { State::of(holds) },
    }]
}

/// Operations of which a pass is a few cycles.
struct Few<'a>(Ready<'a>);

impl Subject for Few<'_> {
    fn run(&mut self, turns: u64) -> bool {
        std::hint::black_box(self.0.run(turns));
        true
    }
}

fn nothing(machine: &Machine<'_>, _: &Options) -> Vec<SelfCheck> {
    const ROWS: usize = 1_000;
    const NEIGHBORS: usize = 4;
    let id = "nothing.never_negative";
    let what = format!(
        "{ROWS} rows of 0 to 64 additions in batches of 2 us, beside {NEIGHBORS} threads that want the CPUs"
    );
    let bar = "no figure that is negative, nothing or not a number; a bound or a reason instead";
    let pages = match Pages::new(4_096, Backing::Unasked) {
        Ok(pages) => pages,
        Err(e) => return vec![SelfCheck::not_shown(id, &what, bar, e)],
    };
    let names: Vec<String> = CHAINS.iter().map(|n| format!("adds.{n}")).chain(["empty".to_owned()]).collect();
    let busy = Busy::start(NEIGHBORS);
    let sampled = machine.sample(|sampler| {
        let bench = |i: usize| {
            let ready = kernel::named(&names[i % names.len()])?.ready(1, [pages.extent(); 3], 0).ok()?;
            Some(Bench::new(Row::new("selftest", "few", Kind::Latency).with("row", i), Few(ready)))
        };
        let mut benches: Vec<Bench<'_>> = (0..ROWS).filter_map(bench).collect();
        let pace = Pace {
            settle_ns: 0,
            batch_ns: 2_000.0,
            pairs_per_visit: 8,
            rounds: 1,
            until_ns: monotonic_ns() + 20_000_000_000,
        };
        sampler.interleave(&mut benches, &pace);
        benches.into_iter().map(|b| b.row).collect::<Vec<_>>()
    });
    drop(busy);
    let (ns_per_tick, step) = machine.tick();
    let rows = match sampled {
        Ok(rows) => rows,
        Err(why) => return vec![SelfCheck::not_shown(id, &what, bar, why)],
    };
    let (mut known, mut below, mut unknown, mut wrong) = (0, 0, 0, Vec::new());
    for row in &rows {
        let cost = Cost::of(row, ns_per_tick, step);
        let metric = cost.metric(&COST, row.params.clone());
        let sound = |v: f64| v > 0.0 && v.is_finite();
        let sane = match &cost {
            Cost::Known(k) => {
                known += 1;
                sound(k.value_ns) && k.low_ns <= k.value_ns && k.value_ns <= k.high_ns
            }
            Cost::Below { bound_ns, .. } => {
                below += 1;
                sound(*bound_ns) && metric.value.is_none_or(|v| v >= 0.0)
            }
            Cost::Unknown { why } => {
                unknown += 1;
                !why.is_empty() && metric.value.is_none()
            }
        };
        if !sane || metric.value.is_some_and(|v| !(v >= 0.0 && v.is_finite())) {
            wrong.push(format!("{cost:?}"));
        }
    }
    let first = wrong.first().map_or_else(String::new, |w| format!("; {w}"));
    vec![SelfCheck {
        id: id.to_owned(),
        what,
        truth: format!("{} rows, none of which takes less than no time", rows.len()),
        found: format!(
            "{known} known, {below} below what the clock can tell, {unknown} unknown with a reason, {} impossible{first}",
            wrong.len()
        ),
        bar: bar.to_owned(),
        state: State::of(wrong.is_empty() && rows.len() == ROWS),
    }]
}

/// Rows that nothing but their own loop can vouch for: a loop that does nothing leaves nothing.
const WITHOUT_WITNESS: [&str; 1] = ["empty_loop"];

fn proofs(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let (id, what) = ("proofs.calls", "all tables, with what the kernel counted or what the operations left");
    let budget_ns = if options.quick { 6_000_000_000 } else { 20_000_000_000 };
    let request = serde_json::json!({"parts": PARTS.iter().map(|p| p.name).collect::<Vec<_>>()});
    match measured(machine, budget_ns, &request) {
        Ok((rows, _)) => vec![witnessed(id, what, &rows)],
        Err(why) => vec![SelfCheck::not_shown(id, what, WITNESSED, why)],
    }
}

const WITNESSED: &str = "each row with a figure has a witness, the empty loop excepted";

fn witnessed(id: &str, what: &str, rows: &Rows) -> SelfCheck {
    let figures: Vec<&Row> = rows.rows.iter().filter(|r| rows.cost(r).known().is_some()).collect();
    let named = |select: &dyn Fn(&Row) -> bool, of: &[&Row]| {
        let names: Vec<&str> = of.iter().filter(|r| select(r)).map(|r| r.operation.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let has = |r: &Row| r.proof.as_ref().is_some_and(|p| p.expected > 0);
    let lacks = |r: &Row| !has(r) && !WITHOUT_WITNESS.contains(&r.operation.as_str());
    let short = |r: &Row| r.proof.as_ref().is_some_and(|p| p.seen < p.expected);
    let all: Vec<&Row> = rows.rows.iter().collect();
    let parts = PARTS.iter().filter(|p| figures.iter().any(|r| r.part == p.name)).count();
    // A witness that saw too few leaves no figure.
    let met = !figures.iter().any(|r| lacks(r));
    SelfCheck {
        id: id.to_owned(),
        what: what.to_owned(),
        truth: format!("{} rows of {parts} of {} tables have a figure", figures.len(), PARTS.len()),
        found: format!(
            "{} of them with a witness beside the loop; figures without: {}; no figure, because the witness saw too few: {}",
            figures.iter().filter(|r| has(r)).count(),
            named(&lacks, &figures),
            named(&short, &all)
        ),
        bar: WITNESSED.to_owned(),
        // Tables without a figure show nothing.
        state: if met && parts < PARTS.len() { State::NotShown } else { State::of(met) },
    }
}

fn failing(machine: &Machine<'_>, _: &Options) -> Vec<SelfCheck> {
    let what = "programs that cannot be started, or that fail";
    let bar = "no price, and the reason";
    let folder = std::env::temp_dir().join(format!("machmeter-selftest-{}", std::process::id()));
    let made = fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()));
    let checks = match made {
        Err(why) => vec![SelfCheck::not_shown("failing.exit", what, bar, why)],
        Ok(()) => [
            ("failing.exit", "#!/bin/sh\nexit 3\n", "3 instead of 0"),
            ("failing.start", "#!/nowhere/at/all\n", "No such file"),
        ]
        .map(|(id, text, reason)| fails(machine, &folder.join(id), id, text, reason))
        .into(),
    };
    let _ = fs::remove_dir_all(&folder);
    checks
}

fn fails(machine: &Machine<'_>, program: &Path, id: &str, text: &str, reason: &str) -> SelfCheck {
    let what = "programs that cannot be started, or that fail";
    let bar = "no price, and the reason";
    let made = fs::write(program, text)
        .and_then(|()| fs::set_permissions(program, fs::Permissions::from_mode(0o755)));
    let request = serde_json::json!({"parts": [PROCESSES.name], "exec_target": program});
    let outcome = made.map_err(|e| e.to_string()).and_then(|()| measured(machine, 1_500_000_000, &request));
    let (_, analysis) = match outcome {
        Ok(measured) => measured,
        Err(why) => return SelfCheck::not_shown(id, what, bar, why),
    };
    let started = ["spawn", "fork_exec"];
    let of = |operation: &&str| {
        let name = machmeter_data::metric::ParamValue::Text((*operation).to_owned());
        analysis.metrics.iter().filter(move |m| m.id == COST.id && m.params.get("operation") == Some(&name))
    };
    let all: Vec<_> = started.iter().flat_map(|o| of(o)).collect();
    let refused =
        all.iter().filter(|m| m.value.is_none() && m.why.as_ref().is_some_and(|w| w.contains(reason)));
    let refused = refused.count();
    let said = all.iter().find_map(|m| m.why.clone()).unwrap_or_else(|| "no reason".to_owned());
    SelfCheck {
        id: id.to_owned(),
        what: what.to_owned(),
        truth: format!("{} starts of a program with the text {text:?}", all.len()),
        found: format!("{refused} without a price: {said}"),
        bar: bar.to_owned(),
        state: if all.is_empty() { State::NotShown } else { State::of(refused == all.len()) },
    }
}

fn bounds(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let budget_ns = if options.quick { 2_000_000_000 } else { 5_000_000_000 };
    vec![ends_in_time::<Ops>(machine, budget_ns)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_engine::cost::{Pair, Proof};

    fn row(part: &str, operation: &str, seen: Option<u64>) -> Row {
        let mut row = Row::new(part, operation, Kind::Latency);
        (row.short_turns, row.long_turns) = (10, 20);
        let pair = Pair { short_ticks: 1_000, long_ticks: 2_000, ..Pair::default() };
        row.pairs = (0..20).map(|i| Pair { at_ns: f64::from(i), ..pair }).collect();
        row.proof = seen.map(|seen| Proof { what: "seen".to_owned(), expected: 5, seen });
        row
    }

    #[test]
    fn a_row_without_a_witness_fails_the_check_and_a_table_without_rows_shows_nothing() {
        let state = |more: &[Row], tables: usize| {
            let mut all: Vec<Row> = PARTS[..tables].iter().map(|p| row(p.name, "call", Some(5))).collect();
            all.extend(more.iter().cloned());
            let rows = Rows { tick_hz: 1e9, step_ticks: 1, rows: all, ..Rows::default() };
            let check = witnessed("id", "what", &rows);
            (check.state, check.found)
        };
        assert_eq!(state(&[], 4).0, State::Pass);
        assert_eq!(state(&[row("arithmetic", "empty_loop", None)], 4).0, State::Pass);
        assert_eq!(state(&[], 3).0, State::NotShown);
        let (state_of_short, found) = state(&[row("calls", "short", Some(4))], 4);
        assert!(
            state_of_short == State::Pass && found.ends_with("too few: short"),
            "nothing is claimed: {found}"
        );
        for tables in [0, 4] {
            let (failed, found) = state(&[row("seed", "fopen", None)], tables);
            assert!(failed == State::Fail && found.contains("figures without: fopen;"), "{found}");
        }
    }
}
