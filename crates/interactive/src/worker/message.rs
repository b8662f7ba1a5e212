//! What the main process and a task's process say to each other.

use machmeter_engine::Attributes;
use machmeter_engine::stream::{Fate, Job, Stream};
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

/// What a task's process says when it can begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    pub pid: i32,
    /// The threads that are the task: its first one, then those of its stages.
    pub tids: Vec<i32>,
    /// Policy in force, as [`machmeter_sys::sched::Policy`] writes it.
    pub policy: String,
    /// Timer slack in force, ns.
    pub timer_slack_ns: Option<u64>,
    /// Turns of the spinning loop per ms of CPU time.
    pub turns_per_ms: f64,
    /// Wall time that calibration and the start of the stages took, ns.
    pub calibration_ns: u64,
    /// Why its memory is not locked; none when it is.
    pub not_locked: Option<String>,
}

/// What a task's process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Ready(Ready),
    /// Why, in one line.
    Refused(String),
    Segment(Recorded),
}

/// A segment as the task knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Recorded {
    /// When its first release was scheduled, ns (monotonic).
    pub(super) start_ns: u64,
    pub(super) length_ns: u64,
    /// Number, release, wake, response, CPU time (ns), fate: short, since there may be 100,000.
    pub(super) jobs: Vec<(u64, u64, u64, u64, u64, i32)>,
    pub(super) scheduled: u64,
    pub(super) run_delay_ns: Option<u64>,
    pub(super) on_cpu_ns: Option<u64>,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) trouble: Option<String>,
}

pub(super) fn packed(jobs: &[Job]) -> Vec<(u64, u64, u64, u64, u64, i32)> {
    let of = |j: &Job| (j.number, j.release_ns, j.wake_ns, j.response_ns, j.cpu_ns, j.fate.number());
    jobs.iter().map(of).collect()
}

impl Recorded {
    pub(super) fn segment(self) -> Segment {
        let job = |&(number, release_ns, wake_ns, response_ns, cpu_ns, fate)| {
            let fate = Fate::from_number(fate)?;
            Some(Job { number, release_ns, wake_ns, response_ns, cpu_ns, fate })
        };
        Segment {
            start_ns: self.start_ns,
            length_ns: self.length_ns,
            jobs: self.jobs.iter().filter_map(job).collect(),
            scheduled: self.scheduled,
            run_delay_ns: self.run_delay_ns,
            on_cpu_ns: self.on_cpu_ns,
            voluntary: self.voluntary,
            involuntary: self.involuntary,
            trouble: self.trouble,
            ..Segment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_through_as_they_were() {
        let fates = [Fate::Ran, Fate::RanBehind, Fate::Dropped];
        let jobs: Vec<Job> = (0..3)
            .map(|i| Job {
                number: i,
                release_ns: u64::MAX - i,
                wake_ns: i,
                response_ns: 7 + i,
                cpu_ns: 3 * i,
                fate: fates[i as usize],
            })
            .collect();
        let recorded = Recorded {
            start_ns: 4,
            length_ns: 9,
            jobs: packed(&jobs),
            scheduled: 3,
            run_delay_ns: Some(u64::MAX),
            on_cpu_ns: None,
            voluntary: 1,
            involuntary: 2,
            trouble: Some("x".to_owned()),
        };
        let line = serde_json::to_string(&Reply::Segment(recorded)).unwrap();
        let Reply::Segment(back) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
        let segment = back.segment();
        assert_eq!((segment.jobs, segment.run_delay_ns, segment.on_cpu_ns), (jobs, Some(u64::MAX), None));
        assert_eq!((segment.voluntary, segment.involuntary, segment.trouble.as_deref()), (1, 2, Some("x")));
    }
}
