//! The leader of a load: a process that waits, and ends the load when it is told to or when its starter is gone.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender, channel};

use machmeter_engine::load::LoadError;
use machmeter_engine::worker::Worker;
use machmeter_sys::affinity;
use machmeter_sys::cgroup::Group;
use machmeter_sys::process::{self, Child, LineReader, Spawn};
use machmeter_sys::sched::{self, Policy, RT_PRIORITY_MAX};
use machmeter_sys::shared::SharedCounters;
use machmeter_sys::thread::{monotonic_ns, spawn_plain};

use crate::directory;
use crate::message::{Message, Order};
use crate::work::WORKER;

/// The role that leads.
pub(crate) const LEADER: Worker = Worker { name: "load", run: lead };

/// What a worker gets to end by itself when it was told to, and when the starter is gone.
const END_WITHIN_NS: u64 = 700_000_000;
const ALONE_END_WITHIN_NS: u64 = 200_000_000;
/// What killing the rest and removing the files may take, each.
const KILL_WITHIN_NS: u64 = 400_000_000;
const REMOVE_WITHIN_NS: u64 = 400_000_000;

/// What a leader waits for.
enum Event {
    /// A line from the starter.
    Line(String),
    /// The starter is gone.
    Alone,
    /// The worker says something.
    Says(Message),
    /// The worker has closed its end, as all processes do when they end.
    Silent,
}

/// The process of the role.
fn lead(_: &[OsString]) -> u8 {
    let Ok(mut to) = process::take_stdout() else { return 1 };
    let (sender, events) = channel();
    let from_starter = sender.clone();
    let heard = process::listen(move |line| {
        let _ = from_starter.send(line.map_or(Event::Alone, Event::Line));
    });
    let Ok(Event::Line(line)) = heard.and_then(|()| events.recv().map_err(io::Error::other)) else {
        return 1;
    };
    let cannot = |e: io::Error| LoadError::Cannot(format!("the leader of a load: {e}"));
    let led = Order::from_line(&line).map_err(cannot).and_then(|(order, counters)| {
        be_ordinary(&order);
        let group = group(&order, &mut to)?;
        let child = start(&order, &counters, group.as_ref(), sender)?;
        Ok(Led { child, directory: order.directory, groups: Vec::new(), group })
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
fn group(order: &Order, to: &mut File) -> Result<Option<Group>, LoadError> {
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
    order: &Order,
    counters: &SharedCounters,
    group: Option<&Group>,
    events: Sender<Event>,
) -> Result<Child, LoadError> {
    let cannot = |e: io::Error| LoadError::Cannot(format!("the process of a load: {e}"));
    process::become_subreaper().map_err(cannot)?;
    let for_worker = Order {
        request: order.request.clone(),
        directory: order.directory.clone(),
        counters_fd: counters.fd().as_raw_fd(),
    };
    let worker = Spawn::worker(WORKER.name).die_with_parent().pass_fd(counters.fd()).piped();
    let mut child = worker.start().map_err(cannot)?;
    if let Some(group) = group {
        group.add(child.pid()).map_err(|e| LoadError::Usage(e.to_string()))?;
    }
    for_worker.line().and_then(|line| child.write_line(&line)).map_err(cannot)?;
    let lines = child.take_lines().ok_or(io::ErrorKind::NotConnected.into()).map_err(cannot)?;
    spawn_plain("machmeter-load", move || hear(lines, &events)).map_err(cannot)?;
    Ok(child)
}

/// The policy and the CPUs of the starter's thread are its own affair; a leader must be able to run whatever its load
/// does. Where that is refused, what was inherited must do.
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

fn hear(mut lines: LineReader, events: &Sender<Event>) {
    while let Ok(Some(line)) = lines.next(None) {
        if let Some(message) = Message::read(&line)
            && events.send(Event::Says(message)).is_err()
        {
            return;
        }
    }
    let _ = events.send(Event::Silent);
}

/// A worker and what to remove after it.
struct Led {
    child: Child,
    directory: PathBuf,
    groups: Vec<PathBuf>,
    /// Removed last, when no process is in it any more.
    group: Option<Group>,
}

impl Led {
    fn until_the_end(mut self, events: &Receiver<Event>, to: &mut File) -> u8 {
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
                Event::Silent => {
                    let status = self.child.wait(KILL_WITHIN_NS);
                    if !said_the_last {
                        Message::failure(&LoadError::Cannot(death(status))).send(to);
                    }
                    // What it started goes with it; the starter's next word is awaited without a load.
                    process::kill_rest_of_group(monotonic_ns() + KILL_WITHIN_NS);
                }
                Event::Line(_) => {
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
    fn pass_on(&mut self, message: Message, to: &mut File) {
        match message {
            Message::Ended => {}
            message => {
                message.send(to);
                if let Message::Group(path) = message {
                    self.groups.push(path);
                }
            }
        }
    }

    /// Ends the worker, first by asking; kills the rest; removes what it made.
    fn end(&mut self, within_ns: u64, events: &Receiver<Event>, to: &mut File) {
        self.child.close_stdin();
        if self.child.wait(within_ns).is_none() {
            self.child.kill();
        }
        process::kill_rest_of_group(monotonic_ns() + KILL_WITHIN_NS);
        let _ = self.child.wait(KILL_WITHIN_NS);
        process::reap_orphans();
        while let Ok(Event::Says(message)) = events.try_recv() {
            self.pass_on(message, to);
        }
        directory::remove(&self.directory, monotonic_ns() + REMOVE_WITHIN_NS);
        directory::remove_groups(&self.groups, monotonic_ns() + REMOVE_WITHIN_NS);
        drop(self.group.take());
    }
}

fn death(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!("its process ended early ({status})"),
        None => "its process closed its output and hangs".to_owned(),
    }
}
