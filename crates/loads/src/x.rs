//! X: a user interface that wants from nothing to all of a CPU, in steps of 10 % every 100 ms (interbench's X, whose steps are of 1 %).

use machmeter_engine::load::LoadInfo;
use machmeter_engine::stream::Demand;

use crate::streams::play;
use crate::work::LoadEntry;

const PERIOD_NS: u64 = 100_000_000;
/// From 0 to 100 %, both included, as the task x has at least: a whole ramp fits into the 2 s of a cell of a quick run.
const STEPS: u32 = 11;
const DEMAND: Demand = Demand::Ramp { most_ns: PERIOD_NS, steps: STEPS };

pub(crate) static X: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "x",
        description: "A user interface with a repeated ramp from 0 to 100 % of a CPU in 1 s.",
        work: "redraws",
        ..LoadEntry::USUAL.info
    },
    run: Some(|work| play(work, "mm-x", PERIOD_NS, DEMAND, u64::from(STEPS))),
    ..LoadEntry::USUAL
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seconds_hold_a_whole_ramp() {
        let asked: Vec<u64> = (0..20).filter_map(|k| DEMAND.cpu_ns(k)).collect();
        assert!(asked.contains(&0) && asked.contains(&PERIOD_NS), "{asked:?}");
    }
}
