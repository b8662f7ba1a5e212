//! Performance guidelines: no call should cost more than others that do the same together (Traeff, Gropp, Thakur: "Self-consistent MPI
//! performance guidelines", TPDS 21, 2010). By isolated costs, each until the last rank is through, so that a sum is what both cost one after
//! the other at most.
//!
//! A guideline is broken where the excess is more than its standard error, of samples and of what launches differ by, has by chance once in a
//! thousand runs, over all comparisons of a run (Bonferroni; Student's law with the fewest degrees of freedom of those compared), and more than
//! clocks that ranks do not share may make up: each cost is between stamps of two ranks.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Warning};
use machmeter_model::laws::table::{At, Found};
use machmeter_stats::distribution::{normal_quantile, t_quantile};

use crate::analyze::FALSE_ALARMS;
use crate::info::GUIDELINE;

/// A call, and those that do the same, for the same bytes of a rank.
type Guideline = (&'static str, &'static [&'static str]);
const GUIDELINES: [Guideline; 5] = [
    ("allreduce", &["reduce", "bcast"]),
    ("reduce", &["allreduce"]),
    ("gather", &["allgather"]),
    ("allgather", &["alltoall"]),
    ("scatter", &["alltoall"]),
];

/// A call beside those that do the same, at a number of ranks and a size.
struct Compared<'f> {
    call: &'static str,
    others: &'static [&'static str],
    ranks: u32,
    bytes: u64,
    own: &'f At,
    all: Vec<&'f At>,
}

/// Calls that break a guideline, each at the size where it is worst.
pub(crate) fn broken(found: &[Found], clocks_off_ns: f64) -> Vec<(Finding, Warning)> {
    let all: Vec<Compared<'_>> =
        GUIDELINES.into_iter().flat_map(|guideline| compared(found, guideline)).collect();
    let broken = |c: &&Compared<'_>| c.is_broken(all.len(), clocks_off_ns);
    let worst = |(call, _): &(&str, _)| {
        let own = all.iter().filter(|c| c.call == *call).filter(broken);
        own.max_by(|a, b| a.ratio().total_cmp(&b.ratio())).map(Compared::told)
    };
    GUIDELINES.iter().filter_map(worst).collect()
}

fn compared(found: &[Found], (call, others): Guideline) -> Vec<Compared<'_>> {
    let of = |name: &str| found.iter().find(|f| f.name == name);
    let Some(own) = of(call) else { return Vec::new() };
    let beside = |(&(ranks, bytes), own)| {
        let all = others.iter().map(|name| of(name)?.isolated.get(&(ranks, bytes)));
        Some(Compared { call, others, ranks, bytes, own, all: all.collect::<Option<_>>()? })
    };
    own.isolated.iter().filter_map(beside).collect()
}

impl Compared<'_> {
    fn sum_ns(&self) -> f64 {
        self.all.iter().map(|a| a.ns).sum()
    }

    fn ratio(&self) -> f64 {
        self.own.ns / self.sum_ns()
    }

    fn is_broken(&self, comparisons: usize, clocks_off_ns: f64) -> bool {
        let both = || self.all.iter().copied().chain([self.own]);
        let error_ns = both().map(|a| a.error_ns.powi(2)).sum::<f64>().sqrt();
        let freedom = both().map(|a| a.freedom).fold(f64::INFINITY, f64::min);
        let p = 1.0 - FALSE_ALARMS / comparisons as f64;
        let reach = if freedom.is_finite() { t_quantile(p, freedom) } else { normal_quantile(p) };
        let clocks_ns = both().count() as f64 * clocks_off_ns;
        reach.is_some_and(|reach| self.own.ns - self.sum_ns() > reach * error_ns + clocks_ns)
    }

    fn told(&self) -> (Finding, Warning) {
        let size = human(self.bytes as f64, Unit::Bytes);
        let (call, ranks, ratio, others) = (self.call, self.ranks, self.ratio(), self.others.join(" + "));
        let text = format!("{call} of {size} at p = {ranks} costs {ratio:.2} times {others}");
        let excess = human(self.own.ns - self.sum_ns(), Unit::Nanoseconds);
        let of = if self.own.launches > 2 { "and launches" } else { "of one launch" };
        let evidence = vec![format!("isolated, {excess} more: beyond the error of samples {of}")];
        let warning = GUIDELINE.note(text.clone());
        let [id, verdict] = ["mpi.guideline", "present"].map(str::to_owned);
        (Finding { id, verdict, text, evidence }, warning)
    }
}

