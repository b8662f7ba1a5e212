//! Self-test: every figure has a witness, and programs that fail have none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use machmeter_data::Metric;
use machmeter_data::metric::ParamValue;
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::probe::parameters;
use machmeter_engine::selftest::machine::{Machine, Order};
use machmeter_engine::selftest::{Options, SelfCheck, Shown, State, check};
use machmeter_engine::{Analysis, Probe};

use super::PART;
use crate::ops::cost::COST;
use crate::ops::{Ops, Params};
use machmeter_engine::part::Verb;

/// Runs some parts as a user would.
pub(in crate::ops) fn measured(
    machine: &Machine,
    budget_ns: u64,
    request: &serde_json::Value,
) -> Result<(Rows, Analysis), String> {
    let params: Params = parameters::<Ops>(request).map_err(|e| e.to_string())?;
    let order = Order { cpus: machine.here(), policy: None, budget_ns };
    let rows = machine.measure::<Ops>(order, &params).0.map_err(|e| e.to_string())?.samples;
    let analysis = Ops::analyze(&params, &rows, machine.seed);
    Ok((rows, analysis))
}

/// Rows that nothing but their own loop can vouch for: a loop that does nothing leaves nothing.
const WITHOUT_WITNESS: [&str; 1] = ["empty_loop"];

pub(in crate::ops) fn proofs(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let budget_ns = if options.quick { 6_000_000_000 } else { 20_000_000_000 };
    let request = serde_json::json!({"parts": Ops::PARTS.iter().map(|p| p.name).collect::<Vec<_>>()});
    vec![witnessed(measured(machine, budget_ns, &request).map(|(rows, _)| rows))]
}

fn witnessed(rows: Result<Rows, String>) -> SelfCheck {
    let (id, what) = ("proofs.calls", "all tables, with what the kernel counted or what the operations left");
    let bar = "each row with a figure has a witness, the empty loop excepted";
    check(id, what, bar, rows.map(|rows| judged(&rows)))
}

fn judged(rows: &Rows) -> (String, String, State) {
    let figures = || rows.rows.iter().filter(|r| rows.cost(r).known().is_some());
    let named = |rows: &mut dyn Iterator<Item = &Row>| {
        let names: Vec<&str> = rows.map(|r| r.operation.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let has = |r: &&Row| r.proof.as_ref().is_some_and(|p| p.expected > 0);
    let lacks = |r: &&Row| !has(r) && !WITHOUT_WITNESS.contains(&r.operation.as_str());
    let short = |r: &&Row| r.proof.as_ref().is_some_and(|p| p.seen < p.expected);
    let parts = Ops::PARTS.iter().filter(|p| figures().any(|r| r.part == p.name)).count();
    // A witness that saw too few leaves no figure.
    let met = !figures().any(|r| lacks(&r));
    let truth = format!("{} rows of {parts} of {} tables have a figure", figures().count(), Ops::PARTS.len());
    let found = format!(
        "{} of them with a witness beside the loop; figures without: {}; no figure, because the witness saw too few: {}",
        figures().filter(has).count(),
        named(&mut figures().filter(lacks)),
        named(&mut rows.rows.iter().filter(short))
    );
    // Tables without a figure show nothing.
    let state = if met && parts < Ops::PARTS.len() { State::NotShown } else { State::of(met) };
    (truth, found, state)
}

pub(super) fn failing(machine: &Machine, _: &Options) -> Vec<SelfCheck> {
    let folder = std::env::temp_dir().join(format!("machmeter-selftest-{}", std::process::id()));
    let made = fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()));
    let programs = [
        ("failing.exit", "#!/bin/sh\nexit 3\n", "3 instead of 0"),
        ("failing.start", "#!/nowhere/at/all\n", "No such file"),
    ];
    let shown = |id: &str, text: &str, reason: &str| -> Shown {
        made.clone()?;
        let started = start(machine, &folder.join(id), text)?;
        let is_refused =
            |m: &&Metric| m.value.is_none() && m.why.as_ref().is_some_and(|w| w.contains(reason));
        let refused = started.iter().filter(is_refused).count();
        let said = started.iter().find_map(|m| m.why.as_deref()).unwrap_or("no reason");
        let truth = format!("{} starts of a program with the text {text:?}", started.len());
        let found = format!("{refused} without a price: {said}");
        let state = if started.is_empty() { State::NotShown } else { State::of(refused == started.len()) };
        Ok((truth, found, state))
    };
    let (what, bar) = ("programs that cannot be started, or that fail", "no price, and the reason");
    let checks = programs.map(|(id, text, reason)| check(id, what, bar, shown(id, text, reason))).into();
    let _ = fs::remove_dir_all(&folder);
    checks
}

/// Starts a program with this text; the prices of that.
fn start(machine: &Machine, program: &Path, text: &str) -> Result<Vec<Metric>, String> {
    fs::write(program, text)
        .and_then(|()| fs::set_permissions(program, fs::Permissions::from_mode(0o755)))
        .map_err(|e| e.to_string())?;
    let request = serde_json::json!({"parts": [PART.name], "exec_target": program});
    let mut prices = measured(machine, 1_500_000_000, &request)?.1.metrics;
    let starts = |operation: &ParamValue| *operation == "spawn".into() || *operation == "fork_exec".into();
    prices.retain(|m| m.id == COST.id && m.params.get("operation").is_some_and(starts));
    Ok(prices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_engine::cost::{Kind, Proof};

    fn row(part: &str, operation: &str, seen: Option<u64>) -> Row {
        let mut row = Row::new(part, operation, Kind::Latency).planted(10, [(1_000, 2_000); 20]);
        row.proof = seen.map(|seen| Proof::new("seen", 5, seen));
        row
    }

    #[test]
    fn a_row_without_a_witness_fails_the_check_and_a_table_without_rows_shows_nothing() {
        let state = |more: &[Row], tables: usize| {
            let sound = Ops::PARTS[..tables].iter().map(|p| row(p.name, "call", Some(5)));
            let rows = Rows::in_nanoseconds(sound.chain(more.iter().cloned()).collect());
            let check = witnessed(Ok(rows));
            (check.state, check.found)
        };
        assert_eq!(state(&[], 4).0, State::Pass);
        assert_eq!(state(&[row("arithmetic", "empty_loop", None)], 4).0, State::Pass);
        assert_eq!(state(&[], 3).0, State::NotShown);
        let (passed, found) = state(&[row("calls", "short", Some(4))], 4);
        assert!(passed == State::Pass && found.ends_with("too few: short"), "nothing is claimed: {found}");
        for tables in [0, 4] {
            let (failed, found) = state(&[row("decades", "fopen", None)], tables);
            assert!(failed == State::Fail && found.contains("figures without: fopen;"), "{found}");
        }
    }
}
