//! Self-test: neighbors are let loose on the CPUs while lines go from one to the other.

use machmeter_data::Metric;
use machmeter_data::metric::ParamValue;
use machmeter_engine::Probe;
use machmeter_engine::probe::parameters;
use machmeter_engine::selftest::machine::{Busy, Machine, Order, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, State};

use machmeter_sys::sched::Policy;

use super::{CORE_TO_CORE, PART};
use crate::sync::Sync;
use crate::sync::cost::NEEDS_TWO;

const NEIGHBORS: usize = 8;
/// Most that they may move a transfer inside one placement.
const MOVED: f64 = 0.15;
/// Levels this far apart are two placements, not one that moved.
const APART: f64 = 1.5;
const TURNS: usize = 2;

/// Latencies of one kind by regime, with their share of the samples.
type Levels = Vec<(f64, f64)>;

pub(super) fn busy_neighbors(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    const KINDS: [&str; 3] = ["cas", "store_load_1", "store_load_2"];
    let what = format!("{NEIGHBORS} threads that want the CPUs, beside lines that go from CPU to CPU");
    let bar = "less than 15 % inside one placement";
    let id = |kind: &str| format!("busy.{kind}");
    let refuse = |why: &str| KINDS.iter().map(|k| SelfCheck::not_shown(&id(k), &what, bar, why)).collect();
    if machine.allowed.len() < 2 {
        return refuse(NEEDS_TWO);
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
        let order = Order { cpus, policy: Some(Policy::ordinary()), budget_ns: slice_ns };
        let measured = parameters::<Sync>(&serde_json::json!({"parts": [PART.name]})).and_then(|p| {
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
        SelfCheck::new(
            &id,
            &what,
            bar,
            format!("{q:.1} ns alone (levels {})", list(&quiet)),
            format!("{b:.1} ns beside them (levels {}): {:.1} %", list(&busy), moved * 100.0),
            State::of(moved < MOVED),
        )
        .excused(stolen.as_deref())
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
