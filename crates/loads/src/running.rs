//! The starter's side of a running load.

use std::os::fd::AsRawFd;
use std::path::PathBuf;

use machmeter_engine::load::{LoadError, LoadReport, LoadRequest, RunningLoad};
use machmeter_engine::role::{Role, RoleError};
use machmeter_sys::abandoned::{self, LOAD};
use machmeter_sys::process::{self, Spawn};
use machmeter_sys::shared::SharedCounters;
use machmeter_sys::thread::monotonic_ns;

use crate::directory;
use crate::leader::LEADER;
use crate::message::{LANES, Message, Order, Request};

/// What a load may take to begin to work.
const START_WITHIN_NS: u64 = 3_000_000_000;
/// What a leader gets to end its load and to say so; then it is killed with all that is below it.
const STOP_WITHIN_NS: u64 = 1_500_000_000;
/// What removing the files may take then.
const REMOVE_WITHIN_NS: u64 = 300_000_000;

pub(crate) struct Running {
    name: String,
    leader: Role<Request, Message>,
    counters: SharedCounters,
    directory: PathBuf,
    groups: Vec<PathBuf>,
    report: LoadReport,
    /// The request is to blame for the failure in the report.
    usage: bool,
    over: bool,
}

pub(crate) fn start(request: &LoadRequest) -> Result<Box<dyn RunningLoad>, LoadError> {
    let cannot = |e: std::io::Error| LoadError::Cannot(format!("load '{}': {e}", request.name));
    abandoned::sweep(&request.directory, LOAD);
    // Orphans of a leader that was killed come to us, so that they do not stay as zombies where init does not reap.
    process::become_subreaper().map_err(cannot)?;
    let counters = SharedCounters::create(LANES).map_err(cannot)?;
    let directory = abandoned::choose(&request.directory, LOAD);
    let order = Order {
        request: request.clone(),
        directory: directory.clone(),
        counters_fd: counters.fd().as_raw_fd(),
    };
    let leader = Spawn::worker(LEADER.name).new_group().pass_fd(counters.fd());
    let mut running = Running {
        name: request.name.clone(),
        leader: Role::start(leader).map_err(cannot)?,
        counters,
        directory,
        groups: Vec::new(),
        report: LoadReport::default(),
        usage: false,
        over: false,
    };
    running.begin(order)?;
    Ok(Box::new(running))
}

impl Running {
    fn begin(&mut self, order: Order) -> Result<(), LoadError> {
        // A leader that is gone is noticed below.
        let _ = self.leader.send(&Request::Begin(Box::new(order)));
        if self.hear(monotonic_ns() + START_WITHIN_NS, &Message::Ready) {
            return Ok(());
        }
        let name = &self.name;
        Err(match (self.report.failure.take(), self.usage) {
            (Some(text), true) => LoadError::Usage(text),
            (Some(text), false) => LoadError::Cannot(format!("load '{name}': {text}")),
            (None, _) => LoadError::Cannot(format!(
                "load '{name}' did not start to work within {} s",
                START_WITHIN_NS / 1_000_000_000
            )),
        })
    }

    /// Takes in what the leader says until `last`, a failure, or the deadline; returns whether `last` came.
    fn hear(&mut self, deadline_ns: u64, last: &Message) -> bool {
        loop {
            match self.leader.receive(deadline_ns) {
                Ok(m) if m == *last => return true,
                Ok(m) => {
                    self.note(m);
                    if self.report.failure.is_some() && *last == Message::Ready {
                        return false;
                    }
                }
                Err(RoleError::Late) => return false,
                Err(e) => {
                    self.report.failure.get_or_insert_with(|| format!("its leader {e}"));
                    return false;
                }
            }
        }
    }

    fn note(&mut self, message: Message) {
        match message {
            Message::Caveat(text) => self.report.caveats.push(text),
            Message::SideEffect(text) => self.report.side_effects.push(text),
            Message::Group(path) => self.groups.push(path),
            Message::Failure { usage, text } => {
                self.usage = usage;
                self.report.failure.get_or_insert(text);
            }
            Message::Ready | Message::Ended => {}
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let asked = self.leader.send(&Request::End).is_ok();
        let ended = asked && self.hear(monotonic_ns() + STOP_WITHIN_NS, &Message::Ended);
        // Whatever the leader says: its group is ended now.
        self.leader.kill();
        let _ = self.leader.peer_mut().wait(REMOVE_WITHIN_NS);
        if !ended {
            self.report.failure.get_or_insert_with(|| "it did not end on request and was killed".to_owned());
        }
        self.report.work = self.work();
        if !directory::remove(&self.directory, monotonic_ns() + REMOVE_WITHIN_NS) {
            let left = self.directory.display();
            self.report.caveats.push(format!("its directory could not be removed: {left}"));
        }
        directory::remove_groups(&self.groups, monotonic_ns() + REMOVE_WITHIN_NS);
    }
}

impl RunningLoad for Running {
    fn work(&self) -> u64 {
        self.counters.sum()
    }

    fn failure(&mut self) -> Option<String> {
        if self.report.failure.is_none() && !self.over {
            // Only what is there already.
            self.hear(0, &Message::Ended);
        }
        self.report.failure.clone()
    }

    fn processes(&self) -> Vec<i32> {
        let leader = self.leader.peer().pid();
        let mut all = process::processes_of_group(leader);
        all.sort_by_key(|p| (*p != leader, *p));
        all
    }

    fn stop(mut self: Box<Self>) -> LoadReport {
        self.end();
        std::mem::take(&mut self.report)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
