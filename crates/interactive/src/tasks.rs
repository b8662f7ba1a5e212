//! The tasks: what is measured. The classic ones of interbench, and those of today.

use machmeter_engine::stream::{Deadline, Demand, Overload, Release, Stream};

const MS: u64 = 1_000_000;

/// What the figures of a task are about, beside lateness and deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Audio,
    Frames,
    Plain,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Choices {
    /// Share of a CPU (0 to 1) and period, ns, of the custom task.
    pub custom: Option<(f64, u64)>,
    /// Buffers of the audio tasks of today, periods.
    pub audio_buffers: u32,
    /// Turns of the loop per millisecond: demands become fixed work instead of CPU time.
    pub turns_per_ms: Option<u64>,
    /// Length of a segment, ns: the ramp of X fits into it.
    pub segment_ns: u64,
    pub overload: Option<Overload>,
}

#[derive(Debug)]
pub struct TaskInfo {
    pub name: &'static str,
    pub description: &'static str,
    pub classic: bool,
    /// Run under `--rt`: interbench has audio, video and custom.
    pub real_time: bool,
    pub kind: Kind,
    stream: fn(&Choices) -> Option<Stream>,
}

impl TaskInfo {
    /// The task's stream; `None` for the custom task when it is not described.
    pub fn stream(&self, choices: &Choices) -> Option<Stream> {
        let mut stream = (self.stream)(choices)?;
        if let Some(turns_per_ms) = choices.turns_per_ms {
            stream.demand = fixed(stream.demand, turns_per_ms);
            stream.stages.iter_mut().for_each(|d| *d = fixed(*d, turns_per_ms));
        }
        if let Some(overload) = choices.overload {
            stream.overload = overload;
        }
        Some(stream)
    }
}

pub const TASKS: &[TaskInfo] = &[
    TaskInfo {
        name: "audio",
        description: "audio player: 5 % of a CPU, every 50 ms",
        classic: true,
        real_time: true,
        kind: Kind::Audio,
        stream: |_| Some(periodic(50 * MS, 5 * MS / 2)),
    },
    TaskInfo {
        name: "audio-desktop",
        description: "desktop audio server: 48 kHz, 1024 frames, 5 % of a CPU, k buffers",
        classic: false,
        real_time: true,
        kind: Kind::Audio,
        stream: |c| Some(buffered(1024, 0.05, c.audio_buffers)),
    },
    TaskInfo {
        name: "audio-pro",
        description: "studio audio: 48 kHz, 128 frames, 30 % of a CPU, k buffers",
        classic: false,
        real_time: true,
        kind: Kind::Audio,
        stream: |c| Some(buffered(128, 0.3, c.audio_buffers)),
    },
    TaskInfo {
        name: "compositor",
        description: "60 frames a second through three threads: input, client, compositor",
        classic: false,
        real_time: false,
        kind: Kind::Frames,
        stream: |_| {
            Some(Stream {
                stages: vec![Demand::Cpu { ns: 3 * MS }, Demand::Cpu { ns: 2 * MS }],
                ..periodic(hertz(60), MS / 5)
            })
        },
    },
    TaskInfo {
        name: "custom",
        description: "CPU share and interval from --custom-cpu and --custom-interval",
        classic: true,
        real_time: true,
        kind: Kind::Plain,
        stream: |c| {
            let (share, period_ns) = c.custom?;
            Some(periodic(period_ns, (share * period_ns as f64) as u64))
        },
    },
    TaskInfo {
        name: "gaming",
        description: "game without frame limit: frames of 10 ms of CPU time back to back, no deadlines",
        classic: true,
        real_time: false,
        kind: Kind::Frames,
        stream: |_| {
            Some(Stream {
                release: Release::Closed { think_ns: 0 },
                deadline: Deadline::None,
                ..periodic(0, 10 * MS)
            })
        },
    },
    TaskInfo {
        name: "launch",
        description: "program starts (fork, exec, exit): 10 a second, deadline 100 ms",
        classic: false,
        real_time: false,
        kind: Kind::Plain,
        stream: |_| Some(Stream { demand: Demand::Launch, ..periodic(100 * MS, 0) }),
    },
    TaskInfo {
        name: "typing",
        description: "keystrokes at random times: 8 a second, 1 ms of work each, deadline 50 ms",
        classic: false,
        real_time: false,
        kind: Kind::Plain,
        stream: |_| {
            Some(Stream {
                release: Release::Poisson { mean_ns: 125 * MS },
                deadline: Deadline::After { ns: 50 * MS },
                overload: Overload::Queue { most_periods: 0 },
                ..periodic(0, MS)
            })
        },
    },
    TaskInfo {
        name: "video",
        description: "video at 60 frames a second, 40 % of a CPU",
        classic: true,
        real_time: true,
        kind: Kind::Frames,
        stream: |_| Some(periodic(hertz(60), hertz(60) * 2 / 5)),
    },
    TaskInfo {
        name: "video144",
        description: "game limited to 144 frames a second, 40 % of a CPU",
        classic: false,
        real_time: true,
        kind: Kind::Frames,
        stream: |_| Some(periodic(hertz(144), hertz(144) * 2 / 5)),
    },
    TaskInfo {
        name: "video24",
        description: "film at 24 frames a second, 40 % of a CPU",
        classic: false,
        real_time: true,
        kind: Kind::Frames,
        stream: |_| Some(periodic(hertz(24), hertz(24) * 2 / 5)),
    },
    TaskInfo {
        name: "x",
        description: "dragged window: a ramp from 0 to 100 % of a CPU, one step every 100 ms",
        classic: true,
        real_time: false,
        kind: Kind::Plain,
        stream: |c| Some(ramp(c.segment_ns)),
    },
];

