//! Sub-buffers of the kernel's ring buffer, as `trace_pipe_raw` gives them.
//!
//! Layout (`kernel/trace/ring_buffer.c`, `include/linux/ring_buffer.h`): a header with the time of the sub-buffer and the number of
//! committed bytes, then records, each with a 32-bit head of 5 bits type or length and 27 bits time since the record before.

use super::format::PageFormat;

const COMMIT_MASK: u64 = (1 << 27) - 1;

const LARGEST_SMALL: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// An absolute time has 59 bits; the rest is taken over from the time before it.
const ABSOLUTE_BITS: u32 = 59;

/// One data record: its time and its bytes, which begin with the event's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'p> {
    /// Time in the trace clock's unit.
    pub(super) ticks: u64,
    pub(super) bytes: &'p [u8],
}

#[derive(Debug, Clone)]
pub(super) struct Subbuffer<'p> {
    data: &'p [u8],
    at: usize,
    ticks: u64,
    damaged: bool,
}

impl<'p> Subbuffer<'p> {
    /// Opens the bytes of one sub-buffer; `None` if they are too short for the header.
    pub(super) fn open(page: &'p [u8], format: &PageFormat) -> Option<Self> {
        let ticks = format.timestamp.number(page)? as u64;
        let commit = format.commit.number(page)? as u64;
        let after_header = page.get(format.data_offset_bytes..)?;
        let committed = (commit & COMMIT_MASK) as usize;
        let damaged = committed > after_header.len();
        let data = &after_header[..committed.min(after_header.len())];
        Some(Self { data, at: 0, ticks, damaged })
    }

    /// Whether a record ran over the end of the committed bytes; known after iterating.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged
    }

    fn word(&mut self) -> Option<u32> {
        let word = self.data.get(self.at..)?.first_chunk()?;
        self.at += 4;
        Some(u32::from_ne_bytes(*word))
    }

    fn bytes(&mut self, len: usize) -> Option<&'p [u8]> {
        let bytes = self.data.get(self.at..self.at.checked_add(len)?)?;
        // Records are aligned to 4 bytes.
        self.at += len.next_multiple_of(4);
        Some(bytes)
    }

    /// The next data record; `Err` when the bytes make no sense.
    fn step(&mut self) -> Result<Option<Record<'p>>, ()> {
        while self.at < self.data.len() {
            let head = self.word().ok_or(())?;
            // The head is a pair of bit fields, whose order follows the byte order.
            let (kind, delta) = if cfg!(target_endian = "little") {
                (head & 31, u64::from(head >> 5))
            } else {
                (head >> DELTA_BITS, u64::from(head & ((1 << DELTA_BITS) - 1)))
            };
            match kind {
                // Padding without time fills the rest of the sub-buffer.
                PADDING if delta == 0 => return Ok(None),
                PADDING => {
                    self.ticks = self.ticks.wrapping_add(delta);
                    let len = self.word().ok_or(())? as usize;
                    self.bytes(len.checked_sub(4).ok_or(())?).ok_or(())?;
                }
                TIME_EXTEND => {
                    let high = u64::from(self.word().ok_or(())?);
                    self.ticks = self.ticks.wrapping_add(high << DELTA_BITS | delta);
                }
                TIME_STAMP => {
                    let high = u64::from(self.word().ok_or(())?);
                    self.ticks = absolute(high << DELTA_BITS | delta, self.ticks);
                }
                0..=LARGEST_SMALL => {
                    self.ticks = self.ticks.wrapping_add(delta);
                    let len = if kind == 0 {
                        // The stored length counts itself.
                        (self.word().ok_or(())? as usize).checked_sub(4).ok_or(())?
                    } else {
                        kind as usize * 4
                    };
                    let bytes = self.bytes(len).ok_or(())?;
                    return Ok(Some(Record { ticks: self.ticks, bytes }));
                }
                _ => return Err(()),
            }
        }
        Ok(None)
    }
}

/// An absolute time with the upper bits of the time before it.
fn absolute(stamp: u64, before: u64) -> u64 {
    let high = before >> ABSOLUTE_BITS << ABSOLUTE_BITS;
    let ticks = stamp | high;
    // The lower 59 bits went around since the time before.
    if high != 0 && ticks < before { ticks.wrapping_add(1 << ABSOLUTE_BITS) } else { ticks }
}

impl<'p> Iterator for Subbuffer<'p> {
    type Item = Record<'p>;

