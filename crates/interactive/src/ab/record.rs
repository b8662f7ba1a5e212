//! Measuring under two settings: the runner of all cells, with a setting put in force before each pass.

use machmeter_engine::{Host, ProbeError};

use super::plan::{SEGMENTS_PER_ROUND, order, rounds_for};
use super::{Settings, may_stop, series};
use crate::run::{self, CellPlan};
use crate::samples::{Cell, Samples, Segment};

/// Shares `within_ns` out over the rounds of an A/B run of `tasks` tasks under the loads of `plan`.
pub fn fit(plan: &mut CellPlan, tasks: usize, within_ns: u64) {
    let with = |rounds: usize| {
        let mut fitted = plan.clone();
        // Every pass of every round is one segment per cell; the loads start anew for each.
        fitted.fit(tasks, SEGMENTS_PER_ROUND * rounds, within_ns);
        fitted.segment_ns * u64::from(fitted.rounds)
    };
    let rounds = rounds_for(with);
    plan.segment_ns = with(rounds);
    plan.rounds = rounds as u32;
    plan.within_ns = Some(within_ns);
}

/// Records `plan`, whose time [`fit`] has shared out, under the two settings that `commands` make. `delta` is the smallest
/// change that matters, as a fraction.
/// Errors: those of [`run::record_cells`]; a setting cannot be put in force or does not stay so.
pub fn record(
    host: &Host<'_>,
    plan: &CellPlan,
    commands: &[String],
    delta: f64,
    on_segment: &mut dyn FnMut(&Cell, &Segment),
) -> Result<Samples, ProbeError> {
    let [a, b] = commands else {
        return Err(ProbeError::Usage("--ab takes two commands, one for each setting".to_owned()));
    };
    let planned = plan.rounds as usize;
    let settings = Settings::new([a.clone(), b.clone()]);
    let mut turns = Turns { host, settings, planned, delta, failed: None };
    let recorded = run::record_cells(host, plan, &mut turns, on_segment);
    let last = turns.settings.check();
    turns.settings.end();
    let mut samples = recorded?;
    if let Some(failed) = turns.failed.or(last.err()) {
        return Err(failed);
    }
    samples.setup.settings = vec![a.clone(), b.clone()];
    samples.setup.ab_delta = delta;
    samples.setup.ab_rounds = planned;
    Ok(samples)
}

struct Turns<'a> {
    host: &'a Host<'a>,
    settings: Settings,
    planned: usize,
    delta: f64,
    failed: Option<ProbeError>,
}

impl run::Settings for Turns<'_> {
    fn enter(&mut self, index: usize) -> Result<(), ProbeError> {
        self.host.progress.step(if index == 0 { "interactive: setting A" } else { "interactive: setting B" });
        self.settings.apply(index)
    }

    fn order(&mut self, round: u32) -> Vec<usize> {
        order(round as usize, self.host.seed).to_vec()
    }

    fn go_on(&mut self, samples: &Samples) -> bool {
        // Recorded under a setting that was gone: nothing of it can be believed.
        self.failed = self.settings.check().err();
        self.failed.is_none() && !may_stop(&series(samples).0, self.planned, self.delta)
    }
}

#[cfg(test)]
mod tests {
    use machmeter_engine::Attributes;
    use machmeter_engine::LoadRequest;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn plan(loads: usize) -> CellPlan {
        let request = LoadRequest {
            name: "burn".to_owned(),
            threads: None,
            custom: None,
            attributes: Attributes::default(),
            cpus: "0".to_owned(),
            directory: ".".into(),
            disk_bytes: 0,
            memory_bytes: None,
            seed: 1,
        };
        CellPlan {
            tasks: Vec::new(),
            loads: vec![(request, true); loads],
            attributes: Attributes::default(),
            segment_ns: 0,
            rounds: 1,
            within_ns: None,
        }
    }

    #[test]
    fn the_time_is_shared_out_over_rounds_that_can_decide() {
        for (tasks, loads, seconds) in [(1, 1, 300), (2, 1, 300), (3, 2, 300), (2, 2, 60)] {
            let mut p = plan(loads);
            fit(&mut p, tasks, seconds * S);
            let segments = u64::from(p.rounds) * 4 * (tasks * loads) as u64;
            assert!(p.rounds >= 4 && segments * p.segment_ns <= seconds * S, "{tasks} {loads}: {p:?}");
            // Starting loads and tasks takes a part of it only.
            assert!(segments * p.segment_ns > seconds * S / 2, "{tasks} {loads}: {p:?}");
        }
        let mut one = plan(1);
        fit(&mut one, 1, 300 * S);
        assert!(one.rounds >= 15, "{one:?}");
    }
}
