//! Stores raw samples as Parquet, column by column and without Arrow.
//!
//! Integers are stored as differences (`DELTA_BINARY_PACKED`), names through a dictionary, real numbers byte-split, and everything under gzip, which the
//! report needs anyway. Notes of the table and units of its columns are key-value metadata: any Parquet reader sees the samples, and machmeter the whole
//! table.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, GzipLevel, LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};
use machmeter_data::record::RawFile;
use machmeter_data::{Column, Table, Values};
use sha2::{Digest, Sha256};

use crate::atomic;
use crate::date::hex;
use crate::error::{Result, StoreError};

mod claims;
mod reading;
pub use reading::{from_bytes, read_table, read_verified};

/// Rows per row group: large enough to compress, small enough to hold one in memory.
const ROWS_PER_GROUP: usize = 1 << 20;
/// Metadata keys: the table's name, its notes, the units of its columns.
const TABLE_KEY: &str = "machmeter.table";
const NOTE_PREFIX: &str = "machmeter.note.";
const UNIT_PREFIX: &str = "machmeter.unit.";

/// Writes `table` to `path` in one step and describes the file: name relative to its folder, rows, SHA-256.
/// Errors: columns that differ in length or share a name, or the error of the system; an old file is unchanged.
pub fn write_table(table: &Table, path: &Path) -> Result<RawFile> {
    check(table).map_err(|e| StoreError::new(path, e))?;
    let sha256 = atomic::replace(path, |out| {
        let mut hashed = Hashed { out, hash: Sha256::new() };
        encode(table, &mut hashed).map_err(io_error)?;
        Ok(hex(&hashed.hash.finalize()))
    })?;
    Ok(RawFile {
        file: path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
        table: table.name.clone(),
        rows: table.rows() as u64,
        sha256,
    })
}

fn check(table: &Table) -> Result<(), String> {
    let mut names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    names.sort_unstable();
    if let Some((twice, _)) = names.iter().zip(names.iter().skip(1)).find(|(a, b)| a == b) {
        return Err(format!("table {}: two columns are called {twice}", table.name));
    }
    Table::new(&table.name, table.columns.clone()).map(drop).map_err(|e| e.to_string())
}

/// Forwards bytes and hashes them.
struct Hashed<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn encode<W: Write + Send>(table: &Table, out: W) -> Result<(), ParquetError> {
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let name = if table.name.is_empty() { "table" } else { &table.name };
    let schema = Arc::new(Type::group_type_builder(name).with_fields(fields).build()?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties(table)))?;
    for start in (0..table.rows()).step_by(ROWS_PER_GROUP) {
        let rows = start..(start + ROWS_PER_GROUP).min(table.rows());
        let mut group = file.next_row_group()?;
        for column in &table.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(ParquetError::General("more columns than the schema has".to_owned()));
            };
            write_values(writer.untyped(), &column.values, rows.clone())?;
            writer.close()?;
        }
        group.close()?;
    }
    file.close().map(drop)
}

fn write_values(
    writer: &mut ColumnWriter<'_>,
    values: &Values,
    rows: std::ops::Range<usize>,
) -> Result<(), ParquetError> {
    match (writer, values) {
        (ColumnWriter::Int64ColumnWriter(w), Values::I64(v)) => w.write_batch(&v[rows], None, None),
        (ColumnWriter::Int32ColumnWriter(w), Values::I32(v)) => w.write_batch(&v[rows], None, None),
        (ColumnWriter::DoubleColumnWriter(w), Values::F64(v)) => w.write_batch(&v[rows], None, None),
        (ColumnWriter::ByteArrayColumnWriter(w), Values::Text(v)) => {
            let texts: Vec<ByteArray> = v[rows].iter().map(|t| ByteArray::from(t.as_str())).collect();
            w.write_batch(&texts, None, None)
        }
        _ => return Err(ParquetError::General("column type differs from the schema".to_owned())),
    }
    .map(drop)
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.values {
        Values::I64(_) => (Physical::INT64, None),
        Values::I32(_) => (Physical::INT32, None),
        Values::F64(_) => (Physical::DOUBLE, None),
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let required = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::REQUIRED);
    required.with_logical_type(logical).build().map(Arc::new)
}

fn properties(table: &Table) -> WriterProperties {
    let mut facts = vec![KeyValue::new(TABLE_KEY.to_owned(), table.name.clone())];
    facts.extend(table.notes.iter().map(|(k, v)| KeyValue::new(format!("{NOTE_PREFIX}{k}"), v.clone())));
    let numbers = table.columns.iter().filter(|c| !matches!(c.values, Values::Text(_)));
    facts
        .extend(numbers.map(|c| KeyValue::new(format!("{UNIT_PREFIX}{}", c.name), c.unit.ucum().to_owned())));
    let mut p = WriterProperties::builder()
        .set_created_by(format!("machmeter {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROWS_PER_GROUP))
        .set_key_value_metadata(Some(facts));
    for column in &table.columns {
        let path = ColumnPath::from(column.name.as_str());
        p = match column.values {
            Values::I64(_) | Values::I32(_) => p.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Values::F64(_) => p.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT),
            Values::Text(_) => p.set_column_dictionary_enabled(path, true),
        };
    }
    p.build()
}

/// The error of the system, if there is one, so that a full disk is reported as such.
fn io_error(e: ParquetError) -> io::Error {
    match e {
        ParquetError::External(inner) => inner.downcast().map_or_else(io::Error::other, |io| *io),
        other => io::Error::other(other),
    }
}

/// Opens `path` for reading, with the error in words.
fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| StoreError::io(path, "read", &e))
}

#[cfg(test)]
#[path = "parquet/tests.rs"]
mod tests;
