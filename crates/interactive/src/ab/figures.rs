//! From recorded segments to the figures that are compared: one value per setting and round.

use machmeter_engine::stream::{Job, Stream};
use machmeter_stats::{quantile, spread};

use super::plan::SEGMENTS_PER_ROUND;
use crate::samples::{Cell, Samples, Segment};

/// Lateness below this is the cost of reading clocks, ns.
const LEAST_LATENESS_NS: f64 = 1000.0;

/// Jobs per segment that p99 and p95 need: below, they are one of the largest and no estimate.
const JOBS_FOR_P99: usize = 100;
const JOBS_FOR_P95: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    Mean,
    /// 95th percentile of lateness, where segments are too short for the 99th.
    P95,
    P99,
    /// Share of releases that missed their deadline, dropped ones included.
    Misses,
    /// CPU time got over CPU time asked for.
    DesiredCpu,
}

/// On which scale a figure is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As a ratio: differences of natural logarithms.
    Ratio,
    Points,
}

impl Figure {
    /// As in the parameter `figure` of `interactive.ab_change`, in words, and the scale on which it is compared.
    const fn facts(self) -> (&'static str, &'static str, Scale) {
        match self {
            Self::Mean => ("mean", "mean lateness", Scale::Ratio),
            Self::P95 => ("p95", "p95 of lateness", Scale::Ratio),
            Self::P99 => ("p99", "p99 of lateness", Scale::Ratio),
            Self::Misses => ("misses", "misses", Scale::Points),
            Self::DesiredCpu => ("desired-cpu", "desired CPU", Scale::Points),
        }
    }

    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    pub const fn words(self) -> &'static str {
        self.facts().1
    }

    pub const fn scale(self) -> Scale {
        self.facts().2
    }

    /// Whether less of it is better.
    pub const fn lower_is_better(self) -> bool {
        !matches!(self, Self::DesiredCpu)
    }
}

/// One figure of one round under both settings, on the scale of comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Mean over the segments under A: of natural logarithms of ns, or of shares.
    pub a: f64,
    pub b: f64,
    /// Jobs behind it under A and under B.
    pub jobs: [u64; 2],
}

/// One figure of one cell, round by round.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub task: String,
    pub load: String,
    pub figure: Figure,
    pub rounds: Vec<Round>,
}

/// All series of an A/B recording, cell by cell, and how many rounds could not be used because a segment of them was not
/// whole.
pub fn series(samples: &Samples) -> (Vec<Series>, usize) {
    let mut out = Vec::new();
    let mut unusable = 0;
    for a in samples.cells.iter().filter(|c| c.setting == 0) {
        let same = |c: &&Cell| c.setting == 1 && (&c.task, &c.load) == (&a.task, &a.load);
        if let Some(b) = samples.cells.iter().find(same) {
            let (rounds, lost) = rounds(a, b);
            unusable += lost;
            out.extend(of_cell(a, &rounds));
        }
    }
    (out, unusable)
}

/// The segments of a round: those under A, those under B.
type Arms<'a> = [Vec<&'a Segment>; 2];

/// Groups of four segments in the order of time, and how many were given up. A run that ended within a round has a rest,
/// which is no lost round.
fn rounds<'a>(a: &'a Cell, b: &'a Cell) -> (Vec<Arms<'a>>, usize) {
    let side = |setting: usize, c: &'a Cell| c.segments.iter().map(move |s| (setting, s));
    let mut all: Vec<(usize, &Segment)> = side(0, a).chain(side(1, b)).collect();
    all.sort_by_key(|(_, s)| s.start_ns);
    let (mut out, mut lost) = (Vec::new(), 0);
    for four in all.chunks_exact(SEGMENTS_PER_ROUND) {
        let of = |setting| four.iter().filter(|s| s.0 == setting).map(|s| s.1).collect::<Vec<_>>();
        let arms = [of(0), of(1)];
        let whole = four.iter().all(|(_, s)| s.trouble.is_none() && !s.jobs.is_empty());
        if whole && arms[0].len() == arms[1].len() { out.push(arms) } else { lost += 1 }
    }
    (out, lost)
}

fn of_cell(cell: &Cell, rounds: &[Arms<'_>]) -> Vec<Series> {
    let least_jobs = rounds.iter().flatten().flatten().map(|s| s.jobs.len()).min().unwrap_or(0);
    let tail = match least_jobs {
        JOBS_FOR_P99.. => Some(Figure::P99),
        JOBS_FOR_P95.. => Some(Figure::P95),
        _ => None,
    };
    let misses = cell.stream.deadline_ns().map(|_| Figure::Misses);
    let asked = cell.stream.cpu_ns(0).map(|_| Figure::DesiredCpu);
    let figures = [Some(Figure::Mean), tail, misses, asked].into_iter().flatten();
    figures
        .map(|figure| Series {
            task: cell.task.clone(),
            load: cell.load.clone(),
            figure,
            rounds: rounds.iter().filter_map(|arms| round(&cell.stream, figure, arms)).collect(),
        })
        .collect()
}

fn round(stream: &Stream, figure: Figure, arms: &Arms<'_>) -> Option<Round> {
    let side = |segments: &[&Segment]| {
        let each: Option<Vec<f64>> = segments.iter().map(|s| of_segment(stream, figure, &s.jobs)).collect();
        spread::mean(&each?)
    };
    let jobs = |segments: &[&Segment]| segments.iter().map(|s| s.jobs.len() as u64).sum();
    Some(Round { a: side(&arms[0])?, b: side(&arms[1])?, jobs: [jobs(&arms[0]), jobs(&arms[1])] })
}

/// A figure of one segment on the scale of comparison.
fn of_segment(stream: &Stream, figure: Figure, jobs: &[Job]) -> Option<f64> {
    let late = || jobs.iter().map(|j| j.lateness_ns(stream) as f64).collect::<Vec<f64>>();
    let log = |ns: f64| ns.max(LEAST_LATENESS_NS).ln();
    let tail = |p| quantile::quantile(&quantile::sorted(&late()).ok()?, p).map(log);
    match figure {
        Figure::Mean => spread::mean(&late()).map(log),
        Figure::P95 => tail(0.95),
        Figure::P99 => tail(0.99),
        Figure::Misses => {
            let missed = jobs.iter().filter(|j| j.met(stream) == Some(false)).count();
            (!jobs.is_empty()).then(|| missed as f64 / jobs.len() as f64)
        }
        Figure::DesiredCpu => {
            let asked: u64 = jobs.iter().filter_map(|j| stream.cpu_ns(j.number)).sum();
            let got: u64 = jobs.iter().map(|j| j.cpu_ns).sum();
            (asked > 0).then(|| got as f64 / asked as f64)
        }
    }
}
