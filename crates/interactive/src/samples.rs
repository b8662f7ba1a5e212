//! What was recorded: cells, their segments, every job of them; and the same as tables.

use machmeter_engine::stream::{Job, Stream};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    pub setup: Setup,
    /// Cells in the order of the tasks, then of the loads.
    pub cells: Vec<Cell>,
    pub loads: Vec<LoadNote>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Policy of the tasks, as in force.
    pub task_policy: String,
    pub load_policy: String,
    pub real_time: bool,
    pub cpus: usize,
    pub timer_slack_ns: Option<u64>,
    /// Turns of the loop per ms of CPU time by calibration, and what that took, ns.
    pub turns_per_ms: f64,
    /// Time that calibration took in the slowest task process, ns.
    pub calibration_ns: u64,
    pub comment: String,
    /// What the kernel takes from real-time threads on purpose and other conditions, in words.
    pub conditions: Vec<String>,
    pub predicted_from: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub task: String,
    pub load: String,
    pub stream: Stream,
    #[serde(skip)]
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Start after the start of the run, ns.
    pub start_ns: u64,
    /// Length by plan, ns: releases before its end are scheduled.
    pub length_ns: u64,
    /// Every release, in order. Those of a chain have the waits of all its threads.
    #[serde(with = "crate::worker::short_jobs")]
    pub jobs: Vec<Job>,
    /// Releases by schedule; equal to the number of jobs, or something was lost.
    pub scheduled: u64,
    /// Units of work that the load got done meanwhile, and for how long it was counted, ns.
    pub load_work: u64,
    pub load_ns: u64,
    /// Wait for a CPU by the kernel's account (`schedstat`), over the threads of the task; ns.
    pub run_delay_ns: Option<u64>,
    /// CPU time by the kernel's account, over the threads of the task; ns.
    pub on_cpu_ns: Option<u64>,
    pub voluntary: u64,
    pub involuntary: u64,
    pub steal_ns: Option<u64>,
    /// Pressure: share of time in which some task waited for a CPU, by the kernel's account.
    pub cpu_pressure: Option<f64>,
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadNote {
    pub name: String,
    /// What a unit of its work is.
    pub work: String,
    /// Unit of its work, as a UCUM code of a rate or count.
    pub unit: String,
    pub caveats: Vec<String>,
    pub side_effects: Vec<String>,
    /// Why it could not be had, or ended early.
    pub failure: Option<String>,
}
