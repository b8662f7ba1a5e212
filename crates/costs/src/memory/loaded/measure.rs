//! The measurement: member 0 of a team follows a chain through memory, the others move data and publish how much.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::budget::stop_requested;
use machmeter_engine::cost::{Pair, Rejected, Row};
use machmeter_engine::sampling::{Disturbance, HostTiming, Pace, Timing};
use machmeter_engine::team::{Arena, Member, Seats, Team, TeamError};
use machmeter_stats::random::Random;
use machmeter_sys::clock::{SourceId, TickRate};
use machmeter_sys::kernel::chain::{Chain, LOADS_PER_TURN};
use machmeter_sys::kernel::{Ready, named};
use machmeter_sys::thread::{Usage, monotonic_ns};

use super::plan::{BURST_BYTES, Chase, Point, TRAFFIC_BYTES};
use crate::memory::bandwidth::crew::ticks;
use crate::memory::bandwidth::stream::{Buffer, Stream};

/// Cells of the arena: the order, which point it means, members ready; then three per member.
const ORDER: usize = 0;
const POINT: usize = 1;
const READY: usize = 2;
const FIRST: usize = 3;
const PER_MEMBER: usize = 3;
/// Of a member: bytes moved so far; times it was switched out; how often it has told that.
const BYTES: usize = 0;
const SWITCHES: usize = 1;
const TOLD: usize = 2;

/// `POINT` when the work is over.
const QUIT: u64 = u64::MAX;
/// Pairs per visit of a point, and rounds after which more change nothing.
const PAIRS: usize = 4;
const MOST_ROUNDS: usize = 40;

/// Members, their memory, and the time.
pub(super) struct Setting<'a> {
    pub(super) seats: &'a Seats,
    /// Memory of the load threads: member `i` has number `i - 1`.
    pub(super) buffers: &'a [Buffer],
    pub(super) points: &'a [Point],
    pub(super) chase: Chase,
    pub(super) source: SourceId,
    pub(super) rate: TickRate,
    pub(super) seed: u64,
    pub(super) until_ns: u64,
}

/// Latency and traffic of each point.
///
/// # Errors
/// [`TeamError`] when a member cannot be placed or dies.
pub(super) fn measure(
    team: &dyn Team,
    setting: &Setting<'_>,
    chain: Chain<'_>,
) -> Result<Vec<Row>, TeamError> {
    let members = setting.seats.cpus.len();
    let arena = Arena::new(FIRST + PER_MEMBER * members, 0).map_err(|e| TeamError::Start {
        model: team.model(),
        rank: 0,
        why: e.to_string(),
    })?;
    let floor = Floor { arena: &arena, setting };
    let rows =
        setting.points.iter().map(|p| (p.latency(&setting.chase, LOADS_PER_TURN), p.traffic(&setting.chase)));
    let state = Mutex::new((chain, rows.collect::<Vec<(Row, Row)>>()));
    let limit_ns = setting.until_ns.saturating_sub(monotonic_ns()).max(1_000_000);
    team.run(setting.seats, limit_ns, &|member| {
        if member.rank == 0 {
            if let Ok(mut state) = state.lock() {
                let (chain, rows) = &mut *state;
                floor.chase(member, chain, rows);
            }
            floor.cell(POINT).store(QUIT, Ordering::Relaxed);
            floor.cell(ORDER).store(u64::MAX, Ordering::Release);
        } else {
            floor.load(member);
        }
    })?;
    let (_, rows) = state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(rows.into_iter().flat_map(|(latency, traffic)| [latency, traffic]).map(reached).collect())
}

fn reached(mut row: Row) -> Row {
    if row.pairs.is_empty() && row.rejected == Rejected::default() && row.text("load") != "none" {
        row.refused = Some("the time was over before it was reached".to_owned());
    }
    row
}

/// What the members share.
struct Floor<'a> {
    arena: &'a Arena,
    setting: &'a Setting<'a>,
}

