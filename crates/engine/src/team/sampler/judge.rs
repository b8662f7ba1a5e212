//! Batches as their members told of them, and whether a sample counts, by the rule of its cell and what was seen. Pure.

use super::shared::Seen;
use super::{Clocked, Rule};
use crate::disturbance::Disturbance;

/// Of the switches that must be, this share has to be seen: a waker may be so late that the partner has not gone to sleep yet.
const SLEPT: f64 = 0.9;
/// Share of a batch by which a start may be late: beyond it, members did not work at the same time.
const LATE: f64 = 0.05;
/// Progress of others over one's own within which they are taken to have worked at the same time.
const ALONGSIDE: std::ops::RangeInclusive<f64> = 0.2..=5.0;

/// What was seen in one or both batches of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Observed {
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) moved: bool,
    /// From the first start to the last, and to the last end.
    pub(super) late_ticks: u64,
    pub(super) ticks: u64,
    pub(super) turns: u64,
    pub(super) judged: Option<Disturbance>,
    /// Turns of member 0, of the slowest and of the fastest other, where others work throughout.
    pub(super) progress: Option<[u64; 3]>,
}

impl Observed {
    fn is_late(&self) -> bool {
        self.late_ticks as f64 > LATE * self.ticks as f64
    }

    pub(super) fn and(self, other: &Self) -> Self {
        let later = if other.is_late() { other } else { &self };
        Self {
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
            moved: self.moved || other.moved,
            late_ticks: later.late_ticks,
            ticks: later.ticks,
            turns: self.turns + other.turns,
            judged: worst(self.judged, other.judged),
            progress: self.progress.or(other.progress),
        }
    }
}

fn worst(one: Option<Disturbance>, other: Option<Disturbance>) -> Option<Disturbance> {
    if other == Some(Disturbance::Failed) { other } else { one.or(other) }
}

/// Why a sample does not count; `None` when it does.
pub(super) fn disturbance(rule: Rule, seen: &Observed) -> Option<Disturbance> {
    use Disturbance::{Awake, Migrated, Partner, Preempted};
    if seen.judged.is_some() {
        return seen.judged;
    }
    let switches = seen.voluntary + seen.involuntary;
    // At the beginning of each of the two batches a member may not have gone to sleep yet.
    let must = |per_turn: u64| (((per_turn * seen.turns) as f64 * SLEPT) as u64).saturating_sub(per_turn);
    let apart = || match seen.progress {
        Some([own, least, most]) => {
            let share = |turns: u64| turns as f64 / own.max(1) as f64;
            own == 0 || !ALONGSIDE.contains(&share(least)) || !ALONGSIDE.contains(&share(most))
        }
        None => false,
    };
    let preempted = match rule {
        Rule::Any => false,
        Rule::Undisturbed | Rule::Together => seen.involuntary > 0,
        Rule::Sleeps(_) => seen.involuntary > seen.turns - (SLEPT * seen.turns as f64) as u64,
        Rule::Awake | Rule::Alongside => switches > 0,
        // Beginning and end of each of the two batches may add one.
        Rule::Switches => switches > 2 * seen.turns + 4,
    };
    match rule {
        _ if preempted => Some(Preempted),
        Rule::Any => None,
        _ if seen.moved => Some(Migrated),
        Rule::Sleeps(per_turn) if seen.voluntary < must(per_turn) => Some(Awake),
        Rule::Switches if switches < must(2) => Some(Awake),
        Rule::Together if seen.is_late() || seen.progress.is_some_and(|[_, least, _]| least == 0) => {
            Some(Partner)
        }
        Rule::Alongside if apart() => Some(Partner),
        _ => None,
    }
}

/// What this is to a member with these own reports: another one's disturbance is a partner that stood still.
pub(super) fn of_member<'a>(
    whole: Option<Disturbance>,
    mut own: impl Iterator<Item = &'a Seen> + Clone,
) -> Option<Disturbance> {
    use Disturbance::{Migrated, Partner, Preempted};
    match whole {
        Some(Preempted | Migrated) if own.clone().any(|s| s.involuntary > 0) => Some(Preempted),
        Some(Preempted | Migrated) if own.any(|s| s.moved) => Some(Migrated),
        Some(Preempted | Migrated) => Some(Partner),
        other => other,
    }
}

pub(super) struct Batch {
    /// Reports of those that work; of member 0 alone where the others work throughout.
    pub(super) members: Vec<Seen>,
    pub(super) turns: u64,
    pub(super) paused_ticks: u64,
    pub(super) judged: Option<Disturbance>,
}

