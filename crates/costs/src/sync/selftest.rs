//! Self-test: locks are asked whether they exclude, a lock that does not must be seen, a member is killed, and neighbors
//! are let loose on the CPUs while lines go from one to the other.

use std::sync::atomic::Ordering;

use machmeter_data::Metric;
use machmeter_data::metric::ParamValue;
use machmeter_engine::cost::Cost;
use machmeter_engine::probe::parameters;
use machmeter_engine::team::processes::Processes;
use machmeter_engine::team::{Arena, Member, Seats, Team};
use machmeter_engine::{Probe, Progress, budget};
use machmeter_sys::process;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use super::Sync;
use super::locks::kinds::ALL;
use super::locks::{PART as LOCKS, trial};
use super::models;
use super::transfer::{CORE_TO_CORE, PART as TRANSFER};
use machmeter_engine::selftest::machine::{Busy, Machine, ORDINARY, Order, Steal};
use machmeter_engine::selftest::{self, SelfCheck, State, ends_in_time};

pub use machmeter_engine::selftest::Options;

/// Runs all checks in order. Ends early, with what was done so far, when a signal asks to stop.
///
/// # Errors
/// In one line, when there is no CPU or no clock to test on.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let parts: [(&str, selftest::Part); 6] = [
        ("locks exclude", exclusion),
        ("a lock that does not", open_lock),
        ("a member that is killed", killed),
        ("transfer beside busy neighbors", transfer),
        ("models side by side", models::selftest::checks),
        ("real-time on all CPUs", bounds),
    ];
    selftest::run("sync", &parts, options, progress)
}

fn exclusion(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
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

fn open_lock(machine: &Machine<'_>, _: &Options) -> Vec<SelfCheck> {
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
                    LOCKS.name
                ),
                found,
                bar: bar.to_owned(),
                // Members that never met lost nothing: then nothing was injected.
                state: if lost == 0 { State::NotShown } else { State::of(refused) },
            }
        }
    }]
}

fn killed(machine: &Machine<'_>, _: &Options) -> Vec<SelfCheck> {
    const LIMIT_NS: u64 = 500_000_000;
    let what = "one of three member processes is killed, another one sleeps on";
    let bar = "the member and the signal named, in time, and no process left";
    let id = "killed.member";
    let pids = match Arena::new(3, 0) {
        Ok(pids) => pids,
        Err(e) => return vec![SelfCheck::not_shown(id, what, bar, e)],
    };
    let seats = Seats { cpus: vec![machine.cpu; 3], policy: ORDINARY };
    let begin_ns = monotonic_ns();
    let run = Processes.run(&seats, LIMIT_NS, &|m: &Member<'_>| {
        let me = std::process::id();
        if let Some(cell) = pids.cell(m.rank) {
            cell.store(u64::from(me), Ordering::Release);
        }
        match m.rank {
            1 => drop(process::kill_process(me as i32)),
            2 => nanosleep_until(monotonic_ns() + 60_000_000_000),
            _ => {}
        }
    });
    let took_ns = monotonic_ns() - begin_ns;
    let left = (0..3).filter(|rank| {
        let pid = pids.cell(*rank).map_or(0, |c| c.load(Ordering::Acquire));
        pid > 0 && process::state_of(pid as i32).is_some()
    });
    let left = left.count();
    let said = run.map_or_else(|e| e.to_string(), |_| "nothing".to_owned());
    vec![SelfCheck {
        id: id.to_owned(),
        what: what.to_owned(),
        truth: "member 1 gets SIGKILL".to_owned(),
        found: format!("'{said}' after {:.2} s, {left} processes left", took_ns as f64 / 1e9),
        bar: bar.to_owned(),
        state: State::of(
            said.contains("member 1 was killed by SIGKILL")
                && left == 0
                && took_ns < LIMIT_NS + 1_000_000_000,
        ),
    }]
}

/// Neighbors that want the CPUs.
const NEIGHBORS: usize = 8;
/// Most that they may move a transfer inside one placement.
const MOVED: f64 = 0.15;
/// Levels this far apart are two placements, not one that moved.
const APART: f64 = 1.5;
/// Turns of quiet and noise.
const TURNS: usize = 2;

/// Latencies of one kind by regime, with their share of the samples.
type Levels = Vec<(f64, f64)>;

