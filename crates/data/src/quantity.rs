//! Units (UCUM strings), the direction of improvement, and the text of quantities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Units with their UCUM codes, which records contain.
macro_rules! units {
    ($($(#[$doc:meta])* $unit:ident = $code:literal,)*) => {
        named! {
            /// The unit of a number, by its UCUM code. In records, times are always nanoseconds and sizes always bytes; views scale them.
            #[derive(Hash, Serialize, Deserialize, JsonSchema)]
            pub enum Unit { $($(#[$doc])* #[serde(rename = $code)] $unit = $code,)* }
        }
    };
}

units! {
    /// Nanoseconds.
    Nanoseconds = "ns",
    /// Clock ticks of the record's tick source.
    Ticks = "{tick}",
    /// Bytes.
    Bytes = "By",
    /// Bytes per second.
    BytesPerSecond = "By/s",
    /// Floating-point operations per second.
    FlopsPerSecond = "{flop}/s",
    /// Events per second.
    Hertz = "Hz",
    /// A fraction or ratio: 0.02 for 2 %.
    One = "1",
    /// A number of items.
    Count = "{count}",
    /// Nanoseconds per byte.
    NanosecondsPerByte = "ns/By",
    /// Parts per million.
    PartsPerMillion = "[ppm]",
    /// Power spectral density of a fraction: 1/Hz.
    PerHertz = "/Hz",
}

impl Unit {
    /// True for times, rates and times per byte, which are costs; false for sizes, numbers and shares.
    pub const fn is_price(self) -> bool {
        use Unit::{BytesPerSecond, FlopsPerSecond, Nanoseconds, NanosecondsPerByte, Ticks};
        matches!(self, Nanoseconds | Ticks | BytesPerSecond | FlopsPerSecond | NanosecondsPerByte)
    }

    /// The UCUM code.
    pub const fn ucum(self) -> &'static str {
        self.name()
    }
}

/// Direction in which a metric improves.
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

/// A value in its unit in words, scaled to three significant digits: `1.23 ms`, `2.9 %`, `250 Hz`.
///
/// A value that is not finite is shown as `?`.
pub fn human(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    match unit {
        Unit::Nanoseconds => scaled(value, 1e3, ["ns", "us", "ms", "s"]),
        Unit::Bytes if is_whole(value) && value.abs() < 1023.5 => format!("{value:.0} B"),
        Unit::Bytes => scaled(value, 1024.0, ["B", "KiB", "MiB", "GiB"]),
        Unit::BytesPerSecond => scaled(value, 1e3, ["B/s", "kB/s", "MB/s", "GB/s"]),
        Unit::FlopsPerSecond => scaled(value, 1e3, ["flop/s", "kflop/s", "Mflop/s", "Gflop/s"]),
        Unit::Hertz => scaled(value, 1e3, ["Hz", "kHz", "MHz", "GHz"]),
        // A share just below 1 is cut, not rounded, so that it never reads 100 %.
        Unit::One if value < 1.0 && digits(value * 100.0) == "100" => {
            format!("{:.2} %", (value * 1e4).floor() / 100.0)
        }
        Unit::One => format!("{} %", digits(value * 100.0)),
        Unit::Count if is_whole(value) => format!("{value:.0}"),
        Unit::Count => digits(value),
        Unit::Ticks => format!("{} ticks", digits(value)),
        Unit::NanosecondsPerByte => format!("{} ns/B", digits(value)),
        Unit::PartsPerMillion => format!("{} ppm", digits(value)),
        Unit::PerHertz => format!("{} /Hz", digits(value)),
    }
}

/// A difference of shares in percentage points, without the sign `%`: `0.41` for 0.0041.
pub fn points(difference: f64) -> String {
    let text = digits(difference * 100.0);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// True if a value prints without decimals.
fn is_whole(value: f64) -> bool {
    value == value.trunc() && value.abs() < 1e6
}

/// Checks a duration and returns its text unchanged, for options.
///
/// # Errors
/// As [`parse_duration_ns`].
pub fn duration_text(text: &str) -> Result<String, String> {
    parse_duration_ns(text).map(|_| text.to_owned())
}

/// Parses a duration: `20` and `20s` are seconds; `500ms`, `100us`, `5m`, `1.5h` have their own units.
/// Errors: one line with the text and the accepted forms.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let split = t.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(t.len());
    if t.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')) {
        return Err(format!("'{text}' is a negative time"));
    }
    let wrong = |why: &str| Err(format!("'{text}' is not a duration{why}"));
    let (number, unit) = t.split_at(split);
    let scale = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        other => return wrong(&format!(": unit '{other}' is not one of ns, us, ms, s, m, h")),
    };
    let Ok(value) = number.parse::<f64>() else { return wrong(": write for example 500ms, 20s or 5m") };
    let ns = value * scale;
    if ns.is_finite() && ns < 9e18 { Ok(ns.round() as u64) } else { wrong(" this program can keep") }
}

/// The value in the largest unit of which it has at least one; each unit is `step` of the previous.
fn scaled(value: f64, step: f64, names: [&str; 4]) -> String {
    // 999.5 of a unit rounds to 1000, which reads better as 1 of the next.
    let fits = |i: &i32| value.abs() >= step.powi(*i) * 0.9995;
    let i = (1..4).rev().find(fits).unwrap_or(0);
    format!("{} {}", digits(value / step.powi(i)), names[i as usize])
}

/// Three significant digits, without an exponent for ordinary magnitudes.
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

/// Parses a size of an option: `64K` and `64KiB` are 65536. `None` for any other text.
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
        use Unit::{Bytes, Count, FlopsPerSecond, Hertz, Nanoseconds, One};
        let times = [9.47, 27_600_000.0, 999_600.0].map(|ns| human(ns, Nanoseconds));
        assert_eq!(times, ["9.47 ns", "27.6 ms", "1.00 ms"]);
        let shares = [0.029, 0.0, f64::NAN, 0.000_012].map(|share| human(share, One));
        assert_eq!(shares, ["2.90 %", "0 %", "?", "0.00120 %"]);
        assert_eq!(
            [0.9995, 0.999_999, 1.0, 1.0004].map(|s| human(s, One)),
            ["99.95 %", "99.99 %", "100 %", "100 %"]
        );
        let others = [(250.0, Hertz), (5.85e10, FlopsPerSecond), (49_152.0, Bytes)].map(|(v, u)| human(v, u));
        assert_eq!(others, ["250 Hz", "58.5 Gflop/s", "48.0 KiB"]);
        let counts = [(28.0, Count), (46_432.0, Count), (2.5, Count), (64.0, Bytes), (1023.6, Bytes)];
        assert_eq!(counts.map(|(v, u)| human(v, u)), ["28", "46432", "2.50", "64 B", "1.00 KiB"]);
        assert_eq!([0.0041, 0.179, 0.3, 1e-7].map(points), ["0.41", "17.9", "30", "1.00e-5"]);
    }

    #[test]
    fn the_serialized_unit_is_its_ucum_code() {
        for u in Unit::ALL {
            assert_eq!(serde_json::to_string(u).unwrap(), format!("\"{}\"", u.ucum()));
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
