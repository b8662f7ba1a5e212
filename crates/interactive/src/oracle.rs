//! The oracle: an exact simulation of one job stream on one CPU that is taken away in known intervals.
//!
//! It shares no code with the runner (`engine::stream::run`), so that it can tell what a recording should have said. Simple
//! theory (mean lateness B^2/(2P)) holds only where no job meets two bursts.
//!
//! The CPU is away in `[from, to)`. A thread begins and reads the clock at its end only when it has the CPU.

use machmeter_engine::stream::{Demand, Fate, Job, Overload, Release, Stream};

/// A time in which the CPU is not available: from (included) to (excluded), ns after the start of the segment.
pub type Away = (u64, u64);

/// Bursts every `period_ns` that begin before `length_ns`; those longer than the period take the CPU for good.
#[cfg(test)]
pub(crate) fn hog(period_ns: u64, burst_ns: u64, phase_ns: u64, length_ns: u64) -> Vec<Away> {
    let begins = (phase_ns..length_ns).step_by(period_ns.max(1) as usize);
    begins.map(|from_ns| (from_ns, from_ns + burst_ns)).collect()
}

/// Every release of a periodic or closed stream before `length_ns`; each wake-up from a sleep takes `wake_cost_ns`.
/// Errors: one line why a stream cannot be simulated.
pub fn simulate(
    stream: &Stream,
    away: &[Away],
    length_ns: u64,
    wake_cost_ns: u64,
) -> Result<Vec<Job>, String> {
    match stream.release {
        Release::Periodic { period_ns: 0 } => {
            Err("the period is 0; give a period of at least 1 ns".to_owned())
        }
        Release::Periodic { period_ns } => {
            // One more than are recorded: whether a release can still begin depends on the next one.
            let releases: Vec<u64> =
                (0..=length_ns.div_ceil(period_ns)).map(|k| k.saturating_mul(period_ns)).collect();
            simulate_released(stream, &releases, away, length_ns, wake_cost_ns)
        }
        Release::Poisson { .. } => {
            Err("the releases of an open loop are random; pass them to simulate_released".to_owned())
        }
        Release::Closed { think_ns } => {
            let mut one = Simulated::new(stream, away, wake_cost_ns);
            let (mut jobs, mut release_ns) = (Vec::new(), 0);
            while release_ns < length_ns {
                let job = one.release(jobs.len() as u64, release_ns, None)?;
                let next_ns = release_ns + job.response_ns + think_ns;
                // A loop of no work and no thought would stand still.
                release_ns = next_ns.max(release_ns + u64::from(job.response_ns == 0));
                jobs.push(job);
            }
            Ok(jobs)
        }
    }
}

/// As [`simulate`] for given `releases` (ascending, ns). The first from `length_ns` on should be there: it ends a late one.
pub fn simulate_released(
    stream: &Stream,
    releases: &[u64],
    away: &[Away],
    length_ns: u64,
    wake_cost_ns: u64,
) -> Result<Vec<Job>, String> {
    let mut one = Simulated::new(stream, away, wake_cost_ns);
    let mut jobs = Vec::with_capacity(releases.len());
    for (i, &release_ns) in releases.iter().enumerate().take_while(|(_, r)| **r < length_ns) {
        jobs.push(one.release(i as u64, release_ns, releases.get(i + 1).copied())?);
    }
    Ok(jobs)
}

/// The spans in order; those that touch are one.
pub(crate) fn joined(mut spans: Vec<Away>) -> Vec<Away> {
    spans.sort_unstable();
    let mut out: Vec<Away> = Vec::with_capacity(spans.len());
    for (from_ns, to_ns) in spans {
        match out.last_mut() {
            Some(last) if from_ns <= last.1 => last.1 = last.1.max(to_ns),
            _ => out.push((from_ns, to_ns)),
        }
    }
    out
}

/// The CPU as the task sees it: it is asked about ascending times only.
struct Cpu {
    away: Vec<Away>,
    next: usize,
}

impl Cpu {
    fn new(away: &[Away]) -> Self {
        let away = away.iter().copied().filter(|(from, to)| from < to).collect();
        Self { away: joined(away), next: 0 }
    }

    /// The first moment from `at_ns` on at which the CPU is there.
    fn there_from(&mut self, at_ns: u64) -> u64 {
        while self.away.get(self.next).is_some_and(|a| a.1 <= at_ns) {
            self.next += 1;
        }
        match self.away.get(self.next) {
            Some(&(from_ns, to_ns)) if from_ns <= at_ns => {
                // The next one begins later than this one ends: what touches was made one.
                self.next += 1;
                to_ns
            }
            _ => at_ns,
        }
    }

    /// When work of `cpu_ns` that begins at `at_ns`, with the CPU there, is seen to be done.
    fn done(&mut self, mut at_ns: u64, mut cpu_ns: u64) -> u64 {
        loop {
            at_ns = self.there_from(at_ns);
            let gone_ns = self.away.get(self.next).map_or(u64::MAX, |a| a.0);
            if cpu_ns < gone_ns - at_ns {
                return at_ns + cpu_ns;
            }
            cpu_ns -= gone_ns - at_ns;
            at_ns = gone_ns;
        }
    }
}

