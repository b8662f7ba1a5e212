//! Reads the figures of a side from the records of its runs.
//!
//! [`crate::compare`], [`crate::paired`] and [`crate::history`] all read records through [`Sides`], so all three judge the same figures. A source of noise
//! that a run did not name counts as zero in that run (see [`crate::absent`]). A source that exists on one side only is therefore a row of both.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::{Metric, Record};

use crate::absent;

/// The figure of one run.
#[derive(Debug)]
pub(crate) struct Figure<'a> {
    /// Index of the run on its side.
    pub(crate) run: usize,
    pub(crate) metric: Cow<'a, Metric>,
}

/// Figures of a side's runs by the key of their metric, in the order of the runs.
pub(crate) type Figures<'a> = BTreeMap<String, Vec<Figure<'a>>>;

/// Figures of both sides and of earlier runs.
#[derive(Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) a: Figures<'a>,
    pub(crate) b: Figures<'a>,
    pub(crate) earlier: Figures<'a>,
    /// Key and run id of figures that a run of either side has more than once; the first one counts.
    pub(crate) repeated: Vec<(String, String)>,
}

impl<'a> Sides<'a> {
    pub(crate) fn new(a: &[&'a Record], b: &[&'a Record], earlier: &[&'a Record]) -> Self {
        let mut repeated = Vec::new();
        let [mut of_a, mut of_b] = [a, b].map(|runs| by_key(runs, &mut repeated));
        let mut of_earlier = by_key(earlier, &mut Vec::new());
        let named: BTreeMap<String, Metric> = {
            let all = of_a.iter().chain(&of_b).map(|(key, of)| (key, of[0].metric.as_ref()));
            all.filter(|(_, m)| absent::is_named(m)).map(|(key, m)| (key.clone(), m.clone())).collect()
        };
        for (runs, of) in [(a, &mut of_a), (b, &mut of_b), (earlier, &mut of_earlier)] {
            for (run, record) in runs.iter().enumerate() {
                for (key, zero) in absent::unnamed(record, &named) {
                    let all = of.entry(key).or_default();
                    let at = all.partition_point(|f| f.run < run);
                    all.insert(at, Figure { run, metric: Cow::Owned(zero) });
                }
            }
        }
        Self { a: of_a, b: of_b, earlier: of_earlier, repeated }
    }
}

/// The metrics with this key.
pub(crate) fn metrics<'f>(of: &'f Figures<'_>, key: &str) -> Vec<&'f Metric> {
    of.get(key).into_iter().flatten().map(|f| f.metric.as_ref()).collect()
}

fn by_key<'a>(runs: &[&'a Record], repeated: &mut Vec<(String, String)>) -> Figures<'a> {
    let mut out = Figures::new();
    for (run, r) in runs.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for m in &r.metrics {
            let key = m.key();
            if seen.insert(key.clone()) {
                out.entry(key).or_default().push(Figure { run, metric: Cow::Borrowed(m) });
            } else {
                repeated.push((key, r.id.clone()));
            }
        }
    }
    out
}
