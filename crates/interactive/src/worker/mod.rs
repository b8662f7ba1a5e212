//! The process of a task: this program started again in the role [`WORKER`], and the main process's side of it.
//!
//! One JSON line with a [`TaskRequest`] comes in; one with [`Ready`] goes out when the task's thread has its attributes, is
//! calibrated and asleep. Then `go START_NS LENGTH_NS` records a segment, answered by one JSON line when it is over; `stop`
//! ends it early. The end of stdin ends everything at once. Only the thread of the task (and of its stages) has the task's
//! attributes; the thread that listens does not, so that a starved task can still be ended.

mod message;
mod role;

pub use message::{Ready, TaskRequest};

use machmeter_engine::worker::Worker;
use machmeter_sys::process::{Child, ReadError, Spawn};
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::monotonic_ns;

use super::samples::Segment;
use message::Message;

/// The role of a task's process, to be registered by the program.
pub const WORKER: Worker = Worker { name: "interactive-task", run: role::run };

/// Longest time until a task's process is ready, ns. Calibration takes 3 ms of CPU time of it.
const READY_WITHIN_NS: u64 = 5_000_000_000;

/// A task's process, seen from the main process. Dropping it kills it. It is tied to the *thread* that started it, too.
#[derive(Debug)]
pub struct TaskProcess {
    child: Child,
    ready: Ready,
    /// When the present segment is over by schedule, ns (monotonic).
    due_ns: u64,
    lifted: bool,
}

impl TaskProcess {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// One line with the true cause: an attribute that is refused, no process to be had.
    pub fn start(request: &TaskRequest) -> Result<Self, String> {
        let line = serde_json::to_string(request).map_err(|e| e.to_string())?;
        let mut child = Spawn::worker(WORKER.name)
            .new_group()
            .die_with_parent()
            .stdin_json(&line)
            .start()
            .map_err(|e| format!("the process of a task could not be started: {e}"))?;
        let answer = child.read_line(READY_WITHIN_NS);
        match read_message(&mut child, answer)? {
            Message::Ready(ready) => Ok(Self { child, ready, due_ns: 0, lifted: false }),
            Message::Refused { why } => Err(why),
            Message::Segment(_) => Err("the process of a task spoke out of turn".to_owned()),
        }
    }

    /// What it said when it was ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Has it record a segment of `length_ns` from `start_ns` (monotonic) on; a start in the past is moved to a little after
    /// now. Give it some 20 ms before the start to get its memory and to fall asleep.
    ///
    /// # Errors
    /// One line, when it is gone.
    pub fn go(&mut self, start_ns: u64, length_ns: u64) -> Result<(), String> {
        self.due_ns = start_ns.max(monotonic_ns()) + length_ns;
        self.lifted = false;
        self.child
            .write_line(&format!("go {start_ns} {length_ns}"))
            .map_err(|e| format!("the process of the task does not listen: {e}{}", self.end()))
    }

    /// Ends the present segment early: at the next release, or within the job that is being executed.
    pub fn stop(&mut self) {
        // One that is gone is noticed when its segment is collected.
        let _ = self.child.write_line("stop");
    }

    /// What was recorded, at most `timeout_ns` after the segment's end by schedule or after now, whichever is later. Its
    /// start is in monotonic time; what only the main process knows (the load's work, steal) is not filled in.
    ///
    /// A task that still has not the CPU a third of that time after the end is lifted to the normal policy, so that it can
    /// tell; a third later it is told to stop, and what a periodic stream did not get to until then is recorded as dropped.
    /// What waited when it was lifted had to wait at least as long as is recorded; see [`TaskProcess::was_lifted`].
    ///
    /// # Errors
    /// One line, when it is gone or does not answer; it is then killed.
    pub fn collect(&mut self, timeout_ns: u64) -> Result<Segment, String> {
        let over_ns = self.due_ns.max(monotonic_ns());
        let third_ns = timeout_ns / 3;
        let mut answer = self.read_until(over_ns + third_ns);
        let mut lifted = Vec::new();
        if matches!(answer, Err(ReadError::TimedOut { .. })) {
            lifted = self.lift();
            answer = self.read_until(over_ns + 2 * third_ns);
        }
        if matches!(answer, Err(ReadError::TimedOut { .. })) {
            self.stop();
            answer = self.read_until(over_ns + timeout_ns);
        }
        for (tid, policy) in lifted {
            // A thread that is gone needs no policy; the task applies its own anew before it begins a segment.
            let _ = sched::apply_to(tid, policy);
        }
        match read_message(&mut self.child, answer) {
            Ok(Message::Segment(recorded)) => Ok(recorded.segment()),
            Ok(Message::Refused { why }) => Err(why),
            Ok(Message::Ready(_)) => Err("the process of the task spoke out of turn".to_owned()),
            Err(why) => {
                self.child.kill_group();
                Err(why)
            }
        }
    }

    /// Whether the task had to be lifted to the normal policy at the end of the last segment, because it had no CPU.
    pub fn was_lifted(&self) -> bool {
        self.lifted
    }

    /// Whether the process is there.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().is_none()
    }

    fn read_until(&mut self, until_ns: u64) -> Result<Option<String>, ReadError> {
        self.child.read_line(until_ns.saturating_sub(monotonic_ns()))
    }

    /// Gives the task's threads the normal policy; returns those that had another one, with it.
    fn lift(&mut self) -> Vec<(i32, Policy)> {
        self.lifted = true;
        let Ok(own) = self.ready.policy.parse::<Policy>() else { return Vec::new() };
        let normal = Policy::ordinary();
        let favored = matches!(own, Policy::Other { nice } if nice <= 0);
        let threads = self.ready.tids.iter().filter(|_| !favored);
        threads.filter(|tid| sched::apply_to(**tid, normal).is_ok()).map(|tid| (*tid, own)).collect()
    }

    fn end(&mut self) -> String {
        self.child.try_wait().map_or(String::new(), |status| format!(" (it ended: {status})"))
    }
}

/// How an ended process gets to tell its status, ns.
const STATUS_WITHIN_NS: u64 = 200_000_000;

fn read_message(child: &mut Child, answer: Result<Option<String>, ReadError>) -> Result<Message, String> {
    match answer {
        Ok(Some(line)) => serde_json::from_str(&line)
            .map_err(|e| format!("the process of a task said what cannot be read: {e}")),
        Ok(None) => Err(child.wait(STATUS_WITHIN_NS).map_or_else(
            || "the process of the task closed its output".to_owned(),
            |status| format!("the process of the task ended: {status}"),
        )),
        Err(ReadError::TimedOut { .. }) => Err("the process of the task did not answer in time".to_owned()),
        Err(e) => Err(format!("the process of the task could not be read: {e}")),
    }
}