fn transfer(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    const KINDS: [&str; 3] = ["cas", "store_load_1", "store_load_2"];
    let what = format!("{NEIGHBORS} threads that want the CPUs, beside lines that go from CPU to CPU");
    let bar = "less than 15 % inside one placement";
    let id = |kind: &str| format!("busy.{kind}");
    let refuse = |why: &str| KINDS.iter().map(|k| SelfCheck::not_shown(&id(k), &what, bar, why)).collect();
    if machine.allowed.len() < 2 {
        return refuse("needs two CPUs, has 1");
    }
    let slice_ns = if options.quick { 2_000_000_000 } else { 6_000_000_000 };
    let steal = Steal::watch();
    let mut metrics: [Vec<Metric>; 2] = [Vec::new(), Vec::new()];
    for turn in 0..2 * TURNS {
        let busy = if turn % 2 == 1 { Some(Busy::start(NEIGHBORS)) } else { None };
        if let Some(Err(why)) = &busy {
            return refuse(why);
        }
        let cpus = machine.allowed.iter().take(2).collect();
        let order = Order { cpus, policy: Some(ORDINARY), budget_ns: slice_ns };
        let measured = parameters::<Sync>(&serde_json::json!({"parts": [TRANSFER.name]})).and_then(|p| {
            machine.measure::<Sync>(order, &p).0.map(|m| Sync::analyze(&p, &m.samples, machine.seed))
        });
        match measured {
            Ok(analysis) => metrics[turn % 2].extend(analysis.metrics),
            Err(why) => return refuse(&why.to_string()),
        }
    }
    let stolen = steal.told(&machine.allowed);
    let check = |kind: &&str| {
        let [quiet, busy] = [0, 1].map(|i| levels(&metrics[i], kind));
        let id = id(kind);
        let Some((q, b)) = nearest(&quiet, &busy) else {
            let why = match (quiet.is_empty(), busy.is_empty()) {
                (true, _) => "too few undisturbed samples alone".to_owned(),
                (_, true) => "too few undisturbed samples beside them".to_owned(),
                _ => {
                    format!("the placement moved: {} ns alone, {} ns beside them", list(&quiet), list(&busy))
                }
            };
            return SelfCheck::not_shown(&id, &what, bar, why);
        };
        let moved = (b / q - 1.0).abs();
        let met = moved < MOVED;
        let why = stolen.as_ref().filter(|_| !met).map_or_else(String::new, |w| format!("; {w}"));
        SelfCheck {
            id,
            what: what.clone(),
            truth: format!("{q:.1} ns alone (levels {})", list(&quiet)),
            found: format!("{b:.1} ns beside them (levels {}): {:.1} %{why}", list(&busy), moved * 100.0),
            bar: bar.to_owned(),
            state: if !met && stolen.is_some() { State::NotShown } else { State::of(met) },
        }
    };
    KINDS.iter().map(check).collect()
}

fn levels(metrics: &[Metric], kind: &str) -> Levels {
    let of = |m: &&Metric| {
        m.id == CORE_TO_CORE.id && m.params.get("kind") == Some(&ParamValue::Text(kind.to_owned()))
    };
    metrics.iter().filter(of).filter_map(|m| Some((m.value?, m.n as f64))).collect()
}

/// The two levels, one of each, of which both hold most samples and that are one placement.
fn nearest(quiet: &Levels, busy: &Levels) -> Option<(f64, f64)> {
    let pairs = quiet.iter().flat_map(|q| busy.iter().map(move |b| (q, b)));
    let same = pairs.filter(|(q, b)| q.0.max(b.0) < APART * q.0.min(b.0));
    same.max_by(|x, y| (x.0.1.min(x.1.1)).total_cmp(&y.0.1.min(y.1.1))).map(|(q, b)| (q.0, b.0))
}

fn list(levels: &Levels) -> String {
    levels.iter().map(|l| format!("{:.1}", l.0)).collect::<Vec<_>>().join(", ")
}

fn bounds(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let budget_ns = if options.quick { 2_000_000_000 } else { 5_000_000_000 };
    vec![ends_in_time::<Sync>(machine, budget_ns)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_one_placement_are_compared_and_no_others() {
        let quiet = vec![(10.0, 50.0), (28.0, 90.0)];
        assert_eq!(nearest(&quiet, &vec![(105.0, 40.0), (30.0, 20.0), (10.5, 60.0)]), Some((10.0, 10.5)));
        assert_eq!(nearest(&quiet, &vec![(105.0, 40.0)]), None);
        assert_eq!(nearest(&quiet, &Vec::new()), None);
    }
}
