//! What the analysis of a part needs beside its rows: typed, by names that both ends share, and as it is in tables.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The name of a fact of one type.
pub struct Fact<T> {
    name: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T> Fact<T> {
    /// Names are of all parts: `PART.what`.
    pub const fn named(name: &'static str) -> Self {
        Self { name, of: PhantomData }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts(BTreeMap<String, Value>);

impl Facts {
    pub fn set<T: Serialize>(&mut self, fact: &Fact<T>, value: T) {
        self.0.extend(serde_json::to_value(value).ok().map(|v| (fact.name.to_owned(), v)));
    }

    /// `None` where nobody told it.
    pub fn get<T: DeserializeOwned>(&self, fact: &Fact<T>) -> Option<T> {
        T::deserialize(self.0.get(fact.name)?).ok()
    }

    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Notes of a table: JSON by name.
    pub(super) fn notes(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value.to_string()))
    }

    pub(super) fn of_notes(notes: &[(String, String)]) -> Self {
        let fact = |(name, text): &(String, String)| {
            Some((name.strip_prefix(PREFIX)?.to_owned(), serde_json::from_str(text).ok()?))
        };
        Self(notes.iter().filter_map(fact).collect())
    }
}

const PREFIX: &str = "fact.";
