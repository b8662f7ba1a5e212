//! The measurement: member 0 of a team follows a chain through memory, while the others move data and count how much.

use std::sync::{Mutex, OnceLock, PoisonError};

use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_engine::sampling::{HostTiming, Pace, Timing};
use machmeter_engine::team::sampler::{JointOperation, Others, Rule, TeamCell, Turns};
use machmeter_engine::team::{Member, Team};
use machmeter_sys::kernel::chain::{Chain, LOADS_PER_TURN};
use machmeter_sys::kernel::{Ready, named};

use super::STRIDE_BYTES;
use super::plan::{BURST_BYTES, Chase, Point, TRAFFIC_BYTES};
use crate::memory::bandwidth::stream::{Buffer, Stream};
use crate::memory::bandwidth::together::Setting;
use crate::memory::ladder::chase::PAGE_BYTES;

/// Pairs per visit of a point.
const PAIRS: usize = 4;
/// Fewest turns of a short batch along the chain.
const LEAST_TURNS: u64 = 16;

/// A load thread: its memory, and how long it pauses.
struct Load<'a> {
    buffer: &'a Buffer,
    pause: Ready<'a>,
    /// Time of one pass of the pause on its CPU; known when its memory is filled.
    pass_ns: OnceLock<f64>,
}

/// A point of the curve. A turn of member 0 is one of the chain, of others a burst and a pause.
struct Beside<'a, 'c> {
    setting: &'a Setting<'a>,
    point: &'a Point,
    chain: &'a Mutex<Chain<'c>>,
    loads: &'a [Load<'a>],
    streams: Vec<Mutex<Stream<'a>>>,
}

impl<'a, 'c> Beside<'a, 'c> {
    fn new(
        setting: &'a Setting<'a>,
        point: &'a Point,
        chain: &'a Mutex<Chain<'c>>,
        loads: &'a [Load<'a>],
    ) -> Result<Self, String> {
        let stream = |(load, kernel): (&'a Load<'a>, _)| {
            Stream::in_chunks(kernel, load.buffer, load.buffer.bytes(), BURST_BYTES).map(Mutex::new)
        };
        let kernels = point.load.into_iter().cycle();
        let streams = loads.iter().take(point.cpus).zip(kernels).map(stream).collect::<Result<_, _>>();
        Ok(Self { setting, point, chain, loads, streams: streams.map_err(|e| e.to_string())? })
    }

    fn burst_bytes(&self) -> u64 {
        let lock = |s: &Mutex<Stream<'_>>| s.lock().unwrap_or_else(PoisonError::into_inner).bytes_per_turn();
        self.streams.first().map_or(0, lock)
    }
}

impl JointOperation for Beside<'_, '_> {
    fn prepare(&self, member: &Member<'_>) -> bool {
        if member.rank == 0 {
            // Brings the tables of translations back that other cells drove out: eight entries a line, four looks at each line.
            let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
            let loads = (chain.nodes() * STRIDE_BYTES / PAGE_BYTES) as u64 / 2;
            chain.chase(loads / LOADS_PER_TURN);
            return true;
        }
        let Some(load) = self.loads.get(member.rank - 1) else { return false };
        load.pass_ns.get_or_init(|| {
            load.buffer.fill(self.setting.seed + member.rank as u64);
            pass_ns(&load.pause, self.setting)
        });
        true
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        if member.rank == 0 {
            self.chain.lock().unwrap_or_else(PoisonError::into_inner).chase(turns);
            return true;
        }
        let at = member.rank - 1;
        let (Some(load), Some(stream)) = (self.loads.get(at), self.streams.get(at)) else { return false };
        let passes = self.point.pause_ns as f64 / load.pass_ns.get().copied().unwrap_or(1.0);
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..turns {
            stream.walk(1);
            load.pause.run(passes.round() as u64);
        }
        true
    }
}

/// What all points share: the chain of member 0, and load `i` of member `i + 1`.
pub(super) struct Loaded<'a, 'c> {
    setting: &'a Setting<'a>,
    chain: Mutex<Chain<'c>>,
    loads: Vec<Load<'a>>,
}

impl<'a, 'c> Loaded<'a, 'c> {
    pub(super) fn new(setting: &'a Setting<'a>, chain: Chain<'c>) -> Result<Self, String> {
        let load =
            |buffer: &&'a Buffer| Some(Load { buffer, pause: pause(buffer)?, pass_ns: OnceLock::new() });
        let loads: Option<Vec<Load<'a>>> = setting.buffers.iter().map(load).collect();
        let loads = loads.ok_or("the kernel of pauses is missing")?;
        Ok(Self { setting, chain: Mutex::new(chain), loads })
    }
}

/// Latency and traffic of a point.
pub(super) struct PointCell<'l, 'c> {
    beside: Beside<'l, 'c>,
    burst_bytes: u64,
    rows: [Row; 2],
    team: &'static dyn Team,
}

impl<'l, 'c> PointCell<'l, 'c> {
    pub(super) fn new(
        team: &'static dyn Team,
        loaded: &'l Loaded<'l, 'c>,
        point: &'l Point,
        chase: &Chase,
    ) -> Result<Self, String> {
        let beside = Beside::new(loaded.setting, point, &loaded.chain, &loaded.loads)?;
        let rows = [point.latency(chase, LOADS_PER_TURN), point.traffic(chase)];
        Ok(Self { burst_bytes: beside.burst_bytes(), beside, rows, team })
    }
}

impl Cell for PointCell<'_, '_> {
    fn rows(&self) -> &[Row] {
        &self.rows[..1]
    }

    fn expected_ns(&self) -> u64 {
        3 * (PAIRS as u64 + 2) * Pace::BATCH_NS as u64
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let Self { beside, burst_bytes, rows: [latency, traffic], team } = self;
        let cell = TeamCell {
            others: Others::Throughout,
            rule: Rule::Together,
            ..TeamCell::new(
                &*beside,
                1 + beside.point.cpus,
                Turns { least: LEAST_TURNS, ..Turns::of(Pace::BATCH_NS / 2.0) },
                PAIRS,
            )
        };
        match beside.setting.team(*team, visit).take_row(cell, latency, 0.0) {
            Ok(found) => {
                let visit = traffic.next_visit();
                for s in found.of(0, 0).filter(|s| s.disturbance.is_none() && s.others_turns > 0) {
                    let bytes = (s.others_turns * *burst_bytes) as f64;
                    let long_ticks = (s.window_ticks as f64 * TRAFFIC_BYTES / bytes).round() as u64;
                    traffic.pairs.push(Pair { at_ns: s.at_ns as f64, visit, long_ticks, ..Pair::default() });
                }
                traffic.rejected = latency.rejected;
            }
            Err(why) => latency.refused = Some(why),
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        let [latency, traffic] = self.rows;
        vec![latency.reached(), if self.beside.point.cpus > 0 { traffic.reached() } else { traffic }]
    }
}

fn pause(buffer: &Buffer) -> Option<Ready<'_>> {
    named("adds.16")?.ready(1, [buffer.pages().extent(); 3], 0).ok()
}

/// Time of one pass of the pause.
fn pass_ns(pause: &Ready<'_>, setting: &Setting<'_>) -> f64 {
    const PASSES: u64 = 2_000;
    let mut timing = HostTiming::new(setting.clock.source);
    let ns = (0..3).map(|_| {
        setting.clock.rate.ns(timing.time(&mut || {
            pause.run(PASSES);
        }))
    });
    (ns.fold(f64::INFINITY, f64::min) / PASSES as f64).max(0.01)
}
