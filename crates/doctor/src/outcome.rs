//! The result of one check, without its code.

use machmeter_data::CheckState;

/// The result of one check. Built in one expression: `Outcome::warn("...").limit("...").next("...")`.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub state: CheckState,
    /// Observation in words with units, or the reason why there is none.
    pub observed: String,
    /// The observation in a few words, for verdicts.
    pub brief: Option<Box<str>>,
    pub limit: Option<Box<str>>,
    /// Source of the observation; `None` if it is the source of the facts that the check needs.
    pub source: Option<Box<str>>,
    /// Advice for this machine, as a command if there is one.
    pub next: Option<Box<str>>,
    pub undo: Option<Box<str>>,
}

/// A judgment. `Err` is the outcome for a missing fact, so `?` ends a check there.
pub type Judged = Result<Outcome, Outcome>;

impl Outcome {
    fn new(state: CheckState, observed: impl Into<String>) -> Self {
        Self {
            state,
            observed: observed.into(),
            brief: None,
            limit: None,
            source: None,
            next: None,
            undo: None,
        }
    }

    pub fn pass(observed: impl Into<String>) -> Self {
        Self::new(CheckState::Pass, observed)
    }

    pub fn warn(observed: impl Into<String>) -> Self {
        Self::new(CheckState::Warn, observed)
    }

    pub fn fail(observed: impl Into<String>) -> Self {
        Self::new(CheckState::Fail, observed)
    }

    /// The check could not observe its subject; `why` is the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(CheckState::Unknown, why)
    }

    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::new(CheckState::NotApplicable, why)
    }

    /// Compares a value with two limits: above `fail_above` it fails, above `warn_above` it warns, else it passes. A negative, infinite or NaN value is
    /// unknown.
    pub fn graded(value: f64, warn_above: f64, fail_above: f64, observed: impl Into<String>) -> Self {
        if !value.is_finite() || value < 0.0 {
            return Self::unknown(format!("the measured value {value} is impossible"));
        }
        Self::worst(value > fail_above, value > warn_above, observed)
    }

    /// A failure, else a warning, else a pass.
    pub fn worst(fails: bool, warns: bool, observed: impl Into<String>) -> Self {
        let state = match (fails, warns) {
            (true, _) => CheckState::Fail,
            (false, true) => CheckState::Warn,
            (false, false) => CheckState::Pass,
        };
        Self::new(state, observed)
    }

    /// Adds the observation in a few words. Only warnings and failures keep it, because no other outcome is the reason for a verdict.
    #[must_use]
    pub fn brief(mut self, brief: impl Into<String>) -> Self {
        let is_reason = matches!(self.state, CheckState::Warn | CheckState::Fail);
        self.brief = is_reason.then(|| brief.into().into_boxed_str());
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: impl Into<String>) -> Self {
        self.limit = Some(limit.into().into_boxed_str());
        self
    }

    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into().into_boxed_str());
        self
    }

    /// Adds advice; a pass ignores it.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = (self.state != CheckState::Pass).then(|| next.into().into_boxed_str());
        self
    }

    #[must_use]
    pub fn undo(mut self, undo: impl Into<String>) -> Self {
        self.undo = (self.state != CheckState::Pass).then(|| undo.into().into_boxed_str());
        self
    }
}
