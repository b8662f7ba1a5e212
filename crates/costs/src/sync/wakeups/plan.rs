//! Which rows are measured, the most important first. Pure.

use machmeter_engine::cost::{self, Row};
use machmeter_engine::team::sampler::Rule;

use super::NAME;
use super::events::Way;
use crate::sync::jobs;

/// Where the one who is woken is, or rather its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// On the waker's CPU: woken when the waker goes to sleep.
    SameCpu,
    /// Asleep; its CPU has nothing to do, or sleeps too.
    Idle,
    /// Asleep; its CPU runs another thread of ours.
    Busy,
    /// Awake on its CPU, looking for the event.
    Running,
}

impl Wake {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SameCpu => "same_cpu",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Running => "running",
        }
    }

    pub(super) const fn rule(self) -> Rule {
        match self {
            Self::SameCpu => Rule::Switches,
            Self::Idle | Self::Busy => Rule::Sleeps(2),
            Self::Running => Rule::Undisturbed,
        }
    }

    /// CPUs of the members: the two that wake each other, then those that keep CPUs busy.
    fn seats(self, cpus: &[usize]) -> Option<Vec<usize>> {
        let (a, b) = (*cpus.first()?, cpus.get(1).copied());
        Some(match self {
            Self::SameCpu => vec![a, a],
            Self::Idle | Self::Running => vec![a, b?],
            Self::Busy => vec![a, b?, a, b?],
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Trip(Way, Wake),
    Broadcast,
}

pub(super) type Job = jobs::Job<What>;

/// All jobs for these CPUs in one model; `full` when there is time.
pub(super) fn jobs(cpus: &[usize], model: &str, full: bool) -> Vec<Job> {
    let mut out = Vec::new();
    let mut trip = |way: Way, wake: Wake| {
        let row = Row::new(NAME, way.name(), cost::Kind::Latency)
            .with("wake", wake.name())
            .with("cpus", if wake == Wake::SameCpu { 1_i64 } else { 2 })
            .with("model", model)
            .per_turn(2.0);
        let seats = wake.seats(cpus).unwrap_or_default();
        out.push(Job { row, what: What::Trip(way, wake), cpus: seats });
    };
    for (i, way) in Way::ALL.into_iter().enumerate() {
        trip(way, Wake::SameCpu);
        trip(way, Wake::Idle);
        if full || i < 2 {
            trip(way, Wake::Busy);
        }
        if way.polls() && (full || i < 4) {
            trip(way, Wake::Running);
        }
    }
    for members in crate::sync::locks::widths(cpus.len(), full) {
        out.push(Job {
            row: Row::new(NAME, "broadcast_condvar", cost::Kind::Latency)
                .with("wake", Wake::Idle.name())
                .with("cpus", members)
                .with("model", model),
            what: What::Broadcast,
            cpus: if cpus.len() < 2 { Vec::new() } else { cpus.iter().copied().take(members).collect() },
        });
    }
    jobs::refuse_alone(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_one_cpu_only_the_switch_remains() {
        let jobs = jobs(&[3], "threads", true);
        let (here, refused): (Vec<_>, Vec<_>) = jobs.iter().partition(|j| j.row.refused.is_none());
        assert_eq!(here.len(), Way::ALL.len());
        assert!(here.iter().all(|j| j.cpus == [3, 3]));
        assert!(refused.len() > 8 && refused.iter().all(|j| j.cpus.is_empty()));
    }

    #[test]
    fn busy_cpus_have_one_more_member_each_and_rows_are_unique() {
        let jobs = jobs(&[0, 4, 5], "threads", true);
        let busy = jobs.iter().find(|j| matches!(j.what, What::Trip(_, Wake::Busy))).unwrap();
        assert_eq!(busy.cpus, [0, 4, 0, 4]);
        let mut keys: Vec<String> =
            jobs.iter().map(|j| format!("{} {:?}", j.row.operation, j.row.params)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), jobs.len());
        assert!(super::jobs(&[0, 1], "threads", false).len() <= 20);
    }
}
