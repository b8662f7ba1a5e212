//! Parts of one probe, or of several, in one pool.
//!
//! Cells borrow what their part has made. So each part calls the next one from within, and the innermost runs the pool while all
//! that was made is still there.

use std::borrow::Borrow;
use std::marker::PhantomData;

use machmeter_sys::thread::{monotonic_ns, spawn_placed_scoped};

use super::{CPU, PartContext, QUICK_ADDITION, Verb, narrowest, select};
use crate::cost::{Facts, Kind, Row, Rows};
use crate::deadline::{Deadline, stop_requested};
use crate::experiment::{Enough, Experiment, Finished};
use crate::host::Host;
use crate::placement;
use crate::probe::{self, Measured, Outcome, Output, ProbeError};
use crate::sampling::Sampler;

/// Share of the time that is kept for analysis and storage, and its bound, ns.
const KEPT: f64 = 0.05;
const MOST_KEPT_NS: f64 = 2e9;

type Measure<'p> = dyn Fn(&mut PartContext<'_>) -> Result<(), ProbeError> + 'p;

/// What the parts of a verb measured, and the files that its parameters ask for.
type OfVerb = (Vec<Finished>, Vec<Output>);

/// A part with its parameters.
pub struct Bound<'p> {
    name: &'static str,
    weight: f64,
    measure: Box<Measure<'p>>,
}

/// A verb with its parameters, whatever their type.
pub trait Pooled: Sync {
    /// The parts asked for; their weights sum up to 1.
    fn parts(&self) -> Result<Vec<Bound<'_>>, ProbeError>;

    fn side_effects(&self) -> Vec<String>;

    fn outcome(&self, measured: Measured<Rows>, seed: u64) -> Result<Outcome, ProbeError>;
}

/// With parameters of its own, or borrowed ones.
pub(super) struct Given<V: Verb, B>(B, PhantomData<fn() -> V>);

impl<V: Verb, B: Borrow<V::Params> + Sync> Given<V, B> {
    pub(super) fn new(params: B) -> Self {
        Self(params, PhantomData)
    }
}

impl<V: Verb, B: Borrow<V::Params> + Sync> Pooled for Given<V, B> {
    fn parts(&self) -> Result<Vec<Bound<'_>>, ProbeError> {
        let params = self.0.borrow();
        V::check(params)?;
        let selected = select(V::PARTS, V::names(params))?;
        let weights: u32 = selected.iter().map(|p| p.weight).sum();
        let bound = |p: &'static super::Part<V::Params>| Bound {
            name: p.name,
            weight: f64::from(p.weight) / f64::from(weights.max(1)),
            measure: Box::new(move |at: &mut PartContext<'_>| (p.measure)(at, params)),
        };
        Ok(selected.into_iter().map(bound).collect())
    }

    fn side_effects(&self) -> Vec<String> {
        let started = V::commands(self.0.borrow()).into_iter();
        started.map(|(key, line)| format!("started {line:?} ({key})")).collect()
    }

    fn outcome(&self, measured: Measured<Rows>, seed: u64) -> Result<Outcome, ProbeError> {
        probe::outcome::<V>(self.0.borrow(), measured, seed)
    }
}

/// Measures verbs in one pool, each with its weight, and analyzes each.
pub fn run(host: &Host<'_>, verbs: &[(Box<dyn Pooled>, u64)]) -> Result<Vec<Outcome>, ProbeError> {
    let measured = measure(host, &verbs.iter().map(|(v, weight)| (&**v, *weight)).collect::<Vec<_>>())?;
    verbs.iter().zip(measured).map(|((v, _), m)| v.outcome(m, host.seed)).collect()
}

/// Measures all parts of all verbs in one pool, on a thread on the first measured CPU; what was measured of each verb.
pub(super) fn measure(
    host: &Host<'_>,
    verbs: &[(&dyn Pooled, u64)],
) -> Result<Vec<Measured<Rows>>, ProbeError> {
    let plan = placement::plan(
        &host.cpus,
        &host.allowed,
        &host.priority,
        &Err("costs are measured under the ordinary policy".to_owned()),
    );
    let work = || -> Result<Vec<OfVerb>, ProbeError> {
        let mut parts: Vec<Vec<Bound<'_>>> = verbs.iter().map(|v| v.0.parts()).collect::<Result<_, _>>()?;
        for (of_verb, (_, weight)) in parts.iter_mut().zip(verbs) {
            for part in of_verb {
                part.weight *= *weight as f64;
            }
        }
        let mut sampler = Sampler::on(host);
        let kept_ns = (host.budget.total_ns() as f64 * KEPT).min(MOST_KEPT_NS) as u64;
        let all: Vec<&Bound<'_>> = parts.iter().flatten().collect();
        let mut nest = Nest {
            host,
            policy: plan.policy,
            deadline: Deadline::start(host.budget.left_ns().saturating_sub(kept_ns)),
            weights: all.iter().map(|p| p.weight).sum(),
            finished: all.iter().map(|_| Finished::default()).collect(),
            outputs: all.iter().map(|_| Vec::new()).collect(),
            added: Vec::new(),
            sampler: &mut sampler,
            failed: None,
        };
        let before = (host.best_ever)(&narrowest(host.cpus.first().unwrap_or(0))).map(|n| 1.0 / n);
        nest.descend(&all, 0, Experiment::new(before.filter(|w| w.is_finite() && *w > 0.0)));
        if let Some(e) = nest.failed {
            return Err(e);
        }
        // Alone, a probe of which no part can be measured is a failure; beside others it is a note.
        if verbs.len() == 1
            && let Some(why) = nothing_possible(&nest.finished)
        {
            return Err(ProbeError::Cannot(why));
        }
        host.begin()?;
        let (mut finished, mut outputs) = (nest.finished.into_iter(), nest.outputs.into_iter());
        let of_verb = |parts: &Vec<Bound<'_>>| {
            let n = parts.len();
            (finished.by_ref().take(n).collect(), outputs.by_ref().take(n).flatten().collect())
        };
        Ok(parts.iter().map(of_verb).collect())
    };
    let finished = std::thread::scope(|scope| {
        spawn_placed_scoped(scope, "mm-cost", host.cpus.first(), plan.policy, work)
            .map_err(|e| ProbeError::Cannot(e.to_string()))?
            .join()
    })?;
    let of_verb = |((parts, outputs), (verb, _)): (OfVerb, &(&dyn Pooled, u64))| Measured {
        samples: rows(host, parts),
        policy: plan.policy.to_string(),
        side_effects: verb.side_effects(),
        complete: !stop_requested(),
        outputs,
    };
    Ok(finished.into_iter().zip(verbs).map(of_verb).collect())
}

