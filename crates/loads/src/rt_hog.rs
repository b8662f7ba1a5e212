//! Rt-hog: a real-time thread of known duty on one CPU. What it takes is known, so measurements can be tested with it.

use machmeter_engine::load::{LoadError, LoadInfo, LoadRequest};
use machmeter_sys::affinity;
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread;

use crate::streams::play_share;
use crate::work::{LoadEntry, Work, usage};

const PRIORITY: u8 = 50;
/// Unless told otherwise 2 ms in each 20 ms.
const DUTY: (f64, u64) = (0.1, 20_000_000);
/// More would take the machine away from those who must be able to stop it.
const SHARE_MAX: f64 = 0.5;
const PERIOD_MIN_NS: u64 = 100_000;
const PERIOD_MAX_NS: u64 = 1_000_000_000;

pub(crate) static RT_HOG: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "rt-hog",
        description: "A FIFO real-time thread that takes 2 ms of every 20 ms on one CPU. Requires permission for real-time policies.",
        work: "bursts",
        classic: false,
        ..LoadEntry::USUAL.info
    },
    check,
    run: Some(hog),
};

fn check(request: &LoadRequest) -> Result<(), LoadError> {
    let (share, period_ns) = request.custom.unwrap_or(DUTY);
    if !(share > 0.0 && share <= SHARE_MAX) {
        let (duty, most) = (share * 100.0, SHARE_MAX * 100.0);
        let why = format!("a duty of {duty} %: it must be above 0 and at most {most}");
        return Err(usage(request, why));
    }
    if !(PERIOD_MIN_NS..=PERIOD_MAX_NS).contains(&period_ns) {
        return Err(usage(request, format!("a period of {period_ns} ns: it must be 100 us to 1 s")));
    }
    let policy = policy(request)?;
    // On a thread that ends at once, so that a refusal comes before anything runs.
    let tried = thread::on_its_own(|| sched::apply(policy));
    tried.map_or(Ok(()), |t| t.map_err(|e| usage(request, e)))
}

/// The policy asked for, which must be a real-time one.
fn policy(request: &LoadRequest) -> Result<Policy, LoadError> {
    match request.attributes.policy().map_err(|e| usage(request, e))? {
        _ if request.attributes.policy.is_none() => Ok(Policy::Fifo(PRIORITY)),
        policy @ (Policy::Fifo(_) | Policy::Rr(_)) => Ok(policy),
        other => Err(usage(request, format!("the policy {other} is not a real-time policy: use fifo or rr"))),
    }
}

fn hog(work: &Work) -> Result<(), LoadError> {
    let request = &work.request;
    let (share, period_ns) = request.custom.unwrap_or(DUTY);
    let cpu = work.cpus()?.first().copied().ok_or_else(|| usage(request, "no CPU is allowed"))?;
    affinity::pin(cpu).map_err(|e| usage(request, e))?;
    sched::apply(policy(request)?).map_err(|e| usage(request, e))?;
    work.side_effect(format!(
        "a real-time thread occupied CPU {cpu} for {} us of every {} us",
        (share * period_ns as f64 / 1e3).round(),
        period_ns / 1_000
    ));
    play_share(work, "mm-rt-hog", (share, period_ns))
}
