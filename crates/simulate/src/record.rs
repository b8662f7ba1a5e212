//! The figures, data and statements of a simulation, for a record.

use machmeter_data::metric::params;
use machmeter_data::quantity::human;
use machmeter_data::record::{Finding, Record, SummaryLine};
use machmeter_data::shape::{Axis, Curve, CurveRow};
use machmeter_data::{Dataset, Interval, Metric, Unit};
use serde::{Deserialize, Serialize};

use crate::montecarlo::{Mean, mean_of_runs};

machmeter_data::metrics! {
    ["pattern", "ranks", "noise"] Nanoseconds Lower weakened by [] {
        TIME = "simulate.time"
            "Simulated time until the last rank ends: of a quiet run, or the mean of runs with noise.";
    }
    ["pattern", "ranks", "noise"] One Lower weakened by [] {
        SLOWDOWN = "simulate.slowdown" "Mean simulated time with noise over the time without noise.";
    }
}

/// Times at one number of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub ranks: u32,
    /// A quiet run, ps.
    pub quiet_ps: u64,
    /// Runs with noise: number and time, ps, in the order of their numbers.
    pub runs: Vec<(u64, u64)>,
}

impl Step {
    fn mean(&self) -> Option<Mean> {
        mean_of_runs(&self.runs.iter().map(|(_, ps)| *ps).collect::<Vec<_>>(), self.quiet_ps)
    }
}

pub(crate) fn ns(ps: u64) -> f64 {
    ps as f64 / 1000.0
}

pub(crate) fn range(low: f64, high: f64, unit: Unit) -> String {
    format!("[{}, {}]", human(low, unit), human(high, unit))
}

/// `273 us [268 us, 280 us]`
pub(crate) fn time(ns: f64, interval: Option<&Interval>) -> String {
    let interval = interval.map(|i| format!(" {}", range(i.low, i.high, Unit::Nanoseconds)));
    human(ns, Unit::Nanoseconds) + &interval.unwrap_or_default()
}

/// A curve through points (x, y).
pub(crate) fn curve(name: impl Into<String>, points: impl Iterator<Item = (f64, f64)>) -> CurveRow {
    let (x, y) = points.unzip();
    CurveRow { name: name.into(), x, y }
}

/// Puts what steps of a plan gave into a record. `title` says what was simulated on what.
pub fn fill(record: &mut Record, title: &str, pattern: &str, noise: Option<&str>, steps: &[Step]) {
    let keys = |ranks: u32, noise: &str| {
        params([("pattern", pattern.into()), ("ranks", ranks.into()), ("noise", noise.into())])
    };
    let mut lines = vec![title.to_owned(), row(["ranks", "quiet", "with noise", "slowdown"])];
    let mut first_to_double = None;
    for step in steps {
        let quiet_ns = ns(step.quiet_ps);
        record.metrics.push(Metric::new(&TIME, keys(step.ranks, "none"), quiet_ns, "simulation", 1));
        let ranks = step.ranks.to_string();
        let quiet = human(quiet_ns, Unit::Nanoseconds);
        let Some((noise, mean)) = noise.zip(step.mean()) else {
            lines.push(row([ranks.as_str(), &quiet, "", ""]));
            continue;
        };
        let n = step.runs.len() as u64;
        let interval = mean.interval;
        let scaled = |i: Interval| Interval { low: i.low / quiet_ns, high: i.high / quiet_ns, ..i };
        let of_ratio = interval.clone().filter(|_| quiet_ns > 0.0).map(scaled);
        // Twice the time: noise costs more than all else.
        if of_ratio.as_ref().is_some_and(|i| i.low > 2.0) {
            first_to_double.get_or_insert(step.ranks);
        }
        let ratio = Metric::new(&SLOWDOWN, keys(step.ranks, noise), mean.ns / quiet_ns, "mean of runs", n)
            .with_ci(of_ratio);
        let slowdown = ratio.value.map_or_else(
            || "-".to_owned(),
            |r| if r < 100.0 { format!("{r:.3}") } else { format!("{r:.0}") },
        );
        lines.push(row([ranks.as_str(), &quiet, &time(mean.ns, interval.as_ref()), &slowdown]));
        let noisy = Metric::new(&TIME, keys(step.ranks, noise), mean.ns, "mean of runs", n);
        record.metrics.extend([noisy.with_ci(interval), ratio]);
    }
    if let Some(ranks) = first_to_double {
        let text = format!("from {ranks} ranks on noise costs more than everything else");
        lines.push(text.clone());
        let finding = Finding {
            id: "simulate.noise_dominates".to_owned(),
            verdict: "present".to_owned(),
            text,
            evidence: vec!["95 % interval of the mean slowdown above 2".to_owned()],
        };
        record.findings.push(finding);
    }
    record.summary.lines.push(SummaryLine { section: "SIMULATE".to_owned(), lines });
    record.datasets.push(scale(steps));
    if noise.is_some() {
        record.datasets.push(runs(steps));
    }
}

fn row(cells: [&str; 4]) -> String {
    format!("{:>9}  {:>10}  {:<34} {}", cells[0], cells[1], cells[2], cells[3]).trim_end().to_owned()
}

fn scale(steps: &[Step]) -> Dataset {
    let quiet = curve("quiet", steps.iter().map(|s| (f64::from(s.ranks), ns(s.quiet_ps))));
    let noisy = steps.iter().filter_map(|s| Some((f64::from(s.ranks), s.mean()?.ns)));
    let noisy = Some(curve("with noise", noisy)).filter(|r| !r.x.is_empty());
    let rows = [quiet].into_iter().chain(noisy).collect();
    let (x, y) = (Axis::log("ranks", Unit::Count), Axis::log("time", Unit::Nanoseconds));
    let caption = "Time until the last rank ends. Past the point where the curves part, noise sets the time.";
    Dataset::new("simulate.scale", "Simulated time by ranks", caption, Curve::shape(x, y, rows))
}

fn runs(steps: &[Step]) -> Dataset {
    let of = |step: &Step| {
        let points = step.runs.iter().map(|(number, ps)| (*number as f64, ns(*ps)));
        curve(format!("{} ranks", step.ranks), points)
    };
    let (x, y) = (Axis::linear("run", Unit::Count), Axis::log("time", Unit::Nanoseconds));
    let shape = Curve::shape(x, y, steps.iter().map(of).collect());
    let caption = "Each run begins elsewhere in the noise: its number is the seed.";
    Dataset::new("simulate.runs", "Runs", caption, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_figures_with_the_scale_at_which_noise_dominates() {
        let step = |ranks, runs: [u64; 4]| Step { ranks, quiet_ps: 1000, runs: (0..).zip(runs).collect() };
        let all = [step(2, [1000, 1100, 1050, 1000]), step(4, [4000, 4100, 3900, 4000])];
        let mut record = Record::default();
        fill(&mut record, "title", "barrier", Some("n"), &all);
        assert_eq!(record.metrics.len(), 6);
        assert!(record.metrics.iter().all(|m| m.value.is_some() && (m.n == 1 || m.ci.is_some())));
        assert_eq!(record.findings[0].text, "from 4 ranks on noise costs more than everything else");
        let mut quiet = Record::default();
        fill(&mut quiet, "title", "barrier", None, &[Step { runs: Vec::new(), ..all[0].clone() }]);
        assert_eq!((quiet.metrics.len(), quiet.datasets.len()), (1, 1));
    }
}
