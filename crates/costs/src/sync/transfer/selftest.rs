//! Self-test: neighbors are let loose on the CPUs while lines go from one to the other.

use machmeter_data::Metric;
use machmeter_data::metric::ParamValue;
use machmeter_engine::Probe;
use machmeter_engine::probe::parameters;
use machmeter_engine::selftest::machine::{Busy, Machine, Order, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, Shown, State, check};

use machmeter_sys::sched::Policy;
use machmeter_sys::topology::CpuSet;

use super::{CORE_TO_CORE, PART};
use crate::sync::Sync;
use crate::sync::cost::NEEDS_TWO;

const NEIGHBORS: usize = 8;
/// Most that they may move a transfer inside one placement.
const MOVED: f64 = 0.15;
/// Levels this far apart are two placements, not one that moved.
const APART: f64 = 1.5;
const TURNS: usize = 2;

/// Latencies of one kind by placement, with their share of the samples.
type Levels = Vec<(f64, f64)>;

pub(super) fn busy_neighbors(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = format!("{NEIGHBORS} threads that want the CPUs, beside lines that go from CPU to CPU");
    let bar = "less than 15 % inside one placement";
    let steal = Steal::watch();
    let measured = by_turns(machine, if options.quick { 2_000_000_000 } else { 6_000_000_000 });
    let stolen = steal.told(&machine.allowed);
    let checked = |kind: &str| {
        let shown = measured.as_ref().map_err(Clone::clone);
        let shown = shown.and_then(|all| compared(all.each_ref().map(|metrics| levels(metrics, kind))));
        check(&format!("busy.{kind}"), &what, bar, shown).excused(stolen.as_deref())
    };
    ["cas", "store_load_1", "store_load_2"].map(checked).into()
}

/// What is measured alone, and beside the neighbors.
fn by_turns(machine: &Machine, slice_ns: u64) -> Result<[Vec<Metric>; 2], String> {
    let cpus: CpuSet = machine.allowed.iter().take(2).collect();
    if cpus.len() < 2 {
        return Err(NEEDS_TWO.to_owned());
    }
    let params = parameters::<Sync>(&serde_json::json!({"parts": [PART.name]})).map_err(|e| e.to_string())?;
    let mut metrics = [Vec::new(), Vec::new()];
    for turn in 0..2 * TURNS {
        let _busy = if turn % 2 == 1 { Some(Busy::start(NEIGHBORS)?) } else { None };
        let (cpus, policy) = (cpus.clone(), Some(Policy::ordinary()));
        let measured = machine.measure::<Sync>(Order { cpus, policy, budget_ns: slice_ns }, &params).0;
        let samples = measured.map_err(|e| e.to_string())?.samples;
        metrics[turn % 2].extend(Sync::analyze(&params, &samples, machine.seed).metrics);
    }
    Ok(metrics)
}

fn compared([quiet, busy]: [Levels; 2]) -> Shown {
    let Some((q, b)) = nearest(&quiet, &busy) else {
        return Err(match (quiet.is_empty(), busy.is_empty()) {
            (true, _) => "too few undisturbed samples alone".to_owned(),
            (_, true) => "too few undisturbed samples beside them".to_owned(),
            _ => format!("the placement moved: {} ns alone, {} ns beside them", list(&quiet), list(&busy)),
        });
    };
    let moved = (b / q - 1.0).abs();
    let truth = format!("{q:.1} ns alone (levels {})", list(&quiet));
    let found = format!("{b:.1} ns beside them (levels {}): {:.1} %", list(&busy), moved * 100.0);
    Ok((truth, found, State::of(moved < MOVED)))
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
