//! The dependence of a figure on the core's clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Dependence of a figure on the core's clock: how much it scales with the clock frequency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FollowsClock {
    /// Share of the figure that scales with the clock: from 0 (not at all) to 1 (in proportion). It refers to the clock in `core_hz`.
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
    /// Sets the dependence on the core's clock. Ignored without a value, or if it is not finite.
    #[must_use]
    pub fn with_follows_clock(mut self, follows: Option<FollowsClock>) -> Self {
        self.follows_clock = follows.filter(|f| self.value.is_some() && f.is_finite());
        self
    }
}
