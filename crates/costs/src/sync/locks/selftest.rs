//! Self-test: locks are asked whether they exclude, and a lock that does not must be seen.

use machmeter_engine::budget;
use machmeter_engine::cost::Cost;
use machmeter_engine::selftest::machine::Machine;
use machmeter_engine::selftest::{Options, SelfCheck, State};

use super::kinds::ALL;
use super::{PART, trial};

pub(super) fn exclusion(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let cpus = machine.allowed.to_vec();
    let turns = if options.quick { 5_000 } else { 50_000 };
    let members = cpus.len().min(4) + 1;
    let what = format!("{members} threads on {} CPUs add to a plain number under a lock", cpus.len());
    let bar = "the number is the sum of the additions, which are all made";
    let mut checks = Vec::new();
    for kind in ALL.into_iter().filter(|k| !k.is_shared()) {
        if budget::stop_requested() {
            break;
        }
        // One more than there are CPUs: those that spin get fewer turns, since holders are switched out.
        let turns = if kind.sleeps() { turns } else { turns / 10 };
        let id = format!("exclusion.{}", kind.name());
        let truth = members as u64 * turns;
        checks.push(match trial::sums(kind, &cpus, members, turns) {
            Err(why) => SelfCheck::not_shown(&id, &what, bar, why),
            Ok(sums) => SelfCheck {
                id,
                what: what.clone(),
                truth: format!("{truth} additions"),
                found: format!("{} counted, the number says {}", sums.counted, sums.number),
                bar: bar.to_owned(),
                state: State::of((sums.counted, sums.number) == (truth, truth)),
            },
        });
    }
    checks
}

pub(super) fn open_lock(machine: &Machine<'_>, _: &Options) -> Vec<SelfCheck> {
    let (id, what, bar) = (
        "open.noticed",
        "a lock that lets everybody in, measured like the others",
        "no figure, and the reason",
    );
    let cpus = machine.allowed.to_vec();
    if cpus.len() < 2 {
        return vec![SelfCheck::not_shown(id, what, bar, "needs two CPUs, has 1")];
    }
    vec![match trial::open_lock(&cpus[..2]) {
        Err(why) => SelfCheck::not_shown(id, what, bar, why),
        Ok(row) => {
            let lost = row.proof.as_ref().map_or(0, |p| p.expected.saturating_sub(p.seen));
            let cost = Cost::of(&row, 1.0, 1);
            let (found, refused) = match &cost {
                Cost::Unknown { why } => (format!("no figure: {why}"), true),
                known => (format!("{known:?}"), false),
            };
            SelfCheck {
                id: id.to_owned(),
                what: what.to_owned(),
                truth: format!(
                    "{lost} additions of {} lost ({})",
                    row.proof.map_or(0, |p| p.expected),
                    PART.name
                ),
                found,
                bar: bar.to_owned(),
                // Members that never met lost nothing: then nothing was injected.
                state: if lost == 0 { State::NotShown } else { State::of(refused) },
            }
        }
    }]
}
