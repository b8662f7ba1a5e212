//! Why a figure cannot be computed.

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// The input is shorter than the method needs.
    #[error("{what} needs at least {needed} values, got {got}")]
    TooFew { what: &'static str, needed: usize, got: usize },
    /// An input longer than the method can work on in reasonable time: its largest count, and the one received.
    #[error("{0} takes at most {1} values, got {2}")]
    TooMany(&'static str, usize, usize),
    /// An input with NaN or an infinity, and the index of the first.
    #[error("{0} holds a value that is not finite at index {1}")]
    NonFinite(&'static str, usize),
    /// Two inputs that belong together and differ in length.
    #[error("{0} differ in length: {1} and {2}")]
    LengthMismatch(&'static str, usize, usize),
    /// A parameter outside of its range, and that in words.
    #[error("{0} = {1} is out of range; allowed: {2}")]
    Parameter(&'static str, f64, &'static str),
    /// A quantity that left the range of `f64`.
    #[error("{0} is outside the range of f64")]
    Overflow(&'static str),
}

/// Checks length and finiteness of one input.
pub(crate) fn check(what: &'static str, xs: &[f64], needed: usize) -> Result<(), StatsError> {
    if xs.len() < needed {
        return Err(StatsError::TooFew { what, needed, got: xs.len() });
    }
    match xs.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(StatsError::NonFinite(what, index)),
        None => Ok(()),
    }
}

pub(crate) fn check_pair(what: &'static str, left: usize, right: usize) -> Result<(), StatsError> {
    if left == right { Ok(()) } else { Err(StatsError::LengthMismatch(what, left, right)) }
}

pub(crate) fn out_of_range(name: &'static str, value: f64, allowed: &'static str) -> StatsError {
    StatsError::Parameter(name, value, allowed)
}

pub(crate) fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}
