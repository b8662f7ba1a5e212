//! Includes the variation between runs in the intervals of a run's figures, from earlier runs of the same kind.
//!
//! A single run cannot show this variation: its own interval covers only the variation within it.

use std::collections::BTreeMap;

use machmeter_data::metric::Earlier;
use machmeter_data::{Interval, Metric, Record};
use machmeter_stats::between::{Estimate, among_runs};

use crate::pair::usable;

/// Most earlier runs in use; the machine of long ago may differ.
const MOST: usize = 11;
/// Relative difference up to which two clocks of the core count as equal. A run measures its quick clock to half of that.
const SAME_CLOCK: f64 = 0.015;

/// Widens the intervals of figures by the variation between this run and `earlier` runs (the latest first), and appends this to their method.
/// [`Metric::earlier`] keeps the interval of this run alone. `lasting` selects figures that describe the machine rather than events of the run. An earlier
/// figure counts if program, CPUs, policy, population, estimator and clock of the core are the same. Returns the number of figures that were widened or
/// confirmed.
pub fn include_earlier(record: &mut Record, earlier: &[Record], lasting: impl Fn(&Metric) -> bool) -> usize {
    let conditions = |r: &Record| (r.tool.clone(), r.run.policy.clone(), r.run.cpus.clone());
    let around = conditions(record);
    let earlier: Vec<BTreeMap<String, &Metric>> = earlier
        .iter()
        .filter(|r| r.id != record.id && conditions(r) == around)
        .map(|r| r.metrics.iter().map(|m| (m.key(), m)).collect())
        .collect();
    let mut included = 0;
    for m in record.metrics.iter_mut().filter(|m| lasting(m) && m.earlier.is_none()) {
        let key = m.key();
        let alike = earlier
            .iter()
            .filter_map(|r| r.get(&key).copied())
            .filter(|e| usable(e, m) && is_same_clock(e, m));
        let past: Vec<Estimate> = alike.filter_map(estimate).take(MOST).collect();
        let Some(wide) = estimate(m).and_then(|this| among_runs(this, &past)) else { continue };
        let Some(own) = m.ci.clone() else { continue };
        let method = format!("{}; {} earlier runs", own.method, past.len());
        let Some(ci) = Interval::new(wide.level, wide.low, wide.high, &method) else { continue };
        m.ci = Some(ci);
        m.earlier = Some(Earlier { runs: past.len() as u64, own_ci: own });
        included += 1;
    }
    included
}

fn is_same_clock(a: &Metric, b: &Metric) -> bool {
    a.core_hz.zip(b.core_hz).is_none_or(|(a, b)| (a / b - 1.0).abs() <= SAME_CLOCK)
}

fn estimate(m: &Metric) -> Option<Estimate> {
    let own = m.own_interval()?;
    Some(Estimate { value: m.value?, own: machmeter_stats::Interval::new(own.level, own.low, own.high)? })
}
