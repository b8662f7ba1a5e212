//! What every probe shares: its clock, host, budget, and the registry through which the program knows it.
#![forbid(unsafe_code)]

pub mod attributes;
pub mod calibration;
pub mod cost;
pub mod cpu_work;
pub mod deadline;
pub mod disturbance;
pub mod experiment;
pub mod host;
pub mod level;
pub mod load;
pub mod part;
pub mod placement;
pub mod probe;
pub mod role;
pub mod sampling;
pub mod selftest;
pub mod settings;
pub mod stream;
pub mod team;
pub mod worker;

pub use attributes::Attributes;
pub use deadline::Deadline;
pub use host::{Host, Progress, Silent, Stored};
pub use level::Level;
pub use load::{LoadError, LoadInfo, LoadReport, LoadRequest, Loads, NoLoads, RunningLoad};
pub use probe::{Analysis, Entry, Info, Page, Probe, ProbeError};
pub use role::{Role, RoleError};
pub use worker::Worker;
