//! The leader of a load: a process that waits, and ends the load when it is told to or when its starter is gone.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender, channel};

use machmeter_engine::load::LoadError;
use machmeter_engine::role::{self, Role, RoleError};
use machmeter_engine::worker::Worker;
use machmeter_sys::affinity;
use machmeter_sys::cgroup::Group;
use machmeter_sys::process::{self, Spawn};
use machmeter_sys::sched::{self, Policy, RT_PRIORITY_MAX};
use machmeter_sys::shared::SharedCounters;
use machmeter_sys::thread::monotonic_ns;

use crate::directory;
use crate::message::{Message, Order, Replies, Request};
use crate::work::WORKER;

pub(crate) const LEADER: Worker = Worker { name: "load", run: lead };

/// What a worker gets to end by itself when it was told to, and when the starter is gone.
const END_WITHIN_NS: u64 = 700_000_000;
const ALONE_END_WITHIN_NS: u64 = 200_000_000;
/// What killing the rest and removing the files may take, each.
const KILL_WITHIN_NS: u64 = 400_000_000;
const REMOVE_WITHIN_NS: u64 = 400_000_000;

enum Event {
    End,
    Alone,
    Says(Message),
    Silent(RoleError),
}

fn lead(_: &[OsString]) -> u8 {
    let Ok((mut requests, mut to)) = role::starter::<Request, Message>() else { return 1 };
    let Ok(Request::Begin(order)) = requests.next(None) else { return 1 };
    let (sender, events) = channel();
    let from_starter = sender.clone();
    let heard = requests.listen(move |request| {
        let _ = from_starter.send(request.map_or(Event::Alone, |_| Event::End));
    });
    let cannot = |e: io::Error| LoadError::Cannot(format!("the leader of a load: {e}"));
    let led = heard.and_then(|()| order.counters()).map_err(cannot).and_then(|counters| {
        be_ordinary(&order);
        let group = group(&order, &mut to)?;
        let directory = order.directory.clone();
        let worker = start(*order, &counters, group.as_ref(), sender)?;
        Ok(Led { worker, directory, groups: Vec::new(), group })
    });
    match led {
        Ok(led) => led.until_the_end(&events, &mut to),
        Err(e) => {
            Message::failure(&e).send(&mut to);
            1
        }
    }
}

/// Makes the control group that was asked for. The starter is told what to remove should this process be killed.
fn group(order: &Order, to: &mut Replies) -> Result<Option<Group>, LoadError> {
    let group = order.request.attributes.make_group(&format!("load-{}", order.request.name));
    let group = group.map_err(|e| LoadError::Usage(format!("load '{}': {e}", order.request.name)))?;
    if let Some(group) = &group {
        group.directories().for_each(|d| Message::Group(d.to_owned()).send(to));
        group.caveats().iter().for_each(|c| Message::Caveat(c.clone()).send(to));
    }
    Ok(group)
}

/// Starts the worker, which joins its group before it is told what to do.
fn start(
    mut order: Order,
    counters: &SharedCounters,
    group: Option<&Group>,
    events: Sender<Event>,
) -> Result<Role<Order, Message>, LoadError> {
    let cannot = |e: io::Error| LoadError::Cannot(format!("the process of a load: {e}"));
    process::become_subreaper().map_err(cannot)?;
    let spawn = Spawn::worker(WORKER.name).die_with_parent().pass_fd(counters.fd());
    let mut worker = Role::start(spawn).map_err(cannot)?;
    if let Some(group) = group {
        group.add(worker.peer().pid()).map_err(|e| LoadError::Usage(e.to_string()))?;
    }
    order.counters_fd = counters.fd().as_raw_fd();
    worker.send(&order).map_err(|e| LoadError::Cannot(format!("the process of a load {e}")))?;
    let said = worker.take_replies().ok_or(io::ErrorKind::NotConnected.into()).map_err(cannot)?;
    said.listen(move |message| {
        let _ = events.send(message.map_or_else(Event::Silent, Event::Says));
    })
    .map_err(cannot)?;
    Ok(worker)
}

/// A leader must be able to run whatever its load does. Where that is refused, what was inherited must do.
fn be_ordinary(order: &Order) {
    let above_the_load = match order.request.attributes.policy() {
        Ok(Policy::Fifo(p) | Policy::Rr(p)) => Some(p.saturating_add(1).min(RT_PRIORITY_MAX)),
        Ok(Policy::Deadline { .. }) => Some(RT_PRIORITY_MAX),
        _ => None,
    };
    let wanted = above_the_load.map_or(Policy::ordinary(), Policy::Fifo);
    let inherited_fits = matches!(sched::current(), Ok(Policy::Other { .. })) && above_the_load.is_none();
    if !inherited_fits {
        let _ = sched::apply(wanted);
    }
    if let Ok(cpus) = order.request.cpus.parse() {
        let _ = affinity::set_mask(&cpus);
    }
}

struct Led {
    worker: Role<Order, Message>,
    directory: PathBuf,
    groups: Vec<PathBuf>,
    /// Removed last, when no process is in it any more.
    group: Option<Group>,
}

impl Led {
    fn until_the_end(mut self, events: &Receiver<Event>, to: &mut Replies) -> u8 {
        let mut said_the_last = false;
        while let Ok(event) = events.recv() {
            match event {
                Event::Says(Message::Ended) => {
                    said_the_last = true;
                    Message::failure(&LoadError::Cannot("it ended by itself".to_owned())).send(to);
                }
                Event::Says(message) => {
                    said_the_last |= matches!(message, Message::Failure { .. });
                    self.pass_on(message, to);
                }
                Event::Silent(why) => {
                    let status = self.worker.peer_mut().wait(KILL_WITHIN_NS);
                    if !said_the_last {
                        Message::failure(&LoadError::Cannot(death(&why, status))).send(to);
                    }
                    // What it started goes with it; the starter's next word is awaited without a load.
                    process::kill_rest_of_group(monotonic_ns() + KILL_WITHIN_NS);
                }
                Event::End => {
                    self.end(END_WITHIN_NS, events, to);
                    Message::Ended.send(to);
                    return 0;
                }
                Event::Alone => break,
            }
        }
        self.end(ALONE_END_WITHIN_NS, events, to);
        0
    }

    /// The worker's own end is not the load's.
    fn pass_on(&mut self, message: Message, to: &mut Replies) {
        if message == Message::Ended {
            return;
        }
        message.send(to);
        if let Message::Group(path) = message {
            self.groups.push(path);
        }
    }

    /// Ends the worker, first by asking; kills the rest; removes what it made.
    fn end(&mut self, within_ns: u64, events: &Receiver<Event>, to: &mut Replies) {
        self.worker.close();
        if self.worker.peer_mut().wait(within_ns).is_none() {
            self.worker.peer().kill();
        }
        process::kill_rest_of_group(monotonic_ns() + KILL_WITHIN_NS);
        let _ = self.worker.peer_mut().wait(KILL_WITHIN_NS);
        process::reap_orphans();
        while let Ok(Event::Says(message)) = events.try_recv() {
            self.pass_on(message, to);
        }
        directory::remove(&self.directory, monotonic_ns() + REMOVE_WITHIN_NS);
        directory::remove_groups(&self.groups, monotonic_ns() + REMOVE_WITHIN_NS);
        drop(self.group.take());
    }
}

fn death(why: &RoleError, status: Option<ExitStatus>) -> String {
    match (why, status) {
        (RoleError::Ended(_), Some(status)) => format!("its process ended early ({status})"),
        (RoleError::Ended(_), None) => "its process closed its output and hangs".to_owned(),
        (why, _) => format!("its process {why}"),
    }
}