impl Batch {
    pub(super) fn ticks(&self, clocked: Clocked, member: usize) -> u64 {
        let of = |m: &Seen| m.end_ticks.saturating_sub(m.start_ticks);
        let ticks = match clocked {
            Clocked::Leader => self.members.first().map_or(0, of),
            Clocked::EachMember => self.members.get(member).map_or(0, of),
            Clocked::FirstToLast => self.last_end().saturating_sub(self.first_start()),
        };
        ticks.saturating_sub(self.paused_ticks)
    }

    pub(super) fn first_start(&self) -> u64 {
        self.members.iter().map(|m| m.start_ticks).min().unwrap_or(0)
    }

    pub(super) fn last_end(&self) -> u64 {
        self.members.iter().map(|m| m.end_ticks).max().unwrap_or(0)
    }

    pub(super) fn observed(&self, judged: usize) -> Observed {
        let of = || self.members.iter().take(judged);
        let last_start = self.members.iter().map(|m| m.start_ticks).max().unwrap_or(0);
        Observed {
            voluntary: of().map(|m| m.voluntary).sum(),
            involuntary: of().map(|m| m.involuntary).sum(),
            moved: of().any(|m| m.moved),
            late_ticks: last_start.saturating_sub(self.first_start()),
            ticks: self.last_end().saturating_sub(self.first_start()),
            turns: self.turns,
            judged: self.judged,
            progress: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(voluntary: u64, involuntary: u64) -> Observed {
        Observed { voluntary, involuntary, ticks: 1_000, turns: 30, ..Observed::default() }
    }

    #[test]
    fn switches_decide_what_becomes_of_a_sample() {
        use Disturbance::{Awake, Preempted};
        for (rule, voluntary, involuntary, truth) in [
            (Rule::Undisturbed, 21, 0, None),
            (Rule::Undisturbed, 0, 1, Some(Preempted)),
            (Rule::Awake, 1, 0, Some(Preempted)),
            (Rule::Any, 21, 5, None),
            (Rule::Sleeps(2), 60, 0, None),
            (Rule::Sleeps(2), 51, 0, Some(Awake)),
            (Rule::Sleeps(1), 26, 0, None),
            (Rule::Sleeps(2), 60, 3, None),
            (Rule::Sleeps(2), 60, 4, Some(Preempted)),
            (Rule::Sleeps(0), 0, 0, None),
            (Rule::Switches, 45, 15, None),
            (Rule::Switches, 15, 5, Some(Awake)),
            (Rule::Switches, 60, 9, Some(Preempted)),
        ] {
            assert_eq!(disturbance(rule, &seen(voluntary, involuntary)), truth, "{rule:?}");
        }
        let moved = Observed { moved: true, ..seen(0, 0) };
        assert_eq!(disturbance(Rule::Undisturbed, &moved), Some(Disturbance::Migrated));
        let failed = Observed { judged: Some(Disturbance::Failed), ..seen(0, 3) };
        assert_eq!(disturbance(Rule::Any, &seen(0, 0).and(&failed)), Some(Disturbance::Failed));
    }

    #[test]
    fn members_that_did_not_work_at_the_same_time_are_apart() {
        use Disturbance::Partner;
        let late = |late_ticks| Observed { late_ticks, ..seen(0, 0) };
        assert_eq!(disturbance(Rule::Together, &late(50)), None);
        assert_eq!(disturbance(Rule::Together, &late(51)), Some(Partner));
        assert_eq!(disturbance(Rule::Together, &late(51).and(&late(0))), Some(Partner));
        assert_eq!(disturbance(Rule::Together, &late(0).and(&late(51))), Some(Partner));
        for (progress, truth) in [
            ([50, 45, 52], None),
            ([50, 9, 50], Some(Partner)),
            ([50, 50, 251], Some(Partner)),
            ([0, 0, 0], Some(Partner)),
        ] {
            let seen = Observed { progress: Some(progress), ..seen(0, 0) };
            assert_eq!(disturbance(Rule::Alongside, &seen), truth, "{progress:?}");
            assert_eq!(disturbance(Rule::Together, &seen), truth.filter(|_| progress[1] == 0));
        }
    }

    #[test]
    fn who_was_disturbed_is_told_from_who_was_left_alone() {
        use Disturbance::{Failed, Migrated, Partner, Preempted};
        let own = |involuntary, moved| [Seen { involuntary, moved, ..Seen::default() }, Seen::default()];
        let of = |whole, own: [Seen; 2]| of_member(whole, own.iter());
        assert_eq!(of(Some(Preempted), own(1, false)), Some(Preempted));
        assert_eq!(of(Some(Preempted), own(0, false)), Some(Partner));
        assert_eq!(of(Some(Preempted), own(0, true)), Some(Migrated));
        assert_eq!(of(Some(Failed), own(1, false)), Some(Failed));
        assert_eq!(of(None, own(0, false)), None);
    }
}
