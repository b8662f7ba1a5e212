//! Video: 60 frames a second at 40 % of a CPU (interbench's load of the same name).

use machmeter_engine::load::LoadInfo;
use machmeter_engine::stream::Demand;

use crate::streams::play;
use crate::work::LoadEntry;

const PERIOD_NS: u64 = 16_666_667;
const CPU_NS: u64 = 6_666_667;
const JOBS: u64 = 60;

pub(crate) static VIDEO: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "video",
        description: "A video player: 60 frames a second at 40 % of a CPU.",
        work: "frames",
        ..LoadEntry::USUAL.info
    },
    run: Some(|work| play(work, "mm-video", PERIOD_NS, Demand::Cpu { ns: CPU_NS }, JOBS)),
    ..LoadEntry::USUAL
};
