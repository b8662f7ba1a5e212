//! What a person should read first.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Summary};
use machmeter_data::summary::{Bounds, Evidence, Fit, Purpose, SHARE_TAKEN, of_cpus};

use super::figures::CpuView;
use super::finding;
use crate::attribute::activity_log::SourceKind;
use crate::info;
use crate::samples::Samples;

/// A longer gap breaks a reaction time of 1 ms, ns.
const LONGEST: Bounds = Bounds::at(1e6);
/// Short gaps delay reactions, but break none.
const SHORT_GAPS: Bounds = Bounds { fit: SHARE_TAKEN.fit, unfit: f64::INFINITY };
/// Share taken of each CPU beyond which programs that wait for each other lose: each waits for the gaps of all others.
const SYNCHRONOUS: Bounds = Bounds::at(SHARE_TAKEN.fit);
/// A message waits through the gap of its receiver; a gap over 1 ms delays all ranks, rarely.
const RARE: Bounds = Bounds { fit: 1e6, unfit: f64::INFINITY };

/// Verdicts on CPU time that others took. Imported series of counts hold no share of it and give none.
pub(super) fn write(samples: &Samples, views: &[CpuView<'_>], metrics: &[Metric]) -> Summary {
    let is_total = |m: &&Metric| m.id == info::STOLEN.id && m.params.get("cpu") == Some(&"all".into());
    let Some(taken) = metrics.iter().find(is_total).filter(|m| m.value.is_some()) else {
        return Summary::default();
    };
    let durations = metrics.iter().filter(|m| m.id == info::DURATION.id);
    let longest_ns = durations.filter_map(|m| m.max).fold(0.0, f64::max);
    let wall_s = views.iter().map(CpuView::wall_s).fold(f64::INFINITY, f64::min);
    let mut summary = Summary::default();
    let words = words(taken, &taker(samples, views, metrics), views.len());
    for fact in evidence(taken, &words, longest_ns) {
        let mut fitness = fact.fitness();
        if fitness.fit == Fit::Yes {
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

/// The share and the longest gap as evidence on each purpose.
fn evidence(taken: &Metric, words: &str, longest_ns: f64) -> Vec<Evidence> {
    let gap = format!("the longest gap was {}; {words}", human(longest_ns, Unit::Nanoseconds));
    let range = Evidence::range(taken);
    let of =
        |purpose, range, bounds, reason: &str| Evidence { purpose, range, bounds, reason: reason.to_owned() };
    vec![
        of(Purpose::Latency, [longest_ns; 2], LONGEST, &gap),
        of(Purpose::Latency, range, SHORT_GAPS, &gap),
        of(Purpose::Throughput, range, SHARE_TAKEN, words),
        of(Purpose::Messages, range, SYNCHRONOUS, &format!("each gap delays all ranks: {words}")),
        of(Purpose::Messages, [longest_ns; 2], RARE, &gap),
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
            m.id == info::SOURCE.id && kinds.iter().any(|k| m.params.get("kind") == Some(&k.name().into()))
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

    /// The verdicts of a share with its interval and a longest gap: latency, throughput, messages.
    fn fits(share: f64, half: f64, longest_ns: f64) -> [Fit; 3] {
        let ends = [(share - half).max(0.0), (share + half).min(1.0)];
        let ci = (half >= 0.0).then(|| Interval::new(0.95, ends[0], ends[1], "block-bootstrap")).flatten();
        let taken = Metric::new(&info::STOLEN, Params::new(), share, "time-share", 100).with_ci(ci);
        let mut all = Summary::default();
        for fact in evidence(
            &taken,
            &words(&taken, &Taker { name: Some("other programs"), part: 1.0 }, 2),
            longest_ns,
        ) {
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
            assert_eq!(fits(share, 0.0, 1e5), [latency, throughput, messages], "{percent} %");
            let rare = if messages == Yes { Partly } else { messages };
            assert_eq!(fits(share, 0.0, 5e6), [No, throughput, rare], "{percent} %, a gap of 5 ms");
            // Without an interval nothing is praised, and nothing blamed but the gap that was seen.
            assert_eq!(fits(share, -1.0, 1e5), [Unknown; 3], "{percent} %");
        }
        assert_eq!(fits(0.86, 0.02, 2e7), [No; 3]);
        assert_eq!(fits(0.009, 0.005, 1e5), [Unknown; 3]);
        assert_eq!(fits(0.1, 0.02, 1e5), [Partly, Partly, No], "the interval reaches below a tenth");
    }
}
