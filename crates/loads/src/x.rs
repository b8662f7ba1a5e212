//! X: a user interface that wants from nothing to all of a CPU, in steps of 1 % every 100 ms (interbench's X).

use machmeter_engine::load::LoadInfo;
use machmeter_engine::stream::Demand;

use crate::streams::play;
use crate::work::LoadEntry;

const PERIOD_NS: u64 = 100_000_000;
/// From 0 to 100 %, both included.
const STEPS: u32 = 101;

pub(crate) static X: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "x",
        description: "A user interface whose demand climbs from 0 to 100 % of a CPU in 10 s, again and again.",
        work: "redraws",
        ..LoadEntry::USUAL.info
    },
    run: Some(|work| {
        let demand = Demand::Ramp { most_ns: PERIOD_NS, steps: STEPS };
        play(work, "mm-x", PERIOD_NS, demand, u64::from(STEPS))
    }),
    ..LoadEntry::USUAL
};