#[cfg(test)]
mod tests {
    use machmeter_engine::cost::Estimator;
    use machmeter_engine::cost::estimate::Known;
    use machmeter_model::laws::LawError;
    use machmeter_model::laws::table::Costs;
    use machmeter_stats::random::Random;

    use super::*;
    use crate::analyze::{ByLaunch, launches_differ, together};

    const SIZES: [u64; 6] = [8, 128, 2_048, 32_768, 524_288, 1 << 20];

    /// A cost of this relative standard error.
    fn known_to(error: f64, ns: f64) -> Known {
        let reach_ns = 1.96 * error * ns;
        Known {
            value_ns: ns,
            low_ns: ns - reach_ns,
            high_ns: ns + reach_ns,
            usual_ns: ns,
            fast_ns: ns,
            slow_ns: ns,
            max_ns: ns,
            n: 100,
            estimator: Estimator::Batches,
            population: None,
            apart_ns: None,
            core_hz: None,
            follows: None,
            blocks_ns: Vec::new(),
            visits_ns: Vec::new(),
        }
    }

    /// Five calls in three launches that differ by 3 %, known to 1 %; an allreduce costs so many times reduce and bcast.
    fn found(seed: u64, ratio: f64) -> Vec<Found> {
        let mut random = Random::new(seed);
        let mut of = |name| {
            let factor = if name == "allreduce" { 2.0 * ratio } else { 1.0 };
            let mut by_launch = ByLaunch::new();
            for bytes in SIZES {
                let mut known = |launch| {
                    let truly_ns = factor * (300.0 + 0.1 * bytes as f64);
                    let value_ns = truly_ns * (1.0 + 0.03 * random.normal() + 0.01 * random.normal());
                    (launch, known_to(0.01, value_ns))
                };
                by_launch.insert((2, bytes), (1..=3).map(&mut known).collect());
            }
            let between = launches_differ(&by_launch);
            let isolated = together(by_launch, between);
            let (costs, laws) = (Costs::new(), Err(LawError::Empty));
            Found {
                name,
                what: "",
                costs,
                isolated,
                laws,
                refused: None,
                isolated_refused: None,
                has_one_size: false,
            }
        };
        ["reduce", "bcast", "allreduce", "gather", "allgather"].into_iter().map(&mut of).collect()
    }

    #[test]
    fn calls_that_cost_as_much_as_others_break_nothing() {
        let named = (0..5_000).filter(|seed| !broken(&found(*seed, 1.0), 0.0).is_empty()).count();
        // 5 are due; 15 are beyond chance.
        assert!(named < 15, "{named} of 5000 runs");
    }

    #[test]
    fn a_call_that_others_beat_is_named_unless_clocks_may_make_it_up() {
        for seed in 0..200 {
            let all = found(seed, 1.3);
            let [(finding, warning)] = &broken(&all, 0.0)[..] else { panic!("seed {seed}") };
            assert!(finding.text.starts_with("allreduce of ") && warning.code == "W513", "{finding:?}");
            let ratio: f64 = finding.text.split(' ').nth(9).unwrap().parse().unwrap();
            assert!((1.2..1.5).contains(&ratio), "{finding:?}");
            assert!(broken(&all, 1e6).is_empty());
        }
    }
}
