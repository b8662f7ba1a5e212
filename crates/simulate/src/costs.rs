//! Costs of collective operations in a record of the mpi probe: laws where it has them, measured costs between them.

use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::Record;
use machmeter_data::metric::Metric;
use machmeter_model::laws::Term;

/// Coefficients of the segments of a law by their first size, ns per unit of the term.
type Segments = BTreeMap<u64, Vec<(Term, f64)>>;

/// What a record knows of an operation.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    /// Laws by the number of ranks for which they hold; all for `None`.
    laws: BTreeMap<Option<u32>, Segments>,
    /// Measured costs by ranks and bytes, ns.
    costs: BTreeMap<u32, BTreeMap<u64, f64>>,
}

/// Costs of operations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    operations: BTreeMap<String, Known>,
}

/// A cost, and whether it was taken from where nothing was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// Cost, ns.
    pub ns: f64,
    /// Why it is extrapolated, in words.
    pub outside: Option<String>,
}

impl Costs {
    /// The costs of a record.
    pub fn of_record(record: &Record) -> Self {
        let mut all = Self::default();
        let text = |m: &Metric, name: &str| m.params.get(name).map(ToString::to_string).unwrap_or_default();
        for m in &record.metrics {
            let Some(ns) = m.value else { continue };
            let ranks = text(m, "ranks").parse::<u32>().ok();
            let known = || text(m, "operation");
            match m.id.as_str() {
                "mpi.cost" => {
                    let (Some(ranks), Ok(bytes)) = (ranks, text(m, "size_bytes").parse()) else { continue };
                    let own = all.operations.entry(known()).or_default();
                    own.costs.entry(ranks).or_default().insert(bytes, ns);
                }
                "mpi.coefficient" => {
                    let term = Term::ALL.into_iter().find(|t| t.name() == text(m, "term"));
                    let (Some(term), Ok(from)) = (term, text(m, "from_bytes").parse()) else { continue };
                    let own = all.operations.entry(known()).or_default();
                    own.laws.entry(ranks).or_default().entry(from).or_default().push((term, ns));
                }
                _ => {}
            }
        }
        all
    }

    /// Operations that have a cost.
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.operations.keys().map(String::as_str)
    }

    /// What an operation of `ranks` costs with so many bytes of a rank; `None` where nothing is known of it.
    pub fn price(&self, operation: &str, ranks: u32, bytes: u64) -> Option<Price> {
        let known = self.operations.get(operation)?;
        let nearest = |all: &mut dyn Iterator<Item = u32>| all.min_by_key(|p| p.abs_diff(ranks));
        let (ns, holds_at) = if let Some(segments) = known.laws.get(&None) {
            (law(segments, ranks, bytes)?, None)
        } else if let Some(p) = nearest(&mut known.laws.keys().flatten().copied()) {
            (law(&known.laws[&Some(p)], p, bytes)?, Some(p))
        } else {
            let p = nearest(&mut known.costs.keys().copied())?;
            (between(&known.costs[&p], bytes)?, Some(p))
        };
        Some(Price { ns: ns.max(0.0), outside: known.outside(operation, ranks, bytes, holds_at) })
    }
}

impl Known {
    fn outside(&self, operation: &str, ranks: u32, bytes: u64, holds_at: Option<u32>) -> Option<String> {
        let sizes: BTreeSet<u64> = self.costs.values().flat_map(|c| c.keys().copied()).collect();
        let (first, last) = (sizes.first().copied(), sizes.last().copied());
        let first = first.or_else(|| self.laws.values().next()?.keys().next().copied()).unwrap_or(0);
        let last = last.or_else(|| self.laws.values().next()?.keys().last().copied()).unwrap_or(0);
        let mut out = Vec::new();
        if bytes < first || bytes > last {
            let range = if first == last { format!("{first} B") } else { format!("{first} to {last} B") };
            out.push(format!("{operation} of {bytes} B lies beyond the measured sizes ({range})"));
        }
        let (fewest, most) = match (holds_at, self.costs.keys().next(), self.costs.keys().last()) {
            (Some(p), ..) => (p, p),
            (None, Some(fewest), Some(most)) => (*fewest, *most),
            (None, ..) => (ranks, ranks),
        };
        if ranks < fewest || ranks > most {
            let range = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
            out.push(format!("{operation} of {ranks} ranks, measured at {range}"));
        }
        (!out.is_empty()).then(|| out.join("; "))
    }
}

