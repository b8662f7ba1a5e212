//! Reads tables of raw samples.

use std::fs::File;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use ::parquet::basic::{ConvertedType, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use machmeter_data::record::RawFile;
use machmeter_data::text::printable;
use machmeter_data::{Column, Table, Unit, Values};
use rustix::fs::{MemfdFlags, memfd_create};
use sha2::{Digest, Sha256};

use super::{Hashed, NOTE_PREFIX, TABLE_KEY, UNIT_PREFIX, claims, open};
use crate::date::hex;
use crate::error::{Result, StoreError, sure};
use crate::history::portable;

/// Reads a table of raw samples: required columns of 32-bit and 64-bit integers, doubles and text.
/// Errors: one line if the file is missing, not Parquet, damaged, or has columns of other types.
pub fn read_table(path: &Path) -> Result<Table> {
    from_file(&open(path)?, path)
}

/// The same from bytes in memory; `name` represents the file in messages.
pub fn from_bytes(bytes: &[u8], name: &Path) -> Result<Table> {
    let failed = |e: io::Error| StoreError::io(name, "read", &e);
    let file = memfd_create(c"machmeter-table", MemfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    let mut file = File::from(file);
    file.write_all(bytes).map_err(failed)?;
    from_file(&file, name)
}

fn from_file(file: &File, path: &Path) -> Result<Table> {
    // The Parquet crate returns errors for damaged files, but its page decoders contain assertions, too. A damaged file must not end a report over many files.
    let decoded = panic::catch_unwind(AssertUnwindSafe(|| {
        let no_more = || ParquetError::General("its sizes exceed the file".to_owned());
        claims::footer(file)?.then_some(()).ok_or_else(no_more)?;
        let reader = SerializedFileReader::new(file.try_clone()?)?;
        claims::pages(file, reader.metadata())?.then_some(()).ok_or_else(no_more)?;
        decode(&reader, path)
    }));
    match decoded {
        Ok(table) => table.map_err(|e| StoreError::new(path, format!("not a readable Parquet table: {e}"))),
        Err(_) => Err(StoreError::new(path, "damaged Parquet file: its pages cannot be decoded")),
    }
}

/// Reads a table of a record, after checking that the file beside the record is the one it describes.
/// Errors: as [`read_table`], and if the checksum or the number of rows differs.
pub fn read_verified(raw: &RawFile, record_path: &Path) -> Result<Table> {
    let name = Path::new(&raw.file)
        .file_name()
        .ok_or_else(|| StoreError::new(record_path, "raw file without a name"))?;
    let path = record_path.with_file_name(name);
    let mut hashed = Hashed { out: io::sink(), hash: Sha256::new() };
    io::copy(&mut open(&path)?, &mut hashed).map_err(|e| StoreError::io(&path, "read", &e))?;
    let wrong = |what: &str| StoreError::new(&path, what);
    let is_same = hex(&hashed.hash.finalize()) == raw.sha256;
    sure(is_same, || wrong("changed since the record was written (its SHA-256 differs)"))?;
    let table = read_table(&path)?;
    let (rows, said) = (table.rows() as u64, raw.rows);
    sure(rows == said, || wrong(&format!("has {rows} rows, but the record lists {said}")))?;
    Ok(table)
}

fn decode(reader: &dyn FileReader, path: &Path) -> Result<Table, ParquetError> {
    let meta = reader.metadata().file_metadata();
    let pairs = meta.key_value_metadata().into_iter().flatten();
    let facts: Vec<(String, String)> =
        pairs.map(|kv| (kv.key.clone(), kv.value.clone().unwrap_or_default())).collect();
    let fact = |key: &str| facts.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let schema = meta.schema_descr();
    let mut columns = Vec::with_capacity(schema.num_columns());
    for i in 0..schema.num_columns() {
        let unit = unit_of(fact(&format!("{UNIT_PREFIX}{}", schema.column(i).name())));
        columns.push(Column::new(schema.column(i).name(), unit, values(reader, i, &schema.column(i))?));
    }
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    // Exports name files after tables, so a name must not be a path.
    let name = match fact(TABLE_KEY) {
        Some(n) if portable(n) != n => {
            return Err(ParquetError::General(format!("its table name {n:?} is not a plain name")));
        }
        Some(n) => n.to_owned(),
        None => portable(&stem),
    };
    let mut table = Table::new(&name, columns).map_err(|e| ParquetError::General(e.to_string()))?;
    let note = |(k, v): &(String, String)| Some((k.strip_prefix(NOTE_PREFIX)?.to_owned(), v.clone()));
    table.notes = facts.iter().filter_map(note).collect();
    Ok(table)
}

fn unit_of(ucum: Option<&str>) -> Unit {
    ucum.and_then(|u| serde_json::from_value(serde_json::Value::from(u)).ok()).unwrap_or(Unit::One)
}

fn values(reader: &dyn FileReader, index: usize, about: &ColumnDescriptor) -> Result<Values, ParquetError> {
    let refuse = |why: &str| Err(ParquetError::General(format!("column {} {why}", about.name())));
    if about.max_def_level() > 0 || about.max_rep_level() > 0 {
        return refuse("may be missing or repeated, machmeter's columns are required");
    }
    let mut all = match about.physical_type() {
        Physical::INT64 => Values::I64(Vec::new()),
        Physical::INT32 => Values::I32(Vec::new()),
        Physical::DOUBLE => Values::F64(Vec::new()),
        Physical::BYTE_ARRAY if about.converted_type() == ConvertedType::UTF8 => Values::Text(Vec::new()),
        other => return refuse(&format!("is of type {other}, expected integers, doubles or text")),
    };
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        match (group.get_column_reader(index)?, &mut all) {
            (ColumnReader::Int64ColumnReader(r), Values::I64(v)) => append(r, rows, v)?,
            (ColumnReader::Int32ColumnReader(r), Values::I32(v)) => append(r, rows, v)?,
            (ColumnReader::DoubleColumnReader(r), Values::F64(v)) => append(r, rows, v)?,
            (ColumnReader::ByteArrayColumnReader(r), Values::Text(v)) => {
                let mut bytes: Vec<ByteArray> = Vec::new();
                append(r, rows, &mut bytes)?;
                for b in &bytes {
                    v.push(printable(b.as_utf8()?));
                }
            }
            _ => return refuse("changes its type"),
        }
    }
    Ok(all)
}

/// Reads the column chunk in blocks, so that a wrong row count cannot request all memory at once.
fn append<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    into: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut left = rows;
    while left > 0 {
        let (records, _, _) = reader.read_records(left.min(1 << 16), None, None, into)?;
        if records == 0 {
            return Err(ParquetError::General(format!("ends {left} rows too early")));
        }
        left -= records;
    }
    Ok(())
}
