//! The points of the curve: which loads, on how many CPUs, with which pause.

use machmeter_engine::cost::{Kind, Row};
use machmeter_sys::kernel::Kernel;

use super::NAME;
use crate::memory::bandwidth::widest;

/// Bytes that a load thread moves between two pauses.
pub(super) const BURST_BYTES: usize = 16 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// What the load threads run; none for the idle machine.
    pub(super) load: Option<&'static Kernel>,
    pub(super) cpus: usize,
    /// Pause after each burst, ns.
    pub(super) pause_ns: u64,
}

/// Conditions that all rows share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chase {
    pub(super) working_set_bytes: usize,
    pub(super) stride_bytes: usize,
    pub(super) pages: &'static str,
}

impl Point {
    pub(super) fn latency(&self, chase: &Chase, loads_per_turn: u64) -> Row {
        self.row("chase", Kind::Latency, chase).per_turn(loads_per_turn as f64)
    }

    /// The row of bytes that the load moved meanwhile. A pair holds the ticks in which it moved [`TRAFFIC_BYTES`].
    pub(super) fn traffic(&self, chase: &Chase) -> Row {
        let mut row = self.row("traffic", Kind::Throughput, chase).per_turn(TRAFFIC_BYTES);
        row.long_turns = 1;
        row
    }

    fn row(&self, operation: &str, kind: Kind, chase: &Chase) -> Row {
        Row::new(NAME, operation, kind)
            .with("load", self.load.map_or("none", |k| k.name))
            .with("load_cpus", self.cpus)
            .with("pause_ns", self.pause_ns as i64)
            .with("working_set_bytes", chase.working_set_bytes)
            .with("stride_bytes", chase.stride_bytes)
            .with("pages", chase.pages)
    }
}

/// Bytes of one turn of a row of traffic: windows differ in length and bytes, so each is told as the time of so many bytes.
pub(super) const TRAFFIC_BYTES: f64 = 1e6;

/// The points for `others` CPUs beside the one that chases, by the time there is.
pub(super) fn points(left_ns: u64, others: usize) -> Vec<Point> {
    let mut out = vec![Point { load: None, cpus: 0, pause_ns: 0 }];
    let (families, pauses): (&[&str], &[u64]) = match left_ns {
        0..700_000_000 => (&["read"], &[0, 2_000]),
        700_000_000..3_000_000_000 => (&["read"], &[0, 250, 1_000, 4_000]),
        _ => (&["read", "copy", "write_nt"], &[0, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]),
    };
    for family in families {
        let load = widest(family);
        out.extend(pauses.iter().filter(|_| load.is_some()).map(|p| Point {
            load,
            cpus: others,
            pause_ns: *p,
        }));
    }
    if left_ns >= 700_000_000 && families.len() == 1 {
        out.extend(widest("copy").map(|k| Point { load: Some(k), cpus: others, pause_ns: 0 }));
    }
    if left_ns >= 3_000_000_000 {
        let fewer = (0..usize::BITS).map(|s| 1_usize << s).take_while(|n| *n < others);
        let load = widest("read");
        out.extend(fewer.filter(|_| load.is_some()).map(|cpus| Point { load, cpus, pause_ns: 0 }));
    }
    out
}
