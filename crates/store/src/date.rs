//! Dates and run ids.

use std::hash::{BuildHasher, RandomState};

use chrono::{DateTime, Datelike, NaiveDateTime, SecondsFormat, TimeDelta, Utc};

/// The current time in UTC as RFC 3339 with milliseconds: `2026-11-21T19:42:00.500Z`.
pub fn now_rfc3339() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The current time in UTC for file names: `20261121T194200Z`.
pub fn now_stamp() -> String {
    stamp(Utc::now())
}

fn stamp(t: DateTime<Utc>) -> String {
    t.format("%Y%m%dT%H%M%SZ").to_string()
}

/// A stamp whose order is that of time, with microseconds: `20261121T194200Z-000417`.
pub(crate) fn fine_stamp(t: DateTime<Utc>) -> String {
    format!("{}-{:06}", stamp(t), t.timestamp_subsec_micros())
}

/// The stamp one microsecond after `stamp`; `None` for an invalid stamp.
pub(crate) fn after(stamp: &str) -> Option<String> {
    let t = NaiveDateTime::parse_from_str(stamp, "%Y%m%dT%H%M%SZ-%6f").ok()?.and_utc();
    let next = t.checked_add_signed(TimeDelta::microseconds(1)).filter(|next| next.year() <= 9999)?;
    Some(fine_stamp(next))
}

/// A new run id in the form of a version 4 UUID (RFC 9562). The keys of hashers come from the system's random source.
pub fn new_run_id() -> String {
    let [a, b] = [(); 2].map(|()| RandomState::new().hash_one(()));
    let (high, middle, low) = (a >> 32, a >> 16 & 0xffff, a & 0xfff);
    let (variant, node) = (b >> 48 & 0x3fff | 0x8000, b & 0xffff_ffff_ffff);
    format!("{high:08x}-{middle:04x}-4{low:03x}-{variant:04x}-{node:012x}")
}

/// A seed that differs between calls, short enough to type. The keys of hashers come from the system's random source.
pub fn new_seed() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// Bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_the_date() {
        assert_eq!(stamp("2026-11-21T21:42:00.123+02:00".parse().unwrap()), "20261121T194200Z");
        let now = now_rfc3339();
        assert!(now.ends_with('Z') && now.parse::<DateTime<Utc>>().is_ok(), "{now}");
        assert_eq!(now_stamp().len(), 16);
        let fine = fine_stamp(Utc::now());
        assert_eq!(fine.len(), 23, "{fine}");
        assert_eq!(after("20261231T235959Z-999999").as_deref(), Some("20270101T000000Z-000000"));
        assert!(["99991231T235959Z-999999", "20261341T194200Z-000417"].iter().all(|s| after(s).is_none()));
    }

    #[test]
    fn run_ids_are_uuids_and_differ() {
        let ids: std::collections::BTreeSet<String> = (0..1000).map(|_| new_run_id()).collect();
        assert_eq!(ids.len(), 1000);
        for id in &ids {
            assert_eq!(id.len(), 36);
            assert_eq!(&id[14..15], "4");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }
}
