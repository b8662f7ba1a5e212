//! Units (UCUM strings) and the direction in which a quantity is good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a number, written as UCUM. Time is always nanoseconds and size always bytes in records; views scale them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Clock ticks of the record's tick source.
    #[serde(rename = "{tick}")]
    Ticks,
    /// Bytes.
    #[serde(rename = "By")]
    Bytes,
    /// Bytes per second.
    #[serde(rename = "By/s")]
    BytesPerSecond,
    /// Floating-point operations per second.
    #[serde(rename = "{flop}/s")]
    FlopsPerSecond,
    /// Events per second.
    #[serde(rename = "Hz")]
    Hertz,
    /// A fraction or ratio, 0.02 for 2 %.
    #[serde(rename = "1")]
    One,
    /// A number of things.
    #[serde(rename = "{count}")]
    Count,
    /// Nanoseconds per byte.
    #[serde(rename = "ns/By")]
    NanosecondsPerByte,
    /// Parts per million.
    #[serde(rename = "[ppm]")]
    PartsPerMillion,
    /// Power spectral density of a fraction: 1/Hz.
    #[serde(rename = "/Hz")]
    PerHertz,
}

impl Unit {
    /// True for times, rates and costs per byte: what something takes, and not a size, a number or a share.
    pub const fn is_price(self) -> bool {
        matches!(
            self,
            Self::Nanoseconds
                | Self::Ticks
                | Self::BytesPerSecond
                | Self::FlopsPerSecond
                | Self::NanosecondsPerByte
        )
    }

    /// The UCUM code.
    pub const fn ucum(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Ticks => "{tick}",
            Self::Bytes => "By",
            Self::BytesPerSecond => "By/s",
            Self::FlopsPerSecond => "{flop}/s",
            Self::Hertz => "Hz",
            Self::One => "1",
            Self::Count => "{count}",
            Self::NanosecondsPerByte => "ns/By",
            Self::PartsPerMillion => "[ppm]",
            Self::PerHertz => "/Hz",
        }
    }
}

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Smaller is better (costs, latencies, noise).
    Lower,
    /// Larger is better (rates, shares of deadlines met).
    Higher,
    /// Neither: a property of the machine.
    Neither,
}

/// A value in its unit as a person reads it, scaled to three significant digits: `1.23 ms`, `2.9 %`, `250 Hz`.
///
/// Non-finite values never reach a reader: they are shown as `?`.
pub fn human(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    match unit {
        Unit::Nanoseconds => scaled(value, &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")]),
        Unit::Bytes => {
            scaled(value, &[(1.0, "B"), (1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB")])
        }
        Unit::BytesPerSecond => scaled(value, &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")]),
        Unit::FlopsPerSecond => {
            scaled(value, &[(1.0, "flop/s"), (1e3, "kflop/s"), (1e6, "Mflop/s"), (1e9, "Gflop/s")])
        }
        Unit::Hertz => scaled(value, &[(1.0, "Hz"), (1e3, "kHz"), (1e6, "MHz"), (1e9, "GHz")]),
        Unit::One => format!("{} %", digits(value * 100.0)),
        Unit::Count => digits(value),
        Unit::Ticks => format!("{} ticks", digits(value)),
        Unit::NanosecondsPerByte => format!("{} ns/B", digits(value)),
        Unit::PartsPerMillion => format!("{} ppm", digits(value)),
        Unit::PerHertz => format!("{} /Hz", digits(value)),
    }
}

/// A duration as it was written, if it is one: what options keep.
///
/// # Errors
/// As [`parse_duration_ns`].
pub fn duration_text(text: &str) -> Result<String, String> {
    parse_duration_ns(text).map(|_| text.to_owned())
}

/// Parses a duration as people write it: `20` and `20s` are seconds; `500ms`, `100us`, `5m`, `1.5h` as they say.
/// Errors: one line that names the text and the forms that are understood.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let split = t.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(t.len());
    if t.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')) {
        return Err(format!("'{text}' is a negative time"));
    }
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

fn scaled(value: f64, scales: &[(f64, &str)]) -> String {
    let magnitude = value.abs();
    // 999.5 of a unit already rounds to 1000, which reads better as 1 of the next.
    let (factor, name) = scales
        .iter()
        .rev()
        .find(|(f, _)| magnitude >= f * 0.9995)
        .or(scales.first())
        .copied()
        .unwrap_or((1.0, ""));
    format!("{} {name}", digits(value / factor))
}

/// Three significant digits without an exponent for ordinary magnitudes.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        "0".to_owned()
    } else if !(1e-4..1e6).contains(&magnitude) {
        format!("{value:.2e}")
    } else if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else if magnitude >= 0.9995 {
        format!("{value:.2}")
    } else {
        let decimals = (2 - magnitude.log10().floor() as i32).clamp(0, 9) as usize;
        format!("{value:.decimals$}")
    }
}

/// Bytes as options give sizes: `64K` and `64KiB` are 65536. `None` where it is no such number.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_three_digits_in_a_fitting_unit() {
        assert_eq!(human(9.47, Unit::Nanoseconds), "9.47 ns");
        assert_eq!(human(27_600_000.0, Unit::Nanoseconds), "27.6 ms");
        assert_eq!(human(999_600.0, Unit::Nanoseconds), "1.00 ms");
        assert_eq!(human(0.029, Unit::One), "2.90 %");
        assert_eq!(human(250.0, Unit::Hertz), "250 Hz");
        assert_eq!(human(5.85e10, Unit::FlopsPerSecond), "58.5 Gflop/s");
        assert_eq!(human(0.0, Unit::One), "0 %");
        assert_eq!(human(f64::NAN, Unit::One), "?");
        assert_eq!(human(49_152.0, Unit::Bytes), "48.0 KiB");
        assert_eq!(human(0.000_012, Unit::One), "0.00120 %");
    }

    #[test]
    fn the_serialized_unit_is_its_ucum_code() {
        for u in [Unit::Nanoseconds, Unit::Bytes, Unit::One, Unit::Hertz, Unit::Count, Unit::PerHertz] {
            assert_eq!(serde_json::to_string(&u).unwrap(), format!("\"{}\"", u.ucum()));
        }
    }

    #[test]
    fn bytes_are_read_with_their_unit() {
        for (text, bytes) in
            [("48K", Some(49_152)), ("2MiB", Some(2 << 20)), ("512", Some(512)), ("64 b", None)]
        {
            assert_eq!(parse_bytes(text), bytes, "{text}");
        }
        assert_eq!(["x", "", "3Q", "-1K", "99999999999999999999M"].map(parse_bytes), [None; 5]);
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration_ns("20"), Ok(20_000_000_000));
        assert_eq!(parse_duration_ns("100us"), Ok(100_000));
        assert_eq!(parse_duration_ns("1.5m"), Ok(90_000_000_000));
        assert!(parse_duration_ns("5 parsecs").unwrap_err().contains("parsecs"));
        assert!(parse_duration_ns("").is_err());
        assert!(parse_duration_ns("-3s").unwrap_err().contains("negative time"));
        assert!(parse_duration_ns("999999999999999h").is_err());
    }
}
