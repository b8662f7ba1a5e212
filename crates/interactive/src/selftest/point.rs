//! Where the oracle is put to the test: shapes of tasks and disturbances.

use machmeter_engine::stream::{Overload, Stream};

use crate::tasks;

/// Bursts against a task. The periods share no rhythm, so that a burst falls on every part of the task's period in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) period_us: u64,
    pub(super) burst_us: u64,
    task_us: u64,
    cpu_us: u64,
    overload: Overload,
}

const fn point(period_us: u64, burst_us: u64, task_us: u64, cpu_us: u64, overload: Overload) -> Point {
    Point { period_us, burst_us, task_us, cpu_us, overload }
}

const ALL: Overload = Overload::Queue { most_periods: 0 };
const BUFFER: Overload = Overload::Queue { most_periods: 8 };

/// Points of the real-time hog: bursts shorter and longer than a period, jobs that meet one burst, two, many.
pub(super) const HOG: [Point; 8] = [
    point(70_711, 8_000, 16_667, 2_000, ALL),
    point(70_711, 8_000, 16_667, 6_667, ALL),
    point(70_711, 12_000, 16_667, 6_667, ALL),
    point(70_711, 20_000, 16_667, 2_000, ALL),
    point(70_711, 12_000, 16_667, 6_667, Overload::Drop),
    point(23_317, 4_000, 5_333, 800, Overload::Drop),
    point(31_699, 11_000, 10_000, 1_000, Overload::Skip),
    point(47_123, 5_000, 2_667, 400, BUFFER),
];

pub(super) const STOPS: [Point; 6] = [
    point(70_711, 12_000, 16_667, 6_667, ALL),
    point(70_711, 8_000, 16_667, 2_000, ALL),
    point(53_101, 20_000, 16_667, 2_000, Overload::Drop),
    point(37_307, 12_000, 10_000, 1_000, Overload::Skip),
    point(90_313, 30_000, 16_667, 3_000, BUFFER),
    point(61_703, 15_000, 10_000, 3_000, Overload::Drop),
];

impl Point {
    pub(super) fn stream(&self) -> Stream {
        periodic(self.task_us, self.cpu_us, self.overload)
    }

    pub(super) fn id(&self) -> String {
        let policy = match self.overload {
            Overload::Drop => "drop",
            Overload::Queue { .. } => "queue",
            Overload::Skip => "skip",
        };
        format!("{}in{}us.{}in{}us.{policy}", self.burst_us, self.period_us, self.cpu_us, self.task_us)
    }

    pub(super) fn words(&self) -> (String, String) {
        let ms = |us: u64| us as f64 / 1e3;
        let overload = match self.overload {
            Overload::Drop => "drops what passed",
            Overload::Queue { .. } => "makes up for what passed",
            Overload::Skip => "skips what is too late",
        };
        (
            format!("{} ms every {} ms", ms(self.burst_us), ms(self.period_us)),
            format!("{} ms of CPU every {} ms that {overload}", ms(self.cpu_us), ms(self.task_us)),
        )
    }

    /// Share of a CPU that bursts and task need together.
    pub(super) fn share(&self) -> f64 {
        self.burst_us as f64 / self.period_us as f64 + self.cpu_us as f64 / self.task_us as f64
    }

    /// Misses that one release decides: a late one that is executed lets the next one pass.
    pub(super) fn misses_at_once(&self) -> f64 {
        if self.overload == Overload::Drop { 2.0 } else { 1.0 }
    }
}

pub(super) fn periodic(task_us: u64, cpu_us: u64, overload: Overload) -> Stream {
    Stream { overload, ..tasks::periodic(task_us * 1_000, cpu_us * 1_000) }
}
