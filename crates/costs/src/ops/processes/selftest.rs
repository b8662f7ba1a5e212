//! Self-test: every figure has a witness, and programs that fail have none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::probe::parameters;
use machmeter_engine::selftest::machine::{Machine, Order};
use machmeter_engine::selftest::{Options, SelfCheck, State};
use machmeter_engine::{Analysis, Probe};

use super::PART;
use crate::ops::cost::COST;
use crate::ops::{Ops, Params};
use machmeter_engine::part::Verb;

/// Runs some parts as a user would.
pub(in crate::ops) fn measured(
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

/// Rows that nothing but their own loop can vouch for: a loop that does nothing leaves nothing.
const WITHOUT_WITNESS: [&str; 1] = ["empty_loop"];

pub(in crate::ops) fn proofs(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let (id, what) = ("proofs.calls", "all tables, with what the kernel counted or what the operations left");
    let budget_ns = if options.quick { 6_000_000_000 } else { 20_000_000_000 };
    let request = serde_json::json!({"parts": Ops::PARTS.iter().map(|p| p.name).collect::<Vec<_>>()});
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
    let parts = Ops::PARTS.iter().filter(|p| figures.iter().any(|r| r.part == p.name)).count();
    // A witness that saw too few leaves no figure.
    let met = !figures.iter().any(|r| lacks(r));
    SelfCheck {
        id: id.to_owned(),
        what: what.to_owned(),
        truth: format!("{} rows of {parts} of {} tables have a figure", figures.len(), Ops::PARTS.len()),
        found: format!(
            "{} of them with a witness beside the loop; figures without: {}; no figure, because the witness saw too few: {}",
            figures.iter().filter(|r| has(r)).count(),
            named(&lacks, &figures),
            named(&short, &all)
        ),
        bar: WITNESSED.to_owned(),
        // Tables without a figure show nothing.
        state: if met && parts < Ops::PARTS.len() { State::NotShown } else { State::of(met) },
    }
}

pub(super) fn failing(machine: &Machine<'_>, _: &Options) -> Vec<SelfCheck> {
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
    let request = serde_json::json!({"parts": [PART.name], "exec_target": program});
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
    SelfCheck::new(
        id,
        what,
        bar,
        format!("{} starts of a program with the text {text:?}", all.len()),
        format!("{refused} without a price: {said}"),
        if all.is_empty() { State::NotShown } else { State::of(refused == all.len()) },
    )
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
            let mut all: Vec<Row> =
                Ops::PARTS[..tables].iter().map(|p| row(p.name, "call", Some(5))).collect();
            all.extend(more.iter().cloned());
            let rows = Rows::in_nanoseconds(all);
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
            let (failed, found) = state(&[row("decades", "fopen", None)], tables);
            assert!(failed == State::Fail && found.contains("figures without: fopen;"), "{found}");
        }
    }
}
