//! Constant interference: noise that is there all the time looks like none, only with a lower mean (see the FTQ documents).
//!
//! A loop cannot see that every turn is slow. It is compared: with the CPU alone, with others, with the best ever, with the
//! clock sold. Only a reference from outside the run can acquit; any comparison can convict.

use machmeter_data::record::Finding;

use super::finding;
use crate::samples::{References, SpeedPhase, SpeedSample};

/// A loss of this share is interference.
const PRESENT: f64 = 0.03;
/// Below this share two speeds are the same.
const SAME: f64 = 0.015;

struct Comparison {
    text: String,
    loss: f64,
    /// Whether the reference lies outside this run.
    outside: bool,
}

/// The verdict with its evidence. `slow_share`: windows 3 % or more below the loop's best speed, per CPU.
pub fn verdict(speed: &[SpeedSample], references: &References, slow_share: &[(String, f64)]) -> Finding {
    let comparisons = compare(speed, references);
    let mut evidence: Vec<String> = comparisons.iter().map(|c| c.text.clone()).collect();
    for (name, share) in slow_share {
        evidence.push(format!(
            "{name}: {:.1} % of windows ran 3 % or more below its own best (interference that comes and goes)",
            share * 100.0
        ));
    }
    let worst = comparisons.iter().max_by(|a, b| a.loss.total_cmp(&b.loss));
    let acquitted = comparisons.iter().any(|c| c.outside && c.loss < SAME);
    let (verdict, text) = match worst {
        Some(w) if w.loss >= PRESENT => {
            ("present", format!("Constant interference of about {:.1} %: {}.", w.loss * 100.0, w.text))
        }
        Some(_) if acquitted => (
            "none_seen",
            "No constant interference seen: the CPUs run as fast as a reference from outside this run."
                .to_owned(),
        ),
        Some(_) => (
            "unknown",
            "This run shows no constant interference, but there is no reference for the speed of the CPUs."
                .to_owned(),
        ),
        None => ("unknown", "The speed of the CPUs was not sampled in this recording.".to_owned()),
    };
    finding("noise.constant_interference", verdict, text, evidence)
}

fn best(speed: &[SpeedSample], cpu: usize, phase: SpeedPhase) -> Option<&SpeedSample> {
    speed.iter().find(|s| s.cpu == cpu && s.phase == phase)
}

fn compare(speed: &[SpeedSample], references: &References) -> Vec<Comparison> {
    let mut out = Vec::new();
    let mut add = |text, loss, outside| out.push(Comparison { text, loss, outside });
    let mut cpus: Vec<usize> = speed.iter().map(|s| s.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let ghz = |ns: f64| 1.0 / ns;
    for &cpu in &cpus {
        let (alone, together) = (best(speed, cpu, SpeedPhase::Alone), best(speed, cpu, SpeedPhase::Together));
        if let (Some(a), Some(t)) = (alone, together) {
            let text = format!(
                "CPU {cpu} does {:.3} additions/ns with the other CPUs at work and {:.3} with them idle",
                ghz(t.median_ns),
                ghz(a.median_ns)
            );
            add(text, 1.0 - a.median_ns / t.median_ns, false);
        }
    }
    let alone: Vec<&SpeedSample> = cpus.iter().filter_map(|c| best(speed, *c, SpeedPhase::Alone)).collect();
    let fastest = alone.iter().min_by(|a, b| a.best_ns.total_cmp(&b.best_ns));
    let slowest = alone.iter().max_by(|a, b| a.best_ns.total_cmp(&b.best_ns));
    if let (Some(f), Some(s)) = (fastest, slowest)
        && f.cpu != s.cpu
    {
        let text = format!(
            "the slowest CPU ({}) does {:.3} additions/ns at its best, the fastest ({}) {:.3}",
            s.cpu,
            ghz(s.best_ns),
            f.cpu,
            ghz(f.best_ns)
        );
        add(text, 1.0 - f.best_ns / s.best_ns, false);
    }
    let Some(now) = fastest else { return out };
    if let Some(ever) = references.best_ever_add_ns.filter(|b| *b > 0.0) {
        let text = format!(
            "the fastest CPU does {:.3} additions/ns at its best, the best ever stored for this kind of machine is {:.3}",
            ghz(now.best_ns),
            ghz(ever)
        );
        add(text, 1.0 - ever / now.best_ns, true);
    }
    if let Some(hz) = references.nominal_hz.filter(|h| *h > 0.0) {
        let text = format!(
            "the fastest CPU does {0:.3} dependent additions/ns, one per cycle, so it runs at {0:.3} GHz of the {1:.3} GHz \
             that {2} gives",
            ghz(now.best_ns),
            hz / 1e9,
            references.nominal_source
        );
        add(text, 1.0 - ghz(now.best_ns) * 1e9 / hz, true);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu: usize, phase: SpeedPhase, ns: f64) -> SpeedSample {
        SpeedSample { cpu, phase, best_ns: ns, median_ns: ns, n: 100 }
    }

    fn quiet() -> Vec<SpeedSample> {
        (0..2).flat_map(|c| [SpeedPhase::Alone, SpeedPhase::Together].map(|p| sample(c, p, 0.27))).collect()
    }

    #[test]
    fn only_a_reference_outside_the_run_acquits_and_any_comparison_convicts() {
        let ever = |ns| References { best_ever_add_ns: Some(ns), ..References::default() };
        let mut beside_neighbor = quiet();
        beside_neighbor[1].median_ns = 0.40;
        let mut slower_cpu = quiet();
        for slow in &mut slower_cpu[2..] {
            (slow.best_ns, slow.median_ns) = (0.30, 0.30);
        }
        for (speed, references, expected, part) in [
            (quiet(), References::default(), "unknown", "there is no reference"),
            (vec![], References::default(), "unknown", "not sampled"),
            (quiet(), ever(0.27), "none_seen", "as fast as a reference"),
            (quiet(), ever(0.25), "present", "7.4 %"),
            // 2 % off is neither the same nor proof.
            (quiet(), ever(0.264), "unknown", "there is no reference"),
            (beside_neighbor, References::default(), "present", "with the other CPUs at work"),
            (slower_cpu, References::default(), "present", "slowest CPU (1)"),
        ] {
            let f = verdict(&speed, &references, &[]);
            assert!(f.verdict == expected && f.text.contains(part), "{expected}, {part}: {f:?}");
        }
    }
}
