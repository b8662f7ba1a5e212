//! What a group shall limit, as text: `weight=50,max=40%,cpus=0-1,memory=256M,pids=200`.

use std::str::FromStr;

use super::Controller;
use crate::Refused;
use crate::topology::{CpuQuota, CpuSet};

/// Period of a CPU limit that is given in percent, ns; the kernel's own default.
const PERIOD_NS: u64 = 100_000_000;
/// Shortest quota and period the kernel accepts, ns.
const QUOTA_MIN_NS: u64 = 1_000_000;
/// Longest period the kernel accepts, ns.
const PERIOD_MAX_NS: u64 = 1_000_000_000;
const WEIGHT_MAX: u32 = 10_000;

/// Limits of a control group; what is `None` is not limited.
///
/// The text form lists `KEY=VALUE`, separated by commas: `weight` (share against other groups, 1 to 10000, 100 is
/// normal), `max` (CPU time: `40%` of one CPU in each 100 ms, `250%` for two and a half CPUs, or `4ms/10ms` for quota and
/// period), `cpus` (a CPU list), `memory` and `memory-high` (bytes, or with K, M, G for powers of 1024), `pids` (number of
/// tasks).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub weight: Option<u32>,
    pub max: Option<CpuQuota>,
    pub cpus: Option<CpuSet>,
    /// Bytes that may be in use; beyond it the group reclaims, then the out-of-memory killer chooses within.
    pub memory_bytes: Option<u64>,
    /// Memory from which on the group is slowed down and reclaims, bytes (version 2 only).
    pub memory_high_bytes: Option<u64>,
    pub pids: Option<u64>,
}

impl Request {
    /// The controllers that must be there for it.
    pub fn controllers(&self) -> Vec<Controller> {
        let memory = self.memory_bytes.is_some() || self.memory_high_bytes.is_some();
        [
            (self.weight.is_some() || self.max.is_some(), Controller::Cpu),
            (self.cpus.is_some(), Controller::Cpuset),
            (memory, Controller::Memory),
            (self.pids.is_some(), Controller::Pids),
        ]
        .into_iter()
        .filter_map(|(asked, controller)| asked.then_some(controller))
        .collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let twice = match key {
            "weight" => self.weight.replace(number(value, 1, u64::from(WEIGHT_MAX))? as u32).is_some(),
            "max" => self.max.replace(quota(value)?).is_some(),
            "cpus" => self.cpus.replace(cpus(value)?).is_some(),
            "memory" => self.memory_bytes.replace(bytes(value)?).is_some(),
            "memory-high" => self.memory_high_bytes.replace(bytes(value)?).is_some(),
            "pids" => self.pids.replace(number(value, 1, 1 << 22)?).is_some(),
            _ => return Err(format!("'{key}' is not one of weight, max, cpus, memory, memory-high, pids")),
        };
        if twice { Err(format!("'{key}' is given twice")) } else { Ok(()) }
    }
}

impl FromStr for Request {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let example = "weight=50,max=40%,cpus=0-1,memory=256M,memory-high=200M,pids=200";
        let fail =
            |why: String| Refused(format!("control group '{text}': {why} (write for example {example})"));
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            match (part.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.trim(), value.trim().to_owned())),
                // A CPU list has commas of its own.
                (None, Some(("cpus", list))) => {
                    list.push(',');
                    list.push_str(part);
                }
                _ => return Err(fail(format!("'{part}' is not KEY=VALUE"))),
            }
        }
        let mut request = Self::default();
        for (key, value) in pairs {
            request.set(key, &value).map_err(fail)?;
        }
        match (request.memory_high_bytes, request.memory_bytes) {
            (Some(high), Some(max)) if high > max => Err(fail("memory-high is above memory".to_owned())),
            _ => Ok(request),
        }
    }
}

