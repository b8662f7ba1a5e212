//! Dates and run ids.

use std::fs::File;
use std::io::Read;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, SecondsFormat, Utc};
use sha2::{Digest, Sha256};

/// The time now in UTC as RFC 3339 with milliseconds: `2026-11-21T19:42:00.500Z`.
pub fn now_rfc3339() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The time now in UTC for file names: `20261121T194200Z`.
pub fn now_stamp() -> String {
    stamp(Utc::now())
}

fn stamp(t: DateTime<Utc>) -> String {
    t.format("%Y%m%dT%H%M%SZ").to_string()
}

/// A stamp that sorts by time down to the microsecond: `20261121T194200Z-000417`.
pub(crate) fn fine_stamp() -> String {
    let now = Utc::now();
    format!("{}-{:06}", stamp(now), now.timestamp_subsec_micros())
}

/// A new run id in the form of a version 4 UUID (RFC 9562) from the system's random source, or, where that cannot be read,
/// from a hash of time, process id and a counter.
pub fn new_run_id() -> String {
    let mut random = [0_u8; 16];
    if File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut random)).is_err() {
        random = hashed_id();
    }
    random[6] = (random[6] & 0x0f) | 0x40;
    random[8] = (random[8] & 0x3f) | 0x80;
    let mut text = String::with_capacity(36);
    for (i, byte) in random.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&hex(&[*byte]));
    }
    text
}

fn hashed_id() -> [u8; 16] {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let hash = Sha256::digest(format!(
        "{} {} {count}",
        Utc::now().timestamp_nanos_opt().unwrap_or_default(),
        process::id()
    ));
    let mut id = [0_u8; 16];
    id.copy_from_slice(&hash[..16]);
    id
}

/// Bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|n| char::from_digit(u32::from(n), 16).unwrap_or('0'))
        .collect()
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
        let fine = fine_stamp();
        assert_eq!(fine.len(), 23, "{fine}");
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
        assert_ne!(hashed_id(), hashed_id());
    }
}
