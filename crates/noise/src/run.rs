//! Takes a recording on the host: placement, calibration, the loops, the witness.

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::placement::{self, Placement};
use machmeter_engine::probe::Measured;
use machmeter_engine::{Host, ProbeError};
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::{ScopedPlacedThread, spawn_placed_scoped};
use machmeter_sys::topology::CpuSet;

use super::attribute;
use super::attribute::matching::attribute;
use super::attribute::unlisted;
use super::job::{Begin, Job, LEAD_NS, room_bytes};
use super::on_cpu::Recorded;
use super::samples::{References, Samples, SpeedPhase};
use super::speed;
use super::{Params, WINDOW_NS};
use machmeter_loops::noise::measure::{Schedule, Sums};

/// Recording of the first look, ns: long enough to see ticks and steal, short enough to be on the screen at once.
const FIRST_LOOK_NS: u64 = 150_000_000;
/// Kept back from the budget for analysis, views and storage, ns, and this share: analysis is longer on more samples.
const RESERVE_NS: u64 = 450_000_000;
const RESERVE_SHARE: f64 = 0.065;

/// Base windows of one CPU, and of all together, at most; a longer run gets longer windows.
const MAX_WINDOWS: u64 = 10_000_000;
const MAX_WINDOWS_OF_ALL: u64 = 80_000_000;
/// Memory that a window of a CPU takes while it is recorded, bytes.
const WINDOW_BYTES: u64 = (size_of::<u32>() + size_of::<Sums>()) as u64;
/// Longest period and least runtime of a deadline policy: a thread that has used its runtime sleeps for the rest.
const MAX_PERIOD_NS: u64 = 100_000_000;
const MIN_RUNTIME_NS: u64 = 100_000;
pub(super) fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Samples>, ProbeError> {
    let cpus = host.cpus.to_vec();
    let placement = place(host);
    feasible(&placement)?;
    let window_ns = match params.windows {
        Some(windows) => {
            fits(windows, cpus.len())?;
            params.window_ns()?
        }
        None => {
            window_for(params.window_ns()?, host.budget.left_ns(), windows_within(room_bytes(), cpus.len()))
        }
    };
    params.threshold_ns()?;
    host.begin()?;
    let job = Job { host, params, cpus: &cpus, placement: &placement, begin: Begin::Soon, sums: true };
    let threshold = job.threshold()?;

    let look = job.schedule(window_ns, (FIRST_LOOK_NS / window_ns).max(2) as usize, threshold);
    let mut looked = Vec::new();
    if host.budget.left_ns() > 4 * FIRST_LOOK_NS
        && params.windows.is_none_or(|w| w * window_ns > 4 * FIRST_LOOK_NS)
    {
        looked = first_look(&job, &look)?;
    }
    let each_ns = (host.budget.left_ns() as f64 * 0.01 / cpus.len() as f64).clamp(1e6, 10e6);
    let mut speed = speed::alone(host, &cpus, each_ns);
    speed.extend(speed::together(host, &cpus, SpeedPhase::Together, each_ns));

    let windows = params.windows.unwrap_or_else(|| {
        let total_ns = host.budget.total_ns();
        let by_size = (total_ns as f64 * RESERVE_SHARE) as u64;
        let reserve_ns = (RESERVE_NS + by_size).min(total_ns / 5) + LEAD_NS;
        (host.budget.left_ns().saturating_sub(reserve_ns) / window_ns).max(1)
    }) as usize;
    let schedule = job.classes(job.schedule(window_ns, windows, threshold), &looked, &look);
    let seconds = windows as f64 * window_ns as f64 / 1e9;
    host.progress.step(&format!(
        "noise: {} of windows of {} on CPU {}, policy {}",
        human(seconds * 1e9, Unit::Nanoseconds),
        human(window_ns as f64, Unit::Nanoseconds),
        host.cpus,
        placement.policy
    ));
    let (witness, notes) = attribute::call(params.attribution, &cpus, seconds, host.source(), host.rate)
        .map_err(ProbeError::Cannot)?;
    let (mut recorded, mut activity_log) = job.record(&schedule, witness)?;
    activity_log.notes.extend(notes);
    let setup = job.setup(schedule, &recorded);
    for (i, r) in recorded.iter_mut().enumerate() {
        r.samples.traced = unlisted::read(&activity_log, i, &r.samples.gaps, &setup.schedule);
        r.samples.attributed = attribute(&mut activity_log, i, &r.samples.gaps);
    }
    activity_log.spans.clear();
    activity_log.stolen.clear();
    speed.extend(speed::together(host, &cpus, SpeedPhase::After, each_ns));

    let complete = recorded.iter().all(|r| r.samples.counts.len() == schedule.windows);
    let nominal = nominal_hz(host);
    let samples = Samples {
        setup,
        cpus: recorded.into_iter().map(|r| r.samples).collect(),
        activity_log,
        speed,
        references: References {
            best_ever_add_ns: (host.best_ever)(ADD_KEY),
            nominal_hz: nominal.as_ref().map(|n| n.0),
            nominal_source: nominal.map_or(String::new(), |n| n.1),
        },
        ..Samples::default()
    };
    Ok(Measured {
        samples,
        policy: placement.policy.to_string(),
        side_effects: side_effects(&placement),
        complete,
        outputs: Vec::new(),
    })
}

