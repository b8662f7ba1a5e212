//! Rows with several CPUs: every member of a team walks over its own memory, all start together, and a sample is the time
//! from the first start to the last end. Member 0 conducts: it says which row, how many turns, and go.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::budget::stop_requested;
use machmeter_engine::calibration::{self, Tried};
use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::sampling::{Disturbance, HostTiming, Timing};
use machmeter_engine::team::{Arena, Member, Seats, Team, TeamError};
use machmeter_stats::random::Random;
use machmeter_sys::clock::{self, SourceId, TickRate};
use machmeter_sys::thread::monotonic_ns;

use super::plan::Spec;
use super::stream::{Buffer, Stream};
use super::{BATCH_NS, MOST_ROUNDS, PAIRS};

/// Cells of the arena: orders of member 0, then four per member.
const GO: usize = 0;
const ROW: usize = 1;
const TURNS: usize = 2;
const READY: usize = 3;
const FIRST: usize = 4;
const PER_MEMBER: usize = 4;
/// Of a member: number of the last order it has done; ticks of start and end; 1 when it was switched out or moved.
const DONE: usize = 0;
const START: usize = 1;
const END: usize = 2;
const DISTURBED: usize = 3;

/// `ROW` when the work is over.
const QUIT: u64 = u64::MAX;
/// Part of the long batch by which a start may be late: beyond it, the members did not work at the same time.
const LATE: f64 = 0.05;

/// The counter of the run's clock, ticks. Readings of different CPUs are compared: they agree to far less than a batch, or another
/// clock would have been taken.
pub(in crate::memory) fn ticks(source: SourceId) -> u64 {
    // The source was qualified before, so it is there.
    clock::now(source).unwrap_or(0)
}

/// What the members share.
struct Crew<'a> {
    arena: &'a Arena,
    source: SourceId,
    rate: TickRate,
    specs: &'a [Spec],
    buffers: &'a [Buffer],
    seed: u64,
    until_ns: u64,
}

/// Members, their memory, and the time.
pub(super) struct Setting<'a> {
    pub(super) seats: &'a Seats,
    /// One for each seat. The first has been filled by a thread on the first seat's CPU.
    pub(super) buffers: &'a [Buffer],
    pub(super) source: SourceId,
    pub(super) rate: TickRate,
    pub(super) seed: u64,
    pub(super) until_ns: u64,
}

/// Measures `specs` with a team and gives a row for each.
///
/// # Errors
/// [`TeamError`] when a member cannot be placed or dies.
pub(super) fn measure(team: &dyn Team, setting: &Setting<'_>, specs: &[Spec]) -> Result<Vec<Row>, TeamError> {
    let members = setting.seats.cpus.len();
    let arena = Arena::new(FIRST + PER_MEMBER * members, 0).map_err(|e| TeamError::Start {
        model: team.model(),
        rank: 0,
        why: e.to_string(),
    })?;
    let crew = Crew {
        arena: &arena,
        source: setting.source,
        rate: setting.rate,
        specs,
        buffers: setting.buffers,
        seed: setting.seed,
        until_ns: setting.until_ns,
    };
    let rows: Vec<Row> = specs.iter().map(|s| s.row(1)).collect();
    let rows = Mutex::new(rows);
    let limit_ns = setting.until_ns.saturating_sub(monotonic_ns()).max(1_000_000);
    team.run(setting.seats, limit_ns, &|member| {
        if member.rank == 0 {
            if let Ok(mut rows) = rows.lock() {
                crew.conduct(member, &mut rows);
            }
            crew.cell(ROW).store(QUIT, Ordering::Relaxed);
            crew.cell(GO).store(u64::MAX, Ordering::Release);
        } else {
            crew.serve(member);
        }
    })?;
    let mut rows = rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    for row in
        rows.iter_mut().filter(|r| r.pairs.is_empty() && r.rejected.total() == 0 && r.refused.is_none())
    {
        row.refused = Some("the time was over before it was reached".to_owned());
    }
    Ok(rows)
}

