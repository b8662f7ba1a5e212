//! What the main process and a task's process say to each other.

use machmeter_engine::stream::{Fate, Job, Stream};
use machmeter_engine::{Attributes, role};
use serde::{Deserialize, Serialize};

use super::super::samples::Segment;

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
pub(super) enum Request {
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
    role::count::<Request>(bytes, role::MAX_MESSAGE_BYTES)
        + role::count::<Reply>(bytes, role::MAX_MESSAGE_BYTES)
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
pub(super) enum Reply {
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
