//! What tests share. Those that need the CPUs of this machine run one at a time: two would measure each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use machmeter_engine::cost::{Estimator, Row, Rows};
use machmeter_engine::experiment::{CellList, Enough, sample};
use machmeter_engine::sampling::{HostTiming, Sampler};
use machmeter_engine::team::Seats;
use machmeter_engine::team::sampler::HostClock;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::monotonic_ns;

/// Waits until no other test of this crate needs the CPUs; keep what it returns until the end of the test.
pub(crate) fn lock_cpus() -> MutexGuard<'static, ()> {
    static CPUS: Mutex<()> = Mutex::new(());
    // A test that failed has left nothing behind that the next would depend on.
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same with the CPUs there are, where they are two or more.
pub(crate) fn lock_several() -> Option<(MutexGuard<'static, ()>, Vec<usize>)> {
    let cpus = machmeter_sys::affinity::mask().unwrap().to_vec();
    if cpus.len() < 2 {
        println!("skipped: one CPU");
        return None;
    }
    Some((lock_cpus(), cpus))
}

/// Asserts that a row of a catalog declares `estimator` and keeps it, whatever it costs.
pub(crate) fn assert_keeps(row: &Row, estimator: Estimator) {
    assert_eq!(row.estimator, estimator, "{} {:?}", row.operation, row.params);
    for ns in [2, 19, 21, 700] {
        let planted = Row { refused: None, ..row.clone() }.per_turn(1.0);
        let planted = planted.planted(1_000, [(1_000 * ns, 2_000 * ns); 16]);
        let cost = Rows::in_nanoseconds(Vec::new()).cost(&planted);
        let known = cost.known().map(|k| (k.estimator, k.value_ns));
        assert_eq!(known, Some((estimator, ns as f64)), "{} {:?}", row.operation, row.params);
    }
}

/// Seats on these CPUs, under the ordinary policy.
pub(crate) fn seats(cpus: &[usize]) -> Seats {
    Seats { cpus: cpus.to_vec(), policy: Policy::Other { nice: 0 } }
}

/// The parameters of a probe as a command line with these words says them.
pub(crate) fn params<P: clap::Args>(words: &[&str]) -> P {
    let command = P::augment_args(clap::Command::new("probe").no_binary_name(true));
    P::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

/// The rows of a probe that an analysis gives, as `name: figures`.
pub(crate) fn row_texts(
    probe: &machmeter_engine::Info,
    analysis: &machmeter_engine::Analysis,
) -> Vec<String> {
    let rows = machmeter_data::summary::rows(probe.rows, &analysis.metrics);
    let texts = rows.iter().filter_map(|r| r.text(&analysis.metrics));
    texts.map(|t| format!("{}: {}", t.name, t.line())).collect()
}

pub(crate) fn codes(analysis: &machmeter_engine::Analysis) -> Vec<&str> {
    analysis.warnings.iter().map(|w| w.code.as_str()).collect()
}

/// The first metric with this id and these values of parameters; a value that ends in a dot is the begin of one.
pub(crate) fn metric<'a>(
    analysis: &'a machmeter_engine::Analysis,
    id: &str,
    of: &[(&str, &str)],
) -> Option<&'a machmeter_data::Metric> {
    let fits = |p: String, v: &str| p == v || (v.ends_with('.') && p.starts_with(v));
    let is = |m: &&machmeter_data::Metric| {
        m.id == id && of.iter().all(|(k, v)| m.params.get(*k).is_some_and(|p| fits(p.to_string(), v)))
    };
    analysis.metrics.iter().find(is)
}

/// Rows of cells that were sampled for so long on this machine, in time.
pub(crate) fn sampled(mut cells: CellList<'_>, for_ns: u64) -> Vec<Row> {
    let until_ns = monotonic_ns() + for_ns;
    let HostClock { source, rate } = HostClock::MONOTONIC;
    sample(&mut Sampler::new(HostTiming::new(source), rate, 7), &mut cells, Enough::ENDLESS, until_ns);
    assert!(monotonic_ns() < until_ns + 1_000_000_000, "the time was not kept");
    cells.into_rows()
}