impl Floor<'_> {
    fn cell(&self, i: usize) -> &AtomicU64 {
        static NONE: AtomicU64 = AtomicU64::new(0);
        // The arena was made with all of them.
        self.arena.cell(i).unwrap_or(&NONE)
    }

    fn of_member(&self, rank: usize, what: usize) -> &AtomicU64 {
        self.cell(FIRST + rank * PER_MEMBER + what)
    }

    fn active(&self, point: &Point, what: usize) -> Vec<u64> {
        (1..=point.cpus).map(|rank| self.of_member(rank, what).load(Ordering::Acquire)).collect()
    }

    /// A load thread: fills its memory, then runs the load of each point until the next.
    fn load(&self, member: &Member<'_>) {
        let s = self.setting;
        let Some(buffer) = s.buffers.get(member.rank - 1) else { return };
        buffer.fill(s.seed + member.rank as u64);
        let walk = |p: &Point| Stream::in_chunks(p.load?, buffer, buffer.bytes(), BURST_BYTES).ok();
        let mut streams: Vec<Option<Stream<'_>>> = s.points.iter().map(walk).collect();
        let pause = named("adds.16").and_then(|k| k.ready(1, [buffer.pages().extent(); 3], 0).ok());
        let ns_per_pass = pause.map_or(1.0, |p| pass_ns(&p, s));
        self.cell(READY).fetch_add(1, Ordering::AcqRel);
        let order = self.cell(ORDER);
        let mut seen = 0;
        while member.wait(|| order.load(Ordering::Acquire) > seen) {
            seen = order.load(Ordering::Acquire);
            let at = self.cell(POINT).load(Ordering::Relaxed);
            let Some(point) = s.points.get(at as usize).filter(|_| at != QUIT) else { return };
            let Some(Some(stream)) = streams.get_mut(at as usize) else { continue };
            if member.rank > point.cpus {
                continue;
            }
            let passes = (point.pause_ns as f64 / ns_per_pass).round() as u64;
            self.bursts(member, stream, seen, &|| {
                if let Some(pause) = pause {
                    pause.run(passes);
                }
            });
        }
    }

    /// Moves data until the next order, a burst and a pause at a time.
    fn bursts(&self, member: &Member<'_>, stream: &mut Stream<'_>, order: u64, pause: &dyn Fn()) {
        let bytes = self.of_member(member.rank, BYTES);
        let burst_bytes = stream.bytes_per_turn();
        let mut moved = bytes.load(Ordering::Relaxed);
        let mut told_ns = 0;
        loop {
            // The system is asked about switches seldom: about once in a hundred microseconds.
            for _ in 0..4 {
                stream.walk(1);
                moved += burst_bytes;
                bytes.store(moved, Ordering::Relaxed);
                pause();
            }
            let now_ns = monotonic_ns();
            if now_ns - told_ns > 100_000 {
                let switches = Usage::of_current_thread().involuntary_switches;
                self.of_member(member.rank, SWITCHES).store(switches, Ordering::Relaxed);
                self.of_member(member.rank, TOLD).fetch_add(1, Ordering::Release);
                told_ns = now_ns;
            }
            if self.cell(ORDER).load(Ordering::Acquire) != order || now_ns >= member.deadline_ns {
                return;
            }
        }
    }

    /// Member 0: all points in rounds of random order until the time is over.
    fn chase(&self, member: &Member<'_>, chain: &mut Chain<'_>, rows: &mut [(Row, Row)]) {
        let others = member.members as u64 - 1;
        if !member.wait(|| self.cell(READY).load(Ordering::Acquire) == others) {
            return;
        }
        let mut random = Random::new(self.setting.seed);
        let start_ns = monotonic_ns();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for _ in 0..MOST_ROUNDS {
            for i in (1..order.len()).rev() {
                let j = (random.unit() * (i + 1) as f64) as usize;
                order.swap(i, j.min(i));
            }
            for &i in &order {
                if stop_requested() || monotonic_ns() >= self.setting.until_ns {
                    return;
                }
                self.cell(POINT).store(i as u64, Ordering::Relaxed);
                self.cell(ORDER).fetch_add(1, Ordering::AcqRel);
                let point = &self.setting.points[i];
                let before = self.active(point, TOLD);
                let begun = || self.active(point, TOLD).iter().zip(&before).all(|(now, b)| now > b);
                if !member.wait(begun) {
                    return;
                }
                let (latency, traffic) = &mut rows[i];
                if latency.long_turns == 0 {
                    let turns = self.turns(chain);
                    (latency.short_turns, latency.long_turns) = (turns, 2 * turns);
                }
                chain.chase(latency.short_turns / 2 + 1);
                for _ in 0..PAIRS {
                    let at_ns = monotonic_ns().saturating_sub(start_ns) as f64;
                    match self.pair(member, chain, point, latency, random.unit() < 0.5) {
                        Ok((short_ticks, long_ticks, traffic_ticks)) => {
                            latency.pairs.push(Pair { at_ns, short_ticks, long_ticks, ..Pair::default() });
                            let pair = Pair { at_ns, long_ticks: traffic_ticks, ..Pair::default() };
                            traffic.pairs.extend((point.cpus > 0).then_some(pair));
                        }
                        Err(disturbance) => latency.rejected.count(disturbance),
                    }
                }
                traffic.rejected = latency.rejected;
            }
        }
    }

    /// Turns of the chain that take about as long as a short batch.
    fn turns(&self, chain: &mut Chain<'_>) -> u64 {
        let mut timing = HostTiming::new(self.setting.source);
        let ns = (0..3)
            .map(|_| self.setting.rate.ns(timing.time(&mut || chain.chase(16))))
            .fold(f64::INFINITY, f64::min);
        ((Pace::BATCH_NS / 2.0 / ns.max(1.0) * 16.0).round() as u64).max(16)
    }

    /// Ticks of a short and of a long batch of loads, and ticks in which the load moved [`TRAFFIC_BYTES`] in the same window.
    fn pair(
        &self,
        member: &Member<'_>,
        chain: &mut Chain<'_>,
        point: &Point,
        row: &Row,
        long_first: bool,
    ) -> Result<(u64, u64, u64), Disturbance> {
        let source = self.setting.source;
        let mut timing = HostTiming::new(source);
        let mark = timing.mark();
        let switches = self.active(point, SWITCHES);
        let before = self.active(point, BYTES);
        let start = ticks(source);
        let mut batch = |turns| timing.time(&mut || chain.chase(turns));
        let (short, long) = if long_first {
            let long = batch(row.long_turns);
            (batch(row.short_turns), long)
        } else {
            (batch(row.short_turns), batch(row.long_turns))
        };
        let after = self.active(point, BYTES);
        let window = ticks(source).saturating_sub(start) as f64;
        if let Some(d) = timing.disturbed_since(mark) {
            return Err(d);
        }
        // Switches of the load threads are known once they have told them after the window.
        let told = self.active(point, TOLD);
        let all_told = || self.active(point, TOLD).iter().zip(&told).all(|(now, t)| now > t);
        if !member.wait(all_told) || self.active(point, SWITCHES) != switches {
            return Err(Disturbance::Partner);
        }
        let moved: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a.saturating_sub(*b)).collect();
        if moved.contains(&0) {
            return Err(Disturbance::Partner);
        }
        let bytes: u64 = moved.iter().sum();
        Ok((short, long, (window * TRAFFIC_BYTES / bytes.max(1) as f64).round() as u64))
    }
}

/// Time of one pass of the pause.
fn pass_ns(pause: &Ready<'_>, setting: &Setting<'_>) -> f64 {
    const PASSES: u64 = 2_000;
    let mut timing = HostTiming::new(setting.source);
    let ns = (0..3).map(|_| {
        setting.rate.ns(timing.time(&mut || {
            pause.run(PASSES);
        }))
    });
    (ns.fold(f64::INFINITY, f64::min) / PASSES as f64).max(0.01)
}