fn number(text: &str, low: u64, high: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|n| (low..=high).contains(n))
        .ok_or_else(|| format!("'{text}' is not a whole number from {low} to {high}"))
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    let set: CpuSet = text.parse().map_err(|e| format!("cpus: {e}"))?;
    if set.is_empty() { Err("cpus: an empty list".to_owned()) } else { Ok(set) }
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        unit => return Err(format!("'{text}': unit '{unit}' is not K, M or G")),
    };
    let count: u64 = digits.parse().map_err(|_| format!("'{text}' is not a size such as 256M"))?;
    match count.checked_mul(1 << shift) {
        Some(bytes) if (1 << 20..1 << 62).contains(&bytes) => Ok(bytes),
        _ => Err(format!("'{text}' is outside 1M and 2^62 bytes")),
    }
}

fn quota(text: &str) -> Result<CpuQuota, String> {
    let quota = if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.trim().parse().map_err(|_| format!("'{text}' is not a percentage"))?;
        let quota_us = (percent * PERIOD_NS as f64 / 1e5).round();
        if !(1e3..=1e12).contains(&quota_us) {
            return Err(format!("'{text}' must be at least 1% of one CPU"));
        }
        CpuQuota { quota_ns: quota_us as u64 * 1_000, period_ns: PERIOD_NS }
    } else {
        let (quota, period) =
            text.split_once('/').ok_or_else(|| format!("'{text}' is not PERCENT% or QUOTA/PERIOD"))?;
        CpuQuota {
            quota_ns: crate::sched::parse_span_ns(quota)?,
            period_ns: crate::sched::parse_span_ns(period)?,
        }
    };
    if quota.quota_ns < QUOTA_MIN_NS || !(QUOTA_MIN_NS..=PERIOD_MAX_NS).contains(&quota.period_ns) {
        return Err(format!("'{text}': the kernel takes quotas from 1ms and periods of 1ms to 1s"));
    }
    if quota.quota_ns % 1_000 != 0 || quota.period_ns % 1_000 != 0 {
        return Err(format!("'{text}': the kernel takes whole microseconds"));
    }
    Ok(quota)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_documented_text_is_read() {
        let request: Request = "weight=50,max=40%,cpus=0,2-3,memory=256M,pids=200".parse().unwrap();
        assert_eq!(request.weight, Some(50));
        assert_eq!(request.max, Some(CpuQuota { quota_ns: 40_000_000, period_ns: 100_000_000 }));
        assert_eq!(request.cpus.as_ref().unwrap().to_vec(), [0, 2, 3]);
        assert_eq!((request.memory_bytes, request.pids), (Some(256 << 20), Some(200)));
        assert_eq!(request.controllers(), Controller::ALL);
        let spans: Request = "max=4ms/10ms".parse().unwrap();
        assert_eq!(spans.max, Some(CpuQuota { quota_ns: 4_000_000, period_ns: 10_000_000 }));
        assert_eq!(spans.controllers(), [Controller::Cpu]);
    }

    #[test]
    fn wrong_texts_name_the_part_and_the_reason() {
        for (text, part) in [
            ("", "'' is not KEY=VALUE"),
            ("weight", "'weight' is not KEY=VALUE"),
            ("weight=0", "1 to 10000"),
            ("weight=10001", "1 to 10000"),
            ("weight=5,weight=6", "given twice"),
            ("speed=1", "not one of weight"),
            ("max=40", "PERCENT% or QUOTA/PERIOD"),
            ("max=0.5%", "at least 1%"),
            ("max=-5%", "at least 1%"),
            ("max=NaN%", "at least 1%"),
            ("max=inf%", "at least 1%"),
            ("max=1us/10ms", "quotas from 1ms"),
            ("max=2ms/2s", "1ms to 1s"),
            ("max=1000500ns/10ms", "whole microseconds"),
            ("cpus=", "empty list"),
            ("cpus=a", "cpus: "),
            ("memory=12", "outside 1M"),
            ("memory=1T", "unit 'T'"),
            ("memory=99999999999G", "outside 1M"),
            ("memory=1M,memory-high=2M", "above memory"),
            ("pids=0", "whole number"),
        ] {
            let e = text.parse::<Request>().unwrap_err().to_string();
            assert!(e.contains(part) && e.contains(&format!("'{text}'")) && !e.contains('\n'), "{text}: {e}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = text.parse::<Request>();
        }
    }
}
