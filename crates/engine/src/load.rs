//! Loads: process trees beside a measured task that tell their work, end in bounded time, and leave nothing behind.

use std::path::PathBuf;

use machmeter_data::quantity::Unit;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::attributes::Attributes;

#[derive(Debug)]
pub struct LoadInfo {
    /// Its name, in lower case.
    pub name: &'static str,
    pub description: &'static str,
    /// What one unit of its work is, in the plural (`stretches of 1 ms`, `bytes`, `processes`).
    pub work: &'static str,
    /// Unit of its work per second.
    pub unit: Unit,
    /// Among the loads that are used when none are named.
    pub by_default: bool,
    /// One of interbench's.
    pub classic: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRequest {
    pub name: String,
    /// Threads (burn) or groups (hack), where the load has a choice.
    pub threads: Option<u32>,
    /// Demand of the custom load: share of a CPU (0 to 1) and period, ns.
    pub custom: Option<(f64, u64)>,
    pub attributes: Attributes,
    /// CPUs this process may use.
    pub cpus: String,
    /// Directory in which a load that needs files makes its own.
    pub directory: PathBuf,
    /// Bytes of files at most; never more than 5 % of what is free.
    pub disk_bytes: u64,
    /// Bytes of memory at most; chosen by the load when not given.
    pub memory_bytes: Option<u64>,
    pub seed: u64,
}

#[derive(Debug, Error)]
pub enum LoadError {
    /// The request is wrong, or what it asks for by name is refused.
    #[error("{0}")]
    Usage(String),
    /// The system does not let it run here.
    #[error("{0}")]
    Cannot(String),
}

/// What a load has to say at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Units of work done since it was started.
    pub work: u64,
    /// What weakens it here (no swap, no memory group, the file in the page cache), in one line each.
    pub caveats: Vec<String>,
    /// What it did to the machine and undid, in one line each.
    pub side_effects: Vec<String>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
}

/// A load at work. Dropping it stops it as [`RunningLoad::stop`] does.
pub trait RunningLoad: Send {
    /// Units of work done so far. A memory read: it wakes nobody.
    fn work(&self) -> u64;
    /// Why it is not working any more, if so.
    fn failure(&mut self) -> Option<String>;
    /// Process ids of the whole tree, leader first; empty for a load without processes.
    fn processes(&self) -> Vec<i32>;
    /// Ends it within two seconds, by force if need be; nothing is left behind.
    fn stop(self: Box<Self>) -> LoadReport;
}

pub trait Loads: Sync {
    /// All, sorted by name.
    fn infos(&self) -> Vec<&'static LoadInfo>;
    /// Refuses what can be told to be wrong without starting anything.
    fn check(&self, request: &LoadRequest) -> Result<(), LoadError>;
    /// Starts one. Returns when it works.
    fn start(&self, request: &LoadRequest) -> Result<Box<dyn RunningLoad>, LoadError>;
}

/// No loads at all, for programs that have none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLoads;

impl Loads for NoLoads {
    fn infos(&self) -> Vec<&'static LoadInfo> {
        Vec::new()
    }
    fn check(&self, request: &LoadRequest) -> Result<(), LoadError> {
        Err(LoadError::Usage(format!("no load '{}': this program has none", request.name)))
    }
    fn start(&self, request: &LoadRequest) -> Result<Box<dyn RunningLoad>, LoadError> {
        Err(LoadError::Usage(format!("no load '{}': this program has none", request.name)))
    }
}
