//! What disturbs samples, and who sees it: the kernel's counters ([`crate::sampling`]), partners ([`crate::team::sampler`]), the core's
//! width ([`sibling`]) and clock ([`core_clock`], `quick_clock`) and the distance of two CPUs ([`placement`]). Samples carry what was seen; figures are of one population.

pub mod core_clock;
pub mod distance;
pub mod placement;
pub(crate) mod quick_clock;
pub mod sibling;

use serde::{Deserialize, Serialize};

pub use distance::Distance;
pub use machmeter_loops::team::Disturbance;

/// Samples that were thrown away, by the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rejected {
    pub preempted: u64,
    pub migrated: u64,
    pub partner: u64,
    /// The operation did not do what it should (a call failed).
    pub failed: u64,
}

impl Rejected {
    /// One more, for this reason. A partner that did not sleep did not do its share.
    pub fn count(&mut self, disturbance: Disturbance) {
        match disturbance {
            Disturbance::Preempted => self.preempted += 1,
            Disturbance::Migrated => self.migrated += 1,
            Disturbance::Partner | Disturbance::Awake => self.partner += 1,
            Disturbance::Failed => self.failed += 1,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.preempted += other.preempted;
        self.migrated += other.migrated;
        self.partner += other.partner;
        self.failed += other.failed;
    }

    pub fn total(self) -> u64 {
        self.preempted + self.migrated + self.partner + self.failed
    }
}
