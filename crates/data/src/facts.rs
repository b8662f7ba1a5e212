//! Facts about the machine: a flat, ordered map from a dotted path (`cpu.model`, `kernel.cmdline`) to a value, or to the reason why there is none.
//!
//! The state of a fact separates "zero" from "not readable".

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod human;
pub(crate) mod stored;

/// The value of one fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FactValue {
    /// Yes or no.
    Bool(bool),
    /// A whole number in the fact's unit.
    Int(i64),
    /// A real number in the fact's unit; always finite.
    Float(f64),
    /// Text as the system gave it, trimmed.
    Text(String),
    /// A list, for example of CPU numbers or of cache descriptions.
    List(Vec<FactValue>),
    /// Values by key, for example counts by CPU number. If the fact has no unit, a number has it in its key (`exit_ns`).
    Map(BTreeMap<String, FactValue>),
}

/// Reason why a fact has, or has not, a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactState {
    /// The value was read.
    Known,
    /// The system has it but denied access to it.
    Denied,
    /// The file or feature does not exist.
    Absent,
    /// The platform cannot have it.
    Unsupported,
    /// The text was read but not understood.
    Unreadable,
}

/// One fact: a value with its unit, or a state with its reason, and the source of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The value; `null` unless `state` is `known`.
    pub value: Option<FactValue>,
    /// UCUM unit of a numeric value (`ns`, `By`, `Hz`, `%`, `1`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// `known`, or the kind of absence.
    pub state: FactState,
    /// File, register or call that the fact was read from.
    pub source: String,
    /// Reason in words if there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Fact {
    /// A fact that was read.
    pub fn known(value: impl Into<FactValue>, source: impl Into<String>) -> Self {
        Self {
            value: Some(value.into()),
            unit: None,
            state: FactState::Known,
            source: source.into(),
            why: None,
        }
    }

    /// The same fact with a UCUM unit.
    #[must_use]
    pub fn with_unit(mut self, unit: &str) -> Self {
        self.unit = Some(unit.to_owned());
        self
    }

    /// A fact without a value, with the reason.
    pub fn missing(state: FactState, source: impl Into<String>, why: impl Into<String>) -> Self {
        Self { value: None, unit: None, state, source: source.into(), why: Some(why.into()) }
    }

    /// The numeric value, if this is a known number.
    pub fn number(&self) -> Option<f64> {
        self.value.as_ref()?.number()
    }

    /// The text value, if this is known text.
    pub fn text(&self) -> Option<&str> {
        self.value.as_ref()?.text()
    }
}

impl FactValue {
    /// A map of these entries.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// The number; `None` for any other type.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(i) => Some(*i as f64),
            Self::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// The text; `None` for any other type.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(t) = self { Some(t) } else { None }
    }

    /// Yes or no; `None` for any other type.
    pub const fn flag(&self) -> Option<bool> {
        if let Self::Bool(yes) = self { Some(*yes) } else { None }
    }

    /// The items of a list; `None` for any other type.
    pub fn items(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The entries of a map; `None` for any other type.
    pub const fn entries(&self) -> Option<&BTreeMap<String, Self>> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }
}

made_from!(FactValue:
    bool: Self::Bool,
    i64: Self::Int,
    u64: |v| i64::try_from(v).map_or(Self::Float(v as f64), Self::Int),
    usize: |v| Self::from(v as u64),
    f64: Self::Float,
    &str: |v: &str| Self::Text(v.trim().to_owned()),
    String: |v: String| Self::from(v.as_str()),
);
impl<T: Into<FactValue>> From<Vec<T>> for FactValue {
    fn from(v: Vec<T>) -> Self {
        Self::List(v.into_iter().map(Into::into).collect())
    }
}
impl<T: Into<FactValue>> From<BTreeMap<String, T>> for FactValue {
    fn from(v: BTreeMap<String, T>) -> Self {
        Self::map(v.into_iter().map(|(key, value)| (key, value.into())))
    }
}

/// All facts of one capture, by dotted path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Facts(pub BTreeMap<String, Fact>);

impl Facts {
    /// Adds or replaces a fact.
    pub fn set(&mut self, path: impl Into<String>, fact: Fact) {
        self.0.insert(path.into(), fact);
    }

    /// The fact at `path`, known or not.
    pub fn get(&self, path: &str) -> Option<&Fact> {
        self.0.get(path)
    }

    /// The known number at `path`.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.get(path)?.number()
    }

    /// The known text at `path`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.text()
    }

    /// The known yes or no at `path`.
    pub fn flag(&self, path: &str) -> Option<bool> {
        self.get(path)?.value.as_ref()?.flag()
    }

    /// Paths whose value or state differs between two captures, in order.
    pub fn changed(&self, later: &Self) -> Vec<String> {
        let paths: BTreeSet<&String> = self.0.keys().chain(later.0.keys()).collect();
        let of = |facts: &Self, path: &str| facts.get(path).map(|f| (f.value.clone(), f.state));
        paths.into_iter().filter(|p| of(self, p) != of(later, p)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lists_new_lost_and_different_paths_only() {
        let mut a = Facts::default();
        a.set("cpu.count", Fact::known(2_u64, "sysfs"));
        a.set("mem.total", Fact::known(11_u64, "/proc/meminfo").with_unit("By"));
        a.set("gone", Fact::known("x", "y"));
        let mut b = a.clone();
        b.set("mem.total", Fact::known(24_u64, "/proc/meminfo").with_unit("By"));
        b.0.remove("gone");
        b.set("new", Fact::missing(FactState::Denied, "/dev/cpu/0/msr", "needs CAP_SYS_RAWIO"));
        assert_eq!(a.changed(&b), ["gone", "mem.total", "new"]);
        assert!(a.changed(&a).is_empty());
    }

    #[test]
    fn every_value_comes_back_from_json_as_it_was() {
        let state = FactValue::map([("name", "C6".into()), ("exit_ns", 133_000_i64.into())]);
        let value = FactValue::List(vec![state, true.into(), 1.5.into(), FactValue::Map(BTreeMap::new())]);
        let json = serde_json::to_string(&value).unwrap();
        assert_eq!(json, r#"[{"exit_ns":133000,"name":"C6"},true,1.5,{}]"#);
        assert_eq!(serde_json::from_str::<FactValue>(&json).unwrap(), value);
        let name = value.items().and_then(|items| items[0].entries()?.get("name")?.text());
        assert_eq!(name, Some("C6"));
    }
}
