//! The dictionary of terms in the participants p and the bytes d.

/// Values of p from which on a law has terms in p: with fewer, most terms in p fit alike.
pub const LEAST_P: usize = 4;

/// A function of p and d. The order is that of a printed law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// 1
    One,
    /// log2 p
    LogP,
    /// p
    P,
    /// p - 1: messages to all others, one after the other
    PMinusOne,
    /// p log2 p
    PLogP,
    /// p^2
    PSquared,
    /// d
    D,
    /// Square root of d
    SqrtD,
    /// d log2 p
    DLogP,
    /// p d
    PD,
    /// (p - 1) d
    PMinusOneD,
    /// p^2 d
    PSquaredD,
}

impl Term {
    /// The dictionary.
    pub const ALL: [Self; 12] = [
        Self::One,
        Self::LogP,
        Self::P,
        Self::PMinusOne,
        Self::PLogP,
        Self::PSquared,
        Self::D,
        Self::SqrtD,
        Self::DLogP,
        Self::PD,
        Self::PMinusOneD,
        Self::PSquaredD,
    ];

    /// How laws print it; logarithms are of base 2.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::LogP => "log(p)",
            Self::P => "p",
            Self::PMinusOne => "(p-1)",
            Self::PLogP => "p*log(p)",
            Self::PSquared => "p^2",
            Self::D => "d",
            Self::SqrtD => "sqrt(d)",
            Self::DLogP => "log(p)*d",
            Self::PD => "p*d",
            Self::PMinusOneD => "(p-1)*d",
            Self::PSquaredD => "p^2*d",
        }
    }

    /// Value for `p` participants, at least 1, and `d` bytes.
    pub fn at(self, p: u32, d: u64) -> f64 {
        let (p, d) = (f64::from(p), d as f64);
        match self {
            Self::One => 1.0,
            Self::LogP => p.log2(),
            Self::P => p,
            Self::PMinusOne => p - 1.0,
            Self::PLogP => p * p.log2(),
            Self::PSquared => p * p,
            Self::D => d,
            Self::SqrtD => d.sqrt(),
            Self::DLogP => d * p.log2(),
            Self::PD => p * d,
            Self::PMinusOneD => (p - 1.0) * d,
            Self::PSquaredD => p * p * d,
        }
    }

    /// Whether it varies with p.
    pub fn is_of_p(self) -> bool {
        !matches!(self, Self::One | Self::D | Self::SqrtD)
    }

    /// Whether it varies with d.
    pub fn is_of_d(self) -> bool {
        matches!(self, Self::D | Self::SqrtD | Self::DLogP | Self::PD | Self::PMinusOneD | Self::PSquaredD)
    }
}
