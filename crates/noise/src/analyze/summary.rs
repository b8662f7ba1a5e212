//! What a person should read first.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Summary};
use machmeter_data::summary::{Bounds, Evidence, Fit, Purpose, SHARE_TAKEN, of_cpus};

use super::figures::CpuView;
use super::{finding, long_gaps};
use crate::attribute::activity_log::SourceKind;
use crate::info;
use crate::samples::Samples;

/// Gaps over 1 ms per CPU-second: a CPU that stops for so long once a second breaks a promise of 1 ms all the time.
const LONG_GAPS: Bounds = Bounds::at(1.0);
/// Short gaps delay reactions, but break none.
const SHORT_GAPS: Bounds = Bounds { fit: SHARE_TAKEN.fit, unfit: f64::INFINITY };
/// Share taken of each CPU beyond which programs that wait for each other lose: each waits for the gaps of all others.
const SYNCHRONOUS: Bounds = Bounds::at(SHARE_TAKEN.fit);
/// Messages: a gap over 1 ms delays all ranks, but rarely.
const RARE: Bounds = Bounds { fit: LONG_GAPS.unfit, unfit: f64::INFINITY };
/// Number of gaps over 1 ms that were seen: any one is a reservation.
const SEEN: Bounds = Bounds { fit: 0.0, unfit: f64::INFINITY };

/// Verdicts on CPU time that others took. Imported series of counts hold no share of it and give none.
pub(super) fn write(samples: &Samples, views: &[CpuView<'_>], metrics: &[Metric]) -> Summary {
    let is_total = |m: &&Metric| m.id == info::STOLEN.id && m.params.get("cpu") == Some(&"all".into());
    let Some(taken) = metrics.iter().find(is_total).filter(|m| m.value.is_some()) else {
        return Summary::default();
    };
    let long_gaps = metrics.iter().find(|m| m.id == info::LONG_GAPS.id);
    let gaps =
        long_gaps.map(|rate| Gaps { rate, reason: long_gaps::reason(views, &samples.activity_log, rate) });
    let wall_s = views.iter().map(CpuView::wall_s).fold(f64::INFINITY, f64::min);
    let mut summary = Summary::default();
    let words = words(taken, &taker(samples, views, metrics), views.len());
    for fact in evidence(taken, &words, gaps.as_ref()) {
        let mut fitness = fact.fitness();
        if fitness.fit == Fit::Yes && fact.reason == words {
            fitness.reason += &format!(", in {}", human(wall_s * 1e9, Unit::Nanoseconds));
        }
        summary.add(Summary { fitness: vec![fitness], ..Summary::default() });
    }
    summary
}

/// The share taken, with its taker: one that took nearly all of it took the share, any other one most of it.
fn words(taken: &Metric, taker: &Taker, cpus: usize) -> String {
    let (share, cpus) = (human(taken.value.unwrap_or(0.0), Unit::One), of_cpus(cpus));
    match taker {
        Taker { name: Some(name), part } if *part >= NEARLY_ALL => format!("{name} took {share} of {cpus}"),
        Taker { name: Some(name), .. } => format!("{share} of {cpus} was taken, mostly by {name}"),
        Taker { name: None, .. } => format!("{share} of {cpus} was taken"),
    }
}

/// Gaps over 1 ms: their rate, and the sentence on them.
struct Gaps<'m> {
    rate: &'m Metric,
    reason: String,
}

/// The share and the gaps over 1 ms as evidence on each purpose. Without a rate of such gaps, latency stays unknown.
fn evidence(taken: &Metric, words: &str, gaps: Option<&Gaps<'_>>) -> Vec<Evidence> {
    let range = Evidence::range(taken);
    let rate = gaps.map_or([f64::NAN; 2], |g| Evidence::range(g.rate));
    let seen = gaps.map_or(f64::NAN, |g| g.rate.n as f64);
    let long = gaps.map_or("the length of gaps is not known", |g| &g.reason);
    let of =
        |purpose, range, bounds, reason: &str| Evidence { purpose, range, bounds, reason: reason.to_owned() };
    vec![
        of(Purpose::Latency, rate, LONG_GAPS, long),
        of(Purpose::Latency, [seen; 2], SEEN, long),
        of(Purpose::Latency, range, SHORT_GAPS, words),
        of(Purpose::Throughput, range, SHARE_TAKEN, words),
        of(Purpose::Messages, range, SYNCHRONOUS, &format!("each gap delays all ranks: {words}")),
        of(Purpose::Messages, rate, RARE, long),
        of(Purpose::Messages, [seen; 2], SEEN, long),
    ]
}

