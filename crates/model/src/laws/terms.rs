//! The dictionary of terms in the participants p and the bytes d.

/// Values of p from which on a law has terms in p: with fewer, most terms in p fit alike.
pub const LEAST_P: usize = 4;

/// A function of p and d, as [`Self::name`] prints it. The order is that of a printed law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    One,
    LogP,
    P,
    /// Messages to all others, one after the other.
    PMinusOne,
    PLogP,
    PSquared,
    D,
    SqrtD,
    DLogP,
    PD,
    PMinusOneD,
    PSquaredD,
}

/// Name, value, and whether it varies with p and with d.
type Info = (&'static str, fn(f64, f64) -> f64, bool, bool);

impl Term {
    pub const ALL: [Self; 12] = {
        use Term::{D, DLogP, LogP, One, P, PD, PLogP, PMinusOne, PMinusOneD, PSquared, PSquaredD, SqrtD};
        [One, LogP, P, PMinusOne, PLogP, PSquared, D, SqrtD, DLogP, PD, PMinusOneD, PSquaredD]
    };

    fn info(self) -> Info {
        match self {
            Self::One => ("1", |_, _| 1.0, false, false),
            Self::LogP => ("log(p)", |p, _| p.log2(), true, false),
            Self::P => ("p", |p, _| p, true, false),
            Self::PMinusOne => ("(p-1)", |p, _| p - 1.0, true, false),
            Self::PLogP => ("p*log(p)", |p, _| p * p.log2(), true, false),
            Self::PSquared => ("p^2", |p, _| p * p, true, false),
            Self::D => ("d", |_, d| d, false, true),
            Self::SqrtD => ("sqrt(d)", |_, d| d.sqrt(), false, true),
            Self::DLogP => ("log(p)*d", |p, d| d * p.log2(), true, true),
            Self::PD => ("p*d", |p, d| p * d, true, true),
            Self::PMinusOneD => ("(p-1)*d", |p, d| (p - 1.0) * d, true, true),
            Self::PSquaredD => ("p^2*d", |p, d| p * p * d, true, true),
        }
    }

    /// How laws print it; logarithms are of base 2.
    pub fn name(self) -> &'static str {
        self.info().0
    }

    /// Value for `p` participants, at least 1, and `d` bytes.
    pub fn at(self, p: u32, d: u64) -> f64 {
        self.info().1(f64::from(p), d as f64)
    }

    pub fn is_of_p(self) -> bool {
        self.info().2
    }

    pub fn is_of_d(self) -> bool {
        self.info().3
    }
}