struct Simulated<'a> {
    stream: &'a Stream,
    deadline_ns: Option<u64>,
    cpu: Cpu,
    wake_cost_ns: u64,
    /// When it last had something to do; nothing before its start.
    busy_until_ns: Option<u64>,
    /// What was released up to here is given up, because the task goes on at the next slot.
    lost_until_ns: Option<u64>,
}

impl<'a> Simulated<'a> {
    fn new(stream: &'a Stream, away: &[Away], wake_cost_ns: u64) -> Self {
        let (cpu, deadline_ns) = (Cpu::new(away), stream.deadline_ns());
        Self { stream, deadline_ns, cpu, wake_cost_ns, busy_until_ns: None, lost_until_ns: None }
    }

    fn release(&mut self, number: u64, release_ns: u64, following_ns: Option<u64>) -> Result<Job, String> {
        if let Some(lost_ns) = self.lost_until_ns.filter(|l| release_ns <= *l) {
            return Ok(given_up(number, release_ns, lost_ns, Fate::Dropped));
        }
        let behind_ns = self.busy_until_ns.filter(|b| *b >= release_ns);
        let begins_ns = self.cpu.there_from(behind_ns.unwrap_or(release_ns + self.wake_cost_ns));
        let late_ns = begins_ns - release_ns;
        self.busy_until_ns = Some(begins_ns);
        let lost = if behind_ns.is_some() { Fate::Dropped } else { Fate::Overslept };
        let is_lost = match self.stream.overload {
            Overload::Drop => following_ns.is_some_and(|f| f <= begins_ns),
            Overload::Queue { most_periods } => self.is_dry(most_periods, late_ns),
            Overload::Skip => self.deadline_ns.is_some_and(|d| late_ns > d),
        };
        if is_lost {
            if self.stream.overload != Overload::Skip {
                self.lost_until_ns = Some(begins_ns);
            }
            return Ok(given_up(number, release_ns, begins_ns, lost));
        }
        let job = self.execute(number, release_ns, begins_ns, behind_ns.is_some())?;
        let ended_ns = release_ns + job.response_ns;
        self.busy_until_ns = Some(ended_ns);
        if self.stream.overload == Overload::Drop && following_ns.is_some() {
            self.lost_until_ns = Some(ended_ns);
        }
        Ok(job)
    }

    fn is_dry(&self, most_periods: u32, late_ns: u64) -> bool {
        let longest_ns = self.stream.period_ns().map(|p| p * u64::from(most_periods));
        most_periods > 0 && longest_ns.is_some_and(|l| late_ns > l)
    }

    fn execute(&mut self, number: u64, release_ns: u64, begins_ns: u64, behind: bool) -> Result<Job, String> {
        let unknown = |demand: Demand| {
            format!(
                "job {number} demands {demand:?}, whose CPU time is not known in advance; give the demand as CPU time"
            )
        };
        let cpu_of = |demand: Demand| demand.cpu_ns(number).ok_or_else(|| unknown(demand));
        let mut cpu_ns = cpu_of(self.stream.demand)?;
        let mut wake_ns = begins_ns - release_ns;
        let mut at_ns = self.cpu.done(begins_ns, cpu_ns);
        for &stage in &self.stream.stages {
            let woken_ns = self.cpu.there_from(at_ns + self.wake_cost_ns);
            wake_ns += woken_ns - at_ns;
            let stage_ns = cpu_of(stage)?;
            at_ns = self.cpu.done(woken_ns, stage_ns);
            cpu_ns += stage_ns;
        }
        let fate = if behind { Fate::RanBehind } else { Fate::Ran };
        Ok(Job { number, release_ns, wake_ns, response_ns: at_ns - release_ns, cpu_ns, fate })
    }
}

/// A release that was not executed, and waited until `at_ns`.
pub(crate) fn given_up(number: u64, release_ns: u64, at_ns: u64, fate: Fate) -> Job {
    let wait_ns = at_ns - release_ns;
    Job { number, release_ns, wake_ns: wait_ns, response_ns: wait_ns, cpu_ns: 0, fate }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Share of the releases that were not done by their deadline, dropped ones included; `None` without either.
    pub miss_share: Option<f64>,
    /// Mean lateness over all releases, dropped ones until given up, ns; `None` without releases.
    pub mean_late_ns: Option<f64>,
    pub max_late_ns: u64,
}

impl Summary {
    pub fn of(stream: &Stream, jobs: &[Job]) -> Self {
        let n = jobs.len() as f64;
        let late = || jobs.iter().map(|j| j.lateness_ns(stream));
        let missed = jobs.iter().filter(|j| j.met(stream) == Some(false)).count() as f64;
        Self {
            miss_share: stream.deadline_ns().filter(|_| n > 0.0).map(|_| missed / n),
            mean_late_ns: (n > 0.0).then(|| late().map(|l| l as f64).sum::<f64>() / n),
            max_late_ns: late().max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests;