pub fn find(name: &str) -> Option<&'static TaskInfo> {
    TASKS.iter().find(|t| t.name == name)
}

const fn hertz(rate: u64) -> u64 {
    1_000_000_000 / rate
}

/// A stream that drops what it is too late for.
pub fn periodic(period_ns: u64, cpu_ns: u64) -> Stream {
    Stream {
        release: Release::Periodic { period_ns },
        demand: Demand::Cpu { ns: cpu_ns },
        deadline: Deadline::Next,
        overload: Overload::Drop,
        stages: Vec::new(),
    }
}

/// The longest buffer for which xruns are counted, periods; a stream further behind starts anew.
pub const MOST_BUFFERS: u32 = 8;

fn buffered(frames: u64, share: f64, buffers: u32) -> Stream {
    let period_ns = frames * 1_000_000_000 / 48_000;
    Stream {
        deadline: Deadline::Periods { count: buffers },
        overload: Overload::Queue { most_periods: MOST_BUFFERS },
        ..periodic(period_ns, (period_ns as f64 * share) as u64)
    }
}

/// X: as many steps of 100 ms as make one whole ramp in a segment, 101 at most (steps of 1 %) and 11 at least.
fn ramp(segment_ns: u64) -> Stream {
    let steps = (segment_ns / (100 * MS)).clamp(11, 101) as u32;
    Stream { demand: Demand::Ramp { most_ns: 100 * MS, steps }, ..periodic(100 * MS, 0) }
}

fn fixed(demand: Demand, turns_per_ms: u64) -> Demand {
    let turns = |ns: u64| (u128::from(ns) * u128::from(turns_per_ms) / u128::from(MS)) as u64;
    match demand {
        Demand::Cpu { ns } => Demand::Turns { turns: turns(ns) },
        Demand::Ramp { most_ns, steps } => Demand::RampTurns { most_turns: turns(most_ns), steps },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(name: &str, choices: Choices) -> Option<Stream> {
        find(name).and_then(|t| t.stream(&Choices { segment_ns: 12_000 * MS, ..choices }))
    }

    #[test]
    fn names_are_sorted_unique_and_lower_case() {
        assert!(TASKS.windows(2).all(|w| w[0].name < w[1].name));
        assert!(TASKS.iter().all(|t| t.name == t.name.to_lowercase() && !t.description.is_empty()));
    }

    #[test]
    fn classic_tasks_are_those_of_interbench() {
        let custom = Some((0.25, 20 * MS));
        let of = |name: &str| stream(name, Choices { custom, ..Choices::default() }).unwrap();
        assert_eq!((of("audio").period_ns(), of("audio").cpu_ns(0)), (Some(50 * MS), Some(2_500_000)));
        assert_eq!((of("video").period_ns(), of("video").cpu_ns(0)), (Some(16_666_666), Some(6_666_666)));
        assert_eq!((of("custom").period_ns(), of("custom").cpu_ns(0)), (Some(20 * MS), Some(5 * MS)));
        assert_eq!([0, 100, 101].map(|job| of("x").cpu_ns(job)), [Some(0), Some(100 * MS), Some(0)]);
        assert_eq!(of("gaming").deadline_ns(), None);
        assert_eq!(stream("custom", Choices::default()), None);
    }

    #[test]
    fn fixed_work_replaces_cpu_time() {
        let demand = |name: &str| {
            stream(name, Choices { turns_per_ms: Some(1000), ..Choices::default() }).unwrap().demand
        };
        assert_eq!(demand("video"), Demand::Turns { turns: 6_666 });
        assert!(matches!(demand("x"), Demand::RampTurns { most_turns: 100_000, .. }));
    }
}