    fn next(&mut self) -> Option<Record<'p>> {
        if let Ok(record) = self.step() {
            return record;
        }
        self.damaged = true;
        self.at = self.data.len();
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in crate::trace) const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn head(kind: u32, delta: u64) -> [u8; 4] {
        if cfg!(target_endian = "little") { kind | (delta as u32) << 5 } else { kind << 27 | delta as u32 }
            .to_ne_bytes()
    }

    /// Writes sub-buffers as the kernel does, for known truth.
    pub(in crate::trace) fn encode(start_ticks: u64, records: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut data = Vec::new();
        let mut now = start_ticks;
        for (ticks, bytes) in records {
            let mut delta = ticks.wrapping_sub(now);
            if delta >= 1 << 54 {
                data.extend(head(TIME_STAMP, ticks & ((1 << 27) - 1)));
                data.extend(((*ticks >> 27) as u32).to_ne_bytes());
                delta = 0;
            } else if delta >= 1 << 27 {
                data.extend(head(TIME_EXTEND, delta & ((1 << 27) - 1)));
                data.extend(((delta >> 27) as u32).to_ne_bytes());
                delta = 0;
            }
            now = *ticks;
            let padded = bytes.len().next_multiple_of(4);
            if padded / 4 >= 1 && padded / 4 <= 28 && padded == bytes.len() {
                data.extend(head(padded as u32 / 4, delta));
            } else {
                data.extend(head(0, delta));
                data.extend((bytes.len() as u32 + 4).to_ne_bytes());
            }
            data.extend(bytes);
            data.resize(data.len().next_multiple_of(4), 0);
        }
        let mut page = start_ticks.to_ne_bytes().to_vec();
        page.extend((data.len() as u64).to_ne_bytes());
        page.extend(data);
        page
    }

    fn records(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool) {
        let mut sub = Subbuffer::open(page, &PageFormat::parse(HEADER).unwrap()).unwrap();
        let found = sub.by_ref().map(|r| (r.ticks, r.bytes.to_vec())).collect();
        (found, sub.is_damaged())
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            start in 0_u64..1 << 62,
            steps in prop::collection::vec((0_u64..1 << 50, prop::collection::vec(any::<u8>(), 1..200)), 0..30),
        ) {
            let mut now = start;
            let written: Vec<_> = steps.into_iter().map(|(step, bytes)| { now += step; (now, bytes) }).collect();
            prop_assert_eq!(records(&encode(start, &written)), (written, false));
        }

        #[test]
        fn random_bytes_never_panic_and_records_stay_inside(page in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(mut sub) = Subbuffer::open(&page, &PageFormat::parse(HEADER).unwrap()) {
                let bytes: usize = sub.by_ref().map(|r| r.bytes.len()).sum();
                prop_assert!(bytes <= page.len());
            }
        }

        #[test]
        fn one_changed_byte_never_panics(at in 0_usize..400, value: u8) {
            let written: Vec<_> = (0..8_u64).map(|i| (1000 + i, vec![i as u8; 40])).collect();
            let mut page = encode(1000, &written);
            let at = at % page.len();
            page[at] = value;
            let _ = records(&page);
        }
    }

    #[test]
    fn padding_ends_or_skips_and_a_cut_record_is_damage() {
        let mut page = encode(10, &[(11, vec![7; 8])]);
        let mut add = |bytes: &[u8]| {
            page.extend(bytes);
            let committed = page.len() as u64 - 16;
            page[8..16].copy_from_slice(&committed.to_ne_bytes());
            records(&page)
        };
        // A discarded record of 8 bytes with its own time, then a record, then the end marker with rubbish behind it.
        add(&[head(PADDING, 5).as_slice(), &8_u32.to_ne_bytes(), &[9; 4]].concat());
        let (found, damaged) = add(&[head(1, 2).as_slice(), &[3; 4]].concat());
        assert_eq!((found.last().unwrap().0, found.len(), damaged), (18, 2, false));
        assert_eq!(add(&head(PADDING, 0)).0.len(), 2);
        let (found, damaged) = records(&encode(10, &[(11, vec![7; 8])])[..20]);
        assert_eq!((found.len(), damaged), (0, true));
    }

    #[test]
    fn absolute_times_take_over_the_upper_bits() {
        let high = 1_u64 << 60;
        assert_eq!(absolute(600, high + 500), high + 600);
        assert_eq!(absolute(400, high + 500), high + 400 + (1 << 59));
        assert_eq!(absolute(400, 500), 400);
    }
}
