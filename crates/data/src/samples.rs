//! Raw samples: named columns of equal length in their original units (ticks, counts), before any conversion.

use thiserror::Error;

use crate::quantity::Unit;

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Ticks, counts, indices.
    I64(Vec<i64>),
    /// Small integers: CPU numbers, dictionary codes, counts per window.
    I32(Vec<i32>),
    /// Converted values.
    F64(Vec<f64>),
    /// Names.
    Text(Vec<String>),
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Text(v) => v.len(),
        }
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name, with a unit suffix for numbers (`start_ticks`).
    pub name: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Values.
    pub values: Values,
}

impl Column {
    /// A column.
    pub fn new(name: &str, unit: Unit, values: impl Into<Values>) -> Self {
        Self { name: name.to_owned(), unit, values: values.into() }
    }
}

/// A table whose columns do not have equal length.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct RaggedTable(String);

/// A table of raw samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name, unique in a run: `noise_gaps`, `noise_windows`.
    pub name: String,
    /// Facts needed to read the table again (`tick_hz`, `t0_ticks`, `window_ticks`), as text.
    pub notes: Vec<(String, String)>,
    /// Columns of equal length.
    pub columns: Vec<Column>,
}

impl Table {
    /// A table; checks that its columns have equal length.
    /// Errors: the length of a column differs from that of the first one.
    pub fn new(name: &str, columns: Vec<Column>) -> Result<Self, RaggedTable> {
        let first = columns.first().map_or(0, |c| c.values.len());
        if let Some(c) = columns.iter().find(|c| c.values.len() != first) {
            let (column, rows) = (&c.name, c.values.len());
            let why = format!("table {name}: column {column} has {rows} rows, the first has {first}");
            return Err(RaggedTable(why));
        }
        Ok(Self { name: name.to_owned(), notes: Vec::new(), columns })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Notes the meanings of the numbers in a column, from 0 on, as a JSON list under `names.COLUMN`.
    pub fn name_codes(&mut self, column: &str, names: impl IntoIterator<Item = String>) {
        let names: Vec<String> = names.into_iter().collect();
        self.notes.push((format!("names.{column}"), serde_json::to_string(&names).unwrap_or_default()));
    }

    /// The note with this key.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.notes.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

macro_rules! columns_of {
    ($($doc:literal $method:ident $kind:ident $value:ty),*) => {
        impl Table {
            $(
                #[doc = $doc]
                pub fn $method(&self, name: &str) -> Option<&[$value]> {
                    if let Values::$kind(v) = &self.column(name)?.values { Some(v) } else { None }
                }
            )*
        }
        $(
            impl From<Vec<$value>> for Values {
                fn from(values: Vec<$value>) -> Self {
                    Self::$kind(values)
                }
            }
        )*
    };
}
columns_of!(
    "The 64-bit column called `name`." i64s I64 i64,
    "The 32-bit column called `name`." i32s I32 i32,
    "The real column called `name`." f64s F64 f64,
    "The text column called `name`." texts Text String
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_columns_are_refused() {
        let c = |name, n| Column::new(name, Unit::Ticks, vec![0_i64; n]);
        let e = Table::new("t", vec![c("a", 3), c("b", 2)]).unwrap_err();
        assert_eq!(e.to_string(), "table t: column b has 2 rows, the first has 3");
        assert_eq!(Table::new("t", vec![c("a", 3), c("b", 3)]).unwrap().rows(), 3);
    }
}
