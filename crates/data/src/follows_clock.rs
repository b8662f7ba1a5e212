//! How far a figure follows the clock of the core at which it is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// How far a figure follows the clock of the core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FollowsClock {
    /// Share that the core executes, at the clock at which the figure is told: from 0 (not at all) to 1 (in proportion).
    pub share: f64,
    /// Standard deviation of the share.
    pub sd: f64,
}

impl FollowsClock {
    pub(crate) fn is_finite(&self) -> bool {
        self.share.is_finite() && self.sd.is_finite()
    }
}

impl Metric {
    /// Says how far it follows the clock of the core.
    #[must_use]
    pub fn with_follows_clock(mut self, follows: Option<FollowsClock>) -> Self {
        self.follows_clock = follows.filter(|f| self.value.is_some() && f.is_finite());
        self
    }
}
