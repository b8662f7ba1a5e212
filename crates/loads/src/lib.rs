//! Loads: what keeps the machine busy while a task is measured.
//!
//! A load is one file and one line of [`LOADS`]. It runs as a process tree of its own:
//!
//! ```text
//! this program ──> leader (role "load") ──> worker (role "load-work") ──> threads, children
//!   running.rs        leader.rs                work.rs, burn.rs, ...
//! ```
//!
//! The worker does the work, under the scheduling attributes asked for. The leader does nothing but wait, under the normal
//! policy, so that it can end a worker that is stuck; it leads the process group. The starter holds the leader's stdin:
//! when that ends, everything ends. Work done is counted in shared memory, which costs nobody a wake-up.

mod burn;
mod compile;
mod custom;
mod directory;
mod hack;
mod leader;
mod membw;
mod memload;
mod message;
mod none;
mod read;
mod ring;
mod rt_hog;
mod running;
mod streams;
mod video;
mod work;
mod write;
mod x;

pub use message::orders;
pub use work::{Count, LoadEntry, Run, Work};

use machmeter_engine::load::{LoadError, LoadInfo, LoadRequest, Loads, RunningLoad};
use machmeter_engine::worker::Worker;

/// Every load, sorted by name.
pub const LOADS: &[&LoadEntry] = &[
    &burn::BURN,
    &compile::COMPILE,
    &custom::CUSTOM,
    &hack::HACK,
    &membw::MEMBW,
    &memload::MEMLOAD,
    &none::NONE,
    &read::READ,
    &ring::RING,
    &rt_hog::RT_HOG,
    &video::VIDEO,
    &write::WRITE,
    &x::X,
];

/// Loads whose threads are all those of [`Work::threads`], and no processes: only they can have the deadline policy.
pub(crate) const ONLY_THREADS: &[&str] = &["burn", "custom", "membw", "read", "ring", "video", "write", "x"];

pub const WORKERS: &[Worker] = &[compile::BUILDER, leader::LEADER, memload::TOUCHER, work::WORKER];

#[derive(Debug, Clone, Copy, Default)]
pub struct AllLoads;

impl Loads for AllLoads {
    fn infos(&self) -> Vec<&'static LoadInfo> {
        LOADS.iter().map(|l| &l.info).collect()
    }

    fn check(&self, request: &LoadRequest) -> Result<(), LoadError> {
        work::check(entry(&request.name)?, request)
    }

    fn start(&self, request: &LoadRequest) -> Result<Box<dyn RunningLoad>, LoadError> {
        self.check(request)?;
        if request.name == none::NONE.info.name {
            return Ok(Box::new(none::Nothing));
        }
        running::start(request)
    }
}

fn entry(name: &str) -> Result<&'static LoadEntry, LoadError> {
    LOADS.iter().copied().find(|l| l.info.name == name).ok_or_else(|| {
        let names: Vec<&str> = LOADS.iter().map(|l| l.info.name).collect();
        LoadError::Usage(format!("no load '{name}': choose from {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_sorted_unique_and_described() {
        let names: Vec<&str> = LOADS.iter().map(|l| l.info.name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for l in LOADS {
            let i = &l.info;
            assert_eq!(i.name, i.name.to_lowercase());
            assert!(i.description.len() > 10 && !i.description.contains('\n'), "{}", i.name);
            assert!(!i.work.is_empty(), "{}", i.name);
            assert!(l.run.is_some() || i.name == "none");
        }
    }
}
