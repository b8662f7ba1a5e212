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

/// Parses a duration as people write it: `20` and `20s` are seconds; `500ms`, `100us`, `5m`, `1.5h` as they say.
///
/// # Errors
/// One line that names the text and the forms that are understood.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let split = t.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(t.len());
    let (number, unit) = t.split_at(split);
    let scale = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        other => {
            return Err(format!(
                "'{text}' is not a duration: unit '{other}' is not one of ns, us, ms, s, m, h"
            ));
        }
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is not a duration: write for example 500ms, 20s or 5m"))?;
    let ns = value * scale;
    if !(ns.is_finite() && ns < 9e18) {
        return Err(format!("'{text}' is not a duration this program can keep"));
    }
    Ok(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration_ns("20"), Ok(20_000_000_000));
        assert_eq!(parse_duration_ns("100us"), Ok(100_000));
        assert_eq!(parse_duration_ns("1.5m"), Ok(90_000_000_000));
        assert!(parse_duration_ns("5 parsecs").unwrap_err().contains("parsecs"));
        assert!(parse_duration_ns("").is_err());
        assert!(parse_duration_ns("-3s").is_err());
        assert!(parse_duration_ns("999999999999999h").is_err());
    }

    #[test]
    fn levels_have_names_and_numbers() {
        for (i, l) in Level::ALL.iter().enumerate() {
            assert_eq!(l.name().parse::<Level>(), Ok(*l));
            assert_eq!((i + 1).to_string().parse::<Level>(), Ok(*l));
        }
        assert!("5".parse::<Level>().is_err());
    }
}
