//! `events/*/format` and `events/header_page`: where the fields of a record lie. Offsets always come from these texts, because
//! they differ between kernels and architectures.
//!
//! Source: Documentation/trace/events.rst, section "Event formats".

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// Offset from the start of the record.
    pub(super) offset_bytes: usize,
    pub(super) size_bytes: usize,
    pub(super) signed: bool,
    /// Whether the field holds offset (low 16 bits, from the record's start) and length (high 16 bits) of the value, which
    /// lies elsewhere in the record (`__data_loc`).
    pub(super) located: bool,
}

impl Field {
    /// Reads one `field:TYPE NAME; offset:N; size:N; signed:N;` line; `None` if it is not one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.trim().strip_prefix("field:")?;
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?;
        let mut number =
            |key: &str| parts.next()?.strip_prefix(key)?.strip_prefix(':')?.trim().parse::<usize>().ok();
        let (offset_bytes, size_bytes) = (number("offset")?, number("size")?);
        let signed = number("signed").unwrap_or(0) != 0;
        let name = declaration.rsplit([' ', '*']).next()?;
        let name = name.split('[').next()?.to_owned();
        let located = declaration.starts_with("__data_loc");
        Some(Self { name, offset_bytes, size_bytes, signed, located })
    }

    /// The field's number in `record`, sign-extended if signed; `None` if the record is too short or the size is not 1, 2, 4
    /// or 8 bytes.
    pub(super) fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset_bytes..self.offset_bytes.checked_add(self.size_bytes)?)?;
        Some(match (bytes.len(), self.signed) {
            (1, false) => i64::from(bytes[0]),
            (1, true) => i64::from(bytes[0] as i8),
            (2, false) => i64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_ne_bytes(bytes.try_into().ok()?)),
            (4, false) => i64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            // An unsigned 64-bit value keeps its bits; callers cast it back.
            (8, _) => i64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The field's text in `record`, up to the first NUL.
    pub(super) fn text<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        let (start, len) = if self.located {
            let word = self.number(record)? as u32;
            ((word & 0xffff) as usize, (word >> 16) as usize)
        } else {
            (self.offset_bytes, self.size_bytes)
        };
        let bytes = record.get(start..start.checked_add(len)?)?;
        let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Some(&bytes[..len])
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventFormat {
    /// Group, which is the directory's name, for example `sched`.
    pub(super) group: String,
    pub(super) name: String,
    pub(super) id: u16,
    pub(super) fields: Vec<Field>,
}

impl EventFormat {
    /// Reads a `format` file of the event in `group`; `None` if name or id are missing.
    pub(super) fn parse(group: &str, text: &str) -> Option<Self> {
        let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
        Some(Self {
            group: group.to_owned(),
            name: value("name:")?.to_owned(),
            id: value("ID:")?.parse().ok()?,
            fields: text.lines().filter_map(Field::parse).collect(),
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// Layout of a sub-buffer (a page of the ring buffer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageFormat {
    pub(super) timestamp: Field,
    pub(super) commit: Field,
    pub(super) data_offset_bytes: usize,
    /// Size of the whole sub-buffer, header included.
    pub(super) subbuf_bytes: usize,
}

impl PageFormat {
    /// Reads `events/header_page`; `None` if a field is missing.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fields: Vec<Field> = text.lines().filter_map(Field::parse).collect();
        let named = |name: &str| fields.iter().find(|f| f.name == name).cloned();
        let data = named("data")?;
        Some(Self {
            timestamp: named("timestamp")?,
            commit: named("commit")?,
            data_offset_bytes: data.offset_bytes,
            subbuf_bytes: data.offset_bytes.checked_add(data.size_bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds_are_read() {
        let f = Field::parse("\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;").unwrap();
        assert_eq!((f.name.as_str(), f.offset_bytes, f.size_bytes, f.signed), ("prev_comm", 8, 16, false));
        let f = Field::parse("field:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;").unwrap();
        assert_eq!((f.name.as_str(), f.located), ("name", true));
        let f = Field::parse("field:void *function;\toffset:16;\tsize:8;\tsigned:0;").unwrap();
        assert_eq!(f.name, "function");
        assert_eq!(Field::parse("print fmt: \"x\""), None);
        assert_eq!(Field::parse("field:int x;"), None);
    }

    #[test]
    fn numbers_keep_sign_and_width() {
        let field = |size_bytes, signed| Field {
            name: "x".to_owned(),
            offset_bytes: 1,
            size_bytes,
            signed,
            located: false,
        };
        let mut record = vec![0_u8];
        record.extend((-2_i64).to_ne_bytes());
        assert_eq!(field(8, true).number(&record), Some(-2));
        assert_eq!(field(4, false).number(&record), Some(0xffff_fffe));
        assert_eq!(field(2, true).number(&record), Some(-2));
        assert_eq!(field(1, false).number(&record), Some(0xfe));
        assert_eq!(field(3, false).number(&record), None);
        assert_eq!(field(8, true).number(&record[..5]), None);
    }

    #[test]
    fn located_text_is_found_and_never_read_beyond_the_record() {
        let field = Field::parse("field:__data_loc char[] name;\toffset:0;\tsize:4;\tsigned:0;").unwrap();
        let mut record = (6_u32 << 16 | 4).to_ne_bytes().to_vec();
        record.extend(b"eth0\0x");
        assert_eq!(field.text(&record), Some(&b"eth0"[..]));
        assert_eq!(field.text(&record[..9]), None);
    }
}
