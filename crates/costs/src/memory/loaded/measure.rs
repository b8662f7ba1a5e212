//! The measurement: member 0 of a team follows a chain through memory, while the others move data and count how much.

use std::sync::{Mutex, OnceLock, PoisonError};

use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_engine::sampling::{HostTiming, Pace, Timing};
use machmeter_engine::team::Member;
use machmeter_engine::team::sampler::{JointOperation, Others, Rule, TeamCell, Turns};
use machmeter_sys::kernel::chain::{Chain, LOADS_PER_TURN};
use machmeter_sys::kernel::{Ready, named};

use super::plan::{BURST_BYTES, Chase, Point, STRIDE_BYTES, TRAFFIC_BYTES};
use crate::memory::bandwidth::stream::{Buffer, Stream};
use crate::memory::bandwidth::together::Setting;
use crate::memory::ladder::chase::PAGE_BYTES;

const PAIRS: usize = 4;
/// Fewest turns of a short batch along the chain.
const LEAST_TURNS: u64 = 16;

/// What all points share: the chain of member 0, and what members beside it do.
pub(super) struct Loaded<'a, 'c> {
    setting: &'a Setting<'a>,
    chain: Mutex<Chain<'c>>,
    pause: Ready<'static>,
    /// Time of one pass of the pause on the CPU of member `i + 1`; known when its memory is filled.
    pass_ns: Vec<OnceLock<f64>>,
}

impl<'a, 'c> Loaded<'a, 'c> {
    pub(super) fn new(setting: &'a Setting<'a>, chain: Chain<'c>) -> Result<Self, String> {
        let pause = named("adds.16").and_then(|k| k.of_registers(1));
        let pause = pause.ok_or("the kernel of pauses is missing")?;
        let pass_ns = setting.buffers.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { setting, chain: Mutex::new(chain), pause, pass_ns })
    }
}

/// A point of the curve. A turn of member 0 is one of the chain, of others a burst and a pause.
struct Beside<'l, 'c> {
    loaded: &'l Loaded<'l, 'c>,
    point: &'l Point,
    streams: Vec<Mutex<Stream<'l>>>,
}

impl JointOperation for Beside<'_, '_> {
    fn prepare(&self, member: &Member<'_>) -> bool {
        let Loaded { setting, chain, pause, pass_ns } = self.loaded;
        let Some(other) = member.rank.checked_sub(1) else {
            // Brings the tables of translations back that other cells drove out: eight entries a line, four looks at each line.
            let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
            let loads = (chain.nodes() * STRIDE_BYTES / PAGE_BYTES) as u64 / 2;
            chain.chase(loads / LOADS_PER_TURN);
            return true;
        };
        let (Some(buffer), Some(known)) = (setting.buffers.get(other), pass_ns.get(other)) else {
            return false;
        };
        known.get_or_init(|| {
            buffer.fill(setting.seed + member.rank as u64);
            time_of_pass_ns(pause, setting)
        });
        true
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        let Loaded { chain, pause, pass_ns, .. } = self.loaded;
        let Some(other) = member.rank.checked_sub(1) else {
            chain.lock().unwrap_or_else(PoisonError::into_inner).chase(turns);
            return true;
        };
        let (Some(pass_ns), Some(stream)) = (pass_ns.get(other), self.streams.get(other)) else {
            return false;
        };
        let passes = self.point.pause_ns as f64 / pass_ns.get().copied().unwrap_or(1.0);
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..turns {
            stream.walk(1);
            pause.run(passes.round() as u64);
        }
        true
    }
}

pub(super) struct PointCell<'l, 'c> {
    beside: Beside<'l, 'c>,
    burst_bytes: u64,
    rows: [Row; 2],
}

impl<'l, 'c> PointCell<'l, 'c> {
    pub(super) fn new(loaded: &'l Loaded<'l, 'c>, point: &'l Point, chase: &Chase) -> Result<Self, String> {
        let buffers = loaded.setting.buffers.iter().take(point.cpus).zip(point.load.into_iter().cycle());
        let stream =
            |(buffer, kernel): (&&'l Buffer, _)| Stream::new(kernel, buffer, buffer.bytes, BURST_BYTES);
        let streams: Vec<Stream<'l>> = buffers.map(stream).collect::<Result<_, _>>()?;
        let burst_bytes = streams.first().map_or(0, Stream::bytes_per_turn);
        let beside = Beside { loaded, point, streams: streams.into_iter().map(Mutex::new).collect() };
        Ok(Self { beside, burst_bytes, rows: [point.latency(chase), point.traffic(chase)] })
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
        let Self { beside, burst_bytes, rows: [latency, traffic] } = self;
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
        match beside.loaded.setting.team(visit).take_row(cell, latency, 0.0) {
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

fn time_of_pass_ns(pause: &Ready<'_>, setting: &Setting<'_>) -> f64 {
    const PASSES: u64 = 2_000;
    let mut timing = HostTiming::new(setting.clock.source);
    let ns = (0..3).map(|_| {
        setting.clock.rate.ns(timing.time(&mut || {
            pause.run(PASSES);
        }))
    });
    (ns.fold(f64::INFINITY, f64::min) / PASSES as f64).max(0.01)
}