fn law(segments: &Segments, ranks: u32, bytes: u64) -> Option<f64> {
    let own = segments.range(..=bytes).next_back().or_else(|| segments.iter().next())?.1;
    Some(own.iter().map(|(term, factor)| factor * term.at(ranks, bytes)).sum())
}

/// On the line between the two next sizes; beyond them at the cost per byte of the last two.
fn between(costs: &BTreeMap<u64, f64>, bytes: u64) -> Option<f64> {
    if let Some(ns) = costs.get(&bytes) {
        return Some(*ns);
    }
    let above = costs.range(bytes..).next();
    let mut below = costs.range(..bytes).rev();
    let ((x0, y0), (x1, y1)) = match (below.next(), above) {
        (Some(low), Some(high)) => (low, high),
        (Some(last), None) => (below.next().unwrap_or(last), last),
        (None, Some(first)) => (first, first),
        (None, None) => return None,
    };
    if x0 == x1 {
        return Some(*y1);
    }
    let slope = (y1 - y0) / (x1 - x0) as f64;
    Some(y0 + slope * (bytes as f64 - *x0 as f64))
}

#[cfg(test)]
mod tests {
    use machmeter_data::metric::params;
    use machmeter_data::{Better, MetricInfo, Unit};

    use super::*;

    const fn info(id: &'static str) -> MetricInfo {
        MetricInfo {
            id,
            params: &["operation", "size_bytes", "ranks", "term", "from_bytes"],
            unit: Unit::Nanoseconds,
            better: Better::Lower,
            weakened_by: &[],
            description: "",
            may_be_negative: false,
        }
    }

    #[test]
    fn laws_come_first_and_what_lies_beyond_is_said() {
        let mut record = Record::default();
        for (operation, bytes, ns) in [
            ("barrier", 0, 300.0),
            ("bcast", 8, 100.0),
            ("bcast", 1024, 500.0),
            ("scan", 8, 10.0),
            ("scan", 16, 30.0),
        ] {
            let keys =
                [("operation", operation.into()), ("ranks", 2i64.into()), ("size_bytes", i64::into(bytes))];
            record.metrics.push(Metric::new(&info("mpi.cost"), params(keys), ns, "planted", 1));
        }
        for (from, term, ns) in [(8i64, "1", 90.0), (8, "d", 1.0), (512, "d", 0.5)] {
            let keys = [("operation", "bcast".into()), ("from_bytes", from.into()), ("term", term.into())];
            record.metrics.push(Metric::new(&info("mpi.coefficient"), params(keys), ns, "planted", 1));
        }
        let costs = Costs::of_record(&record);
        let price = |operation, ranks, bytes| costs.price(operation, ranks, bytes).unwrap();
        assert_eq!(price("barrier", 2, 0), Price { ns: 300.0, outside: None });
        assert_eq!(price("bcast", 2, 100), Price { ns: 190.0, outside: None });
        assert_eq!(price("bcast", 2, 600).ns, 300.0);
        assert_eq!(price("scan", 2, 12), Price { ns: 20.0, outside: None });
        assert_eq!(price("scan", 2, 24).ns, 50.0, "the slope goes on");
        let said = |p: Price| p.outside.unwrap();
        assert_eq!(
            said(price("bcast", 2, 4096)),
            "bcast of 4096 B lies beyond the measured sizes (8 to 1024 B)"
        );
        assert_eq!(said(price("barrier", 8, 0)), "barrier of 8 ranks, measured at 2");
        assert!(costs.price("gather", 2, 8).is_none());
    }
}
