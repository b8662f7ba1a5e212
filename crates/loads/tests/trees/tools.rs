//! What the tests share: requests, and what must not be left behind.

use std::ffi::OsString;
use std::path::Path;

use machmeter_engine::attributes::Attributes;
use machmeter_engine::load::{LoadError, LoadRequest, Loads, RunningLoad};
use machmeter_engine::role;
use machmeter_engine::worker::{NOTHING, Worker};
use machmeter_loads::AllLoads;
use machmeter_sys::process;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

pub(crate) const ROLES: &[Worker] =
    &[NOTHING, crate::memload::ROLE, Worker { name: "test-starter", run: be_a_starter }];

pub(crate) fn request(name: &str, directory: &Path) -> LoadRequest {
    LoadRequest {
        name: name.to_owned(),
        threads: None,
        custom: (name == "custom").then_some((0.3, 5_000_000)),
        attributes: Attributes::default(),
        cpus: String::new(),
        directory: directory.to_owned(),
        disk_bytes: 16 << 20,
        memory_bytes: Some(64 << 20),
        seed: 7,
    }
}

/// Starts a load; `None`, and says why, where this machine refuses what is asked for.
pub(crate) fn started(request: &LoadRequest) -> Option<Box<dyn RunningLoad>> {
    match AllLoads.start(request) {
        Ok(running) => Some(running),
        Err(LoadError::Usage(why)) => {
            println!("{}: refused here: {why}", request.name);
            None
        }
        Err(e) => panic!("{}: {e}", request.name),
    }
}

pub(crate) fn pause_ns(ns: u64) {
    nanosleep_until(monotonic_ns() + ns);
}

pub(crate) fn within(limit_ns: u64, mut holds: impl FnMut() -> bool) -> bool {
    let deadline_ns = monotonic_ns() + limit_ns;
    while !holds() {
        if monotonic_ns() > deadline_ns {
            return false;
        }
        pause_ns(2_000_000);
    }
    true
}

/// Processes that this run of the tests started in a role and that live now.
pub(crate) fn workers() -> Vec<i32> {
    let me = process::program();
    let ours = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == me);
    process::commands_with(process::WORKER_ARGUMENT).into_iter().filter(ours).collect()
}

pub(crate) fn entries(directory: &Path) -> Vec<OsString> {
    std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name()).collect()
}

/// A main program that starts a load and is killed at some time.
fn be_a_starter(arguments: &[OsString]) -> u8 {
    let [name, directory] = arguments else { return 2 };
    let request = request(&name.to_string_lossy(), Path::new(directory));
    let Ok(running) = AllLoads.start(&request) else { return 1 };
    let (_requests, mut to) = role::starter::<(), i32>().unwrap();
    to.send(&running.processes().first().copied().unwrap_or(0)).unwrap();
    pause_ns(60 * SECOND_NS);
    drop(running);
    0
}