/// Why no part could be measured; `None` where one could.
fn nothing_possible(parts: &[Finished]) -> Option<String> {
    let refused = |f: &Finished| {
        let only = f.rows.iter().all(|r| r.operation == "part");
        f.rows.first().filter(|_| only).and_then(|r| r.refused.clone())
    };
    let reasons: Option<Vec<String>> = parts.iter().map(refused).collect();
    reasons?.into_iter().next()
}

fn rows(host: &Host<'_>, parts: Vec<Finished>) -> Rows {
    let mut rows = Rows { tick_hz: host.rate.hz(), step_ticks: host.clock.step_ticks(), ..Rows::default() };
    let cpu = host.cpus.first().unwrap_or(0);
    rows.restore_core((host.best_ever)(&narrowest(cpu)));
    rows.facts.set(&CPU, cpu);
    rows.restore_quick_addition((host.best_ever)(QUICK_ADDITION));
    for part in parts {
        rows.rows.extend(part.rows);
        rows.facts.extend(part.facts);
    }
    rows.store_core();
    rows
}

struct Nest<'n> {
    host: &'n Host<'n>,
    policy: machmeter_sys::sched::Policy,
    deadline: Deadline,
    weights: f64,
    finished: Vec<Finished>,
    outputs: Vec<Vec<Output>>,
    /// Parts that are in the pool, in its order.
    added: Vec<usize>,
    sampler: &'n mut Sampler,
    failed: Option<ProbeError>,
}

impl Nest<'_> {
    /// Makes the part `index` ready and, from within, all after it; the innermost runs the pool.
    fn descend(&mut self, parts: &[&Bound<'_>], index: usize, experiment: Experiment<'_>) {
        let Some(part) = parts.get(index) else {
            self.run(experiment);
            return;
        };
        let (host, policy, start_ns) = (self.host, self.policy, self.sampler.start_ns);
        host.progress.step(&format!("{} made ready", part.name));
        let begin_ns = monotonic_ns();
        let share_ns = self.deadline.total_ns() as f64 * part.weight / self.weights;
        let mut waiting = Some(experiment);
        let (made, facts, rows, outputs) = {
            let mut next = |set: Box<dyn crate::experiment::Set + '_>| {
                if let Some(mut all) = waiting.take() {
                    all.add(set, part.weight);
                    self.added.push(index);
                    self.descend(parts, index + 1, all);
                }
            };
            let mut at = PartContext {
                host,
                until_ns: begin_ns + share_ns as u64,
                policy,
                start_ns,
                facts: Facts::default(),
                rows: Vec::new(),
                outputs: Vec::new(),
                next: &mut next,
            };
            let made = (part.measure)(&mut at);
            (made, at.facts, at.rows, at.outputs)
        };
        self.outputs[index] = outputs;
        self.finished[index].facts.extend(facts);
        self.finished[index].rows.extend(rows);
        match made {
            Ok(()) | Err(ProbeError::DryRun) => {}
            Err(ProbeError::Cannot(why)) => {
                let row = Row::new(part.name, "part", Kind::Latency).refused(why);
                self.finished[index].rows.push(row);
            }
            Err(e) => {
                self.failed.get_or_insert(e);
                return;
            }
        }
        if let Some(experiment) = waiting {
            self.descend(parts, index + 1, experiment);
        }
    }

    fn run(&mut self, experiment: Experiment<'_>) {
        let enough = Enough::at(self.host.sampling_level());
        let found = experiment.run(self.sampler, &self.deadline, enough, self.host.seed, self.host.progress);
        for (index, finished) in self.added.drain(..).zip(found) {
            self.finished[index] = finished;
        }
    }
}
