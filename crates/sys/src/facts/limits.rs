//! What this process may do: real-time priority, locked memory, perf, tracing.

use machmeter_data::facts::{Fact, FactState, Facts};

use super::{absent, field, in_unit, int, unread};
use crate::fs_root::FsRoot;

const LIMITS: &str = "proc/self/limits";
const STATUS: &str = "proc/self/status";

/// Capabilities that open a way to better measurements, with their bit (linux/capability.h).
const CAPABILITIES: &[(&str, u32)] = &[
    ("ipc_lock", 14),
    ("sys_rawio", 17),
    ("sys_admin", 21),
    ("sys_nice", 23),
    ("syslog", 34),
    ("perfmon", 38),
];

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let limits = tree.read(LIMITS);
    for (key, row, unit) in [
        ("rtprio", "Max realtime priority", "1"),
        ("memlock", "Max locked memory", "By"),
        ("open_files", "Max open files", "1"),
    ] {
        let source = format!("/{LIMITS} {row}");
        let fact = match &limits {
            Err(e) => unread(e, &source),
            Ok(text) => soft_limit(text, row, &source, unit),
        };
        facts.set(format!("limits.{key}"), fact);
    }
    facts.set("limits.perf_event_paranoid", int(tree, "proc/sys/kernel/perf_event_paranoid", "1"));
    facts.set("limits.tracefs", tracefs(tree));
    status(facts, tree);
}

/// The soft limit of a row; the columns are separated by at least two blanks.
fn soft_limit(limits: &str, row: &str, source: &str, unit: &str) -> Fact {
    let value = limits.lines().find_map(|l| l.strip_prefix(row)?.split_whitespace().next());
    match value {
        None => absent(source, "no such row"),
        Some("unlimited") => Fact::known("unlimited", source),
        Some(number) => number.parse::<u64>().map_or_else(
            |_| Fact::missing(FactState::Unreadable, source, format!("not a number: `{number}`")),
            |n| Fact::known(n, source).with_unit(unit),
        ),
    }
}

/// Whether the trace events can be seen from here, as an ordinary mount.
fn tracefs(tree: &FsRoot) -> Fact {
    for mount in ["sys/kernel/tracing", "sys/kernel/debug/tracing"] {
        if tree.exists(&format!("{mount}/trace_clock")) {
            let readable = tree.read(&format!("{mount}/trace_clock")).is_ok();
            return Fact::known(if readable { "readable" } else { "refused" }, format!("/{mount}"));
        }
    }
    absent("/sys/kernel/tracing", "tracefs is not mounted, or hidden from this user")
}

fn status(facts: &mut Facts, tree: &FsRoot) {
    let source = format!("/{STATUS}");
    let status = tree.read(STATUS);
    let parsed = |key: &str, parse: &dyn Fn(&str) -> Option<u64>| match &status {
        Err(e) => Err(unread(e, &source)),
        Ok(text) => field(text, key)
            .and_then(parse)
            .ok_or_else(|| Fact::missing(FactState::Unreadable, &source, format!("no usable `{key}` line"))),
    };
    let uid = parsed("Uid", &|v| v.split_whitespace().nth(1)?.parse().ok());
    facts.set("limits.euid", in_unit(uid.map_or_else(|e| e, |uid| Fact::known(uid, &source)), "1"));
    let bits = parsed("CapEff", &|v| u64::from_str_radix(v, 16).ok());
    for (name, bit) in CAPABILITIES {
        let fact = match &bits {
            Ok(bits) => Fact::known(bits >> bit & 1 == 1, &source),
            Err(missing) => missing.clone(),
        };
        facts.set(format!("limits.cap_{name}"), fact);
    }
}
