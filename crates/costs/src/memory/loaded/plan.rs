//! The points of the curve: which loads, on how many CPUs, with which pause.

use machmeter_engine::cost::{Kind, Row};
use machmeter_sys::kernel::Kernel;
use machmeter_sys::kernel::chain::LOADS_PER_TURN;

use super::NAME;
use crate::memory::bandwidth::widest;

/// Distance of the nodes: a pair of lines, since processors fetch lines in pairs.
pub(super) const STRIDE_BYTES: usize = 128;
/// Bytes that a load thread moves between two pauses.
pub(super) const BURST_BYTES: usize = 16 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// What the load threads run; none for the idle machine.
    pub(super) load: Option<&'static Kernel>,
    pub(super) cpus: usize,
    pub(super) pause_ns: u64,
}

/// Conditions that all rows share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chase {
    pub(super) working_set_bytes: usize,
    pub(super) pages: &'static str,
}

impl Point {
    pub(super) const IDLE: Self = Self { load: None, cpus: 0, pause_ns: 0 };

    pub(super) fn latency(&self, chase: &Chase) -> Row {
        self.row("chase", Kind::Latency, chase).per_turn(LOADS_PER_TURN as f64)
    }

    /// The row of bytes that the load moved meanwhile. A pair holds the ticks in which it moved [`TRAFFIC_BYTES`].
    pub(super) fn traffic(&self, chase: &Chase) -> Row {
        let mut row = self.row("traffic", Kind::Throughput, chase).per_turn(TRAFFIC_BYTES);
        row.long_turns = 1;
        row
    }

    fn row(&self, operation: &str, kind: Kind, chase: &Chase) -> Row {
        Row::new(NAME, operation, kind)
            .of_batches()
            .with("load", self.load.map_or("none", |k| k.name))
            .with("load_cpus", self.cpus)
            .with("pause_ns", self.pause_ns as i64)
            .with("working_set_bytes", chase.working_set_bytes)
            .with("stride_bytes", STRIDE_BYTES)
            .with("pages", chase.pages)
    }
}

/// Bytes of one turn of a row of traffic: windows differ in length and bytes, so each is told as the time of so many bytes.
pub(super) const TRAFFIC_BYTES: f64 = 1e6;

/// The points for `others` CPUs beside the one that chases, by the time there is.
pub(super) fn points(left_ns: u64, others: usize) -> Vec<Point> {
    let mut out = vec![Point::IDLE];
    let point = |family: &str, cpus, pause_ns| Some(Point { load: Some(widest(family)?), cpus, pause_ns });
    let (families, pauses): (&[&str], &[u64]) = match left_ns {
        0..700_000_000 => (&["read"], &[0, 2_000]),
        700_000_000..3_000_000_000 => (&["read"], &[0, 250, 1_000, 4_000]),
        _ => (&["read", "copy", "write_nt"], &[0, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]),
    };
    for family in families {
        out.extend(pauses.iter().filter_map(|pause_ns| point(family, others, *pause_ns)));
    }
    if left_ns >= 700_000_000 && families.len() == 1 {
        out.extend(point("copy", others, 0));
    }
    if left_ns >= 3_000_000_000 {
        let fewer = (0..usize::BITS).map(|s| 1_usize << s).take_while(|n| *n < others);
        out.extend(fewer.filter_map(|cpus| point("read", cpus, 0)));
    }
    out
}
