//! Rows with several CPUs: every member of a team walks over its own memory, all start together, and a sample is the time
//! from the first start to the last end.

use std::sync::{Mutex, PoisonError};

use machmeter_engine::cost::Row;
use machmeter_engine::team::sampler::{Clocked, HostClock, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{Member, Seats, Team};
use machmeter_sys::thread::monotonic_ns;

use super::plan::Spec;
use super::stream::{Buffer, Stream};
use super::{BATCH_NS, MOST_ROUNDS, PAIRS};

pub(in crate::memory) struct Setting<'a> {
    pub(in crate::memory) seats: &'a Seats,
    pub(in crate::memory) buffers: &'a [Buffer],
    pub(in crate::memory) clock: HostClock,
    pub(in crate::memory) seed: u64,
    pub(in crate::memory) until_ns: u64,
}

impl<'a> Setting<'a> {
    /// A visit that lasts until the end and goes round over its cells.
    pub(in crate::memory) fn visit(&'a self, team: &'a dyn Team) -> TeamVisit<'a> {
        let start_ns = monotonic_ns();
        let limit_ns = self.until_ns.saturating_sub(start_ns).max(1_000_000);
        let visit = TeamVisit::new(team, self.seats, &self.clock, start_ns, limit_ns, self.seed);
        TeamVisit { laps: MOST_ROUNDS, ..visit }
    }
}

struct Walks<'a> {
    setting: &'a Setting<'a>,
    streams: Vec<Mutex<Stream<'a>>>,
}

impl<'a> Walks<'a> {
    fn with(&self, member: &Member<'_>, work: impl FnOnce(&mut Stream<'a>)) -> bool {
        let stream = self.streams.get(member.rank);
        stream.map(|s| work(&mut s.lock().unwrap_or_else(PoisonError::into_inner))).is_some()
    }
}

impl JointOperation for Walks<'_> {
    fn prepare(&self, member: &Member<'_>) -> bool {
        // Member 0's has been filled on its CPU.
        if let Some(buffer) = self.setting.buffers.get(member.rank).filter(|_| member.rank > 0) {
            buffer.fill_once(self.setting.seed + member.rank as u64);
        }
        self.with(member, Stream::warm)
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.with(member, |stream| stream.walk(turns))
    }
}

/// Measures `specs` with a team, whose members have a buffer each, and gives a row for each.
///
/// # Errors
/// One line: a member cannot be placed or dies.
pub(super) fn measure(team: &dyn Team, setting: &Setting<'_>, specs: &[Spec]) -> Result<Vec<Row>, String> {
    let (mut rows, mut walks) = (Vec::new(), Vec::new());
    for spec in specs {
        let stream = |b| Stream::new(spec.kernel, b, spec.working_set_bytes).map(Mutex::new);
        match setting.buffers.iter().take(spec.cpus).map(stream).collect::<Result<Vec<_>, _>>() {
            Ok(streams) => walks.push((spec, Walks { setting, streams })),
            Err(e) => rows.push(spec.refused(&e.to_string())),
        }
    }
    let cells: Vec<TeamCell<'_>> = walks
        .iter()
        .map(|(spec, walk)| TeamCell {
            clocked: Clocked::FirstToLast,
            rule: Rule::Together,
            ..TeamCell::new(walk, spec.cpus, Turns::of(BATCH_NS), PAIRS)
        })
        .collect();
    let found = setting.visit(team).take(&cells)?;
    for (cell, (spec, walk)) in walks.iter().enumerate() {
        let stream = walk.streams.first().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        let mut row = spec.row(stream.map_or(1, |s| s.kernel_turns()));
        found.record(cell, 0, &mut row, 0.0);
        rows.push(row.reached());
    }
    Ok(rows)
}
