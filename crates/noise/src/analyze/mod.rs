//! The analysis of a recording: a pure function from samples to figures, findings and pictures.

pub mod classes;
pub mod constant;
pub mod datasets;
pub mod derive;
pub mod figures;
mod long_gaps;
mod ranks;
pub mod rhythm;
pub mod sources;
mod spectrum;
pub mod split;
mod summary;
mod warnings;

use std::sync::atomic::{AtomicUsize, Ordering};

use machmeter_data::record::Finding;
use machmeter_data::{Dataset, Metric};
use machmeter_engine::Analysis;
use machmeter_stats::quantile::median_of;

use super::run::ADD_KEY;
use super::samples::{Samples, SpeedPhase};
use figures::CpuView;
use split::{Split, split};

/// Analyses a recording. `seed` seeds the test of coincidence.
pub fn analyze(samples: &Samples, seed: u64) -> Analysis {
    let splits: Vec<Split> = samples.cpus.iter().map(|c| split(c, &samples.setup.schedule)).collect();
    let views: Vec<CpuView<'_>> = samples
        .cpus
        .iter()
        .zip(&splits)
        .map(|(cpu, split)| CpuView { setup: &samples.setup, cpu, split })
        .collect();
    let activity_log = &samples.activity_log;
    let done = side_by_side(views.len(), |i| {
        (figures::of_cpu(&views[i]), rhythm::periodic(&views[i], activity_log))
    });
    let (per_cpu, rhythms): (Vec<Vec<Metric>>, Vec<Vec<rhythm::Periodic>>) = done.into_iter().unzip();
    let mut metrics = figures::of_all(&views, &per_cpu);
    metrics.extend(long_gaps::rate(&views));
    metrics.extend(sources::over_all(&views, activity_log));
    let mut found = Vec::new();
    for ((v, own), rhythms) in views.iter().zip(per_cpu).zip(rhythms) {
        metrics.extend(own);
        metrics.extend(sources::metrics(v, activity_log));
        metrics.extend(rhythm::metrics(&rhythms));
        found.extend(rhythms);
    }
    let slow_share: Vec<(String, f64)> =
        views.iter().filter_map(|v| Some((v.name(), slow_windows(v)?))).collect();
    let mut findings = vec![constant::verdict(&samples.speed, &samples.references, &slow_share)];
    findings.extend(closure(&views));
    findings.extend(rhythm::finding(&found, &samples.setup));
    findings.extend(spectrum::together(&views, seed));
    findings.extend(summary::counters(samples));

    let datasets = [
        datasets::timeline(&views, activity_log),
        datasets::scatter(&views, activity_log),
        sources::table(&views, activity_log),
        datasets::percentiles(&views),
        spectrum::spectrum(&views, &found),
        datasets::heat(&views),
        Some(classes::table(&views)),
        spectrum::memory(&views),
    ];
    let mut datasets: Vec<Dataset> =
        datasets.into_iter().flatten().chain(samples.imported.iter().cloned()).collect();
    if samples.setup.tick_hz <= 0.0 {
        for d in &mut datasets {
            d.caption.push_str(
                " The file does not contain the length of a tick: one tick is drawn as 1 ns (give --tick-hz).",
            );
        }
    }
    let weaknesses = warnings::all(samples, &views);
    for w in &weaknesses {
        warnings::flag(&mut metrics, w);
    }
    let summary = summary::write(samples, &views, &metrics);
    if !samples.setup.ranks.is_empty() {
        ranks::rename(&mut metrics);
        metrics.extend(ranks::metrics(samples));
        findings.extend(ranks::findings(samples, &metrics));
    }
    let best = samples
        .speed
        .iter()
        .filter(|s| s.phase == SpeedPhase::Alone)
        .map(|s| s.best_ns)
        .min_by(f64::total_cmp)
        .map(|ns| (ADD_KEY.to_owned(), ns));
    Analysis {
        summary,
        metrics,
        datasets,
        findings,
        warnings: weaknesses.into_iter().map(|w| w.warning).collect(),
        remember: best.into_iter().collect(),
    }
}

/// `work` for each of `0..count`, in order, on all CPUs: many are to take no longer to analyze than one.
fn side_by_side<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    if workers <= 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let one = || {
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < count));
        mine.map(|i| (i, work(i))).collect::<Vec<(usize, R)>>()
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        // Where no thread can be had, this one does it all.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, one).ok();
        let threads: Vec<_> = (1..workers).filter_map(start).collect();
        let others =
            threads.into_iter().flat_map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        one().into_iter().chain(others).collect()
    });
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// Share of windows whose turns took 3 % or more longer than the reference.
fn slow_windows(view: &CpuView<'_>) -> Option<f64> {
    let turns = view.split.told_turns();
    let limit = view.split.reference_ticks * 1.03;
    (!turns.is_empty()).then(|| turns.iter().filter(|t| **t >= limit).count() as f64 / turns.len() as f64)
}

/// The balance: gaps plus turns at their median cost must be the wall time.
fn closure(views: &[CpuView<'_>]) -> Option<Finding> {
    let lines: Vec<(f64, String)> = views
        .iter()
        .filter_map(|v| {
            let unit = median_of(&v.split.told_turns())?;
            let off = v.split.closure(unit);
            let (name, gaps, turns) = (v.name(), v.split.gaps(), v.split.turns);
            let (turn_ns, percent) = (unit * v.setup.ns_per_tick(), off * 100.0);
            let text = format!(
                "{name}: {gaps} gaps and {turns} turns of {turn_ns:.2} ns make {percent:+.3} % of the wall time"
            );
            Some((off.abs(), text))
        })
        .collect();
    let worst = lines.iter().map(|l| l.0).max_by(f64::total_cmp)?;
    let (verdict, text) = if worst <= 0.001 {
        ("closed", "Gaps and turns add up to the wall time within 0.1 %.".to_owned())
    } else {
        let percent = worst * 100.0;
        let text = format!(
            "Gaps and turns at their median cost miss the wall time by {percent:.2} %: the loop's speed varied (see slowdown)."
        );
        ("open", text)
    };
    Some(finding("noise.balance", verdict, text, lines.into_iter().map(|l| l.1).collect()))
}

fn finding(id: &str, verdict: &str, text: String, evidence: Vec<String>) -> Finding {
    Finding { id: id.to_owned(), verdict: verdict.to_owned(), text, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_side_by_side_keeps_its_order() {
        assert_eq!(side_by_side(1000, |i| i * i), (0..1000).map(|i| i * i).collect::<Vec<_>>());
        assert!(side_by_side(0, |i| i).is_empty());
    }
}
