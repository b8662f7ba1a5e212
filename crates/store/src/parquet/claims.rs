//! Checks the sizes that a Parquet file claims, before its decoder uses them. The decoder reserves the size in a page's header, and iterates over the
//! claimed length of any list. A file of 600 bytes took half a minute.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

/// Most bytes of all pages of a table, decompressed: the memory limit of a report.
const MOST_BYTES: u64 = 1 << 30;
/// Length of the end of a file: the length of the footer, and `PAR1`.
const END_BYTES: u64 = 8;
/// Most levels of nested structures; Parquet has six.
const MOST_DEPTH: u32 = 16;

/// Fields of a page's header.
const UNCOMPRESSED: i64 = 2;
const COMPRESSED: i64 = 3;

/// True if the footer and its lists are as long as they claim. A file too short for a footer is left to the decoder.
pub(super) fn footer(file: &File) -> io::Result<bool> {
    let Some(end) = file.metadata()?.len().checked_sub(END_BYTES) else { return Ok(true) };
    let mut length = [0; 4];
    file.read_exact_at(&mut length, end)?;
    let Some(begin) = end.checked_sub(u64::from(u32::from_le_bytes(length))) else { return Ok(true) };
    let bytes = read(file, begin, end)?;
    Ok(Walk(&bytes).structure(0, &mut |_, _| {}).is_some())
}

/// True if all pages are inside their columns, and small enough together.
pub(super) fn pages(file: &File, meta: &ParquetMetaData) -> io::Result<bool> {
    let file_bytes = file.metadata()?.len();
    let mut all = 0;
    for column in meta.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
        let range = range.and_then(|(begin, bytes)| Some((begin, begin.checked_add(bytes)?)));
        let Some((begin, end)) = range.filter(|(_, end)| *end <= file_bytes) else { return Ok(false) };
        match claimed(&read(file, begin, end)?) {
            Some(bytes) if bytes <= MOST_BYTES - all => all += bytes,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn read(file: &File, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (end - begin) as usize];
    file.read_exact_at(&mut bytes, begin)?;
    Ok(bytes)
}

/// Bytes of the pages of a column, decompressed, as claimed by their headers.
fn claimed(column: &[u8]) -> Option<u64> {
    let (mut rest, mut all) = (Walk(column), 0_u64);
    while !rest.0.is_empty() {
        let (mut uncompressed, mut compressed) = (None, None);
        rest.structure(0, &mut |field, value| match field {
            UNCOMPRESSED => uncompressed = u64::try_from(value).ok(),
            COMPRESSED => compressed = usize::try_from(value).ok(),
            _ => {}
        })?;
        all = all.checked_add(uncompressed?)?;
        rest.take(compressed?)?;
    }
    Some(all)
}

/// Unread bytes in Thrift's compact protocol.
struct Walk<'a>(&'a [u8]);

impl<'a> Walk<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        self.number().map(|n| (n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Skips a structure; calls `found` with its numbers by field.
    fn structure(&mut self, depth: u32, found: &mut dyn FnMut(i64, i64)) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = if head >> 4 == 0 { self.signed()? } else { field.wrapping_add(i64::from(head >> 4)) };
            match head & 0xf {
                // A boolean field has no bytes.
                1 | 2 => {}
                4..=6 => found(field, self.signed()?),
                kind => self.value(kind, depth)?,
            }
        }
    }

    /// Skips a value. An element has at least one byte, so no list can be longer than the remaining bytes.
    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth == MOST_DEPTH {
            return None;
        }
        match kind {
            1..=3 => self.byte().map(drop),
            4..=6 => self.number().map(drop),
            7 => self.take(8).map(drop),
            8 => {
                let bytes = self.number()?;
                self.take(usize::try_from(bytes).ok()?).map(drop)
            }
            9 | 10 => {
                let head = self.byte()?;
                let elements = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                (0..elements).try_for_each(|_| self.value(head & 0xf, depth + 1))
            }
            12 => self.structure(depth + 1, &mut |_, _| {}),
            // Parquet has no maps.
            _ => None,
        }
    }
}
