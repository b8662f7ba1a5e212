//! One batch, as its members told of it.

use super::Clocked;
use super::judge::Observed;
use super::shared::Seen;
use crate::disturbance::Disturbance;

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

    /// What was seen of the `judged` first members.
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
