//! Machines with known behavior: seeded generators of the block values of runs, and the records around them.

use machmeter_data::metric::Params;
use machmeter_data::record::{Run, Tool};
use machmeter_data::{Better, Metric, MetricInfo, Record, Unit};
use machmeter_stats::random::Random;

/// Blocks per run.
pub(crate) const BLOCKS: usize = 20;

/// How the blocks of one run vary about the level of the run, in units of the natural logarithm.
#[derive(Clone, Copy)]
pub(crate) enum Within {
    /// Independent normal values with this standard deviation.
    White(f64),
    /// Ten percent of a Pareto variable of this shape on top of 1: heavy upper tail.
    Pareto(f64),
    Drift(f64, f64),
    /// The sum of an autoregression (phi, standard deviation) and white noise (standard deviation).
    HiddenDrift(f64, f64, f64),
    /// Autoregression (phi, standard deviation) with a Pareto tail of this shape on every block.
    HeavyDrift(f64, f64, f64),
    /// Two levels this far apart, with this probability of changing sides at every block.
    Switching(f64, f64),
    /// White noise with one block, somewhere, larger by one Pareto variable of shape 1.
    Burst(f64),
}

/// A machine: noise within runs and an offset per run.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) within: Within,
    /// Standard deviation of the offset of a run, which leaves no trace in its blocks.
    pub(crate) run_sd: f64,
}

impl Machine {
    /// The blocks of a run about a level of 1000.
    pub(crate) fn run(&self, r: &mut Random) -> Vec<f64> {
        let offset = self.run_sd * r.normal();
        self.within.series(r).into_iter().map(|y| 1000.0 * (y + offset).exp()).collect()
    }
}

impl Within {
    fn series(self, r: &mut Random) -> Vec<f64> {
        let each = |f: &mut dyn FnMut() -> f64| (0..BLOCKS).map(|_| f()).collect::<Vec<f64>>();
        match self {
            Self::White(sd) => each(&mut || sd * r.normal()),
            Self::Pareto(shape) => each(&mut || tail(r, shape)),
            Self::Drift(phi, sd) => autoregression(r, phi, sd),
            Self::HiddenDrift(phi, sd, white) => add(autoregression(r, phi, sd), || white * r.normal()),
            Self::HeavyDrift(phi, sd, shape) => add(autoregression(r, phi, sd), || tail(r, shape)),
            Self::Switching(step, flip) => {
                let mut high = r.unit() < 0.5;
                each(&mut || {
                    high ^= r.unit() < flip;
                    f64::from(u8::from(high)) * step + 0.01 * r.normal()
                })
            }
            Self::Burst(sd) => {
                let mut y = each(&mut || sd * r.normal());
                let at = r.below(BLOCKS);
                y[at] += (1.0 + r.exponential().exp()).ln();
                y
            }
        }
    }
}

fn tail(r: &mut Random, shape: f64) -> f64 {
    (0.1 * ((r.exponential() / shape).exp() - 1.0)).ln_1p()
}

fn add(y: Vec<f64>, mut more: impl FnMut() -> f64) -> Vec<f64> {
    y.into_iter().map(|v| v + more()).collect()
}

fn autoregression(r: &mut Random, phi: f64, sd: f64) -> Vec<f64> {
    let mut state = r.normal();
    (0..BLOCKS)
        .map(|_| {
            let now = sd * state;
            state = phi * state + (1.0 - phi * phi).sqrt() * r.normal();
            now
        })
        .collect()
}

/// A cost with these blocks; its value is their median.
pub(crate) fn cost(blocks: &[f64]) -> Metric {
    let value = machmeter_stats::quantile::median_of(blocks).unwrap();
    let mut cost = metric("noise.turn", Unit::Nanoseconds, Better::Lower, value, "median");
    cost.params.insert("cpu".to_owned(), 0_i64.into());
    cost.with_blocks(blocks.to_vec(), 5e7)
}

pub(crate) fn metric(id: &'static str, unit: Unit, better: Better, value: f64, estimator: &str) -> Metric {
    let info = MetricInfo {
        id,
        params: &[],
        unit,
        better,
        description: "a figure",
        weakened_by: &[],
        may_be_negative: true,
    };
    Metric::new(&info, Params::new(), value, estimator, 100)
}

pub(crate) fn record(id: &str, metrics: Vec<Metric>) -> Record {
    Record { complete: true, metrics, ..Record::new(id.to_owned(), Tool::default(), Run::default()) }
}