/// Windows of each CPU that memory for all and the analysis can take.
pub(super) fn windows_within(bytes: u64, cpus: usize) -> u64 {
    let cpus = cpus.max(1) as u64;
    (MAX_WINDOWS_OF_ALL / cpus).clamp(100_000, MAX_WINDOWS).min(bytes / cpus / WINDOW_BYTES)
}

/// Refuses more windows than all buffers together may take of the memory.
pub(super) fn fits(windows: u64, cpus: usize) -> Result<(), ProbeError> {
    let (bytes, most) = (windows.saturating_mul(cpus as u64 * WINDOW_BYTES), 2 * room_bytes());
    if bytes <= most {
        return Ok(());
    }
    Err(ProbeError::Usage(format!(
        "--windows {windows}: they take {} MB, and a tenth of the memory that is left is {} MB; ask for fewer, or measure fewer CPUs",
        bytes / 1_000_000,
        most / 1_000_000
    )))
}

/// The base window, or the next longer one (1, 2, 5 times a power of ten) with which a run of `total_ns` has at most so many.
pub(super) fn window_for(window_ns: u64, total_ns: u64, most: u64) -> u64 {
    let longer = (4..=8).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    let mut enough = std::iter::once(window_ns)
        .chain(longer.filter(|w| *w > window_ns && WINDOW_NS.contains(w)))
        .filter(|w| total_ns / w <= most);
    enough.next().unwrap_or(*WINDOW_NS.end())
}

/// Refuses policies under which a run could not keep its time or answer a signal.
fn feasible(placement: &Placement) -> Result<(), ProbeError> {
    match placement.policy {
        Policy::Fifo(sched::RT_PRIORITY_MAX) | Policy::Rr(sched::RT_PRIORITY_MAX)
            if placement.housekeeping.is_empty() =>
        {
            Err(ProbeError::Usage(format!(
                "policy {} on every CPU leaves no priority for the thread that answers signals: use {}:{} or fewer CPUs",
                placement.policy,
                placement.policy.name(),
                sched::RT_PRIORITY_MAX - 1
            )))
        }
        Policy::Deadline { runtime_ns, period_ns, .. }
            if period_ns > MAX_PERIOD_NS || runtime_ns < period_ns / 10 || runtime_ns < MIN_RUNTIME_NS =>
        {
            Err(ProbeError::Usage(format!(
                "policy {} would hold the loop back for too long: use a period of at most 100ms, and a runtime of at \
                 least 100us and a tenth of the period",
                placement.policy
            )))
        }
        _ => Ok(()),
    }
}

/// Key under which the best dependent addition of a kind of machine is remembered.
pub(super) const ADD_KEY: &str = "noise.dependent_add_ns";

fn nominal_hz(host: &Host<'_>) -> Option<(f64, String)> {
    let highest = host.cpus.iter().filter_map(|c| host.topology.cpu(c)?.max_hz).max_by(f64::total_cmp)?;
    Some((highest, "cpufreq (cpuinfo_max_freq)".to_owned()))
}

