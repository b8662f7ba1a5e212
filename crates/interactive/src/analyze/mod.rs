//! The analysis of a recording: a pure function from samples to figures, findings and pictures.
//! Intervals are those of [`machmeter_stats::serial`]: jobs next to each other are alike. Nothing is resampled.

mod account;
mod audio;
mod datasets;
mod figures;
mod frames;
mod summary;
mod view;
mod warnings;

#[cfg(test)]
mod tests;

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_engine::Analysis;

use super::samples::Samples;
pub(crate) use account::waits;
pub(crate) use datasets::distinct;

use account::Accounts;
use view::{CellView, whole};
pub fn analyze(samples: &Samples) -> Analysis {
    let views: Vec<CellView<'_>> = samples.cells.iter().map(|c| CellView::new(samples, c)).collect();
    let alone = account::undisturbed(&views);
    let cost = |v: &CellView<'_>| alone.get(&v.cell.task).copied();
    let mut metrics: Vec<Metric> = Vec::new();
    for v in &views {
        metrics.extend(figures::of_cell(v));
        metrics.extend(account::of_cell(v, cost(v)));
        metrics.extend(audio::of_cell(v));
        metrics.extend(frames::of_cell(v));
        metrics.extend(account::load_work(v));
    }
    metrics.iter_mut().for_each(view::brief);
    let accounts: Vec<Option<Accounts>> = views.iter().map(|v| account::accounts(v, cost(v))).collect();
    let found = warnings::all(samples, &views, &accounts);
    for f in &found {
        warnings::flag(&mut metrics, &views, f);
    }
    let mut out = found.into_iter().map(|f| f.warning).collect::<Vec<_>>();
    out.extend(warnings::few(&metrics));
    let findings = [summary::hurt(&views), balance(&views), kernel(&views, &accounts), conditions(samples)];
    Analysis {
        summary: summary::write(samples, &views, &metrics),
        datasets: datasets::all(&views, &samples.loads),
        metrics,
        findings: findings.into_iter().flatten().collect(),
        warnings: out,
        remember: Vec::new(),
    }
}

/// The balance: every release was executed or dropped.
fn balance(views: &[CellView<'_>]) -> Option<Finding> {
    let segments = || views.iter().flat_map(|v| v.cell.segments.iter().map(move |s| (v, s)));
    let (scheduled, recorded, dropped) = segments().fold((0, 0, 0), |(s, r, d), (_, segment)| {
        let ran = segment.jobs.iter().filter(|j| j.ran()).count() as u64;
        (s + segment.scheduled, r + ran, d + segment.jobs.len() as u64 - ran)
    });
    if scheduled == 0 {
        return None;
    }
    let open: Vec<String> = segments()
        .filter(|(_, s)| !whole(s))
        .map(|(v, s)| format!("{}: {} of {} releases", v.name(), s.jobs.len(), s.scheduled))
        .collect();
    let verdict = if open.is_empty() { "closed" } else { "open" };
    let text = format!("{recorded} releases executed and {dropped} dropped of {scheduled} scheduled.");
    Some(finding("interactive.balance", verdict, text, open))
}

fn finding(id: &str, verdict: &str, text: String, evidence: Vec<String>) -> Finding {
    Finding { id: id.to_owned(), verdict: verdict.to_owned(), text, evidence }
}

fn kernel(views: &[CellView<'_>], accounts: &[Option<Accounts>]) -> Option<Finding> {
    let told: Vec<_> = views.iter().zip(accounts).filter_map(|(v, a)| Some((v, a.as_ref()?))).collect();
    let sum = |of: fn(&Accounts) -> f64| told.iter().map(|t| of(t.1)).sum::<f64>();
    let (recorded, kernel, length) = (sum(|a| a.recorded_ns), sum(|a| a.kernel_ns), sum(|a| a.length_ns));
    if told.is_empty() {
        return None;
    }
    let ns = |v: f64| human(v, Unit::Nanoseconds);
    let agree = (recorded - kernel).abs() <= (0.1 * kernel).max(length / 1000.0);
    let mut evidence: Vec<(f64, String)> = told
        .iter()
        .map(|(v, a)| {
            let text = format!("{}: {} here, {} by the kernel", v.name(), ns(a.recorded_ns), ns(a.kernel_ns));
            ((a.recorded_ns - a.kernel_ns).abs(), text)
        })
        .collect();
    evidence.sort_by(|a, b| b.0.total_cmp(&a.0));
    let text = format!(
        "The tasks waited {} for a CPU as recorded (less the undisturbed cost of a wake-up), {} by the kernel's account.",
        ns(recorded),
        ns(kernel)
    );
    let evidence = evidence.into_iter().take(6).map(|e| e.1).collect();
    Some(finding("interactive.kernel_account", if agree { "agrees" } else { "differs" }, text, evidence))
}

fn conditions(samples: &Samples) -> Option<Finding> {
    let s = &samples.setup;
    let mut evidence = vec![format!("tasks: {}, loads: {}", s.task_policy, s.load_policy)];
    evidence.extend(s.timer_slack_ns.map(|ns| format!("timer slack of the tasks: {ns} ns")));
    if s.turns_per_ms > 0.0 {
        evidence.push(format!(
            "{:.0} turns of the loop per ms of CPU, calibrated in {}",
            s.turns_per_ms,
            human(s.calibration_ns as f64, Unit::Nanoseconds)
        ));
    }
    evidence.extend(s.conditions.iter().cloned());
    if !s.comment.is_empty() {
        evidence.push(format!("comment: {}", s.comment));
    }
    let tasks = distinct(samples.cells.iter().map(|c| c.task.as_str()));
    let verdict = if s.predicted_from.is_some() { "predicted" } else { "measured" };
    let text = format!("{} tasks under loads on {} CPUs.", tasks.len(), s.cpus);
    (!samples.cells.is_empty()).then(|| finding("interactive.conditions", verdict, text, evidence))
}
