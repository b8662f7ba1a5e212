//! Rank 0: it checks that all ranks can be measured together, orders, and puts together what they say.

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::placement::Priority;
use machmeter_engine::probe::Measured;
use machmeter_engine::{Deadline, Host, ProbeError};
use machmeter_stats::histogram::Bucket;
use machmeter_stats::lateness::Turn;
use machmeter_sys::affinity;
use machmeter_sys::clock::{MonotonicRaw, TickSource};
use machmeter_sys::mpi::clock::RankClock;
use machmeter_sys::sched::Policy;

use super::collective::{Batch, COLLECTIVES, Collective};
use super::member::{Member, report};
use super::team::{Place, Team};
use super::{CollectiveSamples, Order, Ready, Report};
use crate::Params;
use crate::attribute::activity_log::ActivityLog;
use crate::attribute::matching::attribute;
use crate::attribute::unlisted::Traced;
use crate::job::{Begin, room_bytes};
use crate::on_cpu::Recorded;
use crate::run::{fits, window_for, windows_within};
use crate::samples::{CpuSamples, Lengths, Samples, Setup, ThreadFacts};
use machmeter_loops::noise::kernel::Quantum63;
use machmeter_loops::noise::measure::{Gap, WorkUnit};

/// Share of the time that the windows get; the rest is that of the collective operations, analysis and storage.
const WINDOWS_SHARE: f64 = 0.65;
const COLLECTIVE_SHARE: f64 = 0.1;
/// Work between two operations, ns: the 50 us of a tightly synchronized program, many times what an operation takes.
const WORK_NS: f64 = 50_000.0;
/// Turns of the first batch, of a batch at most, between which rank 0 may end, and of an operation; fewer on many ranks.
const FIRST_TURNS: usize = 5;
const BATCH_TURNS: usize = 500;
const MOST_TURNS: usize = 40_000;
const MOST_STAMPS: usize = 8_000_000;
/// Counters of processors of one kind differ by less: 10^-4 is ten times what crystals are sold with.
const MOST_DRIFT: f64 = 1e-3;

pub(crate) fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Samples>, ProbeError> {
    params.threshold_ns()?;
    let window_ns = params.window_ns()?;
    host.begin()?;
    let team = Team::start().map_err(ProbeError::Cannot)?;
    let before = affinity::mask();
    let done = lead(&team, host, params, window_ns);
    if stop_requested() {
        team.leave();
    } else if team.tell(&Order::End).is_ok() {
        team.finish();
    }
    if let Ok(before) = before {
        // The analysis may use the CPUs that the other ranks had.
        let _ = affinity::set_mask(&before);
    }
    let samples = done?;
    let all = samples.setup.schedule.windows;
    let complete = !stop_requested() && samples.cpus.iter().all(|c| c.counts.len() == all);
    let policy = samples.setup.policy.clone();
    Ok(Measured { samples, policy, side_effects: Vec::new(), complete, outputs: Vec::new() })
}

fn lead(team: &Team, host: &Host<'_>, params: &Params, window_ns: u64) -> Result<Samples, ProbeError> {
    let cannot = ProbeError::Cannot;
    let policy = match host.priority {
        Priority::Asked(policy) => policy,
        // Ranks that wait for MPI need their CPUs, too.
        Priority::Auto => Policy::ordinary(),
    };
    let begin = Order::Begin {
        params: Box::new(params.clone()),
        source: host.source(),
        policy: policy.to_string(),
        seed: host.seed,
    };
    team.tell(&begin).map_err(cannot)?;
    let member = Member::new(team, host, params, policy);
    let own = member.as_ref().map_err(Clone::clone).and_then(Member::ready);
    let ready = team.gather(own).map_err(cannot)?;
    let mut member = member.map_err(cannot)?;
    check(&ready).map_err(ProbeError::Usage)?;
    let places: Vec<Place> = ready.iter().map(|r| r.place.clone()).collect();

    let ranks = places.len();
    let windows_ns = (host.budget.left_ns() as f64 * WINDOWS_SHARE) as u64;
    let window_ns = match params.windows {
        Some(windows) => fits(windows, ranks).map(|()| window_ns)?,
        None => window_for(window_ns, windows_ns, windows_within(room_bytes(), ranks)),
    };
    let windows = params.windows.unwrap_or((windows_ns / window_ns).max(1)) as usize;
    let threshold = ready.iter().map(|r| r.threshold_ticks).max().unwrap_or(1);
    let job = member.job(Begin::Soon);
    let schedule = job.schedule(window_ns, windows, threshold);
    let schedule = job.classes(schedule, &[], &schedule);
    host.progress.step(&format!(
        "noise: {ranks} ranks, {} of windows of {}, policy {policy}",
        human(windows as f64 * window_ns as f64, Unit::Nanoseconds),
        human(window_ns as f64, Unit::Nanoseconds),
    ));

    team.tell(&Order::Record(schedule)).map_err(cannot)?;
    member.compare_clocks().map_err(cannot)?;
    let recorded = member.record(&schedule);
    let is_stopped = stop_requested();
    let setup = |t0: &Recorded| Setup {
        ranks: places.clone(),
        ..member.job(Begin::Soon).setup(schedule, std::slice::from_ref(t0))
    };
    if let (true, Ok(own)) = (is_stopped, &recorded) {
        // The launcher is ending the others: this rank's part is what is left.
        let (setup, clocks) = (setup(own), [member.clocks[0]]);
        return Ok(put_together(setup, vec![report(recorded.map_err(cannot)?)], &clocks, Vec::new()));
    }
    let setup = recorded.as_ref().map(setup).map_err(Clone::clone);
    member.compare_clocks().map_err(cannot)?;
    let reports = team.gather(recorded.map(report)).map_err(cannot)?;
    let setup = setup.map_err(cannot)?;

    let mut collectives = Vec::new();
    for collective in COLLECTIVES {
        let until = host.budget.share(COLLECTIVE_SHARE / (1.0 - WINDOWS_SHARE));
        host.progress.step(&format!("noise: {} of {ranks} ranks, work in between", collective.name()));
        let turns = turns(&member, ranks, until, collective).map_err(cannot)?;
        collectives.push(CollectiveSamples { collective, turns });
    }
    Ok(put_together(setup, reports, &member.clocks, collectives))
}

