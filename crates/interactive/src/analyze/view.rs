//! What the figures of one cell are computed from: its whole segments as one series in order of time.

use std::ops::Range;

use machmeter_data::metric::{ParamValue, params};
use machmeter_data::{Interval, Metric, MetricInfo, Params};
use machmeter_engine::stream::{Demand, Job, Release, Stream};
use machmeter_stats::StatsError;
use machmeter_stats::serial::{CONSTANT, Estimate};

use crate::samples::{Cell, Samples, Segment};
use crate::tasks::{Kind, find};

pub(super) const LEVEL: f64 = 0.95;
/// Blocks of a metric, for later comparison: at most, and at least where there are jobs enough.
const MOST_BLOCKS: usize = 20;
const FEWEST_BLOCKS: usize = 8;
const BLOCK_JOBS: usize = 10;

pub(super) struct CellView<'a> {
    pub(super) cell: &'a Cell,
    /// Segments in which every release is accounted for, in order of time.
    pub(super) segments: Vec<&'a Segment>,
    pub(super) jobs: Vec<Job>,
    pub(super) lengths: Vec<usize>,
    /// Turns per ms by calibration; 0 when unknown.
    turns_per_ms: f64,
}

/// Whether a segment's figures can be used: something was recorded, and nothing of it was lost.
pub(super) fn whole(segment: &Segment) -> bool {
    !segment.jobs.is_empty() && segment.scheduled == segment.jobs.len() as u64
}

impl<'a> CellView<'a> {
    pub(super) fn new(samples: &Samples, cell: &'a Cell) -> Self {
        let segments: Vec<&Segment> = cell.segments.iter().filter(|s| whole(s)).collect();
        Self {
            cell,
            jobs: segments.iter().flat_map(|s| s.jobs.iter().copied()).collect(),
            lengths: segments.iter().map(|s| s.jobs.len()).collect(),
            segments,
            turns_per_ms: samples.setup.turns_per_ms,
        }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.cell.stream
    }

    pub(super) fn kind(&self) -> Kind {
        find(&self.cell.task).map_or(Kind::Plain, |t| t.kind)
    }

    /// Whether the task never sleeps (gaming).
    pub(super) fn back_to_back(&self) -> bool {
        matches!(self.stream().release, Release::Closed { think_ns: 0 })
    }

    /// As in `audio/burn`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.cell.task, self.cell.load)
    }

    pub(super) fn length_ns(&self) -> f64 {
        self.segments.iter().map(|s| s.length_ns as f64).sum()
    }

    pub(super) fn params(&self) -> Params {
        params([("task", self.cell.task.as_str().into()), ("load", self.cell.load.as_str().into())])
    }

    pub(super) fn params_with(&self, name: &str, value: ParamValue) -> Params {
        let mut p = self.params();
        p.insert(name.to_owned(), value);
        p
    }

    pub(super) fn metric(&self, info: &MetricInfo, value: f64, estimator: &str, n: usize) -> Metric {
        Metric::new(info, self.params(), value, estimator, n as u64)
    }

    /// A figure that could not be had.
    pub(super) fn refuse(&self, info: &MetricInfo, why: &str) -> Metric {
        Metric::rejected(info, self.params(), "none", why)
    }

    /// CPU time that a job asked for, ns; `None` where that is not known (starts of programs).
    pub(super) fn asked_ns(&self, job: &Job) -> Option<f64> {
        let of = |d: &Demand| match d.of_job(job.number) {
            Demand::Cpu { ns } => Some(ns as f64),
            Demand::Turns { turns } if self.turns_per_ms > 0.0 => {
                Some(turns as f64 / self.turns_per_ms * 1e6)
            }
            _ => None,
        };
        let stream = self.stream();
        stream.stages.iter().try_fold(of(&stream.demand)?, |sum, d| Some(sum + of(d)?))
    }

    pub(super) fn by_segment(&self) -> impl Iterator<Item = &[Job]> {
        self.segments.iter().map(|s| s.jobs.as_slice())
    }

    /// Values of some of the jobs with the number of them per segment.
    pub(super) fn series(&self, of: impl Fn(&Job) -> Option<f64>) -> Series {
        let mut out = Series::default();
        for jobs in self.by_segment() {
            let before = out.values.len();
            out.values.extend(jobs.iter().filter_map(&of));
            out.lengths.push(out.values.len() - before);
        }
        out
    }

    /// Adds blocks of `of` over nearly equal stretches of `n` values: about twenty, fewer where they would hold few values.
    pub(super) fn with_blocks(
        &self,
        metric: Metric,
        n: usize,
        of: impl Fn(Range<usize>) -> Option<f64>,
    ) -> Metric {
        let stretches = (n / BLOCK_JOBS).clamp(FEWEST_BLOCKS, MOST_BLOCKS);
        let stretch = |b: usize| b * n / stretches..(b + 1) * n / stretches;
        let blocks: Vec<f64> = (0..stretches).filter_map(|b| of(stretch(b))).collect();
        if n < 2 * FEWEST_BLOCKS || blocks.is_empty() || metric.value.is_none() {
            return metric;
        }
        let block_ns = self.length_ns() / blocks.len() as f64;
        metric.with_blocks(blocks, block_ns)
    }
}

/// A figure per job, in order of time, with the jobs per segment.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) values: Vec<f64>,
    pub(super) lengths: Vec<usize>,
}

/// Adds interval and independent samples of an estimate; marks a metric that too few carry, unless it never changes.
pub(super) fn with_estimate(
    mut metric: Metric,
    estimate: &Result<Estimate, StatsError>,
    method: &str,
) -> Metric {
    match estimate {
        Ok(e) => {
            metric.n_eff = Some(e.n_eff);
            metric.with_ci(Interval::new(e.interval.level, e.interval.low, e.interval.high, method))
        }
        Err(StatsError::TooFew { what, .. }) if *what != CONSTANT => {
            metric.flag("W314");
            metric
        }
        Err(_) => metric,
    }
}

/// Rounds what stands beside a value to eight digits, more than is known: a record has thousands of such numbers.
pub(super) fn brief(metric: &mut Metric) {
    let round = |x: f64| format!("{x:.7e}").parse().unwrap_or(x);
    if let (Some(ci), Some(value)) = (&mut metric.ci, metric.value) {
        (ci.low, ci.high) = (round(ci.low).min(value), round(ci.high).max(value));
    }
    metric.n_eff = metric.n_eff.map(|n| (n * 10.0).round() / 10.0);
    metric.quantiles.values_mut().for_each(|q| *q = round(*q));
}

pub(super) mod method {
    pub(in super::super) const MEAN: &str = "correlated-mean";
    pub(in super::super) const SHARE: &str = "correlated-share";
    /// One-sided, of shares of 0 and 1.
    pub(in super::super) const BOUND: &str = "bound";
    pub(in super::super) const RANK: &str = "correlated-rank";
}