impl Crew<'_> {
    fn cell(&self, i: usize) -> &AtomicU64 {
        static NONE: AtomicU64 = AtomicU64::new(0);
        // The arena was made with all of them.
        self.arena.cell(i).unwrap_or(&NONE)
    }

    fn of_member(&self, rank: usize, what: usize) -> &AtomicU64 {
        self.cell(FIRST + rank * PER_MEMBER + what)
    }

    /// The walks of one member, by row; `None` where the row is not for it or cannot be run.
    fn streams(&self, rank: usize) -> Vec<Option<Stream<'_>>> {
        let buffer = self.buffers.get(rank);
        let stream = |s: &Spec| {
            (rank < s.cpus).then(|| Stream::new(s.kernel, buffer?, s.working_set_bytes).ok()).flatten()
        };
        self.specs.iter().map(stream).collect()
    }

    /// A member's batch, timed.
    fn batch(&self, rank: usize, stream: &mut Stream<'_>, turns: u64) {
        let mut timing = HostTiming::new(self.source);
        let mark = timing.mark();
        let start = ticks(self.source);
        stream.walk(turns);
        let end = ticks(self.source);
        let disturbed = timing.disturbed_since(mark).is_some();
        self.of_member(rank, START).store(start, Ordering::Relaxed);
        self.of_member(rank, END).store(end, Ordering::Relaxed);
        self.of_member(rank, DISTURBED).store(u64::from(disturbed), Ordering::Relaxed);
    }

    /// A member: fills its memory, then does as told until told to quit.
    fn serve(&self, member: &Member<'_>) {
        if let Some(buffer) = self.buffers.get(member.rank) {
            buffer.fill(self.seed + member.rank as u64);
        }
        let mut streams = self.streams(member.rank);
        self.cell(READY).fetch_add(1, Ordering::AcqRel);
        let mut order = 1;
        while member.wait(|| self.cell(GO).load(Ordering::Acquire) >= order) {
            let row = self.cell(ROW).load(Ordering::Relaxed);
            if row == QUIT {
                return;
            }
            let turns = self.cell(TURNS).load(Ordering::Relaxed);
            if let Some(Some(stream)) = streams.get_mut(row as usize) {
                self.batch(member.rank, stream, turns);
            }
            self.of_member(member.rank, DONE).store(order, Ordering::Release);
            order += 1;
        }
    }

    /// Member 0: all rows in rounds of random order until the time is over.
    fn conduct(&self, member: &Member<'_>, rows: &mut [Row]) {
        let mut streams = self.streams(0);
        let others = member.members as u64 - 1;
        if !member.wait(|| self.cell(READY).load(Ordering::Acquire) == others) {
            return;
        }
        let start_ns = monotonic_ns();
        let mut conductor =
            Conductor { crew: self, member, order: 0, random: Random::new(self.seed), start_ns };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for _ in 0..MOST_ROUNDS {
            for i in (1..order.len()).rev() {
                let j = (conductor.random.unit() * (i + 1) as f64) as usize;
                order.swap(i, j.min(i));
            }
            for &i in &order {
                if stop_requested() || monotonic_ns() >= self.until_ns {
                    return;
                }
                match &mut streams[i] {
                    Some(stream) => {
                        if conductor.visit(i, stream, &mut rows[i]).is_none() {
                            return;
                        }
                    }
                    None => rows[i].refused = Some("the kernel cannot be run on this memory".to_owned()),
                }
            }
        }
    }
}

struct Conductor<'a, 'm> {
    crew: &'a Crew<'a>,
    member: &'a Member<'m>,
    order: u64,
    random: Random,
    start_ns: u64,
}

impl Conductor<'_, '_> {
    /// One visit of a row: calibrate it the first time, warm, take pairs. `None` when the time is over.
    fn visit(&mut self, index: usize, stream: &mut Stream<'_>, row: &mut Row) -> Option<()> {
        let cpus = self.crew.specs[index].cpus;
        if row.long_turns == 0 {
            row.per_turn *= stream.kernel_turns() as f64;
            let rate = self.crew.rate;
            let turns = calibration::turns_for(BATCH_NS, stream.round().div_ceil(4), |turns| {
                let (ticks, _) = self.together(index, cpus, stream, turns)?;
                Some(Tried::of(rate.ns(ticks)))
            })?;
            (row.short_turns, row.long_turns) = (turns, turns * 2);
        } else {
            self.together(index, cpus, stream, stream.round().div_ceil(4))?;
        }
        for _ in 0..PAIRS {
            let at_ns = monotonic_ns().saturating_sub(self.start_ns) as f64;
            let lengths = [row.short_turns, row.long_turns];
            let long_first = self.random.unit() < 0.5;
            let first = self.together(index, cpus, stream, lengths[usize::from(long_first)])?;
            let second = self.together(index, cpus, stream, lengths[usize::from(!long_first)])?;
            let (short, long) = if long_first { (second, first) } else { (first, second) };
            match short.1.or(long.1) {
                None => {
                    row.pairs.push(Pair {
                        at_ns,
                        short_ticks: short.0,
                        long_ticks: long.0,
                        ..Pair::default()
                    });
                }
                Some(Disturbance::Partner) => row.rejected.partner += 1,
                Some(_) => row.rejected.preempted += 1,
            }
        }
        Some(())
    }

    /// One batch of all members of the row: ticks from the first start to the last end, and what disturbed it. `None` when a
    /// member did not end in time.
    fn together(
        &mut self,
        index: usize,
        cpus: usize,
        stream: &mut Stream<'_>,
        turns: u64,
    ) -> Option<(u64, Option<Disturbance>)> {
        let crew = self.crew;
        self.order += 1;
        crew.cell(ROW).store(index as u64, Ordering::Relaxed);
        crew.cell(TURNS).store(turns, Ordering::Relaxed);
        crew.cell(GO).store(self.order, Ordering::Release);
        crew.batch(0, stream, turns);
        for rank in 1..self.member.members {
            let done = crew.of_member(rank, DONE);
            if !self.member.wait(|| done.load(Ordering::Acquire) >= self.order) {
                return None;
            }
        }
        let of = |what: usize| (0..cpus).map(move |rank| crew.of_member(rank, what).load(Ordering::Relaxed));
        let (first, last) = (of(START).min()?, of(END).max()?);
        let ticks = last.saturating_sub(first);
        let late = of(START).max()?.saturating_sub(first) as f64 > LATE * ticks as f64;
        let disturbance = if of(DISTURBED).any(|d| d > 0) {
            Some(Disturbance::Preempted)
        } else if late {
            Some(Disturbance::Partner)
        } else {
            None
        };
        Some((ticks, disturbance))
    }
}
