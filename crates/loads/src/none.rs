//! No load: the idle machine, for comparison.

use machmeter_engine::load::{LoadInfo, LoadReport, RunningLoad};

use crate::work::LoadEntry;

pub(crate) static NONE: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "none",
        description: "No load: the machine as it is.",
        work: "no work",
        ..LoadEntry::USUAL.info
    },
    run: None,
    ..LoadEntry::USUAL
};

pub(crate) struct Nothing;

impl RunningLoad for Nothing {
    fn work(&self) -> u64 {
        0
    }
    fn failure(&mut self) -> Option<String> {
        None
    }
    fn processes(&self) -> Vec<i32> {
        Vec::new()
    }
    fn stop(self: Box<Self>) -> LoadReport {
        LoadReport::default()
    }
}