/// Refuses ranks that share a CPU, and counters of different rates.
fn check(ready: &[Ready]) -> Result<(), String> {
    for (rank, one) in ready.iter().enumerate() {
        let before = ready[..rank].iter().position(|r| r.place == one.place);
        if let Some(other) = before {
            let Place { node, cpu } = &one.place;
            return Err(format!(
                "ranks {other} and {rank} are both on CPU {cpu} of {node}: start at most one for each CPU, and bind them \
                 (mpirun --bind-to core, or hwthread)"
            ));
        }
        let (own, first) = (one.tick_hz, ready[0].tick_hz);
        if (own / first - 1.0).abs() > MOST_DRIFT {
            return Err(format!(
                "the counter of rank {rank} runs at {own:.0} Hz, that of rank 0 at {first:.0}: start ranks on machines of one kind"
            ));
        }
    }
    Ok(())
}

/// Turns of an operation until the time is over, in batches that begin small, for busy machines; the first is left out.
fn turns(
    member: &Member<'_>,
    ranks: usize,
    until: Deadline,
    collective: Collective,
) -> Result<Vec<Turn>, String> {
    let order = |turns| {
        let batch = Batch { collective, turns, units: units_of_work(), hold: None };
        member.team.tell(&Order::Collective(batch))?;
        member.collective(batch)
    };
    let most = (MOST_STAMPS / ranks).clamp(BATCH_TURNS, MOST_TURNS);
    let mut all = order(FIRST_TURNS)?;
    all.clear();
    let mut turns = FIRST_TURNS;
    while all.is_empty() || (all.len() < most && !until.over()) {
        let begun = Deadline::start(u64::MAX);
        all.extend(order(turns)?);
        let each_ns = begun.spent_ns() / turns as u64;
        turns = ((until.left_ns() / 4 / each_ns.max(1)) as usize).clamp(1, (2 * turns).min(BATCH_TURNS));
    }
    Ok(all)
}

/// Units of [`Quantum63`] that take [`WORK_NS`] here; the quickest of some tries.
fn units_of_work() -> u64 {
    const UNITS: u64 = 1_000;
    let mut unit = Quantum63::default();
    let took = (0..20).map(|_| {
        let begin = MonotonicRaw::now();
        (0..UNITS).for_each(|_| unit.unit());
        MonotonicRaw::now().saturating_sub(begin)
    });
    let quickest_ns = took.min().unwrap_or(0).max(1) as f64;
    (WORK_NS / quickest_ns * UNITS as f64) as u64
}

/// The ranks' recordings as if they were CPUs of one machine, on the clock of rank 0.
fn put_together(
    setup: Setup,
    reports: Vec<Report>,
    clocks: &[RankClock],
    collectives: Vec<CollectiveSamples>,
) -> Samples {
    let mut activity_log = ActivityLog::none();
    activity_log.notes.push("ranks record without a witness".to_owned());
    let t0_ticks = setup.schedule.t0_ticks;
    let cpus = reports.into_iter().zip(clocks).enumerate().map(|(rank, (report, clock))| {
        let here = |ticks: u64| clock.there(ticks).max(t0_ticks);
        let gap = |g: Gap| Gap { start_ticks: here(g.start_ticks), end_ticks: here(g.end_ticks) };
        let gaps: Vec<Gap> = report.gaps.into_iter().map(gap).collect();
        let buckets: Vec<Bucket> =
            report.buckets.into_iter().map(|[low, high, count]| Bucket { low, high, count }).collect();
        CpuSamples {
            cpu: rank,
            traced: Traced::default(),
            attributed: attribute(&mut activity_log, rank, &gaps),
            gaps,
            counts: report.counts,
            sums: report.sums,
            lengths: Lengths {
                count: buckets.iter().map(|b| b.count).sum(),
                buckets,
                ..report.samples.lengths
            },
            raises: report.samples.raises,
            // Which CPU it ended on says nothing here: ranks stand in the place of CPUs.
            thread: report.samples.thread.map(|t| ThreadFacts { ended_on_cpu: None, ..t }),
        }
    });
    let cpus = cpus.collect();
    Samples { setup, cpus, activity_log, collectives, ..Samples::default() }
}
