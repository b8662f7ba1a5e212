//! What one check found, before it gets its code.

use machmeter_data::CheckState;

/// What one check found; built as a sentence: `Outcome::warn("...").limit("...").next("...")`.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub state: CheckState,
    /// What was seen, in words with units, or why nothing was.
    pub observed: String,
    pub limit: Option<Box<str>>,
    /// Where it was read, if not from the facts the check needs.
    pub source: Option<Box<str>>,
    /// What to do here, as a command where there is one.
    pub next: Option<Box<str>>,
    pub undo: Option<Box<str>>,
}

/// A judgment: `Err` is the outcome of a fact that could not be had, so that `?` ends a check there.
pub type Judged = Result<Outcome, Outcome>;

impl Outcome {
    fn new(state: CheckState, observed: impl Into<String>) -> Self {
        Self { state, observed: observed.into(), limit: None, source: None, next: None, undo: None }
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

    /// Could not be seen, for this reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(CheckState::Unknown, why)
    }

    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::new(CheckState::NotApplicable, why)
    }

    /// Grades a value against two limits: above `fail_above` it fails, above `warn_above` it warns, else it passes.
    /// A value that is no amount (negative, NaN, infinite) is unknown.
    pub fn graded(value: f64, warn_above: f64, fail_above: f64, observed: impl Into<String>) -> Self {
        if !value.is_finite() || value < 0.0 {
            return Self::unknown(format!("the measured value {value} is impossible"));
        }
        Self::worst(value > fail_above, value > warn_above, observed)
    }

    /// A failure or a warning where it is one, else a pass.
    pub fn worst(fails: bool, warns: bool, observed: impl Into<String>) -> Self {
        let state = match (fails, warns) {
            (true, _) => CheckState::Fail,
            (false, true) => CheckState::Warn,
            (false, false) => CheckState::Pass,
        };
        Self::new(state, observed)
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

    /// With advice; a check that passed needs none and gets none.
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
