//! Distributes the runs of a plan over threads, and merges shares.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use machmeter_data::record::Machine as Host;
use machmeter_simulate::montecarlo::What;
use machmeter_simulate::noise::{Machine, Starts};
use machmeter_simulate::record::Step;
use machmeter_simulate::{Params, SimulateError};
use machmeter_sys::guard::signals;
use serde_json::Value;

use super::{Ladder, PLAN};
use crate::command::report;
use crate::progress::Reporter;
use crate::{Exit, Failure};

pub(super) struct Work<'a> {
    pub(super) what: What<'a>,
    pub(super) params: Params,
    pub(super) noise: Option<Arc<Machine>>,
    pub(super) coincident: bool,
    pub(super) ladder: Ladder,
    pub(super) runs: Vec<u64>,
}

impl Work<'_> {
    /// Runs everything over threads: quiet runs first, then run by run, so that an interrupt leaves complete runs. The place of a result does not depend on
    /// its thread.
    pub(super) fn run(&self, threads: usize, progress: &Reporter) -> Result<Vec<Step>, Failure> {
        let numbers: Vec<Option<u64>> =
            [None].into_iter().chain(self.runs.iter().copied().map(Some)).collect();
        let jobs: Vec<(usize, Option<u64>)> =
            numbers.iter().flat_map(|n| (0..self.ladder.len()).map(|step| (step, *n))).collect();
        let one = |(step, number): &(usize, Option<u64>), stop: &dyn Fn() -> bool| {
            let starts = |seed| if self.coincident { Starts::Together(seed) } else { Starts::Apart(seed) };
            let noise = number.and_then(|seed| Some((self.noise.as_ref()?, starts(seed))));
            self.what.simulate(self.ladder[*step], &self.params, noise, stop)
        };
        let results = over_threads(&jobs, threads, progress, |job| self.ladder[job.0], one)?;
        let mut quiet = vec![None; self.ladder.len()];
        let mut noisy = vec![Vec::new(); self.ladder.len()];
        for ((step, number), result) in jobs.into_iter().zip(results) {
            match (result, number) {
                (Some(ps), None) => quiet[step] = Some(ps),
                (Some(ps), Some(number)) => noisy[step].push((number, ps)),
                (None, _) => {}
            }
        }
        let whole = self.ladder.iter().zip(quiet).zip(noisy);
        Ok(whole
            .filter_map(|((ranks, quiet), runs)| Some(Step { ranks: *ranks, quiet_ps: quiet?, runs }))
            .collect())
    }
}

/// Results of the jobs in their order; `None` for jobs that a signal prevented. `ranks` gives the number of ranks of a job for messages, and its share of
/// the whole.
pub(in crate::command) fn over_threads<J: Sync, R: Clone + Send>(
    jobs: &[J],
    threads: usize,
    progress: &Reporter,
    ranks: impl Fn(&J) -> u32 + Sync,
    one: impl Fn(&J, &dyn Fn() -> bool) -> Result<R, SimulateError> + Sync,
) -> Result<Vec<Option<R>>, Failure> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(vec![None; jobs.len()]));
    let (all, done) = (jobs.iter().map(|j| u64::from(ranks(j))).sum::<u64>(), AtomicU64::new(0));
    let stop = || signals::stop_flag().load(Ordering::Relaxed);
    let worker = || {
        while !stop() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            let result = one(job, &stop);
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
            let own = u64::from(ranks(job));
            progress.done((done.fetch_add(own, Ordering::Relaxed) + own) as f64 / all as f64);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(worker);
        }
        worker();
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let given = |(job, result): (&J, Option<Result<R, SimulateError>>)| match result {
        Some(Err(SimulateError::Stopped)) | None => Ok(None),
        Some(Ok(given)) => Ok(Some(given)),
        Some(Err(e)) => {
            let exit = if matches!(e, SimulateError::Deadlock(_)) { Exit::Finding } else { Exit::Usage };
            Err(Failure { exit, ..Failure::usage(format!("{} ranks: {e}", ranks(job))) })
        }
    };
    jobs.iter().zip(results).map(given).collect()
}

/// Merges shares: their common plan, and the runs of all.
pub(super) fn merged(names: &[PathBuf]) -> Result<(Value, Vec<Step>, Host), Failure> {
    let mut whole = None;
    for name in names {
        let (record, _) = report::located(name)?;
        let wrong = |what: String| Failure::usage(format!("--merge {}: {what}", name.display()));
        let plan = record.run.parameters.get(PLAN).map(|p| p["plan"].clone());
        let plan = plan
            .filter(Value::is_object)
            .ok_or_else(|| wrong("the record is not a simulation".to_owned()))?;
        let own: Vec<Step> = serde_json::from_value(record.run.parameters[PLAN]["steps"].clone())
            .map_err(|_| wrong("the steps of the record cannot be read".to_owned()))?;
        let Some((common, all, _)) = &mut whole else {
            whole = Some((plan, own, record.machine));
            continue;
        };
        // The title contains file names, which may differ between machines.
        let differs = |key: &&String| *key != "title" && common[key.as_str()] != plan[key.as_str()];
        if let Some(key) = common.as_object().into_iter().flat_map(|o| o.keys()).find(differs) {
            return Err(wrong(format!("the share belongs to another plan: {key} differs")));
        }
        for Step { ranks, quiet_ps, runs } in own {
            let same = all.iter_mut().find(|s| s.ranks == ranks && s.quiet_ps == quiet_ps);
            let text = || format!("{ranks} ranks are in no other share, or have another quiet time");
            same.ok_or_else(|| wrong(text()))?.runs.extend(runs);
        }
    }
    let (plan, mut all, machine): (Value, Vec<Step>, _) =
        whole.ok_or_else(|| Failure::usage("--merge: no records"))?;
    let runs = plan["runs"].as_u64().filter(|_| plan["noise"].is_string()).unwrap_or(0);
    for Step { ranks, runs: own, .. } in &mut all {
        own.sort_unstable();
        let numbers: Vec<u64> = own.iter().map(|r| r.0).collect();
        if let Some(n) = (0..runs).find(|n| numbers.binary_search(n).is_err()) {
            return Err(Failure::usage(format!(
                "--merge: run {n} of {runs} at {ranks} ranks is in no share"
            )));
        }
        if numbers.len() as u64 != runs {
            return Err(Failure::usage(format!("--merge: a run at {ranks} ranks is in two shares")));
        }
    }
    Ok((plan, all, machine))
}