/// Part of the time taken from which on a source took all of it, but for what the page rounds.
const NEARLY_ALL: f64 = 0.95;

/// The kind of source that took more than half of the time taken, if there is one, and its part.
struct Taker {
    name: Option<&'static str>,
    part: f64,
}

/// The main taker, by the sources of the kernel's trace; without any of a kind, by the kernel's counters.
fn taker(samples: &Samples, views: &[CpuView<'_>], metrics: &[Metric]) -> Taker {
    let of_kind = |kinds: &[SourceKind]| {
        let is_kind = |m: &&Metric| {
            let is_of_cpu = m.id == info::SOURCE.id && m.params.get("cpu") != Some(&"all".into());
            is_of_cpu && kinds.iter().any(|k| m.params.get("kind") == Some(&k.name().into()))
        };
        metrics.iter().filter(is_kind).filter_map(|m| m.value).sum::<f64>()
    };
    let wall_ns: f64 = views.iter().map(|v| v.wall_s() * 1e9).sum();
    let counted = |ns: &dyn Fn(usize) -> Option<u64>| {
        (0..views.len()).filter_map(ns).sum::<u64>() as f64 / wall_ns.max(1.0) * views.len() as f64
    };
    let waited = counted(&|i| samples.cpus.get(i)?.thread?.run_delay_ns);
    let steal = counted(&|i| *samples.activity_log.steal_ns.get(i)?);
    let stolen = |m: &&Metric| m.id == info::STOLEN.id && m.params.get("cpu") != Some(&"all".into());
    let total: f64 = metrics.iter().filter(stolen).filter_map(|m| m.value).sum();
    let outside = if steal > 0.0 { "the hypervisor" } else { "the hypervisor or firmware" };
    let or = |traced: f64, counted: f64| if traced > 0.0 { traced } else { counted };
    let shares = [
        ("other programs", or(of_kind(&[SourceKind::Thread]), waited)),
        (outside, or(of_kind(&[SourceKind::Outside]), steal)),
        ("interrupts", of_kind(&[SourceKind::Irq, SourceKind::Softirq, SourceKind::Tick])),
    ];
    let most = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let most = most.map(|(name, share)| (name, share / total)).filter(|(_, part)| *part > 0.5);
    most.map_or(Taker { name: None, part: 0.0 }, |(name, part)| Taker { name: Some(name), part })
}

/// The kernel's counters over the recording: interrupts by name, and steal.
pub(super) fn counters(samples: &Samples) -> Option<Finding> {
    let t = &samples.activity_log;
    let mut evidence: Vec<String> = samples
        .cpus
        .iter()
        .zip(&t.steal_ns)
        .filter_map(|(c, s)| {
            let stolen = human((*s)? as f64, Unit::Nanoseconds);
            Some(format!("{}: steal {stolen}", samples.setup.name(c.cpu)))
        })
        .collect();
    let mut counts = t.counters.clone();
    counts.sort_by_key(|c| std::cmp::Reverse(c.2));
    evidence.extend(counts.iter().take(12).map(|(cpu, name, n)| format!("CPU {cpu}: {n} times {name}")));
    for c in &samples.cpus {
        if let Some(thread) = c.thread {
            let delay =
                thread.run_delay_ns.map_or("unknown".to_owned(), |ns| human(ns as f64, Unit::Nanoseconds));
            evidence.push(format!(
                "{}: the meter waited {delay} for the CPU, {} involuntary switches",
                samples.setup.name(c.cpu),
                thread.preemptions
            ));
        }
    }
    let text = "Increase of the kernel's counters during the recording.".to_owned();
    (!evidence.is_empty()).then(|| finding("noise.counters", "seen", text, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::metric::{Interval, Params};
    use machmeter_stats::distribution::poisson_interval;

    /// The verdicts of a share with its interval, and of a number of gaps over 1 ms in 20 CPU-seconds: latency, throughput, messages.
    fn fits(share: f64, half: f64, long_gaps: u64) -> [Fit; 3] {
        fits_in(share, half, long_gaps, 20.0)
    }

    fn fits_in(share: f64, half: f64, long_gaps: u64, seconds: f64) -> [Fit; 3] {
        let ends = [(share - half).max(0.0), (share + half).min(1.0)];
        let ci = (half >= 0.0).then(|| Interval::new(0.95, ends[0], ends[1], "block-bootstrap")).flatten();
        let taken = Metric::new(&info::STOLEN, Params::new(), share, "time-share", 100).with_ci(ci);
        let ends = poisson_interval(long_gaps, 0.95).unwrap().map(|n| n / seconds);
        let rate = Metric::new(
            &info::LONG_GAPS,
            Params::new(),
            long_gaps as f64 / seconds,
            "count per time",
            long_gaps,
        )
        .with_ci(Interval::new(0.95, ends[0], ends[1], "poisson"));
        let mut all = Summary::default();
        let words = words(&taken, &Taker { name: Some("other programs"), part: 1.0 }, 2);
        let gaps = Gaps { rate: &rate, reason: "gaps".to_owned() };
        for fact in evidence(&taken, &words, Some(&gaps)) {
            all.add(Summary { fitness: vec![fact.fitness()], ..Summary::default() });
        }
        let of = |p: Purpose| all.fitness.iter().find(|f| f.purpose == p.name()).unwrap();
        assert!(of(Purpose::Throughput).reason.starts_with("other programs took "), "{all:?}");
        [Purpose::Latency, Purpose::Throughput, Purpose::Messages].map(|p| of(p).fit)
    }

    #[test]
    fn a_taker_of_most_did_not_take_all() {
        let taken = Metric::new(&info::STOLEN, Params::new(), 0.0135, "time-share", 100);
        let of = |name, part| words(&taken, &Taker { name, part }, 2);
        assert_eq!(of(Some("the hypervisor"), 0.99), "the hypervisor took 1.35 % of both CPUs");
        assert_eq!(
            of(Some("the hypervisor"), 0.72),
            "1.35 % of both CPUs was taken, mostly by the hypervisor"
        );
        assert_eq!(of(None, 0.0), "1.35 % of both CPUs was taken");
    }

    #[test]
    fn verdicts_follow_share_and_gap_over_the_whole_range() {
        use Fit::{No, Partly, Unknown, Yes};
        for percent in 0..=100 {
            let share = f64::from(percent) / 100.0;
            let throughput = match percent {
                0 | 1 => Yes,
                2..=10 => Partly,
                _ => No,
            };
            let messages = if percent > 1 { No } else { Yes };
            let latency = if percent > 1 { Partly } else { Yes };
            assert_eq!(fits(share, 0.0, 0), [latency, throughput, messages], "{percent} %");
            let rare = |fit: Fit| fit.max(Partly);
            assert_eq!(
                fits(share, 0.0, 3),
                [rare(latency), throughput, rare(messages)],
                "{percent} %, 3 long gaps"
            );
            assert_eq!(fits(share, 0.0, 60), [No, throughput, rare(messages)], "{percent} %, 60 long gaps");
            // Without an interval nothing is praised, and nothing blamed but the gaps that were seen.
            assert_eq!(fits(share, -1.0, 0), [Unknown; 3], "{percent} %");
        }
        assert_eq!(fits(0.86, 0.02, 60), [No; 3]);
        assert_eq!(fits(0.009, 0.005, 0), [Unknown; 3]);
        assert_eq!(fits(0.1, 0.02, 0), [Partly, Partly, No], "the interval reaches below a tenth");
    }

    /// A run of less than 3.7 CPU-seconds without a long gap cannot show that there is less than one a second.
    #[test]
    fn a_short_run_without_a_long_gap_is_no_praise() {
        use Fit::{No, Partly, Unknown, Yes};
        assert_eq!(fits_in(0.001, 0.0, 0, 1.5), [Unknown, Yes, Unknown]);
        assert_eq!(fits_in(0.001, 0.0, 0, 3.6), [Unknown, Yes, Unknown]);
        assert_eq!(fits_in(0.001, 0.0, 0, 3.8), [Yes; 3]);
        assert_eq!(fits_in(0.001, 0.0, 1, 1.5), [Partly, Yes, Partly]);
        assert_eq!(fits_in(0.001, 0.0, 5, 1.5), [No, Yes, Partly], "at least 1.08 a second");
    }
}
