//! The documented exit codes.

use std::process::ExitCode;

use machmeter_sys::guard::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Fine,
    /// A finding: a regression, a failed check.
    Finding,
    /// The command line or an input is wrong.
    Usage,
    /// Inconclusive: unfit environment or too little data.
    Inconclusive,
    /// Could not measure: permission, I/O, internal.
    CannotMeasure,
    Partial,
    /// Ended by a signal, with the result saved: 130, 143, 129, 152.
    Signal(u8),
    /// Exit code of the program that `trace` ran; 128 plus the signal number if a signal ended it.
    Program(u8),
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Finding => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::CannotMeasure => 4,
            Self::Partial => 5,
            Self::Signal(code) | Self::Program(code) => code,
        }
    }
}

impl From<Signal> for Exit {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal.exit_code())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
