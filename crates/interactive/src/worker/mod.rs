//! The process of a task: this program started again in the role [`WORKER`], and the main process's side of it.
//!
//! It gets a [`TaskRequest`] and says [`Ready`], then answers each segment; a stop ends one early, the end of stdin all.
//! The thread that listens has not the task's attributes, so that a starved task can still be ended.

mod role;

use machmeter_engine::Attributes;
use machmeter_engine::role::{MAX_MESSAGE_BYTES, Role, RoleError, count};
use machmeter_engine::stream::{Fate, Job, Stream};
use machmeter_engine::worker::Worker;
use machmeter_sys::process::Spawn;
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::samples::Segment;

pub const WORKER: Worker = Worker { name: "interactive-task", run: role::run };

/// Longest time until a task's process is ready, ns. Calibration takes 3 ms of CPU time of it.
const READY_WITHIN_NS: u64 = 5_000_000_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRequest {
    pub stream: Stream,
    /// How the kernel shall treat it, its CPUs among that. A control group is joined from outside.
    pub attributes: Attributes,
    /// Seed of random releases; each segment draws others.
    pub seed: u64,
}

/// What the main process asks of a task's process: first a task, then segments.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Begin(TaskRequest),
    /// To record a segment; the start is ns (monotonic).
    Record {
        start_ns: u64,
        length_ns: u64,
    },
    Stop,
}

/// Orders to a task in bytes of somebody else, and replies of one.
pub fn orders(bytes: &[u8]) -> usize {
    count::<Request>(bytes, MAX_MESSAGE_BYTES) + count::<Reply>(bytes, MAX_MESSAGE_BYTES)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    pub pid: i32,
    /// The threads that are the task: its first one, then those of its stages.
    pub tids: Vec<i32>,
    /// Policy in force, as [`machmeter_sys::sched::Policy`] writes it.
    pub policy: String,
    pub timer_slack_ns: Option<u64>,
    pub turns_per_ms: f64,
    /// Wall time that calibration and the start of the stages took, ns.
    pub calibration_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Ready(Ready),
    Refused(String),
    /// Without what only the main process knows: the load's work, steal.
    Segment(Segment),
}

/// Jobs of a reply as number, release, wake, response, CPU time (ns), fate: short, since there may be 100,000.
pub(crate) mod short_jobs {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Fate, Job};

    type Short = (u64, u64, u64, u64, u64, i32);

    pub(crate) fn serialize<S: Serializer>(jobs: &[Job], to: S) -> Result<S::Ok, S::Error> {
        let short = |j: &Job| (j.number, j.release_ns, j.wake_ns, j.response_ns, j.cpu_ns, j.fate.number());
        to.collect_seq(jobs.iter().map(short))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Job>, D::Error> {
        let job = |(number, release_ns, wake_ns, response_ns, cpu_ns, fate): Short| {
            let fate = Fate::from_number(fate)?;
            Some(Job { number, release_ns, wake_ns, response_ns, cpu_ns, fate })
        };
        Ok(Vec::<Short>::deserialize(from)?.into_iter().filter_map(job).collect())
    }
}

/// A task's process, seen from the main process. Dropping it kills it. It is tied to the *thread* that started it, too.
#[derive(Debug)]
pub struct TaskProcess {
    role: Role<Request, Reply>,
    pub ready: Ready,
    /// When the present segment is over by schedule, ns (monotonic).
    due_ns: u64,
}

impl TaskProcess {
    /// Errors: an attribute that is refused, no process to be had.
    pub fn start(request: &TaskRequest) -> Result<Self, String> {
        let spawn = Spawn::worker(WORKER.name).new_group().die_with_parent();
        let mut role =
            Role::start(spawn).map_err(|e| format!("the process of a task could not be started: {e}"))?;
        match role.ask(&Request::Begin(request.clone()), READY_WITHIN_NS) {
            Ok(Reply::Ready(ready)) => Ok(Self { role, ready, due_ns: 0 }),
            Ok(Reply::Refused(why)) => Err(why),
            Ok(Reply::Segment(_)) => Err(OUT_OF_TURN.to_owned()),
            Err(e) => Err(fault(&e)),
        }
    }

    /// Has it record from `start_ns` (monotonic) on, later if that is past. Give it 20 ms before to fall asleep.
    pub fn go(&mut self, start_ns: u64, length_ns: u64) -> Result<(), String> {
        self.due_ns = start_ns.max(monotonic_ns()) + length_ns;
        self.role.send(&Request::Record { start_ns, length_ns }).map_err(|e| fault(&e))
    }

    /// Ends the present segment early: at the next release, or within the job that is being executed.
    pub fn stop(&mut self) {
        // One that is gone is noticed when its segment is collected.
        let _ = self.role.send(&Request::Stop);
    }

    /// What was recorded, at most `timeout_ns` after the segment's end or now; what only the main process knows is not in it.
    ///
    /// A task without a CPU is lifted to the normal policy after a third of that time, so that it can tell, and told to stop
    /// after two: what it did not get to is dropped. One that does not answer is killed.
    pub fn collect(&mut self, timeout_ns: u64) -> Result<Segment, String> {
        let over_ns = self.due_ns.max(monotonic_ns());
        let third_ns = timeout_ns / 3;
        let mut answer = self.role.receive(over_ns + third_ns);
        let mut lifted = Vec::new();
        if matches!(answer, Err(RoleError::Late)) {
            lifted = self.lift();
            answer = self.role.receive(over_ns + 2 * third_ns);
        }
        if matches!(answer, Err(RoleError::Late)) {
            self.stop();
            answer = self.role.receive(over_ns + timeout_ns);
        }
        for (tid, policy) in lifted {
            // A thread that is gone needs no policy; the task applies its own anew before it begins a segment.
            let _ = sched::apply_to(tid, policy);
        }
        match answer {
            Ok(Reply::Segment(segment)) => Ok(segment),
            Ok(Reply::Refused(why)) => Err(why),
            Ok(Reply::Ready(_)) => Err(OUT_OF_TURN.to_owned()),
            Err(e) => {
                self.role.kill();
                Err(fault(&e))
            }
        }
    }

    pub fn is_alive(&mut self) -> bool {
        self.role.peer_mut().try_wait().is_none()
    }

    /// Gives the task's threads the normal policy; returns those that had another one, with it.
    fn lift(&self) -> Vec<(i32, Policy)> {
        let Ok(own) = self.ready.policy.parse::<Policy>() else { return Vec::new() };
        let normal = Policy::ordinary();
        let favored = matches!(own, Policy::Other { nice } if nice <= 0);
        let threads = self.ready.tids.iter().filter(|_| !favored);
        threads.filter(|tid| sched::apply_to(**tid, normal).is_ok()).map(|tid| (*tid, own)).collect()
    }
}

const OUT_OF_TURN: &str = "the process of the task spoke out of turn";

fn fault(e: &RoleError) -> String {
    format!("the process of the task {e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_through_as_they_were() {
        let job =
            |fate: Fate| Job { number: 4, release_ns: u64::MAX, wake_ns: 1, response_ns: 7, cpu_ns: 3, fate };
        let jobs = [Fate::Ran, Fate::RanBehind, Fate::Dropped, Fate::Overslept].map(job).to_vec();
        let segment = Segment { jobs, run_delay_ns: Some(u64::MAX), ..Segment::default() };
        let line = serde_json::to_string(&Reply::Segment(segment.clone())).unwrap();
        let Reply::Segment(back) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
        assert_eq!(back, segment);
    }
}
