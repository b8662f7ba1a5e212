//! Run levels: how long a run may take when no time is given.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How thorough a run is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// About 10 s.
    Quick,
    /// About 60 s.
    Standard,
    /// About 10 minutes.
    Thorough,
    /// Until stopped.
    Soak,
}

impl Level {
    /// All levels, shortest first.
    pub const ALL: [Self; 4] = [Self::Quick, Self::Standard, Self::Thorough, Self::Soak];

    /// Name as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Thorough => "thorough",
            Self::Soak => "soak",
        }
    }

    /// Wall time of the whole one-page run at this level, in seconds.
    pub const fn page_seconds(self) -> u64 {
        match self {
            Self::Quick => 10,
            Self::Standard => 60,
            Self::Thorough => 600,
            Self::Soak => 86_400,
        }
    }

    /// Wall time of a single probe at this level, in seconds.
    pub const fn probe_seconds(self) -> u64 {
        match self {
            Self::Quick => 3,
            Self::Standard => 10,
            Self::Thorough => 120,
            Self::Soak => 86_400,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let all = Self::ALL;
        all.iter()
            .enumerate()
            .find(|(i, l)| l.name() == s || (i + 1).to_string() == s)
            .map(|(_, l)| *l)
            .ok_or_else(|| format!("level '{s}' is not one of quick, standard, thorough, soak (or 1 to 4)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_numbers() {
        for (i, l) in Level::ALL.iter().enumerate() {
            assert_eq!(l.name().parse::<Level>(), Ok(*l));
            assert_eq!((i + 1).to_string().parse::<Level>(), Ok(*l));
        }
        assert!("5".parse::<Level>().is_err());
    }
}
