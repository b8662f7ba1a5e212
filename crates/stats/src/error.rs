//! Why a figure cannot be computed.

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// The input is shorter than the method needs.
    #[error("{what} needs at least {needed} values, got {got}")]
    TooFew { what: &'static str, needed: usize, got: usize },
    /// The input is longer than the method can work on in reasonable time.
    #[error("{what} takes at most {limit} values, got {got}")]
    TooMany { what: &'static str, limit: usize, got: usize },
    #[error("{what} holds a value that is not finite at index {index}")]
    NonFinite { what: &'static str, index: usize },
    #[error("{what} differ in length: {left} and {right}")]
    LengthMismatch { what: &'static str, left: usize, right: usize },
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    Parameter { name: &'static str, value: f64, allowed: &'static str },
    #[error("column {column} depends linearly on the columns before it")]
    RankDeficient { column: usize },
    #[error("{what} is outside the range of f64")]
    Overflow { what: &'static str },
}

/// Checks length and finiteness of one input.
pub(crate) fn check(what: &'static str, xs: &[f64], needed: usize) -> Result<(), StatsError> {
    if xs.len() < needed {
        return Err(StatsError::TooFew { what, needed, got: xs.len() });
    }
    match xs.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(StatsError::NonFinite { what, index }),
        None => Ok(()),
    }
}

/// Checks that two inputs pair up.
pub(crate) fn check_pair(what: &'static str, left: usize, right: usize) -> Result<(), StatsError> {
    if left == right { Ok(()) } else { Err(StatsError::LengthMismatch { what, left, right }) }
}

pub(crate) fn out_of_range(name: &'static str, value: f64, allowed: &'static str) -> StatsError {
    StatsError::Parameter { name, value, allowed }
}

pub(crate) fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}
