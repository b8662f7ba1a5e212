//! Prints facts in words.
//!
//! Pages, reports and comparisons share one function, so a fact reads the same everywhere. Numbers are scaled in their unit (`7.53 s`), numbers without
//! a unit are printed exactly, and lists of whole numbers become ranges (`0-3, 8`). A number in a map may have its unit in its key: `exit_ns` with 133000
//! is printed as `exit 133 us`. The script of the HTML report (`assets/viewer/facts.js`) follows the same rules.

use std::collections::BTreeMap;

use super::{Fact, FactValue};
use crate::quantity::{Unit, human};

/// Suffixes of keys, with the unit of the number under such a key.
const KEY_UNITS: [(&str, &str); 3] = [("_ns", "ns"), ("_bytes", "By"), ("_hz", "Hz")];
/// Key of an entry that names the whole map: it is printed first.
const NAME: &str = "name";

impl Fact {
    /// The value in words; `None` without a value.
    pub fn human(&self) -> Option<String> {
        Some(self.value.as_ref()?.human(self.unit.as_deref()))
    }
}

impl FactValue {
    /// The value in its UCUM unit in words: `7.53 s`, `yes`, `0-3, 8`, `0: 8128, 1: 13`.
    pub fn human(&self, unit: Option<&str>) -> String {
        let text = match self {
            Self::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Self::Int(i) => return number(*i as f64, &i.to_string(), unit),
            Self::Float(f) => return number(*f, &f.to_string(), unit),
            Self::Text(text) => text.clone(),
            Self::List(items) => return list(items, unit),
            Self::Map(entries) => return pairs(entries, unit, ": "),
        };
        unit.filter(|u| *u != "1").map_or(text.clone(), |u| format!("{text} {u}"))
    }

    const fn has_parts(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_))
    }
}

fn number(value: f64, exact: &str, unit: Option<&str>) -> String {
    match unit {
        Some("ns") => human(value, Unit::Nanoseconds),
        Some("By") => human(value, Unit::Bytes),
        Some("Hz") => human(value, Unit::Hertz),
        Some("[ppm]") => human(value, Unit::PartsPerMillion),
        Some("1") | None => exact.to_owned(),
        Some(u) => format!("{exact} {}", u.trim_matches(|c| c == '{' || c == '}')),
    }
}

fn list(items: &[FactValue], unit: Option<&str>) -> String {
    let whole = |v: &FactValue| if let FactValue::Int(i) = v { Some(*i) } else { None };
    match items.iter().map(whole).collect::<Option<Vec<i64>>>() {
        Some(numbers) if unit.is_none() && numbers.len() > 2 => ranges(&numbers),
        _ => joined(items.iter(), items.iter().map(|v| item(v, unit))),
    }
}

/// An item of a list. A map has no colons here: `C1 (disabled no, exit 2.00 us)`, `core 0, cpus 0,8`.
fn item(value: &FactValue, unit: Option<&str>) -> String {
    let FactValue::Map(entries) = value else { return value.human(unit) };
    let Some(name) = entries.get(NAME).and_then(FactValue::text) else { return pairs(entries, unit, " ") };
    let mut others = entries.clone();
    others.remove(NAME);
    if others.is_empty() { name.to_owned() } else { format!("{name} ({})", pairs(&others, unit, " ")) }
}

/// Keys with their values; numbers among the keys come in numeric order.
fn pairs(entries: &BTreeMap<String, FactValue>, unit: Option<&str>, between: &str) -> String {
    let mut sorted: Vec<(&String, &FactValue)> = entries.iter().collect();
    sorted.sort_by_key(|(key, _)| key.parse::<u64>().unwrap_or(u64::MAX));
    let text = |(key, value): &(&String, &FactValue)| {
        let of_key = |(end, unit): &(&str, &'static str)| Some((key.strip_suffix(end)?, *unit));
        let own = KEY_UNITS.iter().find_map(of_key).filter(|_| unit.is_none() && value.number().is_some());
        match own {
            Some((stem, unit)) => format!("{stem}{between}{}", value.human(Some(unit))),
            None => format!("{key}{between}{}", value.human(unit)),
        }
    };
    joined(entries.values(), sorted.iter().map(text))
}

/// Texts of values in a row, separated by commas, or by semicolons if a value itself contains commas.
fn joined<'v>(
    mut values: impl Iterator<Item = &'v FactValue>,
    texts: impl Iterator<Item = String>,
) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return "none".to_owned();
    }
    texts.join(if values.any(FactValue::has_parts) { "; " } else { ", " })
}

fn ranges(numbers: &[i64]) -> String {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for &n in numbers {
        match spans.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(n) => *end = n,
            _ => spans.push((n, n)),
        }
    }
    let text = |(a, b): (i64, i64)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    spans.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_in_their_unit_and_exact_without_one() {
        let of = |value: FactValue, unit: Option<&str>| value.human(unit);
        assert_eq!(of(7_530_000_000_i64.into(), Some("ns")), "7.53 s");
        assert_eq!(of((16_i64 << 30).into(), Some("By")), "16.0 GiB");
        assert_eq!(of(3.4.into(), Some("%")), "3.4 %");
        assert_eq!([Some("1"), None].map(|unit| of(12_345_i64.into(), unit)), ["12345", "12345"]);
        assert_eq!(of(true.into(), None), "yes");
        assert_eq!(of("tsc".into(), None), "tsc");
        assert_eq!(Fact::known(0.5, "test").with_unit("1").human().as_deref(), Some("0.5"));
    }

    #[test]
    fn lists_of_numbers_become_ranges() {
        let list: Vec<i64> = vec![0, 1, 2, 3, 8, 10, 11, i64::MAX];
        assert_eq!(FactValue::from(list).human(None), "0-3, 8, 10-11, 9223372036854775807");
        assert_eq!(FactValue::from(vec![5_i64, 6]).human(None), "5, 6");
        assert_eq!(FactValue::List(Vec::new()).human(None), "none");
    }

    #[test]
    fn maps_are_keys_with_values_and_their_numbers_have_units() {
        let counts = FactValue::map([("0", 8128_i64.into()), ("10", 2_i64.into()), ("2", 13_i64.into())]);
        assert_eq!(counts.human(None), "0: 8128, 2: 13, 10: 2");
        let tracers = FactValue::map(
            [("osnoise", vec!["osnoise"]), ("global", vec!["function", "events"])]
                .map(|(key, texts)| (key, FactValue::from(texts))),
        );
        assert_eq!(tracers.human(None), "global: function, events; osnoise: osnoise");
        let state = |name: &str, ns: i64| FactValue::map([("name", name.into()), ("exit_ns", ns.into())]);
        let states = FactValue::List(vec![state("POLL", 0), state("C6", 133_000)]);
        assert_eq!(states.human(None), "POLL (exit 0 ns); C6 (exit 133 us)");
        let core = FactValue::List(vec![FactValue::map([("cpus", "0,8".into()), ("core", 3_i64.into())])]);
        assert_eq!(core.human(None), "core 3, cpus 0,8");
        assert_eq!(FactValue::Map(BTreeMap::new()).human(None), "none");
    }
}