pub(super) fn place(host: &Host<'_>) -> Placement {
    // A real-time meter that the kernel holds back on purpose would measure that above all.
    let permitted = std::thread::scope(|scope| {
        let try_it = Policy::Fifo(placement::AUTO_FIFO_PRIORITY);
        let spawned = spawn_placed_scoped(scope, "mm-try", None, try_it, || ());
        spawned.map(ScopedPlacedThread::join).map_err(|e| e.to_string())
    });
    let sensible = held_back(&host.cpus).map_or(permitted, Err);
    placement::plan(&host.cpus, &host.allowed, &host.priority, &sensible)
}

/// What the kernel takes from real-time threads on purpose, once per different answer.
pub(super) fn real_time_share(placement: &Placement) -> Vec<String> {
    if !placement.policy.is_real_time() {
        return Vec::new();
    }
    held_back(&placement.measured).into_iter().collect()
}

/// What the kernel takes from real-time threads on the first of these CPUs on which it takes something.
fn held_back(cpus: &CpuSet) -> Option<String> {
    let limits = sched::RtLimits::read();
    cpus.iter().find(|c| limits.loss_ns_per_s(*c).is_some()).map(|c| limits.explain(c))
}

fn side_effects(placement: &Placement) -> Vec<String> {
    let text = || format!("measuring threads ran as {} on CPU {}", placement.policy, placement.measured);
    placement.policy.is_real_time().then(text).into_iter().collect()
}

fn first_look(job: &Job<'_>, schedule: &Schedule) -> Result<Vec<Recorded>, ProbeError> {
    let (recorded, _) = job.record(schedule, None)?;
    let wall = (schedule.window_ticks * schedule.windows as u64) as f64;
    let looks: Vec<String> = recorded
        .iter()
        .map(|r| {
            let lost = r.samples.lengths.sum_ticks as f64 / wall;
            let longest = job.host.rate.ns(r.samples.lengths.longest_ticks);
            format!(
                "CPU {} {:.2} % lost, longest {}",
                r.samples.cpu,
                lost.min(1.0) * 100.0,
                human(longest, Unit::Nanoseconds)
            )
        })
        .take(8)
        .collect();
    job.host.progress.figure(&format!(
        "noise, first look ({}): {}",
        human(FIRST_LOOK_NS as f64, Unit::Nanoseconds),
        looks.join("; ")
    ));
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_get_longer_windows() {
        const S: u64 = 1_000_000_000;
        let of = |window_ns, total_ns, cpus| window_for(window_ns, total_ns, windows_within(u64::MAX, cpus));
        assert_eq!(of(100_000, 60 * S, 2), 100_000);
        assert_eq!(of(100_000, 600 * S, 2), 100_000);
        // Soak: a day.
        assert_eq!(of(100_000, 86_400 * S, 2), 10_000_000);
        assert_eq!(of(37_000, 600 * S, 2), 100_000);
        assert_eq!(of(100_000, 600 * S, 128), 1_000_000);
        assert_eq!(of(10_000, u64::MAX, 1), 100_000_000);
        // A container of 128 MiB: half of a tenth is for windows.
        assert_eq!(window_for(100_000, 600 * S, windows_within(6 << 20, 2)), 10_000_000);
        assert_eq!(window_for(100_000, 30 * S, windows_within(6 << 20, 2)), 500_000);
    }

    #[test]
    fn policies_that_would_hang_are_refused_with_what_to_use() {
        let on = |policy, housekeeping: &str| Placement {
            measured: "0-1".parse().unwrap(),
            housekeeping: housekeeping.parse().unwrap_or_default(),
            policy,
            why: String::new(),
        };
        assert!(on(Policy::Fifo(99), "").housekeeping == CpuSet::default());
        let said = feasible(&on(Policy::Fifo(99), "")).unwrap_err().to_string();
        assert!(said.contains("fifo:98"), "{said}");
        assert!(feasible(&on(Policy::Fifo(99), "2")).is_ok());
        assert!(feasible(&on(Policy::Fifo(98), "")).is_ok());
        let deadline =
            |runtime_ns, period_ns| Policy::Deadline { runtime_ns, deadline_ns: period_ns, period_ns };
        assert!(feasible(&on(deadline(5_000_000, 10_000_000), "")).is_ok());
        for slow in
            [deadline(500_000, 10_000_000), deadline(50_000, 100_000), deadline(500_000_000, 1_000_000_000)]
        {
            assert!(feasible(&on(slow, "2")).is_err(), "{slow}");
        }
    }
}
